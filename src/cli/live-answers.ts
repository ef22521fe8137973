// Answers the questions that a server of 2025 asks in the middle of a call. They are asked one after the other, because there is one
// terminal.
//
// The server gives these questions no keys. A form and a page go by their text, the others by `sample` and `roots`. If a name is asked
// again, the second question also goes by `<name> 2`, and so on.
import type { AnswerContext, Answerers, FormAnswer, VisitAnswer } from '../client/answers/answerers.ts'
import type { ServerQuestion } from '../client/answers/question.ts'
import type { Capability } from '../client/capabilities.ts'
import type { CreateMessageResult, InputResponse, ListRootsResult, Root } from '../protocol/messages.ts'
import { Unanswered } from './exit.ts'
import type { Reporter, Responder } from './rounds.ts'
import { describe, hintFor } from './rounds.ts'

export interface LiveDialogue {
  readonly respond: Responder
  readonly reporter: Reporter
  /** Why a question has no answer. */
  readonly unanswered: string
  /** The name of the server. */
  readonly server: string
}

export class LiveAnswers {
  /** Only for what is declared. */
  readonly answerers: Answerers
  readonly #counts = new Map<string, number>()
  #open: (dialogue: LiveDialogue) => void = () => {}
  readonly #dialogue = new Promise<LiveDialogue>((resolve) => {
    this.#open = resolve
  })
  #last: Promise<unknown> = Promise.resolve()
  #hasDeclined = false

  /** `roots` are the folders of --root. A server may ask for them before any call. */
  constructor(can: readonly Capability[], roots: readonly Root[]) {
    this.answerers = {
      ...(can.includes('elicitation.form') && {
        onElicit: (question, context) => this.#answer(question, context) as Promise<FormAnswer>,
      }),
      ...(can.includes('elicitation.url') && {
        onVisit: (question, context) => this.#answer(question, context) as Promise<VisitAnswer>,
      }),
      ...(can.includes('sampling') && {
        onSample: (question, context) => this.#answer(question, context) as Promise<CreateMessageResult>,
      }),
      ...(can.includes('roots') && {
        onRoots: async (question, context) =>
          roots.length > 0 ? [...roots] : ((await this.#answer(question, context)) as ListRootsResult).roots,
      }),
    }
  }

  /** True if the user declined a question. */
  get hasDeclined(): boolean {
    return this.#hasDeclined
  }

  /** Questions wait for this dialogue. */
  open(dialogue: LiveDialogue): void {
    this.#open(dialogue)
  }

  #answer(question: ServerQuestion, context: AnswerContext): Promise<InputResponse> {
    const answer = this.#last.then(() => this.#ask(question, context))
    this.#last = answer.catch(() => {})
    return answer
  }

  async #ask(question: ServerQuestion, { signal }: AnswerContext): Promise<InputResponse> {
    const { respond, reporter, unanswered, server } = await this.#dialogue
    // While another question was on the screen.
    if (signal.aborted) throw new Unanswered('The server no longer asks this.')
    const name = 'message' in question ? question.message : question.kind
    const count = (this.#counts.get(name) ?? 0) + 1
    this.#counts.set(name, count)
    reporter.pause()
    reporter.tell(`${server} asks a question.`)
    const keys = count === 1 ? [name] : [`${name} ${count}`, name]
    const answer = await respond({ ...question, key: name }, signal, keys)
    if (answer === undefined) {
      throw new Unanswered(
        `${describe({ ...question, key: name })}, and ${unanswered}\n${hintFor({ ...question, key: name })}`,
      )
    }
    if ('action' in answer && answer.action !== 'accept') this.#hasDeclined = true
    return answer
  }
}
