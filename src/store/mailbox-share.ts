// Bounds what each owner may store in a mailbox that instances share. Such a mailbox has no size of its own, and evicts nothing.
//
// Each instance counts what it stored itself, until that expires. So an owner gets its share once from each instance.
import { RallyError } from '../protocol/errors.ts'
import { SharedLimit } from '../protocol/shared-limit.ts'
import type { Mailbox, StoredEvent } from './mailbox.ts'

interface CountedEvent {
  readonly owner: string
  readonly until: number
}

/** What an event uses beside its text. */
const EVENT_BYTES = 200

export class MailboxShare implements Mailbox {
  readonly #mailbox: Mailbox
  readonly #now: () => number
  readonly #shares: SharedLimit<CountedEvent>
  /** In the order in which they were stored. */
  readonly #counted = new Set<CountedEvent>()

  constructor(mailbox: Mailbox, maxBytes: number, now: () => number) {
    this.#mailbox = mailbox
    this.#now = now
    this.#shares = new SharedLimit({ total: Number.POSITIVE_INFINITY, each: maxBytes })
  }

  async leave(channel: string, number: number, text: string, keepMs: number, owner = ''): Promise<boolean> {
    const bytes = Buffer.byteLength(text) + EVENT_BYTES
    this.checkRoom(owner, bytes)
    const event = { owner, until: this.#now() + keepMs }
    this.#shares.set(owner, event, bytes)
    this.#counted.add(event)
    let isStored = false
    try {
      isStored = await this.#mailbox.leave(channel, number, text, keepMs, owner)
      return isStored
    } finally {
      if (!isStored) this.#forget(event)
    }
  }

  after(channel: string, number: number): Promise<StoredEvent[]> {
    return this.#mailbox.after(channel, number)
  }

  watch(channel: string, arrived: () => void): () => void {
    return this.#mailbox.watch(channel, arrived)
  }

  /** Throws if the owner has used its share. */
  checkRoom(owner: string, bytes = EVENT_BYTES): void {
    for (const event of this.#counted) {
      if (event.until > this.#now()) break
      this.#forget(event)
    }
    if (this.#shares.makeRoom(owner, bytes) === undefined) return
    throw new RallyError(
      'MAILBOX_FULL',
      `What waits for this caller in the mailbox uses its ${this.#shares.each} bytes (limits.maxWaitingBytes). Try again later.`,
    )
  }

  #forget(event: CountedEvent): void {
    this.#counted.delete(event)
    this.#shares.delete(event.owner, event)
  }
}
