// A session with an older server, in the place of a transport: whoever sends through it need not know that there is one.
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
import type { Answerers } from '../answers/answerers.ts'
import type { Capability } from '../capabilities.ts'
import type { ServerInfo } from '../discovery.ts'
import { readServer } from '../discovery.ts'
import { ClientError, closed } from '../errors.ts'
import { shown } from '../../protocol/text.ts'
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
import { isSessionGone } from './channel.ts'
import { CARRIES_STATE } from './carried-state.ts'
import { Questions } from './questions.ts'
import { InFlightCall } from './in-flight-call.ts'
import { LegacySubscriptions } from './subscriptions.ts'

export interface SessionOptions {
  readonly info: Implementation
  readonly capabilities: ClientCapabilities
  readonly can: ReadonlySet<Capability>
  readonly answerers: Answerers
  readonly limits: Limits
  readonly logger: Logger
  readonly logLevel: LoggingLevel | undefined
  /** Proposed to the server. With `isPinned` nothing else will do. */
  readonly revision: string
  readonly isPinned: boolean
  /** What a server that says no name is called. */
  readonly address: string
  /** Takes what is no response, and no question. */
  readonly receive: ReceiveMessage
  readonly nextId: () => number
}

export interface SessionInfo {
  readonly revision: string
  /** Where calls are carried by the client. */
  readonly rounds: Rounds | undefined
  readonly server: ServerInfo
}

export class Session implements Transport {
  /** Nothing of a message is repeated in headers. */
  readonly usesParamHeaders = false
  readonly #options: SessionOptions
  readonly #channel: Channel
  readonly #questions: Questions
  readonly #watching: LegacySubscriptions
  readonly #calls = new Map<RequestId, InFlightCall>()
  /** Of requests of the session's own. */
  readonly #waits = new Set<Deadline>()
  #introduction: Promise<SessionInfo> | undefined
  /** The last one, which the next must agree with. */
  #introduced: SessionInfo | undefined
  #isClosed = false

