// A mailbox in the memory of one process. Its size is bounded, and events that nobody fetches expire.
import { RallyError } from '../../protocol/errors.ts'
import type { Mailbox, StoredEvent } from '../mailbox.ts'
import { KeyedWatchers } from '../watchers.ts'

export interface MemoryMailboxOptions {
  /** The clock. Default `Date.now`. */
  readonly now?: () => number
  /** The size of all events together, in bytes. When it is full, the oldest channels are dropped. Default 33 554 432. */
  readonly maxBytes?: number
}

interface MemoryEvent {
  readonly text: string
  readonly until: number
}

const DEFAULT_MAX_BYTES = 32 * 1024 * 1024

/** What an event costs beside its text, so that the number of empty ones is bounded too. */
const EVENT_BYTES = 200
const SWEEP_MS = 5_000

export class MemoryMailbox implements Mailbox {
  readonly #now: () => number
  readonly #maxBytes: number
  /** The oldest channel first. */
  readonly #channels = new Map<string, Map<number, MemoryEvent>>()
  readonly #watchers = new KeyedWatchers()
  #bytes = 0
  #sweep: NodeJS.Timeout | undefined

  constructor({ now = Date.now, maxBytes = DEFAULT_MAX_BYTES }: MemoryMailboxOptions = {}) {
    this.#now = now
    this.#maxBytes = maxBytes
  }

  /** How many events it holds. */
  get size(): number {
    let events = 0
    for (const channel of this.#channels.values()) events += channel.size
    return events
  }

  async leave(channel: string, number: number, text: string, keepMs: number): Promise<boolean> {
    const earlier = this.#channels.get(channel)?.get(number)
    if (earlier !== undefined && earlier.until > this.#now()) return false
    if (earlier !== undefined) this.#drop(channel, number, earlier)
    this.#makeRoom(costOf(text))
    const events = this.#channels.get(channel) ?? new Map<number, MemoryEvent>()
    this.#channels.set(channel, events)
    events.set(number, { text, until: this.#now() + keepMs })
    this.#bytes += costOf(text)
    this.#sweep ??= setInterval(() => this.#dropExpired(), Math.min(keepMs, SWEEP_MS)).unref()
    this.#watchers.notify(channel)
    return true
  }

  async after(channel: string, number: number): Promise<StoredEvent[]> {
    const events: StoredEvent[] = []
    for (const [each, { text, until }] of this.#channels.get(channel) ?? []) {
      if (each > number && until > this.#now()) events.push({ number: each, text })
    }
    return events.toSorted((a, b) => a.number - b.number)
  }

  watch(channel: string, arrived: () => void): () => void {
    return this.#watchers.add(channel, arrived)
  }

  #makeRoom(bytes: number): void {
    if (bytes > this.#maxBytes) {
      throw new RallyError(
        'MAILBOX_FULL',
        `MemoryMailbox: an event must be at most ${this.#maxBytes} bytes (maxBytes), got ${bytes}. ` +
          'Return a smaller result, raise maxBytes, or use the mailbox of a store in a database.',
      )
    }
    for (const [channel, events] of this.#channels) {
      if (this.#bytes + bytes <= this.#maxBytes) return
      for (const [number, event] of events) this.#drop(channel, number, event)
    }
  }

  #dropExpired(): void {
    for (const [channel, events] of this.#channels) {
      for (const [number, event] of events) if (event.until <= this.#now()) this.#drop(channel, number, event)
    }
  }

  #drop(channel: string, number: number, { text }: MemoryEvent): void {
    const events = this.#channels.get(channel)
    if (events?.delete(number)) this.#bytes -= costOf(text)
    if (events?.size === 0) this.#channels.delete(channel)
    if (this.#channels.size > 0) return
    clearInterval(this.#sweep)
    this.#sweep = undefined
  }
}

function costOf(text: string): number {
  return Buffer.byteLength(text) + EVENT_BYTES
}
