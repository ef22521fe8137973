// The person at the terminal, asked one question after another.
import type { Question } from '../client/question.ts'
import type { InputResponse } from '../protocol/messages.ts'
import type { Console } from './console.ts'
import { fillIn } from './form.ts'
import { Prompts } from './prompts.ts'
import { askVisit } from './visit.ts'

export class Terminal {
  readonly #prompts: Prompts
  readonly #options: { readonly server: string; readonly opens: boolean }
  readonly #visited = new Set<string>()
  #hasAsked = false

  constructor(console: Console, options: { readonly server: string; readonly opens: boolean }) {
    this.#prompts = new Prompts(console)
    this.#options = options
  }

  tell(line: string): void {
    this.#prompts.step(line)
  }

  /** Only what a person can answer. */
  async ask(question: Question): Promise<InputResponse | undefined> {
    if (question.kind !== 'form' && question.kind !== 'visit') return undefined
    if (!this.#hasAsked) this.#prompts.say('Esc leaves a question, Ctrl-C stops the call.')
    this.#hasAsked = true
    if (question.kind === 'form') return fillIn(question, this.#prompts)
    return askVisit(question, this.#prompts, { ...this.#options, visited: this.#visited })
  }
}
