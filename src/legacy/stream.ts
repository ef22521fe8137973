// A stream of events to a client, with what was sent lately kept, so that a client that lost it can go on from where it was.
import { randomBytes } from 'node:crypto'
import type { EventSink } from '../server/reply.ts'

export interface StreamOptions {
  /** Of `newStreamId`. */
  readonly id: string
  /** Whether it belongs to no call. Told from the id, so that a client who comes back with it elsewhere gets a new one. */
  readonly standalone: boolean
  /** Whether it begins with an event that has an id and no message. */
  readonly primes: boolean
  readonly now: () => number
  /** So many bytes more, or less, are kept. */
  readonly kept: (bytes: number) => void
  /** It has been read to an end after which it is not gone on with. */
  readonly read: () => void
}

const MOST_EVENTS = 256
const MOST_BYTES = 256 * 1024

/** Before its first reader, who is on the way, has come. */
const MOST_EVENTS_AT_FIRST = 10_000
const MOST_BYTES_AT_FIRST = 1024 * 1024

/** How long a client that lost the stream is to wait before it comes back. */
const RETRY_MS = 1_000

/** After a question that the client carries the call with: it may have the answer at once. */
export const RETRY_ASKED_MS = 200

const STANDALONE = 'g'
const OF_A_CALL = 'c'

export class EventStream {
  readonly id: string
  /** Since when nobody reads it; `undefined` while somebody does. */
  unreadSince: number | undefined
  /** Called once nobody can read it any more, now or later. */
  lost: (() => void) | undefined
  readonly #options: StreamOptions
  #events: { readonly number: number; readonly text: string }[] = []
  #sent = 0
  #bytes = 0
  #sink: EventSink | undefined
  #wasRead = false
  #ended = false
  #parted = false

  constructor(options: StreamOptions) {
    this.#options = options
    this.id = options.id
    this.unreadSince = options.now()
  }

  get standalone(): boolean {
    return this.#options.standalone
  }

  /** Whether there is nothing to be read after the event of this number, now or later. */
  isOverAfter(number: number): boolean {
    return this.#ended && number === this.#sent
  }

  /** Kept also while nobody reads, until it is forgotten. */
  send(message: string): void {
    if (this.#ended) return
    this.#add(`id: ${this.id}:${this.#sent + 1}\nevent: message\ndata: ${message}\n\n`)
  }

  /** The last one, which the client goes on with elsewhere, by an id that is not of this stream. */
  part(message: string, eventId: string): void {
    if (this.#ended) return
    this.#parted = true
    this.#add(`id: ${eventId}\nretry: ${RETRY_ASKED_MS}\nevent: message\ndata: ${message}\n\n`)
    const isRead = this.#sink !== undefined
    this.end()
    if (isRead) this.#options.read()
  }

  /** What may be left out where its reader is too far behind; gives `false` then. */
  notify(message: string): boolean {
    if (this.#sink?.isBehind()) return false
    this.send(message)
    return true
  }

  end(): void {
    if (this.#ended) return
    this.#ended = true
    this.#leave()
  }

  /** Whether all that came after the event of this number is still there. */
  keepsAfter(number: number): boolean {
    const [first] = this.#events
    return number <= this.#sent && number >= (first === undefined ? this.#sent : first.number - 1)
  }

  /** Goes on after the event of this number. */
  attach(sink: EventSink, after = 0): void {
    // Whoever had it before has lost it, and has not noticed yet.
    this.#sink?.end()
    this.#sink = sink
    this.#wasRead = true
    this.unreadSince = undefined
    if (this.#options.primes && after === 0) this.#write(`id: ${this.id}:0\nretry: ${RETRY_MS}\ndata: \n\n`)
    for (const { number, text } of this.#events) if (number > after) this.#write(text)
    if (!this.#ended) return
    this.#leave()
    if (this.#parted) this.#options.read()
  }

  /** The reader is gone. Another one may have come meanwhile. */
  detach(sink: EventSink): void {
    if (this.#sink !== sink) return
    this.#sink = undefined
    this.unreadSince = this.#options.now()
  }

  /** Keeps nothing of what its reader has been sent. */
  trim(): void {
    this.#trimTo(0, 0)
  }

  /** Nobody can go on with it any more. */
  forget(): void {
    this.#ended = true
    this.#leave()
    this.#trimTo(0, 0)
    this.lost?.()
  }

  #add(text: string): void {
    this.#sent += 1
    this.#events.push({ number: this.#sent, text })
    this.#keep(text.length)
    if (this.#wasRead) this.#trimTo(MOST_EVENTS, MOST_BYTES)
    else this.#trimTo(MOST_EVENTS_AT_FIRST, MOST_BYTES_AT_FIRST)
    this.#write(text)
  }

  #write(text: string): void {
    // On a stream of no call nothing may be left out: who is too far behind comes back and reads what is kept.
    if (this.standalone && this.#sink?.isBehind()) this.#leave()
    this.#sink?.send(text)
  }

  #leave(): void {
    const sink = this.#sink
    this.#sink = undefined
    this.unreadSince ??= this.#options.now()
    sink?.end()
  }

  #trimTo(events: number, bytes: number): void {
    while (this.#events.length > events || (this.#events.length > 1 && this.#bytes > bytes)) {
      const [dropped] = this.#events.splice(0, 1)
      this.#keep(-(dropped?.text.length ?? 0))
    }
  }

  #keep(bytes: number): void {
    this.#bytes += bytes
    this.#options.kept(bytes)
  }
}

/** Nobody can guess it. */
export function newStreamId(standalone: boolean): string {
  return (standalone ? STANDALONE : OF_A_CALL) + randomBytes(15).toString('base64url')
}

/** The stream and the number of an event id; `undefined` where it is none of ours. */
export function readEventId(eventId: string): { stream: string; number: number; standalone: boolean } | undefined {
  const [, stream, digits] = /^([gc][\w-]{20}):(\d{1,15})$/.exec(eventId) ?? []
  if (stream === undefined) return undefined
  return { stream, number: Number(digits), standalone: stream.startsWith(STANDALONE) }
}
