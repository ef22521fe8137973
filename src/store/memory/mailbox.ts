// A mailbox in the memory of one process. Its size is bounded, and events that nobody fetches expire.
import { RallyError } from '../../protocol/errors.ts'
import { NOBODY, oldest, SharedLimit } from '../../protocol/shared-limit.ts'
import type { Mailbox, StoredEvent } from '../mailbox.ts'
import { KeyedWatchers } from '../watchers.ts'

export interface MemoryMailboxOptions {
  /** The clock. Default `Date.now`. */
  readonly now?: () => number
  /** The size of all events together, in bytes. When it is full, the owner that uses the most loses its oldest channels. Default 33 554 432. */
  readonly maxBytes?: number
  /** The part of `maxBytes` that one owner may use. Beyond it the owner loses its own oldest channels. Default 0.25. */
  readonly share?: number
}

interface MemoryEvent {
  readonly text: string
  readonly until: number
}

interface MemoryChannel {
  readonly owner: string
  readonly events: Map<number, MemoryEvent>
  bytes: number
}

const DEFAULT_MAX_BYTES = 32 * 1024 * 1024
const DEFAULT_SHARE = 0.25

/** What an event costs beside its text, so that the number of empty ones is bounded too. */
const EVENT_BYTES = 200
const SWEEP_MS = 5_000

export class MemoryMailbox implements Mailbox {
  readonly #now: () => number
  readonly #shares: SharedLimit<string>
  readonly #channels = new Map<string, MemoryChannel>()
  readonly #watchers = new KeyedWatchers()
  #isSized: boolean
  #sweep: NodeJS.Timeout | undefined

  constructor({ now = Date.now, maxBytes, share = DEFAULT_SHARE }: MemoryMailboxOptions = {}) {
    const total = maxBytes ?? DEFAULT_MAX_BYTES
    this.#now = now
    this.#isSized = maxBytes !== undefined
    this.#shares = new SharedLimit({
      total,
      each: Math.floor(total * share),
      pickOwn: oldest,
      evictsEqual: true,
      evict: (channel) => this.#forget(channel),
    })
  }

  /** Gives it the size that the limits of an app say, unless it has one: from its options, or from an app that shares it. */
  sizeTo(maxBytes: number, share: number): void {
    if (this.#isSized) return
    this.#isSized = true
    this.#shares.resize(maxBytes, Math.floor(maxBytes * share))
  }

  /** How many events it holds. */
  get size(): number {
    let events = 0
    for (const channel of this.#channels.values()) events += channel.events.size
    return events
  }

  async leave(name: string, number: number, text: string, keepMs: number, owner = NOBODY): Promise<boolean> {
    const earlier = this.#channels.get(name)?.events.get(number)
    if (earlier !== undefined && earlier.until > this.#now()) return false
    if (earlier !== undefined) this.#drop(name, number, earlier)
    const bytes = costOf(text)
    this.#makeRoom(this.#channels.get(name)?.owner ?? owner, bytes)
    const channel = this.#channels.get(name) ?? { owner, events: new Map<number, MemoryEvent>(), bytes: 0 }
    this.#channels.set(name, channel)
    channel.events.set(number, { text, until: this.#now() + keepMs })
    channel.bytes += bytes
    this.#shares.set(channel.owner, name, channel.bytes)
    this.#sweep ??= setInterval(() => this.#dropExpired(), Math.min(keepMs, SWEEP_MS)).unref()
    this.#watchers.notify(name)
    return true
  }

  async after(name: string, number: number): Promise<StoredEvent[]> {
    const events: StoredEvent[] = []
    for (const [each, { text, until }] of this.#channels.get(name)?.events ?? []) {
      if (each > number && until > this.#now()) events.push({ number: each, text })
    }
    return events.toSorted((a, b) => a.number - b.number)
  }

  watch(name: string, arrived: () => void): () => void {
    return this.#watchers.add(name, arrived)
  }

  #makeRoom(owner: string, bytes: number): void {
    const { total, each } = this.#shares
    const most = owner === NOBODY ? total : each
    if (bytes > most) {
      throw new RallyError(
        'MAILBOX_FULL',
        `MemoryMailbox: an event must be at most ${most} bytes (limits.maxWaitingBytes, limits.share), got ${bytes}. ` +
          'Return a smaller result, raise the limit, or use a store in a database.',
      )
    }
    if (this.#shares.makeRoom(owner, bytes) === undefined) return
    throw new RallyError(
      'MAILBOX_FULL',
      `MemoryMailbox: all ${total} bytes (limits.maxWaitingBytes) are in use, by many callers with little each. Try again later.`,
    )
  }

  #dropExpired(): void {
    for (const [name, { events }] of this.#channels) {
      for (const [number, event] of events) if (event.until <= this.#now()) this.#drop(name, number, event)
    }
  }

  #drop(name: string, number: number, { text }: MemoryEvent): void {
    const channel = this.#channels.get(name)
    if (channel?.events.delete(number) !== true) return
    channel.bytes -= costOf(text)
    if (channel.events.size === 0) this.#forget(name)
    else this.#shares.set(channel.owner, name, channel.bytes)
  }

  #forget(name: string): void {
    const channel = this.#channels.get(name)
    if (channel === undefined) return
    this.#channels.delete(name)
    this.#shares.delete(channel.owner, name)
    if (this.#channels.size > 0) return
    clearInterval(this.#sweep)
    this.#sweep = undefined
  }
}

function costOf(text: string): number {
  return Buffer.byteLength(text) + EVENT_BYTES
}
