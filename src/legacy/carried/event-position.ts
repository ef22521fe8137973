// Where a client is in a channel: the number of the last stored event that it has, sealed as the id of that event.
//
// A question divides a call into segments. The last event of a segment is the next question or the response. Its number is
// known before the segment runs, so a call that is resumed twice from the same question stores one last event.
import { digest } from '../../seal/canonical.ts'
import type { PayloadCodec } from '../../seal/envelope.ts'
import { bindTo, isCount } from '../../seal/envelope.ts'
import { InvalidState } from '../../seal/errors.ts'
import type { Seal, SealFor } from '../../seal/seal.ts'
import type { Session } from '../session.ts'

export interface EventPosition {
  /** The id of the stream on which the call first asked. */
  readonly channel: string
  readonly number: number
}

const SEGMENT_SIZE = 1_000

/** How many events a segment may have before its last. */
export const MAX_NOTIFICATIONS = SEGMENT_SIZE - 2

/** The channel's name in the mailbox. It includes the session, so that no other session can read the channel. */
export function mailboxName(channel: string, { id }: Session): string {
  return digest(`${id}\n${channel}`)
}

/** The number before the first event of a segment. No event has it. */
export function startOf(segment: number): number {
  return segment * SEGMENT_SIZE
}

/** The number of the last event of a segment. */
export function endOf(segment: number): number {
  return segment * SEGMENT_SIZE + SEGMENT_SIZE - 1
}

export function endsSegment(number: number): boolean {
  return number % SEGMENT_SIZE === SEGMENT_SIZE - 1
}

/** Mints and opens the ids of events. */
export class EventIds {
  readonly #seal: SealFor<EventPosition>

  constructor(seal: Seal) {
    this.#seal = seal.for(eventCodec)
  }

  mint(position: EventPosition, { id }: Session, principal: string | undefined): string | Promise<string> {
    return this.#seal.mint(position, bindTo('event', id, principal))
  }

  /** Takes anything that a client sent. Returns `undefined` if it is not an event of this session. */
  async open(eventId: string, { id }: Session, principal: string | undefined): Promise<EventPosition | undefined> {
    try {
      return await this.#seal.open(eventId, bindTo('event', id, principal))
    } catch (error) {
      if (error instanceof InvalidState) return undefined
      throw error
    }
  }
}

const eventCodec: PayloadCodec<EventPosition, [number: number]> = {
  purpose: 'event',
  name: 'Last-Event-ID',
  tests: [isCount],
  write: ({ channel, number }) => ({ id: channel, fields: [number], text: '' }),
  read: ({ id, fields: [number] }) => ({ channel: id, number }),
}
