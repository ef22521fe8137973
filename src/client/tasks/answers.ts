// The questions of a task while it is waited for: each asked once, all that are open together, and each answer sent when it
// is there.
import { answerText } from '../answers/check.ts'
import type { AnswerContext } from '../answers/answerers.ts'
import { answererFor } from '../answers/answering.ts'
import type { ClientCall } from '../call.ts'
import { tooMany } from '../errors.ts'
import type { ClientContext } from '../context.ts'
import type { Deadline } from '../deadline.ts'
import type { ServerQuestion } from '../answers/question.ts'

export interface TaskAnswersOptions {
  readonly context: Pick<ClientContext, 'answerers' | 'can' | 'server' | 'limits'>
  readonly call: ClientCall | undefined
  /** Its clock stands still while somebody thinks. */
  readonly deadline: Deadline
  /** Keys that are nobody else's to answer: keys are never used for a second question. */
  readonly taken: Set<string>
  /** An answer is there to be sent, or will never be. */
  readonly onAnswer: () => void
}

export class TaskAnswers {
  readonly #options: TaskAnswersOptions
  /** Being thought about. */
  readonly #asked = new Map<string, AbortController>()
  /** To be sent. */
  readonly #ready = new Map<string, string>()
  #failure: { readonly error: unknown } | undefined
  #rounds = 0
  #goOn: (() => void) | undefined

  constructor(options: TaskAnswersOptions) {
    this.#options = options
  }

  /** Has those answered that are new. What was asked and is not open any more is not waited for. */
  ask(questions: readonly ServerQuestion[]): void {
    const open = new Set(questions.map(({ key }) => key))
    for (const key of this.#asked.keys()) if (!open.has(key)) this.#withdraw(key)
    const { context, taken } = this.#options
    const fresh = questions.filter(({ key }) => !taken.has(key))
    if (fresh.length === 0) return
    const { maxRounds } = context.limits
    this.#rounds += 1
    if (this.#rounds > maxRounds) {
      throw tooMany(
        `The task has asked ${this.#rounds} times; this client takes ${maxRounds} (maxRounds). It goes on on the server.`,
      )
    }
    // Before anybody is asked anything in vain.
    const askers = fresh.map((question) => answererFor(question, context.answerers, context.can))
    for (const [index, question] of fresh.entries()) void this.#think(question, askers[index])
  }

  /** The text of `inputResponses` that are there to be sent, if any. Throws what an answerer threw. */
  ready(): { readonly text: string; readonly keys: readonly string[] } | undefined {
    if (this.#failure !== undefined) throw this.#failure.error
    if (this.#ready.size === 0) return undefined
    const members = [...this.#ready].map(([key, text]) => `${JSON.stringify(key)}:${text}`)
    return { text: `{${members.join(',')}}`, keys: [...this.#ready.keys()] }
  }

  /** They have reached the server. */
  sent(keys: readonly string[]): void {
    for (const key of keys) this.#ready.delete(key)
  }

  /** Nothing is waited for any more; what was not sent is somebody else's to answer. */
  close(): void {
    for (const key of this.#asked.keys()) this.#withdraw(key)
    for (const key of this.#ready.keys()) this.#options.taken.delete(key)
  }

  async #think(question: ServerQuestion, asker: ReturnType<typeof answererFor> | undefined): Promise<void> {
    const { context, call, taken, deadline, onAnswer } = this.#options
    const { key } = question
    const controller = new AbortController()
    const about: AnswerContext = { server: context.server, call, signal: controller.signal }
    taken.add(key)
    this.#asked.set(key, controller)
    this.#goOn ??= deadline.pauseClock()
    try {
      const text = answerText(question, await asker?.(about))
      if (!controller.signal.aborted) this.#ready.set(key, text)
    } catch (error) {
      if (!controller.signal.aborted) this.#failure ??= { error }
    }
    if (controller.signal.aborted) return
    this.#forget(key)
    onAnswer()
  }

  #withdraw(key: string): void {
    const controller = this.#asked.get(key)
    this.#forget(key)
    this.#options.taken.delete(key)
    controller?.abort()
  }

  #forget(key: string): void {
    this.#asked.delete(key)
    if (this.#asked.size > 0) return
    this.#goOn?.()
    this.#goOn = undefined
  }
}
