// What a revision with sessions has to say: how it writes questions, results and tasks. Each translates from the form of
// 2026-07-28.
import type { DetailedTask, Implementation, InputRequest } from '../messages.ts'
import type { Result, Rounds } from './rounds.ts'

export interface OlderRevision {
  readonly name: string
  /** The capabilities that a client of this revision can declare, as `area` or `area.detail`. */
  readonly capabilities: readonly string[]
  /** The capabilities that come with another one without being declared. */
  readonly implied: Readonly<Record<string, readonly string[]>>
  /** True if a request may contain several messages, in an array. */
  readonly takesBatches: boolean
  /** True if an event stream begins with an event that has an id and no message. Clients before it would fail to parse it. */
  readonly primesStreams: boolean
  /** True if a call may become a task. */
  readonly tasks: boolean
  /** How a status of a task is spelled. Default: as in 2026-07-28. */
  taskStatus?(status: string): string
  serverInfo(info: Implementation): Implementation
  /** Writes a question. `elicitationId` identifies a URL visit while its call lasts. */
  question(question: InputRequest, elicitationId: string): Written
  /** Writes the result of a method, without members that this revision does not have. */
  result(method: string, result: Result): Result
  /** Only if the client carries a call from round to round. Otherwise the server asks during the call. */
  readonly rounds?: Rounds
}

/** A request to the client, or why this revision cannot express the question. */
export type Written = { readonly method: string; readonly params?: object } | { readonly unsupported: string }

/** A copy with only these keys. */
export function picked<T extends object>(from: T, keys: readonly string[]): T {
  return Object.fromEntries(Object.entries(from).filter(([key]) => keys.includes(key))) as T
}

/** A copy of the result, with each entry of one list rewritten. */
export function mapped(result: Result, list: string, write: (entry: Result) => Result): Result {
  const entries = result[list]
  return Array.isArray(entries) ? { ...result, [list]: entries.map((entry) => write(entry as Result)) } : result
}

/** Names the task that a message belongs to. */
export const META_RELATED_TASK = 'io.modelcontextprotocol/related-task'

/** SEP-1685: the state that a server asks the client to carry with a question, and to return with the answer. */
export const META_STATE = 'modelcontextprotocol.io/state/request/'

/** A task as the revisions with sessions write it. For them a tool that reports an error is a failed task. */
export function olderTask(task: DetailedTask, revision: Pick<OlderRevision, 'taskStatus'>): Result {
  const { taskId, status, statusMessage, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs, result } = task
  return {
    taskId,
    status: spelled(result?.['isError'] === true ? 'failed' : status, revision),
    ...(statusMessage !== undefined && { statusMessage }),
    createdAt,
    lastUpdatedAt,
    ttl: ttlMs,
    pollInterval: pollIntervalMs,
  }
}

function spelled(status: string, { taskStatus }: Pick<OlderRevision, 'taskStatus'>): string {
  return taskStatus === undefined ? status : taskStatus(status)
}
