// The answer to one POST: JSON as long as nothing comes before the last response, and else a stream of events.
import type { LegacyRequest } from '../server/legacy.ts'
import type { Reply } from '../server/reply.ts'
import type { Outlet, Parting } from './host.ts'
import type { Session } from './session.ts'
import type { EventStream } from './stream.ts'
import type { Streams } from './streams.ts'

export interface PartingOptions {
  readonly box: string
  readonly leg: number
  readonly eventId: () => string | Promise<string>
  /** For a client whose stream is lost before it has read this. Never throws. */
  readonly leave: (text: string) => Promise<unknown>
}

export class Exchange implements Outlet {
  readonly overHttp = true
  /** Resolves with the beginning of the stream, if there ever is one. */
  readonly opened: Promise<Reply>
  readonly parting: Parting | undefined
  readonly #session: Session
  readonly #streams: Streams
  readonly #request: LegacyRequest
  #open: (reply: Reply) => void = () => {}
  #stream: EventStream | undefined
  readonly #responses: string[] = []
  #over = false
  #lost: (() => void) | undefined

  /** With `parting`, what is asked goes out under the event id that it gives for a box. */
  constructor(session: Session, streams: Streams, request: LegacyRequest, parting?: PartingOptions) {
    this.#session = session
    this.#streams = streams
    this.#request = request
    this.parting = parting && { ...parting, ask: (text) => this.#part(text, parting) }
    this.opened = new Promise((resolve) => {
      this.#open = resolve
    })
  }

  send(text: string): boolean {
    const stream = this.#opened()
    stream?.send(text)
    return stream !== undefined
  }

  notify(text: string): boolean {
    return this.#opened()?.notify(text) ?? false
  }

  open(): void {
    this.#opened()
  }

  onLost(listener: (() => void) | undefined): void {
    this.#lost = listener
    const { peer } = this.#request
    // Whoever has a stream can come back to it, as long as it is kept.
    if (this.#stream === undefined) peer.listen(listener && (() => this.#stream === undefined && this.#lost?.()))
    else this.#stream.lost = listener
  }

  /** A response, which waits for the others as long as there is no stream. */
  tell(text: string): void {
    if (this.#stream === undefined) this.#responses.push(text)
    else this.#stream.send(text)
  }

  /** All is said. Gives the responses that no stream has told. */
  end(): readonly string[] {
    this.#over = true
    this.#stream?.end()
    return this.#responses
  }

  async #part(text: string, { eventId, leave }: PartingOptions): Promise<boolean> {
    const stream = this.#opened()
    if (stream === undefined) return false
    await leave(text)
    stream.part(text, await eventId())
    return true
  }

  #opened(): EventStream | undefined {
    return this.#over ? undefined : (this.#stream ??= this.#begin())
  }

  #begin(): EventStream | undefined {
    const { takesEvents, peer } = this.#request
    // Whoever has left without an event has none to come back with.
    if (!takesEvents || peer.cancelled) return undefined
    const stream = this.#streams.open(this.#session, false, this.parting?.box)
    if (stream === undefined) return undefined
    stream.lost = this.#lost
    this.#open({
      status: 200,
      text: '',
      headers: {},
      events: (sink) => {
        stream.attach(sink)
        // It may have left already.
        peer.listen(() => stream.detach(sink))
      },
    })
    for (const text of this.#responses.splice(0)) stream.send(text)
    return stream
  }
}
