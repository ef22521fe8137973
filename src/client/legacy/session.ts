// A session with a legacy server. It is a transport, so that the rest of the client need not know about sessions.
import { ProtocolError } from '../../protocol/errors.ts'
import type { Logger } from '../../protocol/logger.ts'
import type {
  ClientCapabilities,
  Implementation,
  LoggingLevel,
  RequestId,
  ServerCapabilities,
} from '../../protocol/messages.ts'
import type { Rounds } from '../../protocol/revisions/rounds.ts'
import { olderRevision } from '../../protocol/revisions/index.ts'
import { shown } from '../../protocol/text.ts'
import type { Answerers } from '../answers/answerers.ts'
import type { Capability } from '../capabilities.ts'
import type { ServerInfo } from '../discovery.ts'
import { readServer } from '../discovery.ts'
import { ClientError, closed, received } from '../errors.ts'
import type { Limits } from '../options.ts'
import { Deadline } from '../deadline.ts'
import type {
  RpcResponse,
  OutgoingRequest,
  ReceiveMessage,
  Transport,
  ResponseCallbacks,
} from '../transports/transport.ts'
import type { Channel, ChannelEvents } from './channel.ts'
import { isSessionLost } from './channel.ts'
import { CARRIES_STATE } from './carried-state.ts'
import { Questions } from './questions.ts'
import { InFlightCall } from './in-flight-call.ts'
import { LegacySubscriptions } from './subscriptions.ts'
import type { TaskDialect } from '../tasks/dialect.ts'
import { taskDialectOf } from './tasks.ts'

export interface SessionOptions {
  readonly info: Implementation
  readonly capabilities: ClientCapabilities
  readonly can: ReadonlySet<Capability>
  readonly answerers: Answerers
  readonly limits: Limits
  readonly logger: Logger
  readonly logLevel: LoggingLevel | undefined
  /** Proposed to the server. */
  readonly revision: string
  /** `only`: no other revision is accepted. `preferred`: a release is accepted too. */
  readonly proposes: 'only' | 'preferred'
  /** The name of a server that does not say its name. */
  readonly address: string
  /** Takes notifications. */
  readonly receive: ReceiveMessage
  readonly nextId: () => number
}

export interface SessionInfo {
  readonly revision: string
  /** Defined in revisions in which the client carries calls from round to round. */
  readonly rounds: Rounds | undefined
  /** Defined if the server makes tasks of calls. */
  readonly tasks: TaskDialect | undefined
  readonly server: ServerInfo
}

export class Session implements Transport {
  readonly usesParamHeaders = false
  readonly canLoseRequests = false
  readonly #options: SessionOptions
  readonly #channel: Channel
  readonly #questions: Questions
  readonly #subscriptions: LegacySubscriptions
  readonly #calls = new Map<RequestId, InFlightCall>()
  /** Of the session's own requests. */
  readonly #deadlines = new Set<Deadline>()
  #starting: Promise<SessionInfo> | undefined
  /** Of the last session. The next one must use the same revision. */
  #info: SessionInfo | undefined
  #isClosed = false

