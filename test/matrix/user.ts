// Who answers: one user for every client, who writes down what is shown and answers a round once all of it is there.
import type { Case, Shown } from './table.ts'

export type Elicited = { action: 'accept'; content?: Record<string, string | number | boolean> } | { action: Refusal }
type Refusal = 'decline' | 'cancel'

/** No interface, which the official types do not take. */
export type Sampled = { role: 'assistant'; model: string; content: { type: 'text'; text: string } }

const CONTENT: Readonly<Record<string, Record<string, string | number | boolean>>> = {
  'Deploy to prod?': { confirm: true },
  'Your name?': { name: 'Ada' },
  'How old are you, Ada?': { years: 36 },
  'Register Ada, 36?': { confirm: true },
  'Who travels?': { name: 'Grace' },
  'Where to?': { to: 'hills' },
}

const SAID: Readonly<Record<string, string>> = {
  'Sum up: A long story.': 'It ended well.',
  'What is new?': 'A comet?',
  'Is that good: A comet?': 'It depends.',
  'What to pack?': 'Take a coat.',
}

export const CHANGED_MIND = 'The user has changed their mind.'

export class User {
  /** In rounds, as they came. */
  readonly shown: Shown[][] = []
  readonly #case: Case
  readonly #controller = new AbortController()
  /** Resolves when the question of an aborted call is taken back. */
  readonly withdrawn: Promise<void>
  #withdraw: () => void = () => {}
  #answerRound: () => void = () => {}
  #roundIsThere = Promise.resolve()

  constructor(given: Case) {
    this.#case = given
    this.withdrawn = new Promise((resolve) => {
      this.#withdraw = resolve
    })
  }

  /** Of the call, which a user who aborts ends. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** The signal, here and below, is aborted when nobody waits for the answer any more. */
  async elicit(question: Shown, signal: AbortSignal): Promise<Elicited> {
    await this.#see(question, signal)
    const { does } = this.#case
    if (does === 'decline' || does === 'cancel') return { action: does }
    if (question.mode === 'url') {
      await fetch(question.url)
      return { action: 'accept' }
    }
    const content = question.mode === 'form' ? CONTENT[question.message] : undefined
    if (content === undefined) throw new Error(`Nobody knows what to say to ${JSON.stringify(question)}.`)
    return { action: 'accept', content }
  }

  async sample(question: Shown, prompt: string, signal: AbortSignal): Promise<Sampled> {
    await this.#see(question, signal)
    return { role: 'assistant', model: 'model-1', content: { type: 'text', text: SAID[prompt] ?? 'What?' } }
  }

  async roots(signal: AbortSignal): Promise<{ uri: string; name: string }[]> {
    await this.#see({ mode: 'roots' }, signal)
    return [
      { uri: 'file:///home/ada/work', name: 'work' },
      { uri: 'file:///home/ada/notes', name: 'notes' },
    ]
  }

  /** Resolves when as many questions are open as this round has, and for a user who aborts once it is taken back. */
  async #see(question: Shown, signal: AbortSignal): Promise<void> {
    const { rounds } = this.#case
    const last = this.shown.at(-1)
    const isNew = last === undefined || last.length === rounds[this.shown.length - 1]?.length
    const round = isNew ? [] : last
    if (isNew) {
      this.shown.push(round)
      this.#roundIsThere = new Promise((resolve) => {
        this.#answerRound = resolve
      })
    }
    round.push(question)
    const whole = rounds[this.shown.length - 1]
    if (whole === undefined) throw new Error(`Nobody expected to be asked ${JSON.stringify(question)}.`)
    if (round.length === whole.length) this.#answerRound()
    await this.#roundIsThere
    if (this.#case.does !== 'abort') return
    signal.addEventListener('abort', this.#withdraw, { once: true })
    this.#controller.abort(new Error(CHANGED_MIND))
    await this.withdrawn
  }
}
