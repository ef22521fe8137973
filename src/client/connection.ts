// The client's end of the wire: writes requests, takes responses, and repeats what may be repeated.
import { METHOD_NOT_FOUND, ProtocolError, UNSUPPORTED_VERSION } from '../protocol/errors.ts'
import type { Logger } from '../protocol/logger.ts'
import type {
  ClientCapabilities,
  Implementation,
  JSONRPCErrorObject,
  LoggingLevel,
  RequestId,
} from '../protocol/messages.ts'
import {
  META_CAPABILITIES,
  META_CLIENT_INFO,
  META_LOG_LEVEL,
  META_SUBSCRIPTION,
  META_VERSION,
  TASK_METHODS,
  TASKS_EXTENSION,
} from '../protocol/revisions/2026-07-28.ts'
import { ClientError, closed } from './errors.ts'
import { isObject } from '../protocol/json.ts'
import type { LogEntry, ProgressUpdate } from './options.ts'
import { checkLimit } from './options.ts'
import { Deadline } from './deadline.ts'
import type { RetryFormat } from './revision.ts'
import { chooseRevision, RETRY_FORMAT, REVISIONS } from './revision.ts'
import type { RpcResponse, OutgoingRequest, ReceiveMessage, Transport } from './transports/transport.ts'

export interface ConnectionOptions {
  readonly info: Implementation
  readonly capabilities: ClientCapabilities
  /** Whether a call may become a task. */
  readonly acceptsTasks: boolean
  readonly logLevel: LoggingLevel | undefined
  readonly onLog: ((entry: LogEntry) => void) | undefined
  readonly logger: Logger
  /** A list of the server's has changed. */
  readonly onListChanged: (list: ListName) => void
}

export type ListName = 'tools' | 'prompts' | 'resources'

export interface ClientRequest {
  readonly method: string
  readonly name?: string
  /** The members of `params` beside `_meta`, as JSON text. */
  readonly members?: string
  /** Members of the message beside `params`, as JSON text that begins with a comma. */
  readonly beside?: string
  readonly headers?: readonly string[]
  readonly onProgress?: ((progress: ProgressUpdate) => void) | undefined
  /** Whether it does no harm to send it again when its response was lost. */
  readonly isIdempotent: boolean
}

export interface ServerResult {
  readonly result: Record<string, unknown>
  readonly bytes: number
}

/** Changes that a subscription is told of: the notification's method, without what they all begin with, and its params. */
export type NotificationListener = (what: string, params: Record<string, unknown>) => void

const MOST_TRIES = 3
const FIRST_PAUSE_MS = 100

export class Connection {
  readonly #options: ConnectionOptions
  #transport: Transport
  readonly #underWay = new Set<Deadline>()
  readonly #progress = new Map<RequestId, (progress: ProgressUpdate) => void>()
  readonly #listeners = new Map<RequestId, NotificationListener>()
  /** Told of pages that older servers say are done with. */
  readonly #visits = new Set<(page: string) => void>()
  /** Of the requests that may have to do with tasks. */
  #taskMeta: string
  #revision = REVISIONS[0] ?? ''
  #meta: string
  #retries: RetryFormat | undefined = RETRY_FORMAT
  #lastId = 0
  #closing: Promise<void> | undefined

  constructor(options: ConnectionOptions, open: (receive: ReceiveMessage) => Transport) {
    this.#options = options
    this.#meta = this.#metaText(false)
    this.#taskMeta = this.#metaText(options.acceptsTasks)
    this.#transport = open((message, requestId) => this.receive(message, requestId))
  }

  get usesParamHeaders(): boolean {
    return this.#transport.usesParamHeaders
  }

  get revision(): string {
    return this.#revision
  }

  /** How rounds go on. `undefined` where the server asks in the middle of a call, and nothing of one can be saved. */
  get retryFormat(): RetryFormat | undefined {
    return this.#retries
  }

  /** Whether the server is told that a call may become a task. */
  get acceptsTasks(): boolean {
    return this.#taskMeta !== this.#meta
  }

  get isClosed(): boolean {
    return this.#closing !== undefined
  }

  /** Begins a call: what waits within it ends with its time, its caller's signal, or the client. */
  openDeadline(what: string, timeoutMs: number, signal: AbortSignal | undefined): Deadline {
    checkLimit('timeoutMs', timeoutMs)
    const deadline = new Deadline(what, timeoutMs, signal)
    if (this.isClosed) deadline.abort(closed())
    this.#underWay.add(deadline)
    return deadline
  }

