// All readers of boxes on an instance: bounded in number, and told to come back elsewhere when it goes down.
import type { Logger } from '../../protocol/logger.ts'
import type { Mailbox } from '../../store/mailbox.ts'
import type { EventSink } from '../../server/reply.ts'
import type { BoxReading } from './channel-reader.ts'
import { BoxReader } from './channel-reader.ts'

const MOST_READERS = 2_000

/** Until a client has to come back. */
const WAIT_MS = 60_000

export class Readers {
  readonly #mailbox: Mailbox
  readonly #logger: Logger
  /** One for each box: who comes back has lost the stream before. */
  readonly #all = new Map<string, BoxReader>()

  constructor(mailbox: Mailbox, logger: Logger) {
    this.#mailbox = mailbox
    this.#logger = logger
  }

  get size(): number {
    return this.#all.size
  }

  get isFull(): boolean {
    return this.#all.size >= MOST_READERS
  }

  /** Gives what ends it. */
  open(reading: Pick<BoxReading, 'name' | 'place' | 'eventId' | 'primes'>, sink: EventSink): () => void {
    const whole = { ...reading, mailbox: this.#mailbox, logger: this.#logger, waitMs: WAIT_MS }
    const { name } = reading
    this.#all.get(name)?.end()
    const reader: BoxReader = new BoxReader(whole, sink, () => {
      if (this.#all.get(name) === reader) this.#all.delete(name)
    })
    this.#all.set(name, reader)
    return () => reader.end()
  }

  end(): void {
    for (const reader of this.#all.values()) reader.end()
  }
}
