// The HTTP+SSE channel of revision 2024-11-05: one stream by GET brings everything that the server sends. Its first event names the
// address to which the client posts its messages. The session ends with the stream.
//
// 1. The address must have the origin of the server: the headers may hold secrets.
// 2. A request is settled by a response on the stream, by a POST that was refused, or by the end of the stream.
import type { RequestId } from '../../protocol/messages.ts'
import { badResponse, ClientError, lost } from '../errors.ts'
import type { HttpClient, HttpResponseListener } from '../transports/http-client.ts'
import type { HttpOptions } from '../transports/http.ts'
import { JSON_HEADERS, readHeaders } from '../transports/http.ts'
import type { ResponseHandler, ResponseHead } from '../transports/http-response.ts'
import { ResponseReader } from '../transports/http-response.ts'
import { statusError } from '../transports/http-status.ts'
import { isResponse, parseMessages, readResponse } from '../transports/message.ts'
import type { OutgoingRequest, ResponseCallbacks } from '../transports/transport.ts'
import type { Channel, ChannelEvents } from './channel.ts'
import { ServerTimer, sessionLost } from './channel.ts'

export interface SseChannelOptions extends HttpOptions {
  /** The address of the stream. */
  readonly url: URL
  readonly http: HttpClient
  /** A client for the address that the server names. */
  readonly clientFor: (url: URL) => Promise<HttpClient>
}

const EVENT_HEADERS: readonly string[] = ['Accept', 'text/event-stream']

/** For the first event, and for the POST of a message without a response. */
const WAIT_MS = 10_000

/** Answers and notifications that are being sent. */
const MAX_NOTIFICATIONS = 100

/** The stream, and where to post. */
interface Stream {
  readonly reader: ResponseReader
  /** Rejects if the server names no address. */
  readonly poster: Promise<HttpClient>
}

export class SseChannel implements Channel {
  readonly #options: SseChannelOptions
  readonly #events: ChannelEvents
  readonly #inFlight = new Map<RequestId, ResponseCallbacks>()
  #stream: Stream | undefined
  #notifications = 0
  #isClosed = false

  constructor(options: SseChannelOptions, events: ChannelEvents) {
    this.#options = options
    this.#events = events
  }

