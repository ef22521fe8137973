// A stream of events to a client. It keeps the latest events, so that a client that lost the connection can resume.
import { randomBytes } from 'node:crypto'
import type { EventSink } from '../server/reply.ts'

export interface StreamOptions {
  /** From `newStreamId`. */
  readonly id: string
  /**
   * True if it belongs to no call. The id says so too: a client that resumes such a stream on another instance gets a new one.
   */
  readonly standalone: boolean
  /** True if it begins with an event that has an id and no message. */
  readonly primes: boolean
  readonly now: () => number
  /** Called with the number of bytes that are kept, and how much it has changed. */
  readonly kept: (bytes: number, change: number) => void
  /** Called when a suspended stream has been read to its end: nobody resumes it. */
  readonly finished: () => void
}

const MAX_EVENTS = 256
const MAX_BYTES = 256 * 1024

/** Until the first reader attaches. */
const MAX_EVENTS_AT_FIRST = 10_000
const MAX_BYTES_AT_FIRST = 1024 * 1024

/** How long a client that lost the stream should wait before it reconnects. */
const RETRY_MS = 1_000

/** The same after a question that suspends the call: the client may have the answer at once. */
export const RETRY_ASKED_MS = 200

const STANDALONE = 'g'
const OF_A_CALL = 'c'

export class EventStream {
  readonly id: string
  /** When its last reader left; `undefined` while there is a reader. */
  unreadSince: number | undefined
  /** Called when it is forgotten. */
  lost: (() => void) | undefined
  readonly #options: StreamOptions
  #events: { readonly number: number; readonly text: string }[] = []
  #sent = 0
  #bytes = 0
  #sink: EventSink | undefined
  #wasRead = false
  #ended = false
  #suspended = false
  #forgotten = false

  constructor(options: StreamOptions) {
    this.#options = options
    this.id = options.id
    this.unreadSince = options.now()
  }

  get standalone(): boolean {
    return this.#options.standalone
  }

  get keptBytes(): number {
    return this.#bytes
  }

  /** True if no client can read it any more, now or later. */
  get isForgotten(): boolean {
    return this.#forgotten
  }

  /** True if no event follows the one with this number, now or later. */
  isOverAfter(number: number): boolean {
    return this.#ended && number === this.#sent
  }

  /** The event is kept while there is no reader, until the stream is forgotten. */
  send(message: string): void {
    if (this.#ended) return
    this.#add(`id: ${this.id}:${this.#sent + 1}\nevent: message\ndata: ${message}\n\n`)
  }

  /** Sends the last event: a question that suspends the call. The client resumes with `eventId`, which belongs to a channel. */
  suspend(message: string, eventId: string): void {
    if (this.#ended) return
    this.#suspended = true
    this.#add(`id: ${eventId}\nretry: ${RETRY_ASKED_MS}\nevent: message\ndata: ${message}\n\n`)
    const isRead = this.#sink !== undefined
    this.end()
    if (isRead) this.#options.finished()
  }

  /** Sends a message that may be dropped. Returns false if it was, because the reader is too far behind. */
  notify(message: string): boolean {
    if (this.#sink?.isBehind()) return false
    this.send(message)
    return true
  }

  end(): void {
    if (this.#ended) return
    this.#ended = true
    this.#disconnect()
  }

  /** True if all events after this number are still kept. */
  keepsAfter(number: number): boolean {
    const [first] = this.#events
    return number <= this.#sent && number >= (first === undefined ? this.#sent : first.number - 1)
  }

  /** Sends the events after this number to the reader, and all later ones. */
  attach(sink: EventSink, after = 0): void {
    // The earlier reader has lost its connection, and the server has not noticed yet.
    this.#sink?.end()
    this.#sink = sink
    this.#wasRead = true
    this.unreadSince = undefined
    if (this.#options.primes && after === 0) this.#write(`id: ${this.id}:0\nretry: ${RETRY_MS}\ndata: \n\n`)
    for (const { number, text } of this.#events) if (number > after) this.#write(text)
    if (!this.#ended) return
    this.#disconnect()
    if (this.#suspended) this.#options.finished()
  }

  /** The reader has left. Another one may have attached before that was noticed. */
  detach(sink: EventSink): void {
    if (this.#sink !== sink) return
    this.#sink = undefined
    this.unreadSince = this.#options.now()
  }

  /** Drops all events that are kept. */
  trim(): void {
    this.#trimTo(0, 0)
  }

  /** Ends it for good: it cannot be resumed any more. */
  forget(): void {
    this.#forgotten = true
    this.#ended = true
    this.#disconnect()
    this.#trimTo(0, 0)
    this.lost?.()
  }

  #add(text: string): void {
    this.#sent += 1
    this.#events.push({ number: this.#sent, text })
    this.#keep(text.length)
    if (this.#wasRead) this.#trimTo(MAX_EVENTS, MAX_BYTES)
    else this.#trimTo(MAX_EVENTS_AT_FIRST, MAX_BYTES_AT_FIRST)
    this.#write(text)
  }

  #write(text: string): void {
    // A standalone stream must not drop anything. A reader that is too far behind is disconnected, and resumes from what is kept.
    if (this.standalone && this.#sink?.isBehind()) this.#disconnect()
    this.#sink?.send(text)
  }

  #disconnect(): void {
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
    this.#options.kept(this.#bytes, bytes)
  }
}

/** Unguessable. */
export function newStreamId(standalone: boolean): string {
  return (standalone ? STANDALONE : OF_A_CALL) + randomBytes(15).toString('base64url')
}

/** Reads the stream and the number in an event id. Returns `undefined` if it is not the id of a stream's event. */
export function readEventId(eventId: string): { stream: string; number: number; standalone: boolean } | undefined {
  const [, stream, digits] = /^([gc][\w-]{20}):(\d{1,15})$/.exec(eventId) ?? []
  if (stream === undefined) return undefined
  return { stream, number: Number(digits), standalone: stream.startsWith(STANDALONE) }
}
