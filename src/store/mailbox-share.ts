// Bounds what each owner may store in a mailbox that instances share. Such a mailbox has no size of its own, and evicts nothing.
//
// 1. Each instance counts what it stored itself, until that expires. So an owner gets its share once from each instance.
// 2. A principal may store as much as the limit says. All callers without a principal together may store as much, and each of their
//    sessions a share of it: one caller may begin any number of sessions.
import { RallyError } from '../protocol/errors.ts'
import { isAnonymous, NOBODY, SharedLimit } from '../protocol/shared-limit.ts'
import type { Mailbox, StoredEvent } from './mailbox.ts'
import { MemoryMailbox } from './memory/mailbox.ts'
import type { StoreOutages } from './outages.ts'

interface CountedEvent {
  readonly owner: string
  readonly until: number
}

/** What an event uses beside its text. */
const EVENT_BYTES = 200

/** What a mailbox uses of its app. */
export interface MailboxHost {
  readonly now: () => number
  readonly limits: MailboxLimits
  readonly outages: Pick<StoreOutages, 'mailbox'>
}

export interface MailboxLimits {
  /** In bytes. */
  readonly maxWaitingBytes: number
  readonly share: number
}

/** The mailbox of a store within the limits of the app, or one in the memory of this process if there is no store. */
export function limitedMailbox(shared: Mailbox | undefined, { now, limits, outages }: MailboxHost): Mailbox {
  const { maxWaitingBytes: maxBytes, share } = limits
  if (shared === undefined) return new MemoryMailbox({ now, maxBytes, share })
  if (!(shared instanceof MemoryMailbox)) return new MailboxShare(outages.mailbox(shared), limits, now)
  shared.sizeTo(maxBytes, share)
  return shared
}

export class MailboxShare implements Mailbox {
  readonly #mailbox: Mailbox
  readonly #now: () => number
  readonly #principals: SharedLimit<CountedEvent>
  readonly #anonymous: SharedLimit<CountedEvent>
  /** In the order in which they were stored. */
  readonly #counted = new Set<CountedEvent>()

  constructor(mailbox: Mailbox, { maxWaitingBytes, share }: MailboxLimits, now: () => number) {
    this.#mailbox = mailbox
    this.#now = now
    this.#principals = new SharedLimit({ total: Number.POSITIVE_INFINITY, each: maxWaitingBytes })
    const each = Math.floor(maxWaitingBytes * share)
    this.#anonymous = new SharedLimit<CountedEvent>({ total: maxWaitingBytes, each, pick: () => undefined })
  }

  async leave(channel: string, number: number, text: string, keepMs: number, owner = NOBODY): Promise<boolean> {
    const bytes = Buffer.byteLength(text) + EVENT_BYTES
    this.checkRoom(owner, bytes)
    const event = { owner, until: this.#now() + keepMs }
    this.#limitOf(owner).set(owner, event, bytes)
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
    const limit = this.#limitOf(owner)
    const noRoom = limit.makeRoom(owner, bytes)
    if (noRoom === undefined) return
    const { who, most, used } =
      noRoom === 'share'
        ? { who: 'one caller', most: limit.each, used: limit.usedBy(owner) }
        : { who: 'all callers without a principal together', most: limit.total, used: limit.used }
    throw new RallyError(
      'MAILBOX_FULL',
      `The mailbox: ${who} may store ${most} bytes (limits.maxWaitingBytes, limits.share), got ${used + bytes}. Try again later, or raise the limit.`,
    )
  }

  #limitOf(owner: string): SharedLimit<CountedEvent> {
    return isAnonymous(owner) ? this.#anonymous : this.#principals
  }

  #forget(event: CountedEvent): void {
    this.#counted.delete(event)
    this.#limitOf(event.owner).delete(event.owner, event)
  }
}