  constructor(options: SessionOptions, open: (events: ChannelEvents) => Channel) {
    const { answerers, can, limits, logger, receive, address, revision } = options
    this.#options = options
    this.#channel = open({
      receive: (message, requestId) => this.#receive(message, requestId),
      whenAnswered: (requestId, answered) => this.#calls.get(requestId)?.whenAnswered(answered) ?? false,
      sessionLost: () => this.#sessionLost(),
      eventsMissed: () => this.#subscriptions.fail(),
    })
    this.#questions = new Questions({
      sources: { answerers, can },
      maxRounds: limits.maxRounds,
      maxStateBytes: limits.maxStateBytes,
      maxOpenBytes: limits.maxResponseBytes,
      logger,
      server: () => this.#info?.server ?? { name: address, version: '', capabilities: {} },
      revision: () => this.#info?.revision ?? revision,
      reply: (message, isCarried) => this.#channel.notify(JSON.stringify(message), isCarried),
    })
    this.#subscriptions = new LegacySubscriptions({
      logger,
      receive,
      ready: () => this.#listen(),
      request: (method, params) => this.#tryRequest(method, params),
    })
  }

  /** Starts a session if there is none. */
  start(): Promise<SessionInfo> {
    if (this.#isClosed) return Promise.reject(closed())
    if (this.#starting === undefined) {
      const starting = this.#start()
      this.#starting = starting
      starting.catch(() => {
        if (this.#starting === starting) this.#starting = undefined
      })
    }
    return this.#starting
  }

  send(request: OutgoingRequest, callbacks: ResponseCallbacks): () => void {
    if (request.method === 'subscriptions/listen') return this.#subscriptions.add(request, callbacks)
    const { id } = request
    const call = new InFlightCall(request, callbacks.deadline)
    this.#calls.set(id, call)
    let isOver = false
    let cancel: (() => void) | undefined
    const end = (): void => {
      isOver = true
      this.#calls.delete(id)
      call.end()
    }
    const reject = (error: ClientError): void => {
      if (isOver) return
      end()
      callbacks.reject(error)
    }
    const resolve = (response: RpcResponse): void => {
      end()
      callbacks.resolve(response)
    }
    const attempt = async (isRetry: boolean): Promise<void> => {
      const starting = this.start()
      const { rounds } = await starting
      if (isOver) return
      cancel = this.#channel.send(request, {
        normalize: rounds?.readResponse,
        ...(callbacks.deadline !== undefined && { deadline: callbacks.deadline }),
        resolve,
        reject: (reason) => {
          if (!isSessionLost(reason) || isRetry) return reject(reason)
          if (this.#starting === starting) this.#sessionLost()
          attempt(true).catch(reject)
        },
      })
    }
    attempt(false).catch(reject)
    return () => {
      if (isOver) return
      end()
      cancel?.()
    }
  }

  async notify(text: string): Promise<void> {
    // Without a session nothing is outdated: the next session asks for everything anew.
    if (this.#starting === undefined) return
    await this.#starting
    try {
      await this.#channel.notify(text)
    } catch (error) {
      if (!isSessionLost(error)) throw error
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#questions.end()
    for (const deadline of this.#deadlines) deadline.abort(closed())
    await this.#channel.close()
  }

  async #start(): Promise<SessionInfo> {
    const { info: clientInfo, capabilities, revision: proposed, proposes, address } = this.#options
    const declared = { ...capabilities, ...CARRIES_STATE }
    const params = { protocolVersion: proposed, capabilities: declared, clientInfo }
    const result = await this.#request('initialize', params)
    const revision = olderRevision(result['protocolVersion'], [proposed])
    const agreed = revision?.name
    const only = this.#info?.revision ?? (proposes === 'only' ? proposed : agreed)
    if (revision === undefined || agreed === undefined || agreed !== only)
      throw noCommonRevision(result['protocolVersion'], only)
    const server = readServer(result, address)
    const tasks = taskDialectOf(revision, server.capabilities)
    const info = { revision: agreed, rounds: revision.rounds, tasks, server }
    this.#info = info
    this.#channel.useRevision(agreed)
    await this.#channel.notify('{"jsonrpc":"2.0","method":"notifications/initialized"}')
    // Servers may ask on this stream, and a question is lost if the stream is not open yet.
    await this.#channel.listen()
    await this.#setLogLevel(info.server.capabilities)
    return info
  }

  async #setLogLevel({ logging }: ServerCapabilities): Promise<void> {
    const { logLevel } = this.#options
    if (logLevel === undefined || logging === undefined) return
    await this.#tryRequest('logging/setLevel', { level: logLevel })
  }

  /** Returns false if the server refuses. */
  async #tryRequest(method: string, params: object): Promise<boolean> {
    try {
      await this.#request(method, params)
      return true
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.#options.logger.warn(`The server refused ${method}.`, { error })
      return false
    }
  }

  /** Sends a request of the session's own. */
  async #request(method: string, params: object): Promise<Record<string, unknown>> {
    if (this.#isClosed) throw closed()
    const { nextId, limits, revision } = this.#options
    const id = nextId()
    const text = JSON.stringify({ jsonrpc: '2.0', id, method, params })
    const request = { id, method, revision, name: undefined, headers: [], text, params: undefined, call: undefined }
    const deadline = new Deadline(method, limits.timeoutMs, undefined)
    this.#deadlines.add(deadline)
    try {
      const { result, error } = await deadline.wait<RpcResponse>((resolve, reject) =>
        this.#channel.send(request, { resolve, reject, deadline }),
      )
      if (error !== undefined) throw received(error)
      return result ?? {}
    } finally {
      this.#deadlines.delete(deadline)
    }
  }

  async #listen(): Promise<ServerCapabilities | undefined> {
    const { server } = await this.start()
    return (await this.#channel.listen()) ? server.capabilities : undefined
  }

  /** The next request starts a new session. */
  #sessionLost(): void {
    this.#starting = undefined
    this.#questions.end()
    this.#subscriptions.fail()
  }

  #receive(message: Record<string, unknown>, requestId: RequestId | undefined): void {
    const { method, id, params } = message
    if (id !== undefined && typeof method === 'string') {
      return this.#questions.receive(message, requestId, this.#callsOf(requestId))
    }
    if (method === 'notifications/cancelled') return this.#questions.cancelled(params, requestId)
    if (!this.#subscriptions.receive(message)) this.#options.receive(message, requestId)
  }

  /** The calls that a question may belong to: the one whose stream it arrived on, or else any. */
  #callsOf(requestId: RequestId | undefined): InFlightCall[] {
    const own = requestId === undefined ? undefined : this.#calls.get(requestId)
    return own === undefined ? [...this.#calls.values()].filter((call) => call.mayAsk) : [own]
  }
}

function noCommonRevision(theirs: unknown, ours: string | undefined): ClientError {
  return new ClientError(
    'REVISION',
    `initialize: the server must use ${ours === undefined ? 'a revision that this client supports' : `revision ${ours}`}, got ${shown(theirs)}.`,
  )
}
