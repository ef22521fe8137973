// A fetch handler as a host, for Hono, Bun, Deno and Workers: reads a Request and writes a Response.
import type { AuthenticatedCaller } from '../auth/authenticate.ts'
import { Cancel } from '../protocol/cancel.ts'
import type { App } from '../server/app.ts'
import type { Reply } from '../server/reply.ts'
import type { KeepAlive } from './events.ts'
import { EVENT_HEADERS, eventText } from './events.ts'
import type { HttpExchange, HttpOptions } from './http.ts'
import { HttpEndpoint, refusal } from './http.ts'

export type FetchHandler = (request: Request) => Promise<Response>

export function fetchHandler(app: App, options: HttpOptions = {}): FetchHandler {
  const endpoint = new HttpEndpoint(app, options)
  return (request) => {
    const exchange = new FetchExchange(endpoint, request)
    endpoint.serve(exchange)
    return exchange.response
  }
}

class FetchExchange implements HttpExchange {
  readonly cancel = new Cancel()
  caller: AuthenticatedCaller | undefined
  readonly response: Promise<Response>
  readonly #endpoint: HttpEndpoint
  readonly #request: Request
  #respond: (response: Response) => void = () => {}
  #events: EventStream | undefined

  constructor(endpoint: HttpEndpoint, request: Request) {
    this.#endpoint = endpoint
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

  readBody(): void {
    readText(this.#request, this.#endpoint.maxBodyBytes).then(
      (body) => {
        if (body === undefined) this.#endpoint.receiveTooLarge(this)
        else this.#endpoint.receive(this, body)
      },
      (error: unknown) => {
        if (!this.cancel.cancelled)
          this.#endpoint.app.logger.warn('The body of a request could not be read.', { error })
        this.reply(refusal(400, 'The body could not be read.'))
      },
    )
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
    else if (reply === undefined) this.#respond(new Response(null, { status: 202 }))
    else if (reply.events !== undefined) this.#sendEvents(reply.events)
    else this.#respond(responseOf(reply))
  }

  #sendEvents(events: NonNullable<Reply['events']>): void {
    const stream = this.#beginEvents()
    events({ send: (event) => stream.write(event), isBehind: () => stream.isBehind, end: () => stream.end(undefined) })
  }

  #beginEvents(): EventStream {
    const stream = new EventStream(this.#abort, this.#endpoint.keepAlive)
    this.#respond(new Response(stream.readable, { headers: EVENT_HEADERS }))
    return stream
  }

  readonly #abort = (): void => this.cancel.cancel()
}

function responseOf({ status, text, headers }: Reply): Response {
  if (text === '') return new Response(null, { status, headers: { ...headers } })
  return new Response(text, { status, headers: { 'Content-Type': 'application/json', ...headers } })
}

/** How many notifications may wait for a slow reader. Further ones are dropped. */
const MOST_WAITING = 1_000

class EventStream {
  readonly readable: ReadableStream<Uint8Array>
  readonly #encoder = new TextEncoder()
  readonly #keepAlive: KeepAlive
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined

  constructor(closed: () => void, keepAlive: KeepAlive) {
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
      { highWaterMark: MOST_WAITING },
    )
    this.#keepAlive = keepAlive
    keepAlive.add(this.send)
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

  end(text: string | undefined): void {
    if (text !== undefined) this.write(eventText(text))
    this.#controller?.close()
    this.#over()
  }

  #over(): void {
    this.#controller = undefined
    this.#keepAlive.delete(this.send)
  }
}

/** `undefined` when the body is larger than `maxBytes`. */
async function readText(request: Request, maxBytes: number): Promise<string | undefined> {
  if (request.body === null) return ''
  // Keeps a byte order mark, so that the body is not JSON, as with the other hosts.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let bytes = 0
  let text = ''
  const reader: ReadableStreamDefaultReader<Uint8Array> = request.body.getReader()
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    bytes += chunk.value.byteLength
    if (bytes > maxBytes) {
      await reader.cancel()
      return undefined
    }
    text += decoder.decode(chunk.value, { stream: true })
  }
  return text + decoder.decode()
}
