// What a client is made with, and its limits.
import type { Logger } from '../protocol/logger.ts'
import type { LoggingLevel, LoggingMessageNotificationParams } from '../protocol/messages.ts'
import { LOGGING_LEVELS } from '../protocol/logger.ts'
import type { Answerers } from './answers/answerers.ts'
import type { Capability } from './capabilities.ts'
import { wrongOption } from './errors.ts'

export interface ClientOptions extends Answerers {
  /** The client's name, as servers are told. Default 'mcp-rally'. */
  name?: string
  /** Default: that of this package. */
  version?: string
  /** Capabilities to declare beyond those of the answerers, for questions that are answered by hand. Default: none. */
  can?: readonly Capability[]
  /** Milliseconds that a call may wait for its server, over all of its rounds; the user's thinking is not counted. Default 60 000. */
  timeoutMs?: number
  /** Most rounds of a call that ask something. Default 10. */
  maxRounds?: number
  /** Largest state to carry for a server, in bytes. Default 65 536. */
  maxStateBytes?: number
  /** Largest response, and largest list altogether, in bytes. Default 16 777 216. */
  maxResponseBytes?: number
  /** Whether servers are told that a call may become a task, which is then waited for. Default true. */
  tasks?: boolean
  /** Milliseconds that a task may be waited for; the user's thinking is not counted. Default 86 400 000, a day. */
  taskMs?: number
  /**
   * The one revision of the protocol to speak, without trying others: '2026-07-28', '2025-11-25', '2025-06-18' or
   * '2025-03-26', or a draft that is spoken only so, '2026-06-XX' or '2026-02-03-draft'. Default: the newest release that the
   * server speaks.
   */
  revision?: string
  /** Ends the attempt to connect. Once there is a client, `close` ends it. */
  signal?: AbortSignal
  /** Headers of every HTTP request, or what gives them anew for each. */
  headers?: HeadersOption
  /** Sends HTTP requests in place of Node's own client. */
  fetch?: FetchLike
  /** Told what servers log in the course of a call. */
  onLog?: (entry: LogEntry) => void
  /** The least level that servers are asked to log. Default 'info' where there is an `onLog`. */
  logLevel?: LoggingLevel
  /** Told of what is odd and no reason to fail. Default: the console. */
  logger?: Logger
}

export type HeadersOption = HeaderValues | (() => HeaderValues | Promise<HeaderValues>)

export type HeaderValues = Readonly<Record<string, string>>

/** The part of `fetch` that is used. */
export type FetchLike = (url: string, init: FetchInit) => Promise<Response>

export interface FetchInit {
  /** Other than POST for older servers only. */
  method: 'POST' | 'GET' | 'DELETE'
  headers: Record<string, string>
  body?: string
  signal: AbortSignal
  redirect: 'manual'
}

export type LogEntry = Pick<LoggingMessageNotificationParams, 'level' | 'logger' | 'data'>

export interface CallOptions {
  /** Ends the call, on both sides. */
  signal?: AbortSignal
  /** In place of the client's. */
  timeoutMs?: number
  /** In place of the client's. */
  taskMs?: number
  onProgress?: (progress: ProgressUpdate) => void
}

export interface ListOptions extends Pick<CallOptions, 'signal' | 'timeoutMs'> {
  /** Asks the server even if what it said before is still fresh. Default false. */
  refresh?: boolean
}

export interface TaskOptions extends Pick<CallOptions, 'taskMs'> {
  /** Ends the waiting. The task goes on. */
  signal?: AbortSignal
}

export interface ProgressUpdate {
  readonly progress: number
  readonly total?: number
  readonly message?: string
}

export interface Limits {
  readonly timeoutMs: number
  readonly maxRounds: number
  readonly maxStateBytes: number
  readonly maxResponseBytes: number
  readonly taskMs: number
}

export function limitsOf(options: ClientOptions): Limits {
  const { timeoutMs = 60_000, maxRounds = 10, maxStateBytes = 65_536, maxResponseBytes = 16_777_216 } = options
  const { taskMs = 86_400_000 } = options
  const limits = { timeoutMs, maxRounds, maxStateBytes, maxResponseBytes, taskMs }
  for (const [name, value] of Object.entries(limits)) checkLimit(name, value)
  if (options.logLevel !== undefined && !LOGGING_LEVELS.includes(options.logLevel)) {
    throw wrongOption(`logLevel must be one of ${LOGGING_LEVELS.join(', ')}.`)
  }
  return limits
}

export function checkLimit(name: string, value: number): void {
  if (typeof value !== 'number' || Number.isNaN(value) || value <= 0) {
    throw wrongOption(`${name} is ${String(value)}; it must be a number above 0.`)
  }
}
