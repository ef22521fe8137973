// Delivers answers in the worst way: in any order, late, a few at a time, wrong at first, and with answers to other questions.
import type { Question } from '../flow/question.ts'
import type { OpenQuestion } from '../flow/flow-state.ts'
import type { InputResponse } from '../protocol/messages.ts'
import type { Random } from './random.ts'
import type { Answerer, AskedQuestion } from './questions.ts'
import { checkedAnswerer, toAsked } from './questions.ts'
import type { Sent } from './rounds.ts'

/** The engine asks a question this many times at most. The kit never causes that limit itself. */
const MOST_ASKED = 3

type Answer = Record<string, unknown>

export class Delivery {
  readonly #random: Random
  readonly #answer: Answerer
  /** The right answers, each created when its question was first shown. By hand, a key may be used for another question later. */
  readonly #made = new Map<string, { question: string; answer: InputResponse }>()

  constructor(random: Random, answer: Answerer) {
    this.#random = random
    this.#answer = checkedAnswerer(answer)
  }

  /** The right answer to a question, the same every time. */
  async made(question: AskedQuestion): Promise<InputResponse | undefined> {
    const text = JSON.stringify(question)
    const made = this.#made.get(question.key)
    if (made?.question === text) return made.answer
    const answer = await this.#answer(question)
    if (answer !== undefined) this.#made.set(question.key, { question: text, answer })
    return answer
  }

  /** True if one of these questions has a right answer. */
  async hasAnswer(keys: Iterable<string>, questions: ReadonlyMap<string, Question>): Promise<boolean> {
    for (const key of keys) {
      const question = questions.get(key)
      if (question !== undefined && (await this.made(toAsked(key, question.text())))) return true
    }
    return false
  }

  /** The answers that the client sends in the next round. */
  async next(
    open: ReadonlyMap<string, OpenQuestion>,
    questions: ReadonlyMap<string, Question>,
  ): Promise<Sent | undefined> {
    const sent: [string, object][] = []
    for (const [key, { asked }] of this.#random.shuffled(open)) {
      const question = questions.get(key)
      if (question === undefined) continue
      const right = await this.made(toAsked(key, question.text()))
      const answer = right && (await this.#deliver(right, question, asked))
      if (answer) sent.push([key, answer])
    }
    const extras = this.#extras(open)
    if (sent.length + extras.length === 0) return this.#random.chance(0.5) ? undefined : {}
    return Object.fromEntries(this.#random.shuffled([...sent, ...extras]))
  }

  /** The right answer, a wrong one, or none. A wrong or missing answer may count as asking once more. */
  async #deliver(right: InputResponse, question: Question, asked: number): Promise<InputResponse | Answer | undefined> {
    if (asked >= MOST_ASKED || this.#random.chance(0.5)) return right
    return this.#random.chance(0.5) ? this.#wrong(question) : undefined
  }

  async #wrong(question: Question): Promise<Answer> {
    const { method, params } = toAsked('', question.text()) as { method: string; params?: { mode?: string } }
    if (method === 'elicitation/create' && params?.mode === 'form') {
      const answer = this.#random.pick(WRONG_CONTENT)
      // A schema may accept more than its form says, so check that the answer is really wrong.
      if ('misfit' in (await question.fit(answer))) return answer
    }
    return this.#random.pick(method === 'elicitation/create' ? NO_ELICITATION : ELICITATIONS)
  }

  /** Answers that the engine must ignore: to questions that were never asked, and different ones to settled questions. */
  #extras(open: ReadonlyMap<string, OpenQuestion>): [string, object][] {
    const extras: [string, object][] = []
    if (this.#random.chance(0.3))
      extras.push([`never-asked-${Math.floor(this.#random.next() * 100)}`, { action: 'accept' }])
    for (const [key, { answer }] of this.#made) {
      if (!open.has(key) && this.#random.chance(0.3))
        extras.push([key, this.#random.pick<InputResponse | Answer>([answer, ...ELICITATIONS])])
    }
    return extras
  }
}

const WRONG_CONTENT: readonly [Answer, ...Answer[]] = [
  { action: 'accept' },
  { action: 'accept', content: [] },
  { action: 'accept', content: 'yes' },
  { action: 'accept', content: { nobody: 'asked for this' } },
]

/** Never right for a form or a visit. */
const NO_ELICITATION: readonly [Answer, ...Answer[]] = [
  {},
  { action: 'maybe' },
  { content: { confirm: true } },
  { roots: [] },
  { role: 'assistant', content: { type: 'text', text: 'yes' }, model: 'none' },
]

/** Never right for a sample or for roots. */
const ELICITATIONS: readonly [Answer, ...Answer[]] = [
  { action: 'accept', content: {} },
  { action: 'decline' },
  { action: 'cancel' },
]
