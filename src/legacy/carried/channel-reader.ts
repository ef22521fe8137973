// Sends a channel's stored events to a client that came back with an event id, up to the end of a segment. It waits for events
// that are not stored yet, for a limited time.
import type { Logger } from '../../protocol/logger.ts'
import type { NoRoom } from '../../protocol/shared-limit.ts'
import { SharedLimit } from '../../protocol/shared-limit.ts'
import type { Limits } from '../../server/limits.ts'
import { sharesOf } from '../../server/limits.ts'
import type { EventSink } from '../../server/reply.ts'
import type { Mailbox } from '../../store/mailbox.ts'
import { logUnlessOutage } from '../../store/outages.ts'
import { RETRY_ASKED_MS } from '../stream.ts'
import type { EventPosition } from './event-position.ts'
import { endsSegment } from './event-position.ts'

export interface ChannelReading {
  readonly mailbox: Mailbox
  /** The channel's name in the mailbox. */
  readonly name: string
  /** Where to start. */
  readonly position: EventPosition
  readonly eventId: (position: EventPosition) => string | Promise<string>
  /** True if a stream begins with an event that has no message. */
  readonly primes: boolean
  /** After this time the client has to reconnect. */
  readonly waitMs: number
  readonly logger: Logger
}

/** How often to look into the mailbox in case it misses a callback. */
const POLL_MS = 2_000

export class ChannelReader {
  readonly #reading: ChannelReading
  readonly #sink: EventSink
  readonly #ended: () => void
  readonly #unwatch: () => void
  readonly #limit: NodeJS.Timeout
  #number: number
  #isOver = false
  #arrived = false
  #wake: () => void = () => {}

  /** `ended` is called once. */
  constructor(reading: ChannelReading, sink: EventSink, ended: () => void) {
    const { mailbox, name, position, waitMs, logger } = reading
    this.#reading = reading
    this.#sink = sink
    this.#ended = ended
    this.#number = position.number
    this.#limit = setTimeout(() => this.end(), waitMs).unref()
    this.#unwatch = mailbox.watch(name, () => {
      this.#arrived = true
      this.#wake()
    })
    this.#read().catch((error: unknown) => {
      logUnlessOutage(logger, 'The mailbox could not be read.', { error })
      this.end()
    })
  }

  /** The client comes back with the last id that it received. */
  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#limit)
    this.#unwatch()
    this.#wake()
    this.#sink.end()
    this.#ended()
  }

  async #read(): Promise<void> {
    const { mailbox, name, primes } = this.#reading
    // A new id for the same position: the ids of a client that waits long and reconnects often would expire.
    await this.#send(this.#number, primes ? 'data: \n' : '')
    while (!this.#isOver) {
      this.#arrived = false
      for (const { number, text } of await mailbox.after(name, this.#number)) {
        await this.#send(number, `event: message\ndata: ${text}\n`)
        this.#number = number
        if (endsSegment(number)) return this.end()
      }
      if (!this.#arrived) await this.#nextArrival()
    }
  }

  async #send(number: number, fields: string): Promise<void> {
    const { eventId, position } = this.#reading
    const id = await eventId({ channel: position.channel, number })
    if (!this.#isOver) this.#sink.send(`id: ${id}\nretry: ${RETRY_ASKED_MS}\n${fields}\n`)
  }

  #nextArrival(): Promise<void> {
    if (this.#isOver) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#wake(), POLL_MS).unref()
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

/** After this time a client has to reconnect. */
const WAIT_MS = 60_000

type NewReading = Pick<ChannelReading, 'name' | 'position' | 'eventId' | 'primes'> & { readonly owner: string }

/** All readers of an instance. Their number is bounded, and they end when the instance shuts down. */
export class ChannelReaders {
  readonly #mailbox: Mailbox
  readonly #logger: Logger
  /** One for each channel: a client that comes back has lost its earlier stream. */
  readonly #all = new Map<string, ChannelReader>()
  readonly shares: SharedLimit<ChannelReader>

  constructor(mailbox: Mailbox, logger: Logger, limits: Limits) {
    this.#mailbox = mailbox
    this.#logger = logger
    this.shares = new SharedLimit({ ...sharesOf(limits, 'maxStreams'), evict: (reader) => reader.end() })
  }

  get size(): number {
    return this.#all.size
  }

  /** Returns why if there is no room for another reader. */
  makeRoom(owner: string): NoRoom | undefined {
    return this.shares.makeRoom(owner, 1)
  }

  /** Returns the function that ends it. */
  open(reading: NewReading, sink: EventSink): () => void {
    const { name, owner } = reading
    this.#all.get(name)?.end()
    const whole = { ...reading, mailbox: this.#mailbox, logger: this.#logger, waitMs: WAIT_MS }
    const reader: ChannelReader = new ChannelReader(whole, sink, () => {
      this.shares.delete(owner, reader)
      if (this.#all.get(name) === reader) this.#all.delete(name)
    })
    this.#all.set(name, reader)
    this.shares.set(owner, reader, 1)
    return () => reader.end()
  }

  end(): void {
    for (const reader of this.#all.values()) reader.end()
  }
}
