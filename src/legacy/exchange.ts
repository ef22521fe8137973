// The answer to one POST: JSON if there is nothing to send before the last response, otherwise a stream of events.
import { INTERNAL_ERROR, INVALID_REQUEST, ProtocolError } from '../protocol/errors.ts'
import type { LegacyRequest } from '../server/legacy.ts'
import { noRoomText } from '../server/limits.ts'
import type { Reply } from '../server/reply.ts'
import type { Outlet } from './host.ts'
import type { Session } from './session.ts'
import type { EventStream } from './stream.ts'
import { newStreamId } from './stream.ts'
import type { Streams } from './streams.ts'

/** An error of the request itself, with the HTTP status of the reply. */
export class HttpRefusal extends ProtocolError {
  readonly status: number

  constructor(status: number, why: string) {
    super(status >= 500 ? INTERNAL_ERROR : INVALID_REQUEST, `Invalid request: ${why}`)
    this.status = status
  }
}

/** 429 if the caller has used its share; 503 if everything is in use. */
export function noRoomRefusal(...[noRoom, ...rest]: Parameters<typeof noRoomText>): HttpRefusal {
  return new HttpRefusal(noRoom === 'share' ? 429 : 503, noRoomText(noRoom, ...rest))
}

export class Exchange implements Outlet {
  readonly overHttp = true
  /** Set if a stream could not be opened because of a limit. */
  refusal: string | undefined
  /** Resolves when a stream is opened. Never, if the answer is JSON. */
  readonly opened: Promise<Reply>
  readonly #session: Session
  readonly #streams: Streams
  readonly #request: LegacyRequest
  #open: (reply: Reply) => void = () => {}
  #stream: EventStream | undefined
  readonly #responses: string[] = []
  #over = false
  #isHeld = false
  /** Called when no client can read the answer any more. */
  readonly #lost = new Set<() => void>()
  #streamId: string | undefined

  constructor(session: Session, streams: Streams, request: LegacyRequest) {
    this.#session = session
    this.#streams = streams
    this.#request = request
    this.opened = new Promise((resolve) => {
      this.#open = resolve
    })
  }

  send(text: string): boolean {
    const stream = this.#opened()
    if (stream === undefined || stream.isForgotten) return false
    stream.send(text)
    return true
  }

  notify(text: string): boolean {
    return this.#opened()?.notify(text) ?? false
  }

  /** The id of the stream, also before it is opened. */
  get streamId(): string {
    return (this.#streamId ??= newStreamId(false))
  }

  /** The request only waits from now on. Returns the reason if there is no room for what it keeps. */
  hold(): string | undefined {
    if (this.#isHeld) return undefined
    const noRoom = this.#request.hold?.()
    this.#isHeld = noRoom === undefined
    return noRoom
  }

  keep(bytes: number): string | undefined {
    return this.#request.keep?.(bytes)
  }

  /** Returns false if the client takes no stream. */
  open(): boolean {
    return this.#opened() !== undefined
  }

  /** Sends a question that suspends the call, as the last event. The client resumes with `eventId`. */
  suspend(text: string, eventId: string): void {
    this.#stream?.suspend(text, eventId)
  }

  onLost(listener: () => void): () => void {
    this.#lost.add(listener)
    // A client that has a stream can resume it while it is kept. Without a stream, a lost connection is the end.
    if (this.#stream === undefined) this.#request.peer.listen(() => this.#stream === undefined && this.#lose())
    else if (this.#stream.isForgotten) this.#lose()
    return () => void this.#lost.delete(listener)
  }

  /** Adds a response. Without a stream it waits for the other responses. */
  tell(text: string): void {
    if (this.#stream === undefined) this.#responses.push(text)
    else this.#stream.send(text)
  }

  /** Ends the exchange. Returns the responses that were not sent on a stream. */
  end(): readonly string[] {
    this.#over = true
    if (this.#isHeld) this.#request.release?.()
    this.#stream?.end()
    return this.#responses
  }

  #lose(): void {
    const listeners = [...this.#lost]
    this.#lost.clear()
    for (const listener of listeners) listener()
  }

  #opened(): EventStream | undefined {
    return this.#over ? undefined : (this.#stream ??= this.#begin())
  }

  #begin(): EventStream | undefined {
    const { takesEvents, peer } = this.#request
    // A client that left before the first event has no id to resume with.
    if (!takesEvents || peer.cancelled) return undefined
    // With a stream the request is replied to, and what came with it is kept until its calls have ended.
    this.refusal = this.hold()
    if (this.refusal !== undefined) return undefined
    const stream = this.#streams.open(this.#session, false, this.streamId)
    if (typeof stream === 'string') {
      this.refusal = noRoomText(stream, 'event streams', 'maxStreams', this.#streams.shares)
      return undefined
    }
    stream.lost = () => this.#lose()
    this.#open({
      status: 200,
      text: '',
      headers: {},
      events: (sink) => {
        stream.attach(sink)
        // Called at once if the client has left already.
        peer.listen(() => stream.detach(sink))
      },
    })
    for (const text of this.#responses.splice(0)) stream.send(text)
    return stream
  }
}