  send(request: OutgoingRequest, callbacks: ResponseCallbacks): () => void {
    const { id, method, text } = request
    if (method === 'initialize') this.#open()
    const stream = this.#stream
    if (stream === undefined) {
      callbacks.reject(sessionLost())
      return () => {}
    }
    this.#inFlight.set(id, callbacks)
    stream.poster
      .then((poster) => this.#post(poster, text, [callbacks]))
      .catch((error: ClientError) => {
        if (this.#inFlight.get(id) === callbacks && this.#inFlight.delete(id)) callbacks.reject(error)
      })
    return () => {
      if (!this.#inFlight.delete(id) || method === 'initialize' || this.#isClosed) return
      const cancelled = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}}}`
      this.notify(cancelled).catch(() => {})
    }
  }

  async notify(text: string): Promise<void> {
    const stream = this.#stream
    if (stream === undefined) throw sessionLost()
    if (this.#notifications >= MAX_NOTIFICATIONS) {
      throw lost(`more than ${MAX_NOTIFICATIONS} messages are being sent to the server`)
    }
    this.#notifications += 1
    try {
      await this.#post(await stream.poster, text)
    } finally {
      this.#notifications -= 1
    }
  }

  /** The revision of this transport has no header for it. */
  useRevision(): void {}

  async listen(): Promise<boolean> {
    return this.#stream !== undefined
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#inFlight.clear()
    this.#endStream()
    this.#options.http.close()
  }

  #open(): void {
    this.#endStream()
    const { http, limits } = this.#options
    let named: ((poster: HttpClient) => void) | undefined
    let notNamed: ((error: ClientError) => void) | undefined
    const poster = new Promise<HttpClient>((resolve, reject) => {
      named = resolve
      notNamed = reject
    })
    // A failure is reported by the end of the stream.
    poster.catch(() => {})
    const timer = new ServerTimer(WAIT_MS, () => failed(badResponse('the stream names no address to post to')))
    const failed = (error: ClientError): void => {
      timer.clear()
      notNamed?.(error)
      reader.cancel()
      if (this.#stream === stream) this.#lost(error)
    }
    const handler: ResponseHandler = {
      endpoint: (address) => {
        timer.clear()
        this.#clientFor(address).then((client) => named?.(client), failed)
      },
      event: (data) => this.#receive(data),
      body: (text, head) => failed(statusOf(text, head) ?? badResponse('it is not a stream of events')),
      failed,
      pauseClock: () => timer.pause(this.#inFlight.values()),
    }
    const reader = new ResponseReader(limits, handler)
    const stream: Stream = { reader, poster }
    this.#stream = stream
    this.#withHeaders(EVENT_HEADERS, reader, (headers, listener) => http.open('GET', headers, false, listener))
  }

  async #clientFor(address: string): Promise<HttpClient> {
    const { url, clientFor } = this.#options
    const endpoint = URL.canParse(address, url.href) ? new URL(address, url) : undefined
    if (endpoint?.origin !== url.origin) {
      throw badResponse(`its stream must name an address of ${url.origin} to post to`)
    }
    return clientFor(endpoint)
  }

  #endStream(): void {
    const stream = this.#stream
    this.#stream = undefined
    stream?.reader.cancel()
    stream?.poster.then(
      (poster) => poster.close(),
      () => {},
    )
  }

  #lost(error: ClientError): void {
    this.#endStream()
    const waiting = [...this.#inFlight.values()]
    this.#inFlight.clear()
    for (const callbacks of waiting) callbacks.reject(error)
    this.#events.sessionLost()
    this.#events.eventsMissed()
  }

  #receive(data: string): void {
    let messages: Record<string, unknown>[]
    try {
      messages = parseMessages(data)
    } catch {
      // No request is known to wait for it.
      return
    }
    for (const message of messages) {
      if (isResponse(message)) this.#settle(message, data.length)
      else this.#events.receive(message)
    }
  }

  #settle(message: Record<string, unknown>, bytes: number): void {
    const id = message['id'] as RequestId
    const callbacks = this.#inFlight.get(id)
    if (callbacks === undefined) return
    this.#inFlight.delete(id)
    try {
      callbacks.resolve(readResponse(message, id, bytes, callbacks.normalize))
    } catch (error) {
      callbacks.reject(error as ClientError)
    }
  }

  /** Resolves when the server has accepted the message. `calls` wait for it. */
  #post(poster: HttpClient, text: string, calls: readonly ResponseCallbacks[] = []): Promise<void> {
    return new Promise((resolve, reject) => {
      const reader = new ResponseReader(this.#options.limits, {
        event: () => {},
        body: (body, head) => settle(statusOf(body, head)),
        failed: (error) => settle(error),
        pauseClock: () => timer.pause(calls),
      })
      const timer = new ServerTimer(WAIT_MS, () => settle(lost(`the server did not accept it within ${WAIT_MS} ms`)))
      const settle = (error?: ClientError): void => {
        timer.clear()
        reader.cancel()
        if (error === undefined) resolve()
        else reject(error)
      }
      this.#withHeaders(JSON_HEADERS, reader, (headers, listener) => poster.post(headers, text, listener))
    })
  }

  #withHeaders(
    own: readonly string[],
    reader: ResponseReader,
    send: (headers: readonly string[], listener: HttpResponseListener) => () => void,
  ): void {
    const { headers = {} } = this.#options
    Promise.resolve(typeof headers === 'function' ? headers() : headers).then(
      (values) => {
        if (!reader.isOver) reader.start((listener) => send([...own, ...readHeaders(values)], listener))
      },
      (error: unknown) => reader.failed(error, false),
    )
  }
}

/** The error of a POST, or of a stream that was refused. */
function statusOf(text: string, head: ResponseHead): ClientError | undefined {
  const { status } = head
  if (status >= 200 && status < 300) return undefined
  return (
    statusError(head, text) ??
    new ClientError('HTTP_STATUS', `The server did not accept a message (HTTP ${status}).`, { status })
  )
}
