// All streams of an instance. Their number and the bytes they keep are bounded, and a stream without a reader is forgotten after a while.
import type { Session } from './session.ts'
import { EventStream, newStreamId } from './stream.ts'

export interface StreamsOptions {
  /** How long a stream without a reader can be resumed. */
  readonly keepMs: number
  readonly now: () => number
  /** Called when a stream of the session was forgotten. */
  readonly forgotten: (session: Session) => void
}

const MAX_STREAMS = 2_000
/** The other streams are for calls, which cannot ask without one. */
const MAX_STANDALONE = 1_000
const MAX_STANDALONE_EACH = 4
const MAX_BYTES = 32 * 1024 * 1024
const MAX_SWEEP_MS = 10_000

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

  /** How many streams belong to no call. */
  get standalone(): number {
    return this.#standalone
  }

  /** Returns true if the session may open another standalone stream. Forgets those of its streams that have no reader. */
  makeRoomIn(session: Session): boolean {
    const others = [...session.streams.values()].filter((stream) => stream.standalone)
    const unread = others.filter((stream) => stream.unreadSince !== undefined)
    for (const stream of unread) this.#forget(stream)
    return others.length - unread.length < MAX_STANDALONE_EACH
  }

  /** Returns `undefined` if this instance has too many streams. */
  open(session: Session, standalone: boolean, id = newStreamId(standalone)): EventStream | undefined {
    const { now, keepMs } = this.#options
    if (standalone && this.#standalone >= MAX_STANDALONE) return undefined
    if (this.#all.size >= MAX_STREAMS && !this.#forgetUnread()) return undefined
    const stream: EventStream = new EventStream({
      id,
      standalone,
      primes: session.revision.primesStreams,
      now,
      kept: (bytes) => this.#kept(bytes),
      finished: () => this.#forget(stream),
    })
    this.#all.set(stream, session)
    session.streams.set(stream.id, stream)
    if (standalone) this.#standalone += 1
    this.#sweep ??= setInterval(() => this.#forgetOld(), Math.min(keepMs, MAX_SWEEP_MS)).unref()
    return stream
  }

  /** Ends all standalone streams: this instance sends no more notifications. */
  endStandalone(): void {
    for (const stream of this.#all.keys()) if (stream.standalone) this.#forget(stream)
  }

  #kept(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes <= MAX_BYTES || bytes <= 0) return
    for (const stream of this.#all.keys()) {
      if (stream.unreadSince === undefined) stream.trim()
      else this.#forget(stream)
      if (this.#bytes <= MAX_BYTES) return
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
