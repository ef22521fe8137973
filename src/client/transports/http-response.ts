// Reads one HTTP response as it arrives: a body of bounded size, or a stream of events of bounded size each.
import { unref } from '../../protocol/timers.ts'
import { ByteBuffer, textOf, type ByteBudget } from '../../protocol/byte-buffer.ts'
import { ClientError, lost, tooLarge, tooMuchBuffered, unreachable } from '../errors.ts'
import { reasonOf } from '../../protocol/text.ts'
import type { HeaderLookup, HttpResponseListener } from './http-client.ts'
import type { Cursor } from './sse.ts'
import { EventReader } from './sse.ts'

export interface ResponseHead {
  readonly status: number
  readonly header: HeaderLookup
  /** True for an event stream: `event` is called for each event, and `body` never. */
  readonly isStream: boolean
}

/** After `body` or `failed`, nothing else is called. */
export interface ResponseHandler {
  head?(head: ResponseHead): void
  /** The data of one event. */
  event(data: string): void
  /** The data of an event of the type `endpoint`. */
  endpoint?(data: string): void
  /** The complete body of a response that is not a stream. `bytes` is its size. */
  body(text: string, head: ResponseHead, bytes: number): void
  /** The request failed, the response is too large, or the stream ended. The request has been aborted. */
  failed(error: ClientError): void
  /** See `HttpResponseListener`. */
  pauseClock?(): () => void
}

/** After the response has arrived, the server may end its stream within this time. Then the connection can be reused. */
const END_OF_STREAM_MS = 500

export interface ResponseLimits {
  /** Of one body, or of one event. */
  readonly maxBytes: number
  /** For all responses that are being read. */
  readonly budget: ByteBudget
}

export class ResponseReader implements HttpResponseListener {
  readonly #limits: ResponseLimits
  readonly #handler: ResponseHandler
  readonly #cursor: Cursor | undefined
  #head: ResponseHead = { status: 0, header: () => undefined, isStream: false }
  #events: EventReader | undefined
  readonly #body: ByteBuffer
  #isOver = false
  #abort: () => void = () => {}
  #endOfStream: NodeJS.Timeout | undefined

  /** `cursor` is kept up to date with the ids of the events. */
  constructor(limits: ResponseLimits, handler: ResponseHandler, cursor?: Cursor) {
    this.#limits = limits
    this.#body = new ByteBuffer(limits.budget)
    this.#handler = handler
    this.#cursor = cursor
  }

  /** True once the handler will not be called again. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Starts the request. `send` returns a function that aborts it. */
  start(send: (listener: HttpResponseListener) => () => void): void {
    this.#abort = send(this)
  }

  /** Aborts the request. The handler is not called again. */
  cancel(): void {
    this.#isOver = true
    this.#free()
    this.#abort()
  }

  /** The handler has what it needs. Leaves the server a moment to end its stream before the request is aborted. */
  finish(): void {
    this.#isOver = true
    this.#free()
    this.#endOfStream = unref(setTimeout(this.#abort, END_OF_STREAM_MS))
  }

  head(status: number, header: HeaderLookup): void {
    if (this.#isOver) return
    const { maxBytes, budget } = this.#limits
    const isStream = status === 200 && isEventStream(header('content-type'))
    this.#head = { status, header, isStream }
    if (isStream) {
      this.#events = new EventReader({
        receive: (data) => {
          if (!this.#isOver) this.#handler.event(data)
        },
        endpoint: (data) => {
          if (!this.#isOver) this.#handler.endpoint?.(data)
        },
        tooLarge: () => this.#fail(tooLarge(maxBytes)),
        overBudget: () => this.#fail(tooMuchBuffered(budget.maxBytes)),
        maxBytes,
        budget,
        cursor: this.#cursor,
      })
    } else if (Number(header('content-length')) > maxBytes) {
      return this.#fail(tooLarge(maxBytes))
    }
    this.#handler.head?.(this.#head)
  }

  data(chunk: Uint8Array): void {
    if (this.#isOver) return
    if (this.#events === undefined) this.#append(chunk)
    else this.#events.add(chunk)
  }

  end(): void {
    clearTimeout(this.#endOfStream)
    if (this.#isOver) return
    if (this.#events !== undefined) return this.#fail(lost('the stream ended before the response'))
    this.#isOver = true
    const bytes = this.#body.view()
    this.#body.clear()
    this.#handler.body(textOf(bytes), this.#head, bytes.byteLength)
  }

  failed(error: unknown, wasSent: boolean): void {
    clearTimeout(this.#endOfStream)
    if (error instanceof ClientError) return this.#fail(error)
    const reason = reasonOf(error)
    this.#fail(wasSent ? lost(reason, error) : unreachable(reason, error))
  }

  pauseClock(): () => void {
    return this.#handler.pauseClock?.() ?? (() => {})
  }

  #append(chunk: Uint8Array): void {
    const { maxBytes, budget } = this.#limits
    if (this.#body.length + chunk.byteLength > maxBytes) return this.#fail(tooLarge(maxBytes))
    if (!this.#body.append(chunk)) this.#fail(tooMuchBuffered(budget.maxBytes))
  }

  #free(): void {
    this.#body.clear()
    this.#events?.close()
  }

  #fail(error: ClientError): void {
    if (this.#isOver) return
    this.cancel()
    this.#handler.failed(error)
  }
}

function isEventStream(type: string | undefined): boolean {
  return type !== undefined && /^text\/event-stream\s*(;|$)/i.test(type)
}
