// Where in a box of the mailbox a client is: the number of the last letter that it has, as the sealed id of an event.
//
// Between two questions of a call lies a leg. Its last letter, the next question or the response, has a number that is
// known before the leg begins, so that whoever goes on twice from the same question leaves one last letter.
import { digest } from '../../seal/canonical.ts'
import type { Binding } from '../../seal/claims.ts'
import type { Seal } from '../../seal/seal.ts'
import { InvalidState } from '../../seal/seal.ts'
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

export class Places {
  readonly #seal: Seal
  readonly #now: () => number

  constructor(seal: Seal, now: () => number) {
    this.#seal = seal.of('event')
    this.#now = now
  }

  eventId({ box, number }: Place, session: Session, principal: string | undefined): string | Promise<string> {
    const claims = {
      startedAt: this.#now(),
      flowId: box,
      round: number,
      deferrals: 0,
      version: undefined,
      capabilities: 0,
      revision: '',
      carry: null,
      journal: '',
    }
    return this.#seal.mint(claims, bindingOf(session, principal))
  }

  /** Takes whatever the client sent; `undefined` where it is no event of this session. */
  async open(eventId: string, session: Session, principal: string | undefined): Promise<Place | undefined> {
    try {
      const { flowId: box, round: number } = await this.#seal.open(eventId, bindingOf(session, principal))
      return { box, number }
    } catch (error) {
      if (error instanceof InvalidState) return undefined
      throw error
    }
  }
}

/** No request has this method, so that a codec of the user's, which knows no purposes, opens nothing else as one. */
function bindingOf({ id }: Session, principal: string | undefined): Binding {
  return { method: 'an event of session', target: id, argumentsDigest: '', principal }
}
