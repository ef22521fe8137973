// The questions of a task that is waited for. Each is asked once, all open ones at the same time, and each answer is sent
// as soon as it is there.
import type { AnswerContext } from '../answers/answerers.ts'
import type { Answerer, CheckedAnswer, CheckedAnswers } from '../answers/answering.ts'
import { answererFor } from '../answers/answering.ts'
import type { ServerQuestion } from '../answers/question.ts'
import type { ClientCall } from '../call.ts'
import type { ClientContext } from '../context.ts'
import type { Deadline } from '../deadline.ts'
import { tooManyRounds } from '../errors.ts'

export interface TaskAnswersOptions {
  readonly context: Pick<ClientContext, 'answerers' | 'can' | 'server' | 'limits'>
  readonly call: ClientCall | undefined
  /** Its clock is paused while the user answers. */
  readonly deadline: Deadline
  /** Keys that are being answered or were answered, here or by hand. A server never uses a key for a second question. */
  readonly claimedKeys: Set<string>
  /** An answer is ready to be sent, or an answerer has failed. */
  readonly onAnswer: () => void
}

export class TaskAnswers {
  readonly #options: TaskAnswersOptions
  /** Questions that the answerers work on. */
  readonly #asked = new Map<string, AbortController>()
  /** Answers to be sent. */
  readonly #ready = new Map<string, CheckedAnswer>()
  #failure: { readonly error: unknown } | undefined
  #rounds = 0
  #resumeClock: (() => void) | undefined

  constructor(options: TaskAnswersOptions) {
    this.#options = options
  }

  /** Asks the new questions, and withdraws those that are not open any more. */
  ask(questions: readonly ServerQuestion[]): void {
    const open = new Set(questions.map(({ key }) => key))
    for (const key of this.#asked.keys()) if (!open.has(key)) this.#withdraw(key)
    const { context, claimedKeys } = this.#options
    const fresh = questions.filter(({ key }) => !claimedKeys.has(key))
    if (fresh.length === 0) return
    const { maxRounds } = context.limits
    this.#rounds += 1
    if (this.#rounds > maxRounds) {
      throw tooManyRounds(
        `The task has asked in ${this.#rounds} rounds, and maxRounds is ${maxRounds}. It keeps running on the server. To allow more rounds, raise maxRounds in connect().`,
      )
    }
    // Looked up before anything is asked: the user should not answer one question when another cannot be answered.
    const answerers = fresh.map((question) => answererFor(question, context))
    for (const [index, { key }] of fresh.entries()) void this.#answer(key, answerers[index])
  }

  /** Returns the answers to be sent, if there are any. Throws what an answerer threw. */
  ready(): CheckedAnswers | undefined {
    if (this.#failure !== undefined) throw this.#failure.error
    return this.#ready.size === 0 ? undefined : Object.fromEntries(this.#ready)
  }

  /** The server has these answers. */
  sent(answers: CheckedAnswers): void {
    for (const key of Object.keys(answers)) this.#ready.delete(key)
  }

  /** Stops asking. Questions whose answers were not sent can be answered again. */
  close(): void {
    for (const key of this.#asked.keys()) this.#withdraw(key)
    for (const key of this.#ready.keys()) this.#options.claimedKeys.delete(key)
  }

  async #answer(key: string, answerer: Answerer | undefined): Promise<void> {
    const { context, call, claimedKeys, deadline, onAnswer } = this.#options
    const controller = new AbortController()
    const { signal } = controller
    const answerContext: AnswerContext = { server: context.server, call, signal }
    claimedKeys.add(key)
    this.#asked.set(key, controller)
    this.#resumeClock ??= deadline.pauseClock()
    try {
      const answer = await answerer?.(answerContext)
      if (answer !== undefined && !signal.aborted) this.#ready.set(key, answer)
    } catch (error) {
      if (!signal.aborted) this.#failure ??= { error }
    }
    if (signal.aborted) return
    this.#forget(key)
    onAnswer()
  }

  #withdraw(key: string): void {
    const controller = this.#asked.get(key)
    this.#forget(key)
    this.#options.claimedKeys.delete(key)
    controller?.abort()
  }

  #forget(key: string): void {
    this.#asked.delete(key)
    if (this.#asked.size > 0) return
    this.#resumeClock?.()
    this.#resumeClock = undefined
  }
}
