// The person at the terminal, asked one question after another.
import type { ServerQuestion } from '../client/answers/question.ts'
import type { InputResponse } from '../protocol/messages.ts'
import type { Console } from './console.ts'
import { fillIn } from './form.ts'
import { Prompts, Withdrawn } from './prompts.ts'
import { askVisit } from './visit.ts'

export interface TerminalOptions {
  /** Who asks, as it says itself, and where it is. */
  readonly server: string
  /** Whether pages are opened here, and not only shown. */
  readonly opens: boolean
  /** What it does. */
  readonly ctrlC: string
}

export class Terminal {
  readonly #prompts: Prompts
  readonly #options: TerminalOptions
  readonly #visited = new Set<string>()
  #hasAsked = false

  constructor(console: Console, options: TerminalOptions) {
    this.#prompts = new Prompts(console)
    this.#options = options
  }

  tell(line: string): void {
    this.#prompts.step(line)
  }

  /** Only what a person can answer, and until the signal says that it is not asked any more. */
  async ask(question: ServerQuestion, signal?: AbortSignal): Promise<InputResponse | undefined> {
    if (question.kind !== 'form' && question.kind !== 'visit') return undefined
    if (!this.#hasAsked) this.#prompts.say(`Esc leaves a question, Ctrl-C ${this.#options.ctrlC}.`)
    this.#hasAsked = true
    this.#prompts.until(signal)
    try {
      if (question.kind === 'form') return await fillIn(question, this.#prompts)
      return await askVisit(question, this.#prompts, { ...this.#options, visited: this.#visited })
    } catch (error) {
      if (!(error instanceof Withdrawn)) throw error
      this.#prompts.warn('This is not asked any more.')
      return undefined
    }
  }
}