  /** Every call that began ends here. */
  closeDeadline(deadline: Deadline, error?: Error): void {
    this.#underWay.delete(deadline)
    if (error === undefined) deadline.release()
    else deadline.abort(error)
  }

  /** Runs one call from its beginning to its end. */
  async withDeadline<T>(deadline: Deadline, run: (deadline: Deadline) => Promise<T>): Promise<T> {
    try {
      const value = await run(deadline)
      this.closeDeadline(deadline)
      return value
    } catch (error) {
      this.closeDeadline(deadline, error as Error)
      throw error
    }
  }

  /** Sends a request and gives its result. What the server says is wrong is thrown as a ProtocolError. */
  async request(request: ClientRequest, deadline: Deadline): Promise<ServerResult> {
    let hasNegotiated = false
    for (let tries = 1; ; tries += 1) {
      try {
        const { result, error, bytes } = await this.#exchange(request, deadline)
        if (result !== undefined) return { result, bytes }
        if (error?.code !== UNSUPPORTED_VERSION || hasNegotiated) throw this.#protocolError(request, error)
        hasNegotiated = true
        this.useRevision(
          chooseRevision(isObject(error.data) ? error.data['supported'] : undefined, protocolError(error)),
        )
      } catch (error) {
        if (!mayRepeat(error, request) || tries >= MOST_TRIES) throw error
        await deadline.sleep(pauseAfter(tries))
      }
    }
  }

  /** Listens until the stream ends. Resolves when the server ends it in good order, and fails when it is lost. */
  listen(members: string, deadline: Deadline, listener: NotificationListener): Promise<RpcResponse> {
    const id = this.nextId()
    this.#listeners.set(id, listener)
    const request: ClientRequest = { method: 'subscriptions/listen', members, isIdempotent: true }
    return this.#send(id, request, deadline).finally(() => this.#listeners.delete(id))
  }

