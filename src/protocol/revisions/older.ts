// What a file of an older revision says: how its clients are asked, and how results are told to them. The neutral form,
// which everything is written from, is that of 2026-07-28.
import type { Implementation } from '../peer.ts'
import type { InputRequest } from '../rounds.ts'

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

/** How the rounds of a call are spelled. Both sides read and write the form of 2026-07-28 through it. */
export interface Rounds {
  /** What a request brings of the round before, for a server. Untrusted. */
  readonly readRetry: (message: Message) => Retry
  /** The same for a client, as JSON text: of the answers, which is an object's, and of the request. */
  readonly writeRetry: (answers: string | undefined, state: string | undefined) => RetryText
  /** The members of a response to one of `ROUND_METHODS`, for a server. */
  readonly writeResponse: (result: Result) => Message
  /** The same for a client: the response with its result in place. Untrusted. */
  readonly readResponse: (message: Message) => Message
}

/** The requests that may take several rounds. */
export const ROUND_METHODS: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read'])

export interface Retry {
  readonly inputResponses?: unknown
  readonly requestState?: unknown
}

/** Members that are added to what a request has anyway; each begins with a comma. */
export interface RetryText {
  /** Of its params. */
  readonly inParams: string
  /** Of the message, beside its params. */
  readonly beside: string
}

/** A request to the client, or why this revision has no words for it. */
export type Written = { readonly method: string; readonly params?: object } | { readonly unsayable: string }

export type Result = Readonly<Record<string, unknown>>

/** A JSON-RPC message, or some members of one. */
export type Message = Readonly<Record<string, unknown>>

/** The given keys that are there. */
export function picked<T extends object>(from: T, keys: readonly string[]): T {
  return Object.fromEntries(Object.entries(from).filter(([key]) => keys.includes(key))) as T
}

/** The result with each entry of one of its lists rewritten. */
export function mapped(result: Result, list: string, write: (entry: Result) => Result): Result {
  const entries = result[list]
  return Array.isArray(entries) ? { ...result, [list]: entries.map((entry) => write(entry as Result)) } : result
}
