// The HTTP channel of a session with a legacy server: requests and answers by POST, one event stream by GET for messages
// outside of calls, and a DELETE at the end.
import { backoff } from '../../protocol/backoff.ts'
import { ClientError, isConnectionLoss, lost, retryAdviceOf } from '../errors.ts'
import type { HeadersOption } from '../options.ts'
import type { HttpClient, HttpResponseListener } from '../transports/http-client.ts'
import type { HttpOptions } from '../transports/http.ts'
import { JSON_HEADERS, readHeaders } from '../transports/http.ts'
import type { ResponseHandler, ResponseHead, ResponseLimits } from '../transports/http-response.ts'
import { ResponseReader } from '../transports/http-response.ts'
import { statusError } from '../transports/http-status.ts'
import { parseMessages } from '../transports/message.ts'
import type { Cursor } from '../transports/sse.ts'
import type { OutgoingRequest, ResponseCallbacks } from '../transports/transport.ts'
import type { Channel, ChannelEvents } from './channel.ts'
import { isSessionLost, ServerTimer, sessionLost } from './channel.ts'
import { ServerEventStream } from './event-stream.ts'
import { HttpExchange } from './http-exchange.ts'

const EVENT_HEADERS: readonly string[] = ['Accept', 'text/event-stream']

/** Answers and notifications that are being sent. */
const MAX_NOTIFICATIONS = 100
const NOTIFY_MS = 30_000
const NOTIFY_ATTEMPTS = 3
/** An answer with carried state holds the whole call, and any instance of the server can take it. */
const NOTIFY_CARRIED_ATTEMPTS = 6
const NOTIFY_RETRY = { firstMs: 100 }
/** How long a server is waited for that says when to send the message again. */
const NOTIFY_OUTAGE_MS = 60_000
const DELETE_MS = 1_000

export class HttpChannel implements Channel {
  readonly #http: HttpClient
  readonly #limits: ResponseLimits
  readonly #events: ChannelEvents
  readonly #headers: SessionHeaders
  readonly #exchanges = new Set<HttpExchange>()
  #eventStream: ServerEventStream | undefined
  #notifications = 0
  #isClosed = false

  constructor(http: HttpClient, { headers, limits }: HttpOptions, events: ChannelEvents) {
    this.#http = http
    this.#limits = limits
    this.#events = events
    this.#headers = new SessionHeaders(headers)
  }

  send(request: OutgoingRequest, callbacks: ResponseCallbacks): () => void {
    const isInitialize = request.method === 'initialize'
    if (isInitialize) this.#forgetSession()
    const hasSession = this.#headers.sessionId !== undefined
    const exchange: HttpExchange = new HttpExchange(
      {
        receive: this.#events.receive,
        whenAnswered: (answered) => this.#events.whenAnswered(request.id, answered),
        hasSession,
        post: (text, cursor, handler) => this.#post(text, cursor, handler),
        resume: (cursor, handler) => this.#get(cursor, false, handler),
        head: ({ header }) => {
          if (isInitialize) this.#headers.setSession(header('mcp-session-id'))
        },
      },
      request,
      {
        normalize: callbacks.normalize,
        ...(callbacks.deadline !== undefined && { deadline: callbacks.deadline }),
        resolve: (response) => {
          this.#exchanges.delete(exchange)
          callbacks.resolve(response)
        },
        reject: (error) => {
          this.#exchanges.delete(exchange)
          callbacks.reject(error)
        },
      },
    )
    this.#exchanges.add(exchange)
    return () => {
      if (exchange.isOver) return
      this.#exchanges.delete(exchange)
      exchange.cancel()
      if (!isInitialize && !this.#isClosed) this.#notifyOnce(cancelledText(request.id)).catch(() => {})
    }
  }

  async notify(text: string, isCarried = false): Promise<void> {
    if (this.#notifications >= MAX_NOTIFICATIONS) {
      throw lost(`more than ${MAX_NOTIFICATIONS} messages are being sent to the server`)
    }
    this.#notifications += 1
    const { sessionId } = this.#headers
    const since = performance.now()
    const maxAttempts = isCarried ? NOTIFY_CARRIED_ATTEMPTS : NOTIFY_ATTEMPTS
    try {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await this.#notifyOnce(text)
        } catch (error) {
          // Another session may have started in the meantime.
          if (isSessionLost(error) && sessionId === this.#headers.sessionId) this.#events.sessionLost()
          const { retryAfterMs = 0 } = retryAdviceOf(error) ?? {}
          const isWithin = retryAfterMs === 0 ? attempt < maxAttempts : performance.now() - since < NOTIFY_OUTAGE_MS
          const mayRetry = isConnectionLoss(error) && !isSessionLost(error) && isWithin
          if (!mayRetry || this.#isClosed) throw error
          const delayMs = Math.max(backoff(Math.min(attempt, maxAttempts), NOTIFY_RETRY), retryAfterMs)
          await new Promise((resolve) => void setTimeout(resolve, delayMs))
        }
      }
    } finally {
      this.#notifications -= 1
    }
  }

  useRevision(revision: string): void {
    this.#headers.setRevision(revision)
  }

  async listen(): Promise<boolean> {
    if (this.#isClosed) return false
    if (this.#eventStream === undefined || this.#eventStream.isLost) {
      this.#eventStream = new ServerEventStream({
        open: (cursor, handler) => this.#get(cursor, true, handler),
        event: (data) => this.#receive(data),
        eventsMissed: () => this.#events.eventsMissed(),
        sessionLost: () => this.#events.sessionLost(),
      })
    }
    return this.#eventStream.isOpen
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#eventStream?.close()
    for (const exchange of this.#exchanges) exchange.cancel()
    this.#exchanges.clear()
    if (this.#headers.sessionId !== undefined) await this.#deleteSession()
    this.#http.close()
  }

  #forgetSession(): void {
    this.#eventStream?.close()
    this.#eventStream = undefined
    this.#headers.forgetSession()
  }

  /** From the stream outside of calls. Responses do not belong there and are ignored. */
  #receive(data: string): void {
    try {
      for (const message of parseMessages(data)) if ('method' in message) this.#events.receive(message)
    } catch {
      // An invalid message fails no call, because no call waits for it.
    }
  }

