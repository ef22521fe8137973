// HTTP as the way to an older server: requests and answers by POST, a stream by GET for what belongs to no call, and a
// DELETE at the end.
import { ClientError, lost } from '../errors.ts'
import { refusalOf } from '../transports/http-response.ts'
import type { HttpOptions } from '../transports/http.ts'
import { JSON_HEADERS } from '../transports/http.ts'
import type { Cursor } from '../transports/sse.ts'
import type { OutgoingRequest, ResponseCallbacks } from '../transports/transport.ts'
import type { HttpClient, HttpResponseListener } from '../transports/http-client.ts'
import type { Channel, ChannelEvents } from './channel.ts'
import { isSessionGone, sessionGone } from './channel.ts'
import { HttpExchange } from './http-exchange.ts'
import { SessionHeaders } from './http-headers.ts'
import type { Head, Reading } from './http-reader.ts'
import { HttpReader } from './http-reader.ts'
import { messagesIn } from './messages.ts'
import { ServerEventStream } from './event-stream.ts'

const EVENTS: readonly string[] = ['Accept', 'text/event-stream']

/** Answers and notifications on their way. */
const MOST_SAID = 100
const SAY_MS = 30_000
const SAY_TRIES = 3
/** What holds the whole of a call, and may be said to any instance that is there. */
const SAY_CARRIED_TRIES = 6
const SAY_PAUSE_MS = 100
const FAREWELL_MS = 1_000

export class HttpChannel implements Channel {
  readonly #wire: HttpClient
  readonly #maxBytes: number
  readonly #events: ChannelEvents
  readonly #headers: SessionHeaders
  readonly #exchanges = new Set<HttpExchange>()
  #standing: ServerEventStream | undefined
  #said = 0
  #isClosed = false

  constructor(wire: HttpClient, { headers, maxResponseBytes }: HttpOptions, events: ChannelEvents) {
    this.#wire = wire
    this.#maxBytes = maxResponseBytes
    this.#events = events
    this.#headers = new SessionHeaders(headers)
  }

