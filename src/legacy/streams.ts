// All streams of an instance. Their number and the bytes they keep are bounded, and a stream without a reader is forgotten after a while.
import type { NoRoom } from '../protocol/shared-limit.ts'
import { oldest, SharedLimit } from '../protocol/shared-limit.ts'
import type { Limits } from '../server/limits.ts'
import { sharesOf } from '../server/limits.ts'
import type { Session } from './session.ts'
import { EventStream, newStreamId } from './stream.ts'

export interface StreamsOptions {
  /** How long a stream without a reader can be resumed. */
  readonly keepMs: number
  readonly now: () => number
  readonly limits: Limits
  /** Called when a stream of the session was forgotten. */
  readonly forgotten: (session: Session) => void
}

const MAX_STANDALONE_EACH = 4
const MAX_SWEEP_MS = 10_000

export class Streams {
  /** The limit that all streams share. */
  readonly shares: SharedLimit<EventStream>
  readonly #options: StreamsOptions
  readonly #all = new Map<EventStream, Session>()
  /** Standalone streams have half of the limit. The other half is for calls, which cannot ask without a stream. */
  readonly #standalone: SharedLimit<EventStream>
  /** The bytes of the events that are kept. */
  readonly #bytes: SharedLimit<EventStream>
  #sweep: NodeJS.Timeout | undefined

  constructor(options: StreamsOptions) {
    this.#options = options
    const { limits } = options
    const evict = (stream: EventStream): void => this.#forget(stream)
    const picks = { pick: (streams: Iterable<EventStream>) => firstUnread(streams) ?? oldest(streams), evict }
    this.shares = new SharedLimit({ ...sharesOf(limits, 'maxStreams'), ...picks, pickOwn: firstUnread })
    this.#standalone = new SharedLimit({ ...sharesOf(limits, 'maxStreams', 0.5), ...picks, pickOwn: firstUnread })
    this.#bytes = new SharedLimit({
      ...sharesOf(limits, 'maxWaitingBytes'),
      pick: firstKeeping,
      pickOwn: firstKeeping,
      evictsEqual: true,
      evict: (stream) => {
        if (stream.unreadSince === undefined) stream.trim()
        else this.#forget(stream)
      },
    })
  }

  get size(): number {
    return this.#all.size
  }

  /** How many streams belong to no call. */
  get standalone(): number {
    return this.#standalone.used
  }

  /** Returns true if the session may open another standalone stream. Forgets those of its streams that have no reader. */
  makeRoomIn(session: Session): boolean {
    const others = [...session.streams.values()].filter((stream) => stream.standalone)
    const unread = others.filter((stream) => stream.unreadSince !== undefined)
    for (const stream of unread) this.#forget(stream)
    return others.length - unread.length < MAX_STANDALONE_EACH
  }

  /** Returns why if there is no room for another stream. */
  open(session: Session, standalone: boolean, id = newStreamId(standalone)): EventStream | NoRoom {
    const { now, keepMs } = this.#options
    const { owner } = session
    const noRoom = (standalone ? this.#standalone.makeRoom(owner, 1) : undefined) ?? this.shares.makeRoom(owner, 1)
    if (noRoom !== undefined) return noRoom
    const stream: EventStream = new EventStream({
      id,
      standalone,
      primes: session.revision.primesStreams,
      now,
      kept: (bytes, change) => {
        this.#bytes.set(owner, stream, bytes)
        if (change > 0) this.#bytes.makeRoom(owner, 0)
      },
      finished: () => this.#forget(stream),
    })
    this.#all.set(stream, session)
    session.streams.set(stream.id, stream)
    this.shares.set(owner, stream, 1)
    if (standalone) this.#standalone.set(owner, stream, 1)
    this.#sweep ??= setInterval(() => this.#forgetOld(), Math.min(keepMs, MAX_SWEEP_MS)).unref()
    return stream
  }

  /** Ends all standalone streams: this instance sends no more notifications. */
  endStandalone(): void {
    for (const stream of this.#all.keys()) if (stream.standalone) this.#forget(stream)
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
    stream.forget()
    if (session !== undefined) {
      for (const shares of [this.shares, this.#standalone, this.#bytes]) shares.delete(session.owner, stream)
      session.streams.delete(stream.id)
      this.#options.forgotten(session)
    }
    if (this.#all.size > 0) return
    clearInterval(this.#sweep)
    this.#sweep = undefined
  }
}

function firstKeeping(streams: Iterable<EventStream>): EventStream | undefined {
  for (const stream of streams) if (stream.keptBytes > 0) return stream
  return undefined
}

function firstUnread(streams: Iterable<EventStream>): EventStream | undefined {
  for (const stream of streams) if (stream.unreadSince !== undefined) return stream
  return undefined
}
