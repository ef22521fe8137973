// The options of a client and of its calls, and their limits.
import type { Logger } from '../protocol/logger.ts'
import type { JSONObject, LoggingLevel, LoggingMessageNotificationParams } from '../protocol/messages.ts'
import { LOGGING_LEVELS } from '../protocol/logger.ts'
import { shown } from '../protocol/text.ts'
import type { Answerers } from './answers/answerers.ts'
import type { Capability } from './capabilities.ts'
import { wrongOption } from './errors.ts'
import type { ClientObserver } from './observer.ts'
import type { OAuthOptions } from './oauth/options.ts'

export const DEFAULT_NAME = 'mcp-rally'

/** Options of `connect()`: how questions are answered, and limits. */
export interface ClientOptions extends Answerers {
  /** The client's name, as servers see it. Default 'mcp-rally'. */
  name?: string
  /** The client's version, as servers see it. Default: the version of this package. */
  version?: string
  /** Capabilities to declare in addition to those of the answerers, for questions that you answer by hand. Default: none. */
  can?: readonly Capability[]
  /**
   * Extensions of the protocol that this client has, each with its settings, such as `{ 'com.example/rates': {} }`. Those of the
   * server are in `client.server.capabilities.extensions`. Default: none.
   */
  extensions?: Readonly<Record<string, JSONObject>>
  /** Milliseconds that a call may wait for its server, over all of its rounds. The user's time is not counted. Default 60 000. */
  timeoutMs?: number
  /** The number of rounds in which a server may ask something, per call. Default 10. */
  maxRounds?: number
  /** The largest state to carry for a server, in bytes. Default 65 536. */
  maxStateBytes?: number
  /** The largest response, and the largest list over all of its pages, in bytes. Default 16 777 216. */
  maxResponseBytes?: number
  /**
   * The most bytes of responses that are not complete yet, over all calls at the same time. Over HTTP. Default: four times
   * `maxResponseBytes`.
   */
  maxBufferedBytes?: number
  /** Tells servers that a call may become a task, and waits for the task. Default true. */
  tasks?: boolean
  /** Milliseconds to wait for a task. The user's time is not counted. Default 86 400 000, one day. */
  taskMs?: number
  /**
   * The only revision of the protocol to use: '2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26' or '2024-11-05'. Or one of
   * the drafts '2026-06-XX' and '2026-02-03-draft', which are never chosen otherwise: with a server that does not support the
   * draft, the client uses a release. Default: the newest release that the server supports.
   */
  revision?: string
  /** Aborts connecting. It does not affect the client afterwards: use `client.close()`. Default: none. */
  signal?: AbortSignal
  /** Headers of every HTTP request, or a function that returns them for each request. Default: none. */
  headers?: HeadersOption
  /** Sends the HTTP requests. Default: Node's own HTTP client, or the global `fetch` on other platforms. */
  fetch?: FetchLike
  /** Logs in at servers that want OAuth. Over HTTP. Default: none, so a server that wants it ends the call with `UNAUTHORIZED`. */
  oauth?: OAuthOptions
  /** Called with each log message that the server sends during a call. Default: they are ignored. */
  onLog?: (entry: LogEntry) => void
  /** The lowest level that the server should log. Default: 'info' with `onLog`, otherwise none. */
  logLevel?: LoggingLevel
  /** Watch the requests, and may add to their `_meta`: see mcp-rally/otel. Default: none. */
  observers?: readonly ClientObserver[]
  /** Receives warnings that are not errors of a call. Default: the console. */
  logger?: Logger
}

/** Headers of every request, or a function that returns them for each. */
export type HeadersOption = HeaderValues | (() => HeaderValues | Promise<HeaderValues>)

export type HeaderValues = Readonly<Record<string, string>>

/** The part of `fetch` that the client uses. */
export type FetchLike = (url: string, init: FetchInit) => Promise<Response>

export interface FetchInit {
  /** GET and DELETE are used with legacy servers only. */
  method: 'POST' | 'GET' | 'DELETE'
  headers: Record<string, string>
  body?: string
  signal: AbortSignal
  redirect: 'manual'
}

/** A log message of the server. */
export type LogEntry = Pick<LoggingMessageNotificationParams, 'level' | 'logger' | 'data'>

/** Options of one call. */
export interface CallOptions {
  /** Cancels the call, here and on the server. Default: none. */
  signal?: AbortSignal
  /** Milliseconds that the call may wait for its server. Default: that of the client. */
  timeoutMs?: number
  /** Milliseconds to wait for the task that the call may become. Default: that of the client. */
  taskMs?: number
  /** Called when the call reports its progress, also as a task. Default: the server is not asked for it. */
  onProgress?: (progress: ProgressUpdate) => void
  /** Members of `_meta` in every request of the call, for the handler's `io.meta`. Default: none. */
  meta?: Readonly<Record<string, unknown>>
}

/** Options of `client.readResource()`. */
export interface ReadOptions extends CallOptions {
  /** Asks the server even if the cached result is still fresh. Default false. */
  refresh?: boolean
}

/** Options of the lists. */
export interface ListOptions extends Pick<CallOptions, 'signal' | 'timeoutMs'> {
  /** Asks the server even if the cached list is still fresh. Default false. */
  refresh?: boolean
}

/** Options of `client.request()`. */
export interface RequestOptions extends Pick<CallOptions, 'signal' | 'timeoutMs' | 'onProgress'> {
  /** True if the server may get the request twice: then it is sent again when its response was lost. Default false. */
  isIdempotent?: boolean
}

/** Options of waiting for a task. */
export interface TaskOptions extends Pick<CallOptions, 'taskMs' | 'onProgress'> {
  /** Stops waiting. The task keeps running. Default: none. */
  signal?: AbortSignal
}

/** How far a call is. */
export interface ProgressUpdate {
  /** How much is done. It grows with every update. */
  readonly progress: number
  /** How much there is to do, if the server knows it. */
  readonly total?: number
  /** What the server is doing, for people. */
  readonly message?: string
}

export interface Limits {
  readonly timeoutMs: number
  readonly maxRounds: number
  readonly maxStateBytes: number
  readonly maxResponseBytes: number
  readonly maxBufferedBytes: number
  readonly taskMs: number
}

export function limitsOf(options: ClientOptions): Limits {
  const { timeoutMs = 60_000, maxRounds = 10, maxStateBytes = 65_536, maxResponseBytes = 16_777_216 } = options
  const { maxBufferedBytes = 4 * maxResponseBytes, taskMs = 86_400_000 } = options
  const limits = { timeoutMs, maxRounds, maxStateBytes, maxResponseBytes, maxBufferedBytes, taskMs }
  for (const [name, value] of Object.entries(limits)) checkLimit(name, value)
  const { tasks = true } = options
  // A string, such as 'false' from the environment, would be taken for true.
  if (typeof tasks !== 'boolean') throw wrongOption(`tasks must be true or false, got ${shown(tasks)}.`)
  if (options.logLevel !== undefined && !LOGGING_LEVELS.includes(options.logLevel)) {
    throw wrongOption(`logLevel must be one of ${LOGGING_LEVELS.join(', ')}, got ${shown(options.logLevel)}.`)
  }
  return limits
}

export function checkLimit(name: string, value: number): void {
  if (typeof value !== 'number' || Number.isNaN(value) || value <= 0) {
    throw wrongOption(`${name} must be a number above 0, got ${shown(value)}.`)
  }
}
