// One HTTP request to a legacy server and its response: in the body, or on a stream that is resumed when it is lost.
import { backoff } from '../../protocol/backoff.ts'
import { METHOD_NOT_FOUND } from '../../protocol/errors.ts'
import { isObject } from '../../protocol/json.ts'
import { badResponse, type ClientError, isConnectionLoss, lost, retryAdviceOf } from '../errors.ts'
import type { ResponseHandler, ResponseHead, ResponseReader } from '../transports/http-response.ts'
import { statusError } from '../transports/http-status.ts'
import { isResponse, parseMessages, readResponse } from '../transports/message.ts'
import type { Cursor } from '../transports/sse.ts'
import type { OutgoingRequest, ReceiveMessage, ResponseCallbacks, RpcResponse } from '../transports/transport.ts'
import { sessionLost } from './channel.ts'

export interface ExchangeOptions {
  readonly receive: ReceiveMessage
  /** See `ChannelEvents`. */
  whenAnswered(answered: () => void): boolean
  readonly hasSession: boolean
  post(text: string, cursor: Cursor, handler: ResponseHandler): ResponseReader
  resume(cursor: Cursor, handler: ResponseHandler): ResponseReader
  /** Called with the head of each response. */
  head(head: ResponseHead): void
}

/** Attempts to resume without a new event in between. */
const MAX_ATTEMPTS = 5
const RETRY = { firstMs: 100 }

/** Even if the server asks for less. */
const MIN_DELAY_MS = 10

export class HttpExchange implements ResponseHandler {
  readonly #options: ExchangeOptions
  readonly #request: OutgoingRequest
  readonly #callbacks: ResponseCallbacks
  readonly #cursor: Cursor = { id: undefined, retryMs: undefined }
  #reader: ResponseReader
  #retry: NodeJS.Timeout | undefined
  #attempts = 0
  #isResumed = false
  #isOver = false

  constructor(options: ExchangeOptions, request: OutgoingRequest, callbacks: ResponseCallbacks) {
    this.#options = options
    this.#request = request
    this.#callbacks = callbacks
    this.#reader = options.post(request.text, this.#cursor, this)
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** The callbacks are not called after this. */
  cancel(): void {
    this.#isOver = true
    clearTimeout(this.#retry)
    this.#reader.cancel()
  }

  head(head: ResponseHead): void {
    this.#options.head(head)
  }

  event(data: string): void {
    this.#attempts = 0
    // The first event may be empty. It gives the stream an id to resume from.
    if (data === '') return
    this.#read(data, (response) => {
      this.#isOver = true
      this.#reader.finish()
      this.#callbacks.resolve(response)
    })
  }

  body(text: string, head: ResponseHead): void {
    if (this.#isOver) return
    const error = this.#errorIn(text, head)
    if (error !== undefined) return head.status >= 500 ? this.failed(error) : this.#fail(error)
    this.#read(text, (response) => {
      this.#isOver = true
      this.#callbacks.resolve(response)
    })
    if (!this.#isOver) this.#fail(badResponse('it contains no response to the request'))
  }

  /** Resumes the stream if it can be resumed. */
  failed(error: ClientError): void {
    if (this.#isOver) return
    if (this.#cursor.id === undefined || !isConnectionLoss(error) || this.#attempts >= MAX_ATTEMPTS) {
      return this.#fail(error)
    }
    // The server continues only after the answer, and the user may take long.
    if (this.#options.whenAnswered(() => this.failed(error))) return
    const { retryMs = RETRY.firstMs } = this.#cursor
    const { retryAfterMs } = error
    const minMs = retryAfterMs ?? (this.#attempts === 0 ? MIN_DELAY_MS : backoff(this.#attempts + 1, RETRY))
    // A server that names a time is waited for until the deadline of the call.
    if (retryAfterMs === undefined) this.#attempts += 1
    this.#isResumed = true
    this.#retry = setTimeout(
      () => {
        this.#reader = this.#options.resume(this.#cursor, this)
      },
      Math.max(retryMs, minMs),
    )
  }

  pauseClock(): () => void {
    return this.#callbacks.deadline?.pauseClock() ?? (() => {})
  }

  #errorIn(text: string, head: ResponseHead): ClientError | undefined {
    const { status } = head
    // The server has already accepted the request, and its outcome is unknown.
    if (this.#isResumed && status !== 200) {
      const why = `its stream cannot be resumed (HTTP ${status})`
      return lost(why, undefined, retryAdviceOf(statusError(head, text)))
    }
    if (status === 404 && this.#options.hasSession && errorCodeIn(text) !== METHOD_NOT_FOUND) return sessionLost()
    return statusError(head, text)
  }

  #read(text: string, resolve: (response: RpcResponse) => void): void {
    const { id } = this.#request
    try {
      for (const message of parseMessages(text)) {
        if (this.#isOver) return
        if (isResponse(message)) resolve(readResponse(message, id, text.length, this.#callbacks.normalize))
        else this.#options.receive(message, id)
      }
    } catch (error) {
      this.#fail(error as ClientError)
    }
  }

  #fail(error: ClientError): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#reader.cancel()
    this.#callbacks.reject(error)
  }
}

function errorCodeIn(text: string): unknown {
  try {
    const [message] = parseMessages(text)
    return isObject(message?.['error']) ? message['error']['code'] : undefined
  } catch {
    return undefined
  }
}
