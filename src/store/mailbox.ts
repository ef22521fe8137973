// Where messages are left for a client that will come back for them, perhaps on another instance.

export interface Mailbox {
  /**
   * Leaves a message under a number in a box, for so long. The first one under a number stays: the same message twice is one,
   * and of two that differ the later is dropped. Gives whether this one was the first.
   */
  leave(box: string, number: number, text: string, keepMs: number): Promise<boolean>
  /** The messages of a box with numbers above this one, in the order of their numbers. */
  after(box: string, number: number): Promise<StoredEvent[]>
  /** Calls back soon after a message is left in the box, by whichever instance. Once too often does no harm. Gives how to stop. */
  watch(box: string, arrived: () => void): () => void
}

export interface StoredEvent {
  readonly number: number
  readonly text: string
}
