// A fetch handler as a host, for Hono, Bun, Deno and Workers: reads a Request and writes a Response.
import type { IdentifiedCaller } from '../auth/authenticate.ts'
import { ByteBuffer, textOf } from '../protocol/byte-buffer.ts'
import { Cancel } from '../protocol/cancel.ts'
import type { App } from '../server/app.ts'
import type { AdmittedVisitor } from '../server/page.ts'
import type { Reply } from '../server/reply.ts'
import type { KeepAlive } from './events.ts'
import { EVENT_HEADERS, eventText } from './events.ts'
import type { HttpExchange, HttpOptions } from './http.ts'
import { HttpEndpoint, MAX_WAITING_BYTES, refusal } from './http.ts'
import type { BodyReading, LoadLimits } from './load.ts'
import { load } from './load.ts'

/** Serves one request of the Fetch API. */
export type FetchHandler = (request: Request) => Promise<Response>

export function fetchHandler(app: App, options: HttpOptions = {}): FetchHandler {
  const endpoint = new HttpEndpoint(app, options)
  return (request) => {
    const overload = endpoint.overload(request.method)
    if (overload !== undefined) {
      const host = request.headers.get('host') ?? new URL(request.url).host
      return Promise.resolve(responseOf(overload, endpoint.crossOrigin(host, request.headers.get('origin'))))
    }
    const exchange = new FetchExchange(endpoint, request)
    endpoint.serve(exchange)
    return exchange.response
  }
}

const READ_BEFORE = 'Pass `request.clone()` to what reads it first, or call app.fetch(request) before.'

class FetchExchange implements HttpExchange, BodyReading {
  readonly cancel = new Cancel()
  caller: IdentifiedCaller | undefined
  visitor: AdmittedVisitor | undefined
  maxBodyBytes: number
  servedBytes: number | undefined
  holds = 0
  bodyDeadline = 0
  bodyBefore: BodyReading | undefined
  bodyAfter: BodyReading | undefined
  readonly response: Promise<Response>
  readonly #endpoint: HttpEndpoint
  readonly #request: Request
  #respond: (response: Response) => void = () => {}
  #events: EventStream | undefined
  #added: { headers: Readonly<Record<string, string>> } | undefined
  readonly #body = new ByteBuffer(load.bytes)
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  /** True when the body was read, or nothing more of it is wanted. */
  #isRead = false

