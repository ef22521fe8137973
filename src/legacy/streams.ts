// All streams of an instance, each of one session: bounded in number and in what they keep, and forgotten in time.
import type { Session } from './session.ts'
import { EventStream, newStreamId } from './stream.ts'

export interface StreamsOptions {
  /** How long a stream that nobody reads can be gone on with. */
  readonly keepMs: number
  readonly now: () => number
  /** A session may have nothing left. */
  readonly forgotten: (session: Session) => void
}

const MOST_STREAMS = 2_000
/** The rest is for calls, which cannot ask without one. */
const MOST_STANDALONE = 1_000
const MOST_STANDALONE_EACH = 4
const MOST_BYTES = 32 * 1024 * 1024
const LONGEST_SWEEP_MS = 10_000

export class Streams {
  readonly #options: StreamsOptions
  readonly #all = new Map<EventStream, Session>()
  #bytes = 0
  #standalone = 0
  #sweep: NodeJS.Timeout | undefined

  constructor(options: StreamsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#all.size
  }

  /** How many belong to no call. */
  get standalone(): number {
    return this.#standalone
  }

  /** Whether the session may have another one that belongs to no call. It takes the place of those that nobody reads. */
  makeRoomIn(session: Session): boolean {
    const others = [...session.streams.values()].filter((stream) => stream.standalone)
    const unread = others.filter((stream) => stream.unreadSince !== undefined)
    for (const stream of unread) this.#forget(stream)
    return others.length - unread.length < MOST_STANDALONE_EACH
  }

  /** `undefined` where there are too many on this instance. */
  open(session: Session, standalone: boolean, id = newStreamId(standalone)): EventStream | undefined {
    const { now, keepMs } = this.#options
    if (standalone && this.#standalone >= MOST_STANDALONE) return undefined
    if (this.#all.size >= MOST_STREAMS && !this.#forgetUnread()) return undefined
    const stream: EventStream = new EventStream({
      id,
      standalone,
      primes: session.revision.primesStreams,
      now,
      kept: (bytes) => this.#kept(bytes),
      read: () => this.#forget(stream),
    })
    this.#all.set(stream, session)
    session.streams.set(stream.id, stream)
    if (standalone) this.#standalone += 1
    this.#sweep ??= setInterval(() => this.#forgetOld(), Math.min(keepMs, LONGEST_SWEEP_MS)).unref()
    return stream
  }

  /** Streams that belong to no call end: nothing more is told on this instance. */
  endStandalone(): void {
    for (const stream of this.#all.keys()) if (stream.standalone) this.#forget(stream)
  }

  #kept(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes <= MOST_BYTES || bytes <= 0) return
    for (const stream of this.#all.keys()) {
      if (stream.unreadSince === undefined) stream.trim()
      else this.#forget(stream)
      if (this.#bytes <= MOST_BYTES) return
    }
  }

  #forgetUnread(): boolean {
    for (const stream of this.#all.keys()) {
      if (stream.unreadSince === undefined) continue
      this.#forget(stream)
      return true
    }
    return false
  }

  #forgetOld(): void {
    const before = this.#options.now() - this.#options.keepMs
    for (const stream of this.#all.keys()) {
      if (stream.unreadSince !== undefined && stream.unreadSince <= before) this.#forget(stream)
    }
  }

  #forget(stream: EventStream): void {
    const session = this.#all.get(stream)
    this.#all.delete(stream)
    if (stream.standalone) this.#standalone -= 1
    stream.forget()
    session?.streams.delete(stream.id)
    if (session !== undefined) this.#options.forgotten(session)
    if (this.#all.size > 0) return
    clearInterval(this.#sweep)
    this.#sweep = undefined
  }
}
