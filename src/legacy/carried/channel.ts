// Writes the events of one segment to a channel of the mailbox: notifications, which may be lost, and the last event.
import { INTERNAL_ERROR, ProtocolError, RallyError } from '../../protocol/errors.ts'
import type { RequestId } from '../../protocol/messages.ts'
import { errorReply } from '../../server/reply.ts'
import { logUnlessOutage } from '../../store/outages.ts'
import type { Outlet } from '../host.ts'
import type { Session } from '../session.ts'
import { endOf, mailboxName, MAX_NOTIFICATIONS, startOf } from './event-position.ts'
import type { CarriedHost } from './host.ts'

/** Notifications that are being stored. */
const MAX_PENDING = 16

export class ChannelWriter implements Outlet {
  /** The client fetches what is written here by GET. */
  readonly overHttp = true
  readonly #host: CarriedHost
  readonly #name: string
  readonly #owner: string
  readonly #segment: number
  #count = 0
  #pending = 0
  #closed = false
  /** Events are stored one after the other: a reader that finds the last one does not look for earlier ones. */
  #stored: Promise<unknown> = Promise.resolve()

  constructor(host: CarriedHost, session: Session, channel: string, segment: number) {
    this.#host = host
    this.#name = mailboxName(channel, session)
    this.#owner = session.mailboxOwner
    this.#segment = segment
  }

  /** True if the segment has run already, here or on another instance. */
  async isComplete(): Promise<boolean> {
    const events = await this.#host.mailbox.after(this.#name, endOf(this.#segment) - 1)
    return events.some(({ number }) => number === endOf(this.#segment))
  }

  send(text: string): boolean {
    return this.notify(text)
  }

  notify(text: string): boolean {
    if (this.#closed || this.#pending >= MAX_PENDING || this.#count >= MAX_NOTIFICATIONS) return false
    this.#count += 1
    this.#pending += 1
    const number = startOf(this.#segment) + this.#count
    this.#stored = this.#stored
      .then(() => this.#store(number, text))
      .catch((error: unknown) => {
        logUnlessOutage(this.#host.app.logger, 'A notification could not be stored in the mailbox.', { error })
      })
      .finally(() => (this.#pending -= 1))
    return true
  }

  /**
   * Stores the next question or the response, and closes the channel. If another instance was faster, its event stays. If the
   * event was too large, the channel stays open for another one. After any other failure the client must send its answer again.
   */
  async close(text: string): Promise<void> {
    if (this.#closed) throw new RallyError('CHANNEL_CLOSED', 'The segment already has its last event.')
    this.#closed = true
    await this.#stored
    try {
      await this.#store(endOf(this.#segment), text)
    } catch (error) {
      this.#closed = !isMailboxFull(error)
      throw error
    }
  }

  /** Stores the response. If it is too large, stores an error response instead, because the client waits for one. */
  async respond(id: RequestId, text: string): Promise<void> {
    try {
      await this.close(text)
    } catch (error) {
      if (!isMailboxFull(error)) throw error
      await this.close(errorReply(id, new ProtocolError(INTERNAL_ERROR, error.message)).text)
    }
  }

  #store(number: number, text: string): Promise<boolean> {
    const { mailbox, eventsMs } = this.#host
    return mailbox.leave(this.#name, number, text, eventsMs, this.#owner)
  }
}

export function isMailboxFull(error: unknown): error is RallyError {
  return error instanceof RallyError && error.code === 'MAILBOX_FULL'
}
