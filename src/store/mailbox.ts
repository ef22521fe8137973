// What a mailbox is: it keeps events for a client that will fetch them later, perhaps from another instance.

/** Keeps events for readers on any instance. A store has one. */
export interface Mailbox {
  /**
   * Stores an event under a number in a channel, for `keepMs`. The first event under a number stays: a later one is dropped, equal or
   * not. Returns whether this one was the first.
   *
   * `owner` tells callers apart: a mailbox of a limited size drops events of the owner that uses the most. Default: nobody.
   */
  leave(channel: string, number: number, text: string, keepMs: number, owner?: string): Promise<boolean>
  /** The events of a channel whose numbers are greater than this one, ordered by number. */
  after(channel: string, number: number): Promise<StoredEvent[]>
  /**
   * Calls the listener soon after an event is stored in the channel, on any instance. It may call too often. Returns a function that
   * stops it.
   */
  watch(channel: string, arrived: () => void): () => void
}

/** An event that a mailbox keeps until it is read. */
export interface StoredEvent {
  /** The number that the event was stored under. */
  readonly number: number
  /** The event itself, as `leave` got it. */
  readonly text: string
}
