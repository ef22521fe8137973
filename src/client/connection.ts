// The connection to a server: writes requests, waits for responses within deadlines, and retries what may be repeated.
import { backoff } from '../protocol/backoff.ts'
import type { ProtocolError } from '../protocol/errors.ts'
import { METHOD_NOT_FOUND, UNSUPPORTED_VERSION } from '../protocol/errors.ts'
import { isObject } from '../protocol/json.ts'
import type { ClientCapabilities, Implementation, LoggingLevel, RequestId } from '../protocol/messages.ts'
import {
  META_CAPABILITIES,
  META_CLIENT_INFO,
  META_IDEMPOTENCY_KEY,
  META_LOG_LEVEL,
  META_VERSION,
  TASK_METHODS,
  TASKS_EXTENSION,
} from '../protocol/revisions/2026-07-28.ts'
import { META_RELATED_TASK } from '../protocol/revisions/older.ts'
import type { ClientCall } from './call.ts'
import { Deadline } from './deadline.ts'
import type { RetryFormat } from './discovery.ts'
import { chooseRevision, RETRY_FORMAT, REVISIONS } from './discovery.ts'
import { ClientError, closed, received, retryAdviceOf } from './errors.ts'
import { hedged } from './hedge.ts'
import type { NotificationListener, NotificationOptions } from './notifications.ts'
import { Notifications } from './notifications.ts'
import type { ClientObservers } from './observer.ts'
import type { ProgressUpdate } from './options.ts'
import { checkLimit } from './options.ts'
import type { TaskDialect } from './tasks/dialect.ts'
import type { OutgoingRequest, ReceiveMessage, RpcResponse, Transport } from './transports/transport.ts'

export interface ConnectionOptions extends NotificationOptions {
  readonly info: Implementation
  readonly capabilities: ClientCapabilities
  /** True if a call may become a task. */
  readonly acceptsTasks: boolean
  readonly logLevel: LoggingLevel | undefined
  /** Ends a login that is in progress. */
  readonly onClose?: (() => void) | undefined
  /** Present if the client has observers. */
  readonly observers?: ClientObservers | undefined
}

export interface ClientRequest {
  readonly method: string
  /** The name of the tool or prompt, the URI of the resource, or the id of the task. */
  readonly name?: string
  /** Without `_meta`. */
  readonly params?: Readonly<Record<string, unknown>>
  /** In place of `params`, for params that are written once for several rounds: JSON text without braces. */
  readonly paramsText?: string
  /** Members of the message beside `params`: JSON text that begins with a comma. */
  readonly extraText?: string
  readonly headers?: readonly string[]
  /** The user's call that this request belongs to. */
  readonly call?: ClientCall | undefined
  /** The task that a request of a session belongs to. */
  readonly relatedTask?: string
  readonly onProgress?: ((progress: ProgressUpdate) => void) | undefined
  /** More members of `_meta`: JSON text without braces. */
  readonly metaText?: string | undefined
  /** Tells a server that knows repeats which requests are the same one. */
  readonly idempotencyKey?: string | undefined
  /** True if the request may be sent again when its response was lost. */
  readonly isIdempotent: boolean
  /** False if it must not be sent again while the server may still work on it. Default: true if it is idempotent. */
  readonly mayOverlap?: boolean
}

/** A session that has started. */
export interface LegacySession {
  readonly revision: string
  readonly transport: Transport
  readonly retryFormat: RetryFormat | undefined
  readonly tasks: TaskDialect | undefined
}

export interface ServerResult {
  readonly result: Record<string, unknown>
  readonly bytes: number
}

const MAX_ATTEMPTS = 3

/** With jitter, because all clients of a server lose their connections at the same time. */
const RETRY = { firstMs: 100, factor: 3, jitter: [1, 1.5] } as const

/** For a server that says when to send the request again: never earlier. */
const WAIT = { factor: 1.25, jitter: [1, 1.5] } as const

export class Connection {
  readonly notifications: Notifications
  readonly #options: ConnectionOptions
  #transport: Transport
  /** Of the calls that are in flight. */
  readonly #deadlines = new Set<Deadline>()
  #revision = REVISIONS[0] ?? ''
  /** The members of `_meta` that every request has, as JSON text without braces. */
  #meta: string
  /** The same for requests that may concern tasks. */
  #taskMeta: string
  #retryFormat: RetryFormat | undefined = RETRY_FORMAT
  #taskDialect: TaskDialect | undefined
  /** Starts anywhere: a call that is resumed by another client must not repeat an id of the first one. */
  #lastId = Math.floor(Math.random() * 2 ** 30)
  #closing: Promise<void> | undefined

  constructor(options: ConnectionOptions, open: (receive: ReceiveMessage) => Transport) {
    this.#options = options
    this.notifications = new Notifications(options)
    this.#meta = this.#metaText(false)
    this.#taskMeta = this.#metaText(options.acceptsTasks)
    this.#transport = open((message, requestId) => this.receive(message, requestId))
  }

