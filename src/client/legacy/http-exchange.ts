// One request to an older server over HTTP, and its response: in the body, or on a stream that is gone on with where it
// was lost.
import { METHOD_NOT_FOUND } from '../../protocol/errors.ts'
import { isResponse, readResponse } from '../transports/message.ts'
import type { ClientError } from '../errors.ts'
import { badResponse, lost } from '../errors.ts'
import { refusalOf } from '../transports/http-response.ts'
import { isObject } from '../../protocol/json.ts'
import type { Cursor } from '../transports/sse.ts'
import type { OutgoingRequest, ReceiveMessage, ResponseCallbacks } from '../transports/transport.ts'
import { sessionGone } from './channel.ts'
import type { Head, Reading } from './http-reader.ts'
import { messagesIn } from './messages.ts'

export interface ExchangeOptions {
  readonly receive: ReceiveMessage
  /** Calls back once there is something to come back for. Gives `false` where there may be already. */
  onceAnswered(answered: () => void): boolean
  readonly hasSession: boolean
  /** Gives what ends it. */
  post(text: string, cursor: Cursor, reading: Reading): () => void
  resume(cursor: Cursor, reading: Reading): () => void
  /** Told of the headers of a response. */
  headed(head: Head): void
}

/** Without anything new on the stream in between. */
const MOST_TRIES = 5
const FIRST_PAUSE_MS = 100

/** However little a server wants to be left alone for. */
const LEAST_PAUSE_MS = 10

/** For a server to end the stream once it has given the response: then the connection can be used again. */
const LAST_WORDS_MS = 500

export class HttpExchange {
  readonly #on: ExchangeOptions
  readonly #request: OutgoingRequest
  readonly #callbacks: ResponseCallbacks
  readonly #cursor: Cursor = { id: undefined, retryMs: undefined }
  #end: () => void = () => {}
  #pause: NodeJS.Timeout | undefined
  #tries = 0
  #isResumed = false
  #isOver = false

  constructor(on: ExchangeOptions, request: OutgoingRequest, callbacks: ResponseCallbacks) {
    this.#on = on
    this.#request = request
    this.#callbacks = callbacks
    this.#end = on.post(request.text, this.#cursor, this.#reading())
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Nothing is told after this. */
  cancel(): void {
    this.#isOver = true
    clearTimeout(this.#pause)
    this.#end()
  }

  #reading(): Reading {
    return {
      head: (head) => this.#on.headed(head),
      event: (data) => this.#event(data),
      body: (text, head) => this.#body(text, head),
      ended: (error) => this.#lost(error),
    }
  }

  #event(data: string): void {
    this.#tries = 0
    // What a stream begins with, so that it can be gone on with.
    if (data === '') return
    this.#take(data, (answered) => {
      this.#isOver = true
      setTimeout(this.#end, LAST_WORDS_MS).unref()
      this.#callbacks.resolve(answered)
    })
  }

  #body(text: string, head: Head): void {
    if (this.#isOver) return
    const refusal = this.#refusal(text, head)
    if (refusal !== undefined) return head.status >= 500 ? this.#lost(refusal) : this.#fail(refusal)
    this.#take(text, (answered) => {
      this.#isOver = true
      this.#callbacks.resolve(answered)
    })
    if (!this.#isOver) this.#fail(badResponse('it holds no response to the request'))
  }

  #refusal(text: string, { status, header }: Head): ClientError | undefined {
    // The server has taken the request up, and what became of it is not known.
    if (this.#isResumed && status !== 200) return lost(`its stream cannot be gone on with (HTTP ${status})`)
    if (status === 404 && this.#on.hasSession && errorCodeIn(text) !== METHOD_NOT_FOUND) return sessionGone()
    return refusalOf(status, text, header)
  }

  #take(text: string, answer: (answered: ReturnType<typeof readResponse>) => void): void {
    try {
      for (const message of messagesIn(text)) {
        if (this.#isOver) return
        if (isResponse(message)) answer(readResponse(message, this.#request.id, text.length, this.#callbacks.normalize))
        else this.#on.receive(message, this.#request.id)
      }
    } catch (error) {
      this.#fail(error as ClientError)
    }
  }

  #lost(error: ClientError): void {
    if (this.#isOver) return
    if (this.#cursor.id === undefined || !isLoss(error) || this.#tries >= MOST_TRIES) return this.#fail(error)
    // Nothing can come of the call before its question is answered, and who answers may take long.
    if (this.#on.onceAnswered(() => this.#lost(error))) return
    const { retryMs = FIRST_PAUSE_MS } = this.#cursor
    const pause = Math.max(retryMs, this.#tries === 0 ? LEAST_PAUSE_MS : FIRST_PAUSE_MS * 2 ** this.#tries)
    this.#tries += 1
    this.#isResumed = true
    this.#pause = setTimeout(() => {
      this.#end = this.#on.resume(this.#cursor, this.#reading())
    }, pause)
  }

  #fail(error: ClientError): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#end()
    this.#callbacks.reject(error)
  }
}

function isLoss({ code }: ClientError): boolean {
  return code === 'LOST' || code === 'CONNECTION'
}

function errorCodeIn(text: string): unknown {
  try {
    const [message] = messagesIn(text)
    return isObject(message?.['error']) ? message['error']['code'] : undefined
  } catch {
    return undefined
  }
}
