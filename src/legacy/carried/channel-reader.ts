// A client that has come back for what follows its answer: reads its box to the end of a leg, and waits for what is not
// there yet, though not for ever.
import type { Logger } from '../../protocol/logger.ts'
import type { Mailbox } from '../../store/mailbox.ts'
import type { EventSink } from '../../server/reply.ts'
import type { Place } from './event-position.ts'
import { isLast } from './event-position.ts'
import { RETRY_ASKED_MS } from '../stream.ts'

export interface BoxReading {
  readonly mailbox: Mailbox
  /** The box's, as the mailbox knows it. */
  readonly name: string
  readonly place: Place
  readonly eventId: (place: Place) => string | Promise<string>
  /** Whether a stream begins with an event that has no message. */
  readonly primes: boolean
  /** Until the client has to come back. */
  readonly waitMs: number
  readonly logger: Logger
}

/** Should the mailbox forget to call back. */
const LOOK_AGAIN_MS = 2_000

export class BoxReader {
  readonly #reading: BoxReading
  readonly #sink: EventSink
  readonly #over: () => void
  readonly #unwatch: () => void
  readonly #limit: NodeJS.Timeout
  #number: number
  #isOver = false
  #arrived = false
  #wake: () => void = () => {}

  /** `over` is called once. */
  constructor(reading: BoxReading, sink: EventSink, over: () => void) {
    const { mailbox, name, place, waitMs, logger } = reading
    this.#reading = reading
    this.#sink = sink
    this.#over = over
    this.#number = place.number
    this.#limit = setTimeout(() => this.end(), waitMs).unref()
    this.#unwatch = mailbox.watch(name, () => {
      this.#arrived = true
      this.#wake()
    })
    this.#read().catch((error: unknown) => {
      logger.error('A mailbox could not be read.', { error })
      this.end()
    })
  }

  /** The client comes back with the last id that it was sent. */
  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#limit)
    this.#unwatch()
    this.#wake()
    this.#sink.end()
    this.#over()
  }

  async #read(): Promise<void> {
    const { mailbox, name, primes } = this.#reading
    // Renewed, because who waits long for somebody to answer comes back more than once.
    await this.#send(this.#number, primes ? 'data: \n' : '')
    while (!this.#isOver) {
      this.#arrived = false
      for (const { number, text } of await mailbox.after(name, this.#number)) {
        await this.#send(number, `event: message\ndata: ${text}\n`)
        this.#number = number
        if (isLast(number)) return this.end()
      }
      if (!this.#arrived) await this.#more()
    }
  }

  async #send(number: number, fields: string): Promise<void> {
    const id = await this.#reading.eventId({ box: this.#reading.place.box, number })
    if (!this.#isOver) this.#sink.send(`id: ${id}\nretry: ${RETRY_ASKED_MS}\n${fields}\n`)
  }

  #more(): Promise<void> {
    if (this.#isOver) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#wake(), LOOK_AGAIN_MS).unref()
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