  constructor(options: SessionOptions, open: (events: ChannelEvents) => Channel) {
    const { answerers, can, limits, logger, receive, address, revision } = options
    this.#options = options
    this.#channel = open({
      receive: (message, requestId) => this.#receive(message, requestId),
      whenAnswered: (requestId, answered) => this.#calls.get(requestId)?.onceAnswered(answered) ?? false,
      sessionLost: () => this.#gone(),
      eventsMissed: () => this.#watching.missed(),
    })
    this.#questions = new Questions({
      answerers,
      can,
      maxRounds: limits.maxRounds,
      maxStateBytes: limits.maxStateBytes,
      logger,
      server: () => this.#introduced?.server ?? { name: address, version: '', capabilities: {} },
      revision: () => this.#introduced?.revision ?? revision,
      say: (text, isCarried) => this.#channel.notify(text, isCarried),
    })
    this.#watching = new LegacySubscriptions({
      logger,
      receive,
      ready: () => this.#listening(),
      request: (method, params) => this.#do(method, params),
    })
  }

  /** Begins a session, where there is none. */
  start(): Promise<SessionInfo> {
    if (this.#isClosed) return Promise.reject(closed())
    if (this.#introduction === undefined) {
      const introduction = this.#introduce()
      this.#introduction = introduction
      introduction.catch(() => {
        if (this.#introduction === introduction) this.#introduction = undefined
      })
    }
    return this.#introduction
  }

  send(request: OutgoingRequest, callbacks: ResponseCallbacks): () => void {
    if (request.method === 'subscriptions/listen') return this.#watching.begin(request, callbacks)
    const { id } = request
    const call = new InFlightCall(request, callbacks.deadline)
    this.#calls.set(id, call)
    let isOver = false
    let cancel: (() => void) | undefined
    const over = (): void => {
      isOver = true
      this.#calls.delete(id)
      call.end()
    }
    const failed = (error: ClientError): void => {
      if (isOver) return
      over()
      callbacks.reject(error)
    }
    const answered = (response: RpcResponse): void => {
      over()
      callbacks.resolve(response)
    }
    const attempt = async (isAgain: boolean): Promise<void> => {
      const introduction = this.start()
      const { rounds } = await introduction
      if (isOver) return
      cancel = this.#channel.send(request, {
        normalize: rounds?.readResponse,
        resolve: answered,
        reject: (reason) => {
          if (!isSessionGone(reason) || isAgain) return failed(reason)
          if (this.#introduction === introduction) this.#gone()
          attempt(true).catch(failed)
        },
      })
    }
    attempt(false).catch(failed)
    return () => {
      if (isOver) return
      over()
      cancel?.()
    }
  }

  async notify(text: string): Promise<void> {
    // A session that begins later begins by asking.
    if (this.#introduction === undefined) return
    await this.#introduction
    try {
      await this.#channel.notify(text)
    } catch (error) {
      if (!isSessionGone(error)) throw error
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#questions.end()
    for (const deadline of this.#waits) deadline.abort(closed())
    await this.#channel.close()
  }

  async #introduce(): Promise<SessionInfo> {
    const { info, capabilities, revision: proposed, isPinned, address } = this.#options
    const declared = { ...capabilities, ...CARRIES_STATE }
    const params = { protocolVersion: proposed, capabilities: declared, clientInfo: info }
    const result = await this.#ask('initialize', params)
    const { name: agreed, rounds } = olderRevision(result['protocolVersion'], isPinned ? [proposed] : []) ?? {}
    const only = this.#introduced?.revision ?? (isPinned ? proposed : agreed)
    if (agreed === undefined || agreed !== only) throw disagreement(result['protocolVersion'], only)
    const introduced = { revision: agreed, rounds, server: readServer(result, address) }
    this.#introduced = introduced
    this.#channel.useRevision(agreed)
    await this.#channel.notify('{"jsonrpc":"2.0","method":"notifications/initialized"}')
    // Some of what servers ask comes that way, and is lost where nobody listens yet.
    await this.#channel.listen()
    await this.#setLogLevel(introduced.server.capabilities)
    return introduced
  }

  async #setLogLevel({ logging }: ServerCapabilities): Promise<void> {
    const { logLevel } = this.#options
    if (logLevel === undefined || logging === undefined) return
    await this.#do('logging/setLevel', { level: logLevel })
  }

  /** A request of the session's own. Gives whether the server has done it. */
  async #do(method: string, params: object): Promise<boolean> {
    try {
      await this.#ask(method, params)
      return true
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.#options.logger.warn(`The server refuses ${method}.`, { error })
      return false
    }
  }

  async #ask(method: string, params: object): Promise<Record<string, unknown>> {
    if (this.#isClosed) throw closed()
    const { nextId, limits, revision } = this.#options
    const id = nextId()
    const text = JSON.stringify({ jsonrpc: '2.0', id, method, params })
    const request = { id, method, revision, name: undefined, headers: [], text }
    const deadline = new Deadline(method, limits.timeoutMs, undefined)
    this.#waits.add(deadline)
    try {
      const { result, error } = await deadline.wait<RpcResponse>((resolve, reject) =>
        this.#channel.send(request, { resolve, reject }),
      )
      if (error !== undefined) throw new ProtocolError(error.code, error.message, error.data)
      return result ?? {}
    } finally {
      this.#waits.delete(deadline)
    }
  }

  async #listening(): Promise<ServerCapabilities | undefined> {
    const { server } = await this.start()
    return (await this.#channel.listen()) ? server.capabilities : undefined
  }

  /** The next request begins another one. */
  #gone(): void {
    this.#introduction = undefined
    this.#questions.end()
    this.#watching.missed()
  }

  #receive(message: Record<string, unknown>, requestId: RequestId | undefined): void {
    const { method, id, params } = message
    if (id !== undefined && typeof method === 'string') {
      return this.#questions.take(message, requestId, this.#askedIn(requestId))
    }
    if (method === 'notifications/cancelled') return this.#questions.cancelled(params, requestId)
    if (!this.#watching.tell(message)) this.#options.receive(message, requestId)
  }

  /** The calls in the course of which a question may be: without a stream of their own, any. */
  #askedIn(requestId: RequestId | undefined): InFlightCall[] {
    const own = requestId === undefined ? undefined : this.#calls.get(requestId)
    return own === undefined ? [...this.#calls.values()].filter((call) => call.mayAsk) : [own]
  }
}

function disagreement(theirs: unknown, ours: string | undefined): ClientError {
  return new ClientError(
    'REVISION',
    `The server speaks ${typeof theirs === 'string' ? shown(theirs) : 'no revision that it names'}, and this client ${ours ?? 'does not'}.`,
  )
}
