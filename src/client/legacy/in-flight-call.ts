// A request that a legacy server is working on, and during which it may ask questions.
import { ROUND_METHODS } from '../../protocol/revisions/2026-07-28.ts'
import type { ClientCall } from '../call.ts'
import type { Deadline } from '../deadline.ts'
import { tooManyRounds } from '../errors.ts'
import { MAX_QUESTIONS, tooManyQuestions } from '../answers/question.ts'
import type { OutgoingRequest } from '../transports/transport.ts'

export class InFlightCall {
  readonly #request: OutgoingRequest
  readonly #deadline: Deadline | undefined
  readonly #openQuestions = new Set<AbortController>()
  #rounds = 0
  #questionsInRound = 0
  /** Questions whose state this client carries, and that are not answered yet. */
  #carried = 0
  #whenAnswered: (() => void) | undefined

  constructor(request: OutgoingRequest, deadline: Deadline | undefined) {
    this.#request = request
    this.#deadline = deadline
  }

  /** True if the server may ask questions during this request. */
  get mayAsk(): boolean {
    return ROUND_METHODS.has(this.#request.method) || this.#request.method === 'tasks/result'
  }

  get call(): ClientCall | undefined {
    return this.#request.call
  }

  /** Pauses the clock of the call while the user answers. Returns a function that resumes it. */
  pauseClock(): () => void {
    return this.#deadline?.pauseClock() ?? (() => {})
  }

  /** The server has left the call to this client until a question is answered. Call the returned function once it is. */
  carry(): () => void {
    this.#carried += 1
    return () => {
      this.#carried -= 1
      if (this.#carried > 0) return
      const whenAnswered = this.#whenAnswered
      this.#whenAnswered = undefined
      whenAnswered?.()
    }
  }

  /** See `ChannelEvents`. Only the last callback is called. */
  whenAnswered(answered: () => void): boolean {
    if (this.#carried === 0) return false
    this.#whenAnswered = answered
    return true
  }

  /** Counts a question. Questions that are open at the same time are one round. Throws if the server asks too often. */
  ask(question: AbortController, maxRounds: number, isCarried: boolean): void {
    if (this.#openQuestions.size === 0) {
      this.#rounds += 1
      this.#questionsInRound = 0
    }
    this.#questionsInRound += 1
    // Carried questions arrive one at a time, even those of one round, so the limit is that of the questions of a round.
    const limit = isCarried ? Math.max(maxRounds, MAX_QUESTIONS) : maxRounds
    if (this.#rounds > limit) {
      const { method, name = '' } = this.#request
      const [which, advice] = isCarried
        ? ['the limit', '']
        : ['maxRounds', ' To allow more rounds, raise maxRounds in connect().']
      throw tooManyRounds(
        `${method} ${name}: the server asked in ${this.#rounds} rounds, and ${which} is ${limit}.${advice}`,
      )
    }
    if (this.#questionsInRound > MAX_QUESTIONS) throw tooManyQuestions(this.#questionsInRound)
    this.#openQuestions.add(question)
  }

  settled(question: AbortController): void {
    this.#openQuestions.delete(question)
  }

  /** Fails the call with an error on this side. */
  fail(error: Error): void {
    this.#deadline?.abort(error)
  }

  /** The call has ended: its open questions need no answer. */
  end(): void {
    for (const question of this.#openQuestions) question.abort()
    this.#openQuestions.clear()
  }
}
