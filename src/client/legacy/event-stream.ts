// The stream on which a legacy HTTP server sends messages outside of calls. It is reopened when it is lost.
import { unref } from '../../protocol/timers.ts'
import { backoff } from '../../protocol/backoff.ts'
import { type ClientError, isConnectionLoss } from '../errors.ts'
import type { ResponseHandler, ResponseHead, ResponseReader } from '../transports/http-response.ts'
import type { Cursor } from '../transports/sse.ts'

export interface ServerEventStreamOptions {
  open(cursor: Cursor, handler: ResponseHandler): ResponseReader
  /** Called with the data of each event. */
  event(data: string): void
  /** Events may have been lost. */
  eventsMissed(): void
  /** The server has ended the session. */
  sessionLost(): void
}

/** Attempts in a row without an event. */
const MAX_ATTEMPTS = 5
const RETRY = { firstMs: 1_000, maxMs: 30_000 }
const MIN_DELAY_MS = 10

/** Servers refuse a second stream with this status, also before they notice that the first one is lost. */
const CONFLICT = 409

/** A server that sends no response head within this time is assumed to hold the stream open. */
const READY_MS = 2_000

export class ServerEventStream implements ResponseHandler {
  readonly #options: ServerEventStreamOptions
  readonly #cursor: Cursor = { id: undefined, retryMs: undefined }
  #reader: ResponseReader | undefined
  #retry: NodeJS.Timeout | undefined
  #attempts = 0
  /** `lost`: a new stream may be tried later. `refused`: the server has none. */
  #state: 'active' | 'lost' | 'refused' = 'active'
  #readyTimer: NodeJS.Timeout | undefined
  #setOpen: (isOpen: boolean) => void = () => {}
  #isOpen: Promise<boolean>

  constructor(options: ServerEventStreamOptions) {
    this.#options = options
    this.#isOpen = this.#newIsOpen()
    this.#open()
  }

  /** Settles as soon as it is known whether the stream is open. */
  get isOpen(): Promise<boolean> {
    return this.#isOpen
  }

  /** True if a new stream may be tried. */
  get isLost(): boolean {
    return this.#state === 'lost'
  }

  close(): void {
    this.#stop('lost')
  }

  head({ isStream }: ResponseHead): void {
    clearTimeout(this.#readyTimer)
    if (isStream) this.#setOpen(true)
  }

  event(data: string): void {
    this.#attempts = 0
    if (data !== '' && this.#state === 'active') this.#options.event(data)
  }

  /** A server without such a stream answers 405. Other statuses mean that there is none now. */
  body(_text: string, { status }: ResponseHead): void {
    if (this.#state !== 'active') return
    if (status === 404) this.#options.sessionLost()
    if (status >= 500 || status === CONFLICT) this.#retryLater()
    else this.#giveUp(status === 404 ? 'lost' : 'refused')
  }

  failed(error: ClientError): void {
    if (this.#state !== 'active') return
    if (isConnectionLoss(error)) this.#retryLater()
    else this.#giveUp('lost')
  }

  #open(): void {
    // A server may send the head together with its first event.
    this.#readyTimer = setTimeout(() => this.#setOpen(true), READY_MS)
    this.#reader = this.#options.open(this.#cursor, this)
  }

  #retryLater(): void {
    if (this.#attempts >= MAX_ATTEMPTS) return this.#giveUp('lost')
    const { id, retryMs } = this.#cursor
    // Without an id the stream cannot be resumed, and subscribers have to read everything again.
    if (id === undefined) {
      this.#setOpen(false)
      this.#isOpen = this.#newIsOpen()
      this.#options.eventsMissed()
    }
    clearTimeout(this.#readyTimer)
    this.#attempts += 1
    const delay = Math.min(retryMs ?? backoff(this.#attempts, RETRY), RETRY.maxMs)
    this.#retry = unref(setTimeout(() => this.#open(), Math.max(delay, MIN_DELAY_MS)))
  }

  #giveUp(state: 'lost' | 'refused'): void {
    this.#stop(state)
    this.#options.eventsMissed()
  }

  #stop(state: 'lost' | 'refused'): void {
    if (this.#state !== 'active') return
    this.#state = state
    clearTimeout(this.#retry)
    clearTimeout(this.#readyTimer)
    this.#setOpen(false)
    this.#reader?.cancel()
  }

  #newIsOpen(): Promise<boolean> {
    return new Promise((resolve) => {
      this.#setOpen = resolve
    })
  }
}
