// Where in a box of the mailbox a client is: the number of the last letter that it has, as the sealed id of an event.
//
// Between two questions of a call lies a leg. Its last letter, the next question or the response, has a number that is
// known before the leg begins, so that whoever goes on twice from the same question leaves one last letter.
import { digest } from '../../seal/canonical.ts'
import type { PayloadCodec } from '../../seal/envelope.ts'
import { bindTo, isCount } from '../../seal/envelope.ts'
import { InvalidState } from '../../seal/errors.ts'
import type { Seal, SealFor } from '../../seal/seal.ts'
import type { Session } from '../session.ts'

export interface Place {
  /** The call's stream on which it was first asked. */
  readonly box: string
  readonly number: number
}

const LEG = 1_000

/** Letters in a leg beside the last. */
export const MOST_IN_A_LEG = LEG - 2

/** What the mailbox knows it as: nobody else's stream leads there. */
export function nameOf(box: string, { id }: Session): string {
  return digest(`${id}\n${box}`)
}

/** The number of the letter before the first of a leg: no letter has it. */
export function beginOf(leg: number): number {
  return leg * LEG
}

export function lastOf(leg: number): number {
  return leg * LEG + LEG - 1
}

/** Whether a stream ends with it. */
export function isLast(number: number): boolean {
  return number % LEG === LEG - 1
}

/** Mints and opens the ids of events. */
export class Places {
  readonly #seal: SealFor<Place>

  constructor(seal: Seal) {
    this.#seal = seal.for(eventCodec)
  }

  eventId(place: Place, { id }: Session, principal: string | undefined): string | Promise<string> {
    return this.#seal.mint(place, bindTo('event', id, principal))
  }

  /** Takes anything that a client sent. Returns `undefined` if it is not an event of this session. */
  async open(eventId: string, { id }: Session, principal: string | undefined): Promise<Place | undefined> {
    try {
      return await this.#seal.open(eventId, bindTo('event', id, principal))
    } catch (error) {
      if (error instanceof InvalidState) return undefined
      throw error
    }
  }
}

const eventCodec: PayloadCodec<Place, [number: number]> = {
  purpose: 'event',
  name: 'Last-Event-ID',
  tests: [isCount],
  write: ({ box, number }) => ({ id: box, fields: [number], text: '' }),
  read: ({ id, fields: [number] }) => ({ box: id, number }),
}
