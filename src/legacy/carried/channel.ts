// A leg of a call that the client carries, as it is left in the mailbox: what may be lost, and the last letter.
import { INTERNAL_ERROR, ProtocolError, RallyError } from '../../protocol/errors.ts'
import type { RequestId } from '../../protocol/messages.ts'
import { errorReply } from '../../server/reply.ts'
import type { LegacyHost, Outlet, Parting } from '../host.ts'
import { beginOf, lastOf, MOST_IN_A_LEG, nameOf } from './event-position.ts'
import type { Session } from '../session.ts'

/** Letters on their way. */
const MOST_WAITING = 16

export class Box implements Outlet {
  readonly parting: Parting
  readonly #host: LegacyHost
  readonly #box: string
  readonly #leg: number
  #count = 0
  #waiting = 0
  #over = false
  /** They are left one after the other: who finds the last one looks for none that came before it. */
  #written: Promise<unknown> = Promise.resolve()

  constructor(host: LegacyHost, session: Session, box: string, leg: number) {
    this.#host = host
    this.#box = nameOf(box, session)
    this.#leg = leg
    this.parting = { box, leg, ask: (text) => this.last(text).then(() => true) }
  }

  /** Whether somebody has gone on from the same question already, to the end of the leg. */
  async isTaken(): Promise<boolean> {
    const letters = await this.#host.mailbox.after(this.#box, lastOf(this.#leg) - 1)
    return letters.some(({ number }) => number === lastOf(this.#leg))
  }

  send(text: string): boolean {
    return this.notify(text)
  }

  notify(text: string): boolean {
    if (this.#over || this.#waiting >= MOST_WAITING || this.#count >= MOST_IN_A_LEG) return false
    this.#count += 1
    this.#waiting += 1
    const number = beginOf(this.#leg) + this.#count
    this.#written = this.#written
      .then(() => this.#leave(number, text))
      .catch((error: unknown) => this.#host.app.logger.warn('A notification could not be left.', { error }))
      .finally(() => (this.#waiting -= 1))
    return true
  }

  /**
   * The next question, or the response. Where another instance was faster, its stays. After one that was too large something
   * else can be left, and after any other failure nothing: then the client has to send its answer again.
   */
  async last(text: string): Promise<void> {
    if (this.#over) throw new RallyError('CHANNEL_CLOSED', 'Nothing can be left after the last letter.')
    this.#over = true
    await this.#written
    try {
      await this.#leave(lastOf(this.#leg), text)
    } catch (error) {
      this.#over = !isTooLarge(error)
      throw error
    }
  }

  /** What cannot be left as it is has to be told of: the client waits for it. */
  async respond(id: RequestId, text: string): Promise<void> {
    try {
      await this.last(text)
    } catch (error) {
      if (!isTooLarge(error)) throw error
      await this.last(errorReply(id, new ProtocolError(INTERNAL_ERROR, error.message)).text)
    }
  }

  #leave(number: number, text: string): Promise<boolean> {
    const { mailbox, lettersMs } = this.#host
    return mailbox.leave(this.#box, number, text, lettersMs)
  }
}

function isTooLarge(error: unknown): error is RallyError {
  return error instanceof RallyError && error.code === 'MAILBOX_FULL'
}