  #notifyOnce(text: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const reader = this.#post(text, newCursor(), {
        // A stream means that the server accepted the message. Nothing on it is needed.
        head: ({ isStream }) => {
          if (isStream) settle()
        },
        event: () => {},
        body: (body, head) => settle(this.#errorIn(body, head)),
        failed: (error) => settle(error),
        pauseClock: () => timer.pause(),
      })
      const timer = new ServerTimer(NOTIFY_MS, () =>
        settle(lost(`the server did not accept it within ${NOTIFY_MS} ms`)),
      )
      const settle = (error?: ClientError): void => {
        timer.clear()
        reader.cancel()
        if (error === undefined) resolve()
        else reject(error)
      }
    })
  }

  #errorIn(text: string, head: ResponseHead): ClientError | undefined {
    const { status } = head
    if (status >= 200 && status < 300) return undefined
    if (status === 404 && this.#headers.sessionId !== undefined) return sessionLost()
    return (
      statusError(head, text) ??
      new ClientError('HTTP_STATUS', `The server did not accept a message (HTTP ${status}).`, { status })
    )
  }

  /** Some servers do not support it, so failures are ignored and the wait is short. */
  #deleteSession(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, DELETE_MS)
      const done = (): void => {
        clearTimeout(timer)
        resolve()
      }
      this.#request([], newCursor(), { event: () => {}, body: done, failed: done }, (headers, listener) =>
        this.#http.open('DELETE', headers, false, listener),
      )
    })
  }

  #post(text: string, cursor: Cursor, handler: ResponseHandler): ResponseReader {
    return this.#request(JSON_HEADERS, cursor, handler, (headers, listener) => this.#http.post(headers, text, listener))
  }

  #get(cursor: Cursor, isIdle: boolean, handler: ResponseHandler): ResponseReader {
    const from = cursor.id === undefined ? [] : ['Last-Event-ID', cursor.id]
    return this.#request([...EVENT_HEADERS, ...from], cursor, handler, (headers, listener) =>
      this.#http.open('GET', headers, isIdle, listener),
    )
  }

  /** Sends the request as soon as its headers are known. */
  #request(own: readonly string[], cursor: Cursor, handler: ResponseHandler, send: Send): ResponseReader {
    const reader = new ResponseReader(this.#limits, handler, cursor)
    this.#headers.with(own).then(
      (headers) => {
        if (!reader.isOver) reader.start((listener) => send(headers, listener))
      },
      (error: unknown) => reader.failed(error, false),
    )
    return reader
  }
}

type Send = (headers: readonly string[], listener: HttpResponseListener) => () => void

const MAX_SESSION_ID_LENGTH = 8_192
const SESSION_ID = /^[\x21-\x7e]+$/

/** The headers of every request: the user's own, the session's and the revision's. */
class SessionHeaders {
  readonly #own: HeadersOption
  #sessionId: string | undefined
  #revision: string | undefined

  constructor(own: HeadersOption = {}) {
    this.#own = own
  }

  get sessionId(): string | undefined {
    return this.#sessionId
  }

  /** A new session starts without an id and without a negotiated revision. */
  forgetSession(): void {
    this.#sessionId = undefined
    this.#revision = undefined
  }

  /** A server may work without session ids. An invalid id is ignored. */
  setSession(id: string | undefined): void {
    if (id !== undefined && id.length <= MAX_SESSION_ID_LENGTH && SESSION_ID.test(id)) this.#sessionId = id
  }

  setRevision(revision: string): void {
    this.#revision = revision
  }

  /** Returns a flat list: name, value, name, value. */
  async with(more: readonly string[]): Promise<string[]> {
    const session = this.#sessionId === undefined ? [] : ['Mcp-Session-Id', this.#sessionId]
    const revision = this.#revision === undefined ? [] : ['MCP-Protocol-Version', this.#revision]
    const own = typeof this.#own === 'function' ? await this.#own() : this.#own
    return [...more, ...readHeaders(own), ...revision, ...session]
  }
}

function newCursor(): Cursor {
  return { id: undefined, retryMs: undefined }
}

function cancelledText(requestId: number): string {
  return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${requestId}}}`
}