  /** Waits so long, or until the server says that one of these pages is done with. */
  async waitForVisit(ms: number, pages: ReadonlySet<string>, deadline: Deadline): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    let told: ((page: string) => void) | undefined
    const end = (): void => {
      clearTimeout(timer)
      if (told !== undefined) this.#visits.delete(told)
    }
    try {
      await deadline.wait<void>((resolve) => {
        timer = setTimeout(resolve, ms)
        told = (page) => {
          if (!pages.has(page)) return
          end()
          resolve()
        }
        this.#visits.add(told)
        return end
      })
    } finally {
      end()
    }
  }

  /** Tells the server of something, where there are notifications of the client's: with older ones. */
  async notify(method: string): Promise<void> {
    if (this.isClosed) throw closed()
    await this.#transport.notify?.(`{"jsonrpc":"2.0","method":"${method}"}`)
  }

  /** From now on, this revision. */
  useRevision(revision: string): void {
    this.#revision = revision
    this.#meta = this.#metaText(false)
    this.#taskMeta = this.#metaText(this.#options.acceptsTasks)
  }

  /** From now on, an older revision, over a transport that takes such messages. */
  useSession(revision: string, transport: Transport, retries: RetryFormat | undefined): void {
    this.#retries = retries
    this.#revision = revision
    this.#transport = transport
    this.#meta = ''
    this.#taskMeta = ''
  }

  /** For a transport that sends requests of its own. */
  nextId(): number {
    return (this.#lastId += 1)
  }

  /** Takes a message of the server's that is no response. */
  receive(message: Record<string, unknown>, requestId?: RequestId): void {
    const { method, id, params: given } = message
    if (typeof method !== 'string' || !method.startsWith(NOTIFICATIONS)) {
      this.#options.logger.warn('The server sent a message that this client has no use for.', { method, id })
      return
    }
    const params = isObject(given) ? given : {}
    const what = method.slice(NOTIFICATIONS.length)
    if (what === 'progress') this.#tellProgress(params)
    else if (what === 'message') this.#tellLog(params)
    else if (what === 'elicitation/complete') this.#tellVisited(params)
    else this.#tellChange(what, params, requestId)
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close())
  }

  async #close(): Promise<void> {
    for (const deadline of this.#underWay) deadline.abort(closed())
    await this.#transport.close()
  }

  async #exchange(request: ClientRequest, deadline: Deadline): Promise<RpcResponse> {
    const id = this.nextId()
    const { onProgress } = request
    if (onProgress === undefined) return this.#send(id, request, deadline)
    this.#progress.set(id, onProgress)
    try {
      return await this.#send(id, request, deadline)
    } finally {
      this.#progress.delete(id)
    }
  }

  #send(id: number, request: ClientRequest, deadline: Deadline): Promise<RpcResponse> {
    const outgoing = this.#outgoing(id, request)
    return deadline.wait((resolve, reject) => this.#transport.send(outgoing, { resolve, reject, deadline }))
  }

  #outgoing(
    id: number,
    { method, name, members, beside = '', headers = [], onProgress }: ClientRequest,
  ): OutgoingRequest {
    const token = onProgress === undefined ? '' : `${this.#meta === '' ? '' : ','}"progressToken":${id}`
    const rest = members === undefined || members === '' ? '' : `,${members}`
    const meta = TASK_METHODS.has(method) ? this.#taskMeta : this.#meta
    const text = `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":{"_meta":{${meta}${token}}${rest}}${beside}}`
    return { id, method, revision: this.#revision, name, headers, text }
  }

  /** The members of `_meta` that are the same on every request. */
  #metaText(acceptsTasks: boolean): string {
    const { capabilities, info, logLevel } = this.#options
    const meta = {
      [META_VERSION]: this.#revision,
      [META_CAPABILITIES]: acceptsTasks ? { ...capabilities, extensions: { [TASKS_EXTENSION]: {} } } : capabilities,
      [META_CLIENT_INFO]: info,
      [META_LOG_LEVEL]: logLevel,
    }
    return JSON.stringify(meta).slice(1, -1)
  }

  #protocolError({ method }: ClientRequest, error: RpcResponse['error']): Error {
    const said = protocolError(error)
    if (method !== 'server/discover' || said.rpcCode !== METHOD_NOT_FOUND) return said
    return new ClientError(
      'REVISION',
      `The server does not know server/discover: it speaks none of ${REVISIONS.join(', ')}.`,
      { cause: said },
    )
  }

  #tellProgress({ progressToken, progress, total, message }: Record<string, unknown>): void {
    const onProgress = this.#progress.get(progressToken as RequestId)
    if (onProgress === undefined || typeof progress !== 'number') return
    this.#tell(onProgress, {
      progress,
      ...(typeof total === 'number' && { total }),
      ...(typeof message === 'string' && { message }),
    })
  }

  #tellLog({ level, logger, data }: Record<string, unknown>): void {
    const { onLog } = this.#options
    if (onLog === undefined || typeof level !== 'string') return
    this.#tell(onLog, { level: level as LoggingLevel, data, ...(typeof logger === 'string' && { logger }) })
  }

  #tellVisited({ elicitationId }: Record<string, unknown>): void {
    if (typeof elicitationId === 'string') for (const told of this.#visits) told(elicitationId)
  }

  #tellChange(what: string, params: Record<string, unknown>, requestId: RequestId | undefined): void {
    const [list, changed] = what.split('/')
    if (changed === 'list_changed' && isListName(list)) this.#options.onListChanged(list)
    const { _meta: meta } = params
    const subscription = isObject(meta) ? (meta[META_SUBSCRIPTION] as RequestId) : undefined
    const listener = this.#listeners.get(requestId ?? subscription ?? '')
    listener?.(what, params)
  }

  /** What a caller's own function throws is no reason for a call to fail. */
  #tell<T>(told: (value: T) => void, value: T): void {
    try {
      told(value)
    } catch (error) {
      this.#options.logger.error('onProgress or onLog failed.', { error })
    }
  }
}

const NOTIFICATIONS = 'notifications/'

function protocolError({ code = 0, message = '', data }: Partial<JSONRPCErrorObject> = {}): ProtocolError {
  return new ProtocolError(code, message, data)
}

function isListName(list: string | undefined): list is ListName {
  return list === 'tools' || list === 'prompts' || list === 'resources'
}

/** What never got there may be sent again; what may have got there only where that does no harm. */
function mayRepeat(error: unknown, { isIdempotent }: ClientRequest): boolean {
  return error instanceof ClientError && (error.code === 'CONNECTION' || (error.code === 'LOST' && isIdempotent))
}

/** Growing, and not the same for all who lost something at the same time. */
function pauseAfter(tries: number): number {
  return FIRST_PAUSE_MS * 3 ** (tries - 1) * (1 + Math.random() / 2)
}
