// How the rounds of a call are spelled on the wire, and the drafts that spell them differently.

/** Drafts of the protocol that are spoken only if both sides name them. */
export const OPT_IN = ['2026-06-XX', '2026-02-03-draft'] as const

/** A draft of the protocol that an app serves only if its options name it. */
export type OptInRevision = (typeof OPT_IN)[number]

/** Reads and writes the rounds of one revision. The form on our side is always the one of 2026-07-28. */
export interface Rounds {
  /** Server: what a request carries over from the round before. Untrusted. */
  readonly readRetry: (message: Message) => Retry
  /** Client: the same as JSON text. `answers` are by the keys of their questions. */
  readonly writeRetry: (answers: Message | undefined, state: string | undefined) => RetryText
  /** Server: the members of a response to one of `ROUND_METHODS`. */
  readonly writeResponse: (result: Result) => Message
  /** Server: the request that answers questions of a task, if this message is one in a form without a method. Untrusted. */
  readonly readTaskInput?: (message: Message) => Message | undefined
  /** Client: such a message, as JSON text. `id` is that of the message. */
  readonly writeTaskInput?: (id: number, taskId: string, answers: Message) => string
  /** Client: the response, with its result in the form of 2026-07-28. Untrusted. */
  readonly readResponse: (message: Message) => Message
}

export interface Retry {
  readonly inputResponses?: unknown
  readonly requestState?: unknown
}

/** The members that a retry adds to its request, as JSON text. Each begins with a comma. */
export interface RetryText {
  /** Inside `params`. */
  readonly inParams: string
  /** Beside `params`. */
  readonly beside: string
}

export type Result = Readonly<Record<string, unknown>>

/** A JSON-RPC message, or some members of one. */
export type Message = Readonly<Record<string, unknown>>