  constructor(endpoint: HttpEndpoint, request: Request) {
    this.#endpoint = endpoint
    this.maxBodyBytes = endpoint.maxBodyBytes
    this.#request = request
    this.response = new Promise((resolve) => {
      this.#respond = resolve
    })
    const { signal } = request
    signal.addEventListener('abort', this.#abort, { once: true })
    if (signal.aborted) this.#abort()
  }

  get method(): string {
    return this.#request.method
  }

  get url(): string {
    return this.#request.url
  }

  get path(): string {
    return new URL(this.#request.url).pathname
  }

  get host(): string | undefined {
    return this.header('host') ?? new URL(this.#request.url).host
  }

  readonly header = (name: string): string | undefined => this.#request.headers.get(name) ?? undefined

  get limits(): LoadLimits {
    return this.#endpoint.limits
  }

  get received(): number {
    return this.#body.length
  }

  readBody(): void {
    const { bodyUsed, body } = this.#request
    if (bodyUsed || body?.locked) return this.#endpoint.receiveParsed(this, undefined, READ_BEFORE)
    load.beginBody(this)
    this.#readChunks().catch((error: unknown) => {
      if (this.#isRead) return
      this.#endBody()
      if (!this.cancel.cancelled) this.#endpoint.app.logger.warn('The body of a request could not be read.', { error })
      this.reply(refusal(400, 'The body could not be read.'))
    })
  }

  refuseBody(reply: Reply): void {
    this.#endBody()
    this.#reader?.cancel().catch(() => {})
    this.reply(reply)
  }

  async #readChunks(): Promise<void> {
    const body = this.#body
    const reader: ReadableStreamDefaultReader<Uint8Array> | undefined = this.#request.body?.getReader()
    this.#reader = reader
    for (let chunk = await reader?.read(); chunk?.done === false; chunk = await reader?.read()) {
      if (this.#isRead) return
      const isTooLarge = body.length + chunk.value.byteLength > this.maxBodyBytes
      if (isTooLarge || body.isCrumbled) {
        this.#endBody()
        if (isTooLarge) this.#endpoint.receiveTooLarge(this)
        else this.#endpoint.receiveCrumbled(this)
        await reader?.cancel()
        return
      }
      body.append(chunk.value)
      load.makeRoom(this.limits)
    }
    if (this.#isRead) return
    const bytes = body.length
    const text = textOf(body.view())
    this.#endBody()
    this.#endpoint.receive(this, text, bytes)
  }

  addHeaders(headers: Readonly<Record<string, string>>): void {
    this.#added = { headers }
  }

  /** Nothing more of the body is kept. A second call does nothing. */
  #endBody(): void {
    if (this.#isRead) return
    this.#isRead = true
    load.endBody(this)
    this.#body.clear()
  }

  /** The response is JSON, unless a notification comes first: then it is a stream of events. */
  notify(text: string): boolean {
    this.#events ??= this.#beginEvents()
    return this.#events.send(eventText(text))
  }

  reply(reply: Reply | undefined): void {
    // A stream of events outlives its reply, and ends with its request.
    if (reply?.events === undefined) this.#request.signal.removeEventListener('abort', this.#abort)
    if (this.#events !== undefined) this.#events.end(reply?.text)
    else if (reply === undefined) this.#respond(new Response(null, { status: 202, ...this.#added }))
    else if (reply.events !== undefined) this.#sendEvents(reply.events)
    else this.#respond(responseOf(reply, this.#added?.headers))
  }

  #sendEvents(events: NonNullable<Reply['events']>): void {
    const stream = this.#beginEvents()
    events({ send: (event) => stream.write(event), isBehind: () => stream.isBehind, end: () => stream.end(undefined) })
  }

  #beginEvents(): EventStream {
    const stream = new EventStream(this.#abort, this.#endpoint)
    this.#respond(new Response(stream.readable, { headers: { ...EVENT_HEADERS, ...this.#added?.headers } }))
    return stream
  }

  readonly #abort = (): void => this.cancel.cancel()
}

function responseOf({ status, text, headers }: Reply, added?: Readonly<Record<string, string>>): Response {
  if (text === '') return new Response(null, { status, headers: { ...headers, ...added } })
  return new Response(text, { status, headers: { 'Content-Type': 'application/json', ...headers, ...added } })
}

class EventStream {
  readonly readable: ReadableStream<Uint8Array>
  readonly #encoder = new TextEncoder()
  readonly #keepAlive: KeepAlive
  readonly #stallMs: number
  readonly #closed: () => void
  #room = MAX_WAITING_BYTES
  #stalledSince: number | undefined
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined

  constructor(closed: () => void, { keepAlive, writeStallMs }: HttpEndpoint) {
    this.readable = new ReadableStream(
      {
        start: (controller) => {
          this.#controller = controller
        },
        cancel: () => {
          this.#over()
          closed()
        },
      },
      { highWaterMark: MAX_WAITING_BYTES, size: (event) => event.byteLength },
    )
    this.#keepAlive = keepAlive
    this.#stallMs = writeStallMs
    this.#closed = closed
    keepAlive.add(this.#comment)
  }

  get isBehind(): boolean {
    return (this.#controller?.desiredSize ?? 0) <= 0
  }

  /** Returns `false` when the event was dropped. */
  readonly send = (event: string): boolean => {
    if (this.isBehind) return false
    this.write(event)
    return true
  }

  write(event: string): void {
    this.#controller?.enqueue(this.#encoder.encode(event))
  }

  /** A reader that has taken nothing since the last comments, for long enough, is disconnected. */
  readonly #comment = (comment: string): void => {
    const controller = this.#controller
    const room = controller?.desiredSize ?? 0
    if (room === MAX_WAITING_BYTES || room > this.#room) this.#stalledSince = undefined
    else this.#stalledSince ??= performance.now()
    this.send(comment)
    this.#room = controller?.desiredSize ?? 0
    if (this.#stalledSince === undefined || performance.now() - this.#stalledSince < this.#stallMs) return
    this.#over()
    controller?.error(new Error('The reader took nothing of the stream for too long.'))
    this.#closed()
  }

  end(text: string | undefined): void {
    if (text !== undefined) this.write(eventText(text))
    this.#controller?.close()
    this.#over()
  }

  #over(): void {
    this.#controller = undefined
    this.#keepAlive.delete(this.#comment)
  }
}