  get usesParamHeaders(): boolean {
    return this.#transport.usesParamHeaders
  }

  get canLoseRequests(): boolean {
    return this.#transport.canLoseRequests
  }

  get revision(): string {
    return this.#revision
  }

  /** How a round is continued. Undefined if the server asks during the call, so that no round can be saved. */
  get retryFormat(): RetryFormat | undefined {
    return this.#retryFormat
  }

  /** True if a call may become a task. */
  get acceptsTasks(): boolean {
    return this.#taskMeta !== this.#meta || this.#taskDialect !== undefined
  }

  /** Defined with a legacy server that has tasks. */
  get taskDialect(): TaskDialect | undefined {
    return this.#taskDialect
  }

  get isClosed(): boolean {
    return this.#closing !== undefined
  }

  /** Starts a call. Its waits end with the timeout, the caller's signal or the client. `what` names the call in errors. */
  openDeadline(what: string, timeoutMs: number, signal: AbortSignal | undefined): Deadline {
    checkLimit('timeoutMs', timeoutMs)
    const deadline = new Deadline(what, timeoutMs, signal)
    if (this.isClosed) deadline.abort(closed())
    this.#deadlines.add(deadline)
    return deadline
  }

  /** Every deadline that was opened must be closed. */
  closeDeadline(deadline: Deadline, error?: Error): void {
    this.#deadlines.delete(deadline)
    if (error === undefined) deadline.release()
    else deadline.abort(error)
  }

  /** Closes the deadline when `run` settles. */
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

  /** Sends a request and returns its result. Throws a ProtocolError if the server answers with an error. */
  request(request: ClientRequest, deadline: Deadline): Promise<ServerResult> {
    const { observers } = this.#options
    return observers === undefined ? this.#request(request, deadline) : this.#observe(observers, request, deadline)
  }

