// A call that an older server has under way, and may ask something in the middle of.
import type { ClientCall } from '../call.ts'
import { targetOfPending } from '../call.ts'
import { ClientError } from '../errors.ts'
import { isObject } from '../../protocol/json.ts'
import { ROUND_METHODS } from '../../protocol/revisions/2026-07-28.ts'
import type { Deadline } from '../deadline.ts'
import type { PendingCall } from '../pending.ts'
import type { OutgoingRequest } from '../transports/transport.ts'

const MOST_QUESTIONS = 100

export class InFlightCall {
  readonly #request: OutgoingRequest
  readonly #deadline: Deadline | undefined
  readonly #open = new Set<AbortController>()
  #rounds = 0
  #carrying = 0
  #answered: (() => void) | undefined
  #inRound = 0

  constructor(request: OutgoingRequest, deadline: Deadline | undefined) {
    this.#request = request
    this.#deadline = deadline
  }

  /** Whether a server may ask something in the course of it. */
  get mayAsk(): boolean {
    return ROUND_METHODS.has(this.#request.method)
  }

  get call(): ClientCall | undefined {
    if (!this.mayAsk) return undefined
    const { method, text } = this.#request
    const { params } = JSON.parse(text) as { params: unknown }
    return isObject(params) ? targetOfPending({ method, params } as unknown as PendingCall).call : undefined
  }

  /** Nobody waits for the server while somebody thinks. */
  pauseClock(): () => void {
    return this.#deadline?.pauseClock() ?? (() => {})
  }

  /** The server has left the call to us until its question is answered. Gives what says that it is, to be called once. */
  carry(): () => void {
    this.#carrying += 1
    return () => {
      this.#carrying -= 1
      if (this.#carrying > 0) return
      const answered = this.#answered
      this.#answered = undefined
      answered?.()
    }
  }

  /** Calls back, one of those that want it, once nothing is carried here any more. Gives `false` where nothing is. */
  onceAnswered(answered: () => void): boolean {
    if (this.#carrying === 0) return false
    this.#answered = answered
    return true
  }

  /** Questions that are open together are a round. Throws where the server asks too much. */
  ask(question: AbortController, maxRounds: number, isCarried: boolean): void {
    if (this.#open.size === 0) {
      this.#rounds += 1
      this.#inRound = 0
    }
    this.#inRound += 1
    // Those that are carried come one at a time, whatever their rounds are: they are bounded as the questions of one.
    const most = isCarried ? Math.max(maxRounds, MOST_QUESTIONS) : maxRounds
    if (this.#rounds > most) {
      throw new ClientError(
        'TOO_MANY_ROUNDS',
        `The server has asked ${this.#rounds} times in one call; this client takes ${most}${isCarried ? '' : ' (maxRounds)'}.`,
      )
    }
    if (this.#inRound > MOST_QUESTIONS) {
      throw new ClientError(
        'QUESTION_INVALID',
        `The server asks ${this.#inRound} questions in one round; this client takes ${MOST_QUESTIONS}.`,
      )
    }
    this.#open.add(question)
  }

  settled(question: AbortController): void {
    this.#open.delete(question)
  }

  /** Ends the call with an error of our side's. */
  fail(error: Error): void {
    this.#deadline?.abort(error)
  }

  /** It has ended: whoever still thinks about one of its questions need not. */
  end(): void {
    for (const question of this.#open) question.abort()
    this.#open.clear()
  }
}