  send(request: OutgoingRequest, callbacks: ResponseCallbacks): () => void {
    const isInitialize = request.method === 'initialize'
    if (isInitialize) this.#forget()
    const hasSession = this.#headers.sessionId !== undefined
    const settled = (): unknown => this.#exchanges.delete(exchange)
    const exchange: HttpExchange = new HttpExchange(
      {
        receive: this.#events.receive,
        onceAnswered: (answered) => this.#events.whenAnswered(request.id, answered),
        hasSession,
        post: (text, cursor, reading) => this.#post(text, cursor, reading),
        resume: (cursor, reading) => this.#listen(cursor, false, reading),
        headed: ({ header }) => {
          if (isInitialize) this.#headers.learnSession(header('mcp-session-id'))
        },
      },
      request,
      {
        normalize: callbacks.normalize,
        resolve: (response) => {
          settled()
          callbacks.resolve(response)
        },
        reject: (error) => {
          settled()
          callbacks.reject(error)
        },
      },
    )
    this.#exchanges.add(exchange)
    return () => {
      if (exchange.isOver) return
      settled()
      exchange.cancel()
      if (!isInitialize && !this.#isClosed) this.#say(cancelled(request.id)).catch(() => {})
    }
  }

  async notify(text: string, isCarried = false): Promise<void> {
    if (this.#said >= MOST_SAID) throw lost(`more than ${MOST_SAID} messages are on their way to the server`)
    this.#said += 1
    const { sessionId } = this.#headers
    const mostTries = isCarried ? SAY_CARRIED_TRIES : SAY_TRIES
    try {
      for (let tries = 1; ; tries += 1) {
        try {
          return await this.#say(text)
        } catch (error) {
          // Another may have begun since.
          if (isSessionGone(error) && sessionId === this.#headers.sessionId) this.#events.sessionLost()
          if (isSessionGone(error) || !isTrouble(error) || tries >= mostTries || this.#isClosed) throw error
          await new Promise((resolve) => void setTimeout(resolve, SAY_PAUSE_MS * 2 ** (tries - 1)))
        }
      }
    } finally {
      this.#said -= 1
    }
  }

  useRevision(revision: string): void {
    this.#headers.learnRevision(revision)
  }

  async listen(): Promise<boolean> {
    if (this.#isClosed) return false
    if (this.#standing === undefined || this.#standing.isLost) {
      this.#standing = new ServerEventStream({
        open: (cursor, reading) => this.#listen(cursor, true, reading),
        event: (data) => this.#told(data),
        missed: () => this.#events.eventsMissed(),
        gone: () => this.#events.sessionLost(),
      })
    }
    return this.#standing.isThere
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#standing?.close()
    for (const exchange of this.#exchanges) exchange.cancel()
    this.#exchanges.clear()
    if (this.#headers.sessionId !== undefined) await this.#farewell()
    this.#wire.close()
  }

  #forget(): void {
    this.#standing?.close()
    this.#standing = undefined
    this.#headers.forget()
  }

  /** What is told on a stream that belongs to no call; a response has no business there. */
  #told(data: string): void {
    try {
      for (const message of messagesIn(data)) if ('method' in message) this.#events.receive(message)
    } catch {
      // Nothing waits for it.
    }
  }

  #say(text: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = this.#post(text, nowhere(), {
        // A stream is no refusal, and there is nothing on it to wait for.
        head: ({ isStream }) => {
          if (isStream) over()
        },
        event: () => {},
        body: (answer, { status, header }) => over(this.#refusal(status, answer, header)),
        ended: (error) => over(error),
      })
      const timer = setTimeout(() => over(lost(`the server has not taken it within ${SAY_MS} ms`)), SAY_MS)
      const over = (error?: ClientError): void => {
        clearTimeout(timer)
        end()
        if (error === undefined) resolve()
        else reject(error)
      }
    })
  }

  #refusal(status: number, text: string, header: Head['header']): ClientError | undefined {
    if (status >= 200 && status < 300) return undefined
    if (status === 404 && this.#headers.sessionId !== undefined) return sessionGone()
    const refusal = refusalOf(status, text, header)
    return refusal ?? new ClientError('HTTP_STATUS', `The server does not take it (HTTP ${status}).`, { status })
  }

  /** Some servers do not let their sessions be ended, and none is waited for long. */
  #farewell(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, FAREWELL_MS)
      const over = (): void => {
        clearTimeout(timer)
        resolve()
      }
      this.#open([], nowhere(), { event: () => {}, body: over, ended: over }, (headers, answer) =>
        this.#wire.open('DELETE', headers, false, answer),
      )
    })
  }

  #post(text: string, cursor: Cursor, reading: Reading): () => void {
    return this.#open(JSON_HEADERS, cursor, reading, (headers, answer) => this.#wire.post(headers, text, answer))
  }

  #listen(cursor: Cursor, isIdle: boolean, reading: Reading): () => void {
    const from = cursor.id === undefined ? [] : ['Last-Event-ID', cursor.id]
    return this.#open([...EVENTS, ...from], cursor, reading, (headers, answer) =>
      this.#wire.open('GET', headers, isIdle, answer),
    )
  }

  /** Sends it once its headers are there. Gives what ends it. */
  #open(own: readonly string[], cursor: Cursor, reading: Reading, send: Send): () => void {
    const reader = new HttpReader(this.#maxBytes, cursor, reading)
    let isEnded = false
    let end: (() => void) | undefined
    this.#headers.with(own).then(
      (headers) => {
        if (!isEnded) end = send(headers, reader)
      },
      (error: unknown) => reader.failed(error, false),
    )
    return () => {
      isEnded = true
      reader.stop()
      end?.()
    }
  }
}

type Send = (headers: readonly string[], answer: HttpResponseListener) => () => void

function nowhere(): Cursor {
  return { id: undefined, retryMs: undefined }
}

function cancelled(requestId: number): string {
  return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${requestId}}}`
}

function isTrouble(error: unknown): boolean {
  return error instanceof ClientError && (error.code === 'LOST' || error.code === 'CONNECTION')
}