  #observe(observers: ClientObservers, request: ClientRequest, deadline: Deadline): Promise<ServerResult> {
    return observers.observe(request, this.#revision, (traceText) => {
      const metaText = [traceText, request.metaText].filter(Boolean).join(',')
      return this.#request({ ...request, metaText }, deadline)
    })
  }

  async #request(request: ClientRequest, deadline: Deadline): Promise<ServerResult> {
    let hasNegotiated = false
    for (let attempt = 1; ; attempt += 1) {
      try {
        const { result, error, bytes } = await this.#exchange(request, deadline)
        if (result !== undefined) return { result, bytes }
        const { code = 0, message = '', data } = error ?? {}
        const cause = received({ code, message, data })
        if (code !== UNSUPPORTED_VERSION || hasNegotiated) throw errorOf(request, cause)
        hasNegotiated = true
        this.useRevision(chooseRevision(isObject(data) ? data['supported'] : undefined, cause))
      } catch (error) {
        const delayMs = retryDelay(error, request, attempt)
        if (delayMs === undefined || delayMs >= deadline.leftMs) throw error
        await deadline.sleep(delayMs)
      }
    }
  }

  /** Subscribes until the stream ends. Resolves if the server ends it, and rejects if it is lost. */
  listen(
    notifications: Readonly<Record<string, unknown>>,
    deadline: Deadline,
    listener: NotificationListener,
  ): Promise<RpcResponse> {
    const id = this.nextId()
    const unlisten = this.notifications.onChange(id, listener)
    const request = { method: 'subscriptions/listen', params: { notifications }, isIdempotent: true }
    return this.#send(id, request, deadline).finally(unlisten)
  }

  /** Waits `ms`, or until the server reports that one of these pages is done. */
  async waitForVisit(ms: number, pages: ReadonlySet<string>, deadline: Deadline): Promise<void> {
    let cancel: (() => void) | undefined
    try {
      await deadline.wait<void>((resolve) => {
        const timer = setTimeout(resolve, ms)
        const unlisten = this.notifications.onVisit((page) => {
          if (!pages.has(page)) return
          cancel?.()
          resolve()
        })
        cancel = () => {
          clearTimeout(timer)
          unlisten()
        }
        return cancel
      })
    } finally {
      cancel?.()
    }
  }

  /** Sends a notification to a legacy server. Other servers take none. */
  async notify(method: string): Promise<void> {
    if (this.isClosed) throw closed()
    await this.#transport.notify?.(`{"jsonrpc":"2.0","method":"${method}"}`)
  }

  /** Sends a message with an id of its own, for which nothing waits, to a legacy server. */
  async post(write: (id: number) => string): Promise<void> {
    if (this.isClosed) throw closed()
    await this.#transport.notify?.(write(this.nextId()))
  }

  useRevision(revision: string): void {
    this.#revision = revision
    this.#meta = this.#metaText(false)
    this.#taskMeta = this.#metaText(this.#options.acceptsTasks)
  }

  /** Sends all later requests through a session with a legacy server. */
  useSession({ revision, transport, retryFormat, tasks }: LegacySession): void {
    this.#retryFormat = retryFormat
    this.#revision = revision
    this.#transport = transport
    this.#taskDialect = this.#options.acceptsTasks ? tasks : undefined
    this.#meta = ''
    this.#taskMeta = ''
  }

  /** For a transport that sends requests of its own. */
  nextId(): number {
    return (this.#lastId += 1)
  }

  receive(message: Record<string, unknown>, requestId?: RequestId): void {
    this.notifications.receive(message, requestId)
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close())
  }

  async #close(): Promise<void> {
    for (const deadline of this.#deadlines) deadline.abort(closed())
    this.#options.onClose?.()
    await this.#transport.close()
  }

  async #exchange(request: ClientRequest, deadline: Deadline): Promise<RpcResponse> {
    const { onProgress, isIdempotent, mayOverlap = isIdempotent } = request
    if (mayOverlap && this.#transport.canLoseRequests) return this.#hedge(request, deadline)
    const id = this.nextId()
    if (onProgress === undefined) return this.#send(id, request, deadline)
    const unlisten = this.notifications.onProgress(id, onProgress)
    try {
      return await this.#send(id, request, deadline)
    } finally {
      unlisten()
    }
  }

  async #hedge(request: ClientRequest, deadline: Deadline): Promise<RpcResponse> {
    const { onProgress } = request
    const unlisten: (() => void)[] = []
    try {
      return await hedged(deadline, (callbacks) => {
        const id = this.nextId()
        if (onProgress !== undefined) unlisten.push(this.notifications.onProgress(id, onProgress))
        return this.#transport.send(this.#outgoing(id, request), callbacks)
      })
    } finally {
      for (const stop of unlisten) stop()
    }
  }

  #send(id: number, request: ClientRequest, deadline: Deadline): Promise<RpcResponse> {
    const outgoing = this.#outgoing(id, request)
    return deadline.wait((resolve, reject) => this.#transport.send(outgoing, { resolve, reject, deadline }))
  }

  #outgoing(id: number, request: ClientRequest): OutgoingRequest {
    const { method, name, params, paramsText, extraText = '', headers = [], call, onProgress } = request
    const { relatedTask, idempotencyKey, metaText = '' } = request
    const token = onProgress === undefined ? '' : `${this.#meta === '' ? '' : ','}"progressToken":${id}`
    const members = paramsText ?? (params === undefined ? '' : JSON.stringify(params).slice(1, -1))
    const rest = members === '' ? '' : `,${members}`
    const meta =
      relatedTask !== undefined
        ? `"${META_RELATED_TASK}":{"taskId":${JSON.stringify(relatedTask)}}`
        : TASK_METHODS.has(method)
          ? this.#taskMeta
          : this.#meta
    const key = idempotencyKey === undefined ? '' : `,"${META_IDEMPOTENCY_KEY}":"${idempotencyKey}"`
    const own = metaText === '' || (meta === '' && token === '') ? metaText : `,${metaText}`
    const text = `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":{"_meta":{${meta}${token}${key}${own}}${rest}}${extraText}}`
    return { id, method, revision: this.#revision, name, headers, text, params, call }
  }

  #metaText(acceptsTasks: boolean): string {
    const { capabilities, info, logLevel } = this.#options
    const meta = {
      [META_VERSION]: this.#revision,
      [META_CAPABILITIES]: acceptsTasks
        ? { ...capabilities, extensions: { ...capabilities.extensions, [TASKS_EXTENSION]: {} } }
        : capabilities,
      [META_CLIENT_INFO]: info,
      [META_LOG_LEVEL]: logLevel,
    }
    return JSON.stringify(meta).slice(1, -1)
  }
}

function errorOf({ method }: ClientRequest, error: ProtocolError): Error {
  if (method !== 'server/discover' || error.rpcCode !== METHOD_NOT_FOUND) return error
  return new ClientError(
    'REVISION',
    `The server does not know server/discover, so it does not support revision ${REVISIONS.join(', ')}.`,
    { cause: error },
  )
}

/**
 * How long to wait before the request is sent again; `undefined` if it must not be. A request that was not sent may be sent again, and
 * so may one that the server did nothing with. One that may have had an effect only if it is idempotent. A server that names a time
 * is waited for until the deadline; otherwise there are a few attempts.
 */
function retryDelay(error: unknown, { isIdempotent }: ClientRequest, attempt: number): number | undefined {
  const advice = retryAdviceOf(error)
  if (advice !== undefined) {
    const { retryAfterMs, isUnprocessed } = advice
    return isIdempotent || isUnprocessed
      ? backoff(attempt, { ...WAIT, firstMs: Math.max(retryAfterMs, 100) })
      : undefined
  }
  if (attempt >= MAX_ATTEMPTS || !(error instanceof ClientError)) return undefined
  return error.code === 'CONNECTION' || (error.code === 'LOST' && isIdempotent) ? backoff(attempt, RETRY) : undefined
}
