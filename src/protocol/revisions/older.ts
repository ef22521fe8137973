// What a file of an older revision says: how its clients are asked, and how results are told to them. The neutral form,
// which everything is written from, is that of 2026-07-28.
import type { DetailedTask, Implementation, InputRequest } from '../messages.ts'
import type { Result, Rounds } from './rounds.ts'

export interface OlderRevision {
  readonly name: string
  /** What a client of this revision can declare, each as `area` or `area.detail`. */
  readonly capabilities: readonly string[]
  /** What having one of these means without being declared. */
  readonly implied: Readonly<Record<string, readonly string[]>>
  /** Whether messages may come several at once, in an array. */
  readonly takesBatches: boolean
  /** Whether an event stream begins with an event that has an id and no message. Older clients take it for one. */
  readonly primesStreams: boolean
  /** Whether a call may become a task. */
  readonly tasks: boolean
  serverInfo(info: Implementation): Implementation
  /** The question in this revision's words. `elicitationId` names a visit for as long as its call lasts. */
  question(question: InputRequest, elicitationId: string): Written
  /** The result of a method, without what this revision does not know. */
  result(method: string, result: Result): Result
  /** Where the client carries a call from round to round. Elsewhere the server asks in the middle of it. */
  readonly rounds?: Rounds
}

/** A request to the client, or why this revision has no words for it. */
export type Written = { readonly method: string; readonly params?: object } | { readonly unsayable: string }

/** The given keys that are there. */
export function picked<T extends object>(from: T, keys: readonly string[]): T {
  return Object.fromEntries(Object.entries(from).filter(([key]) => keys.includes(key))) as T
}

/** The result with each entry of one of its lists rewritten. */
export function mapped(result: Result, list: string, write: (entry: Result) => Result): Result {
  const entries = result[list]
  return Array.isArray(entries) ? { ...result, [list]: entries.map((entry) => write(entry as Result)) } : result
}

/** Names the task that a message belongs to. */
export const META_RELATED_TASK = 'io.modelcontextprotocol/related-task'

/** SEP-1685: the state that a server asks the client to carry with a question, and to return with the answer. */
export const META_STATE = 'modelcontextprotocol.io/state/request/'

/** A task as the revisions with sessions write it. For them a tool that reports an error is a failed task. */
export function olderTask(task: DetailedTask): Result {
  const { taskId, status, statusMessage, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs, result } = task
  return {
    taskId,
    status: result?.['isError'] === true ? 'failed' : status,
    ...(statusMessage !== undefined && { statusMessage }),
    createdAt,
    lastUpdatedAt,
    ttl: ttlMs,
    pollInterval: pollIntervalMs,
  }
}
