// The stream on which an older server tells, over HTTP, what belongs to no call. Opened again when it is lost.
import type { ClientError } from '../errors.ts'
import type { Cursor } from '../transports/sse.ts'
import type { Head, Reading } from './http-reader.ts'

export interface ServerEventStreamOptions {
  /** Gives what ends it. */
  open(cursor: Cursor, reading: Reading): () => void
  /** The data of one event. */
  event(data: string): void
  /** Something may not have arrived. */
  missed(): void
  gone(): void
}

/** In a row, without anything having come. */
const MOST_TRIES = 5
const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 30_000
const LEAST_PAUSE_MS = 10

/** How servers refuse a second stream, also while they have not noticed that the first is lost. */
const STILL_OPEN = 409

/** For the server to say whether it has one. */
const READY_MS = 2_000

export class ServerEventStream {
  readonly #on: ServerEventStreamOptions
  readonly #cursor: Cursor = { id: undefined, retryMs: undefined }
  #end: () => void = () => {}
  #pause: NodeJS.Timeout | undefined
  #tries = 0
  #state: 'trying' | 'lost' | 'refused' = 'trying'
  #ready: NodeJS.Timeout | undefined
  #say: (isThere: boolean) => void = () => {}
  #isThere: Promise<boolean>

  constructor(on: ServerEventStreamOptions) {
    this.#on = on
    this.#isThere = this.#answer()
    this.#open()
  }

  /** Whether it is there, once that is known. */
  get isThere(): Promise<boolean> {
    return this.#isThere
  }

  /** Whether another one may be tried. */
  get isLost(): boolean {
    return this.#state === 'lost'
  }

  close(): void {
    this.#over('lost')
  }

  #over(state: 'lost' | 'refused'): void {
    if (this.#state !== 'trying') return
    this.#state = state
    clearTimeout(this.#pause)
    clearTimeout(this.#ready)
    this.#say(false)
    this.#end()
  }

  #answer(): Promise<boolean> {
    return new Promise((resolve) => {
      this.#say = resolve
    })
  }

  #open(): void {
    // One that says nothing until it has something to tell is there too.
    this.#ready = setTimeout(() => this.#say(true), READY_MS)
    this.#end = this.#on.open(this.#cursor, {
      head: (head) => this.#headed(head),
      event: (data) => {
        this.#tries = 0
        if (data !== '' && this.#state === 'trying') this.#on.event(data)
      },
      body: (_text, head) => this.#refused(head),
      ended: (error) => this.#lost(error),
    })
  }

  #headed({ isStream }: Head): void {
    clearTimeout(this.#ready)
    if (isStream) this.#say(true)
  }

  /** 405 is how a server says that it has none. Whatever else it says, it gives none now. */
  #refused({ status }: Head): void {
    if (this.#state !== 'trying') return
    if (status === 404) this.#on.gone()
    if (status >= 500 || status === STILL_OPEN) this.#again()
    else this.#giveUp(status === 404 ? 'lost' : 'refused')
  }

  #lost({ code }: ClientError): void {
    if (this.#state !== 'trying') return
    if (code === 'LOST' || code === 'CONNECTION') this.#again()
    else this.#giveUp('lost')
  }

  #again(): void {
    if (this.#tries >= MOST_TRIES) return this.#giveUp('lost')
    const { id, retryMs } = this.#cursor
    // Whoever listens asks for everything again.
    if (id === undefined) {
      this.#say(false)
      this.#isThere = this.#answer()
      this.#on.missed()
    }
    clearTimeout(this.#ready)
    const pause = Math.min(retryMs ?? FIRST_PAUSE_MS * 2 ** this.#tries, LONGEST_PAUSE_MS)
    this.#tries += 1
    this.#pause = setTimeout(() => this.#open(), Math.max(pause, LEAST_PAUSE_MS)).unref()
  }

  #giveUp(state: 'lost' | 'refused'): void {
    this.#over(state)
    this.#on.missed()
  }
}
