// Asks the person at the terminal one question after another. Loaded only if a person can be asked.
import type { ServerQuestion } from '../client/answers/question.ts'
import type { InputResponse } from '../protocol/messages.ts'
import type { Console } from './console.ts'
import { fillIn } from './form.ts'
import { askModel } from './model.ts'
import { Prompts, Withdrawn } from './prompts.ts'
import { askVisit } from './visit.ts'

export interface TerminalOptions {
  /** The server's own name, and its address. */
  readonly server: string
  /** True if pages may be opened in the browser, not only shown. */
  readonly opens: boolean
  /** What Ctrl-C does, as it is shown to the user. */
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

  /** Returns undefined for a question that the person cannot answer, or when the signal is aborted. */
  async ask(question: ServerQuestion, signal?: AbortSignal): Promise<InputResponse | undefined> {
    if (question.kind === 'roots') return undefined
    if (!this.#hasAsked) this.#prompts.say(`Esc leaves a question, Ctrl-C ${this.#options.ctrlC}.`)
    this.#hasAsked = true
    this.#prompts.until(signal)
    try {
      if (question.kind === 'form') return await fillIn(question, this.#prompts)
      if (question.kind === 'sample') return await askModel(question, this.#prompts)
      return await askVisit(question, this.#prompts, { ...this.#options, visited: this.#visited })
    } catch (error) {
      if (!(error instanceof Withdrawn)) throw error
      this.#prompts.warn('The server no longer asks this.')
      return undefined
    }
  }
}
