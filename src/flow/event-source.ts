// Where the events of a flow come from. A carrier that keeps flows for long has one.

/** Events from outside, as a carrier takes them for its flow. */
export interface EventSource {
  /** Makes the token of an event. `dueAt` is Infinity if it has no deadline. */
  mint(key: string, dueAt: number): string
  /** Where the event can be posted, if the app knows its own address. */
  urlOf(token: string): string | undefined
  /** What has come for this key. Afterwards it is offered to the pass when it comes. */
  take(key: string): ReceivedEvent | undefined
  /** The value does not fit the schema of the handler, so the event is still open. */
  refuse(key: string): void
}

export interface ReceivedEvent {
  readonly value: unknown
  /** Milliseconds since 1970. */
  readonly at: number
}
