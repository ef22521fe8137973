// What an older server answers one HTTP request with, as it comes in: a body, or a stream of events.
import { ClientError, lost, tooLarge, unreachable } from '../errors.ts'
import { reasonOf } from '../../protocol/text.ts'
import { isEventStream } from '../transports/http-response.ts'
import type { Cursor } from '../transports/sse.ts'
import { EventReader } from '../transports/sse.ts'
import type { HttpResponseListener } from '../transports/http-client.ts'

export interface Head {
  readonly status: number
  readonly header: (name: string) => string | undefined
  readonly isStream: boolean
}

export interface Reading {
  head?(head: Head): void
  /** The data of one event. */
  event(data: string): void
  /** A body that is no stream, whole. */
  body(text: string, head: Head): void
  /** The stream has ended, or there was none. Nothing is told after this. */
  ended(error: ClientError): void
}

export class HttpReader implements HttpResponseListener {
  readonly #maxBytes: number
  readonly #cursor: Cursor
  readonly #reading: Reading
  #head: Head = { status: 0, header: () => undefined, isStream: false }
  #events: EventReader | undefined
  #chunks: Uint8Array[] = []
  #bytes = 0
  #isOver = false

  constructor(maxBytes: number, cursor: Cursor, reading: Reading) {
    this.#maxBytes = maxBytes
    this.#cursor = cursor
    this.#reading = reading
  }

  /** Nothing is told from now on. */
  stop(): void {
    this.#isOver = true
    this.#chunks = []
  }

  head(status: number, header: (name: string) => string | undefined): void {
    if (this.#isOver) return
    this.#head = { status, header, isStream: status === 200 && isEventStream(header('content-type')) }
    if (this.#head.isStream) {
      this.#events = new EventReader(
        this.#maxBytes,
        (data) => {
          if (!this.#isOver) this.#reading.event(data)
        },
        () => this.#end(tooLarge(this.#maxBytes)),
        this.#cursor,
      )
    }
    this.#reading.head?.(this.#head)
  }

  data(chunk: Uint8Array): void {
    if (this.#isOver) return
    if (this.#events !== undefined) return this.#events.add(chunk)
    this.#bytes += chunk.byteLength
    if (this.#bytes <= this.#maxBytes) this.#chunks.push(chunk)
    else this.#end(tooLarge(this.#maxBytes))
  }

  end(): void {
    if (this.#isOver) return
    if (this.#events !== undefined) return this.#end(lost('the stream ended before it'))
    this.#isOver = true
    this.#reading.body(Buffer.concat(this.#chunks).toString('utf8'), this.#head)
  }

  failed(error: unknown, wasSent: boolean): void {
    if (error instanceof ClientError) return this.#end(error)
    const why = reasonOf(error)
    this.#end(wasSent ? lost(why, error) : unreachable(why, error))
  }

  #end(error: ClientError): void {
    if (this.#isOver) return
    this.stop()
    this.#reading.ended(error)
  }
}
