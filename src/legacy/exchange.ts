// The answer to one POST: JSON if there is nothing to send before the last response, otherwise a stream of events.
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
  /** Resolves when a stream is opened. Never, if the answer is JSON. */
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
    // A client that has a stream can resume it while it is kept. Without a stream, a lost connection is the end.
    if (this.#stream === undefined) peer.listen(listener && (() => this.#stream === undefined && this.#lost?.()))
    else this.#stream.lost = listener
  }

  /** Adds a response. Without a stream it waits for the other responses. */
  tell(text: string): void {
    if (this.#stream === undefined) this.#responses.push(text)
    else this.#stream.send(text)
  }

  /** Ends the exchange. Returns the responses that were not sent on a stream. */
  end(): readonly string[] {
    this.#over = true
    this.#stream?.end()
    return this.#responses
  }

  async #part(text: string, { eventId, leave }: PartingOptions): Promise<boolean> {
    const stream = this.#opened()
    if (stream === undefined) return false
    await leave(text)
    stream.suspend(text, await eventId())
    return true
  }

  #opened(): EventStream | undefined {
    return this.#over ? undefined : (this.#stream ??= this.#begin())
  }

  #begin(): EventStream | undefined {
    const { takesEvents, peer } = this.#request
    // A client that left before the first event has no id to resume with.
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
        // Called at once if the client has left already.
        peer.listen(() => stream.detach(sink))
      },
    })
    for (const text of this.#responses.splice(0)) stream.send(text)
    return stream
  }
}
