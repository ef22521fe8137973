// Runs a handler in a single pass, in which every question is answered immediately.
import type { Asks } from '../flow/io.ts'
import type { Outcome } from '../flow/carrier.ts'
import type { Fit, Question } from '../flow/question.ts'
import type { Requirements } from '../flow/resolver.ts'
import { RallyError } from '../protocol/errors.ts'
import type { InputResponse } from '../protocol/messages.ts'
import { madeUp } from './default-answer.ts'
import type { Answerer } from './questions.ts'
import { checkedAnswerer, toAsked } from './questions.ts'
import type { Ended, Handler, Report, RunOptions } from './report.ts'
import { errorOf, toReport } from './report.ts'
import type { Sent } from './rounds.ts'
import { Rounds, TASK_WAITS } from './rounds.ts'
import type { Subject } from './subject.ts'
import { handlerSubject } from './subject.ts'

const MOST_ROUNDS = 1_000

/**
 * Runs a handler in a single pass, in which every question is answered immediately. A handler that takes its rounds by hand gets the
 * answers of each round in the next one.
 */
export async function straight<R, Args = {}, const A extends Asks = Record<never, never>, N extends Requirements = {}>(
  handler: Handler<Args, A, R, N>,
  options: RunOptions<Args, A, N> = {},
): Promise<Report<Ended<R>>> {
  const { answer = madeUp } = options
  return (await inOnePass(handlerSubject(handler, options), checkedAnswerer(answer))) as Report<Ended<R>>
}

interface OnePassOptions {
  /** As in `harsh`. */
  readonly events?: Readonly<Record<string, unknown>> | undefined
  /** Default: if the handler may become a task. It is one from its start here, so that `io.detach()` does not end the pass. */
  readonly isTask?: boolean
}

export async function inOnePass(
  subject: Subject,
  answer: Answerer,
  { events = {}, isTask = subject.task !== 'never' }: OnePassOptions = {},
): Promise<Report> {
  const { run } = subject
  // The engine looks for an answer under each key. Its content does not matter: `Answered` gets the real one.
  const answers: Record<string, Record<string, unknown>> = {}
  const asked = (key: string, question: Question): Question => {
    answers[key] = {}
    return new Answered(key, question, answer)
  }
  // No wait ends the pass.
  const waiting = { ...(subject.taskInput?.waiting ?? TASK_WAITS), releaseFromMs: Infinity }
  const inPass = isTask ? { waiting } : {}
  const rounds = new Rounds({
    ...subject,
    task: isTask ? 'always' : subject.task,
    hasOwnRecords: true,
    eventFor: (key) => events[key],
    observer: { asked },
  })
  let outcome = await rounds.next(run, undefined, { answers, ...inPass })
  while (rounds.byHand && rounds.passes.length < MOST_ROUNDS) {
    const sent = await answersTo(rounds.questions, answer)
    if (sent === undefined) break
    outcome = await rounds.next(run, sent)
  }
  let before = rounds.journal
  let waits = isWaiting(outcome) && outcome.dueAt !== undefined
  while (waits && isWaiting(outcome) && rounds.passes.length < MOST_ROUNDS) {
    // A question that nobody answers expires.
    if (rounds.journal === before && outcome.dueAt !== undefined) rounds.advanceTo(outcome.dueAt)
    waits = rounds.journal !== before || outcome.dueAt !== undefined
    before = rounds.journal
    outcome = await rounds.next(run, undefined, { answers, ...inPass })
  }
  return toReport(rounds, endOf(outcome, rounds))
}

/** A task that waits for no answer ends its pass only for an event. */
function isWaiting(outcome: Outcome): outcome is Outcome & { kind: 'asks' | 'waiting' } {
  return outcome.kind === 'asks' || outcome.kind === 'waiting'
}

function endOf(outcome: Outcome, { questions }: Rounds): { result?: unknown; error?: unknown } {
  if (outcome.kind === 'done') return { result: outcome.value }
  return { error: outcome.kind === 'failed' ? errorOf(outcome) : unanswered([...questions.keys()]) }
}

/** `undefined` if there are questions and none has an answer. */
async function answersTo(questions: ReadonlyMap<string, Question>, answer: Answerer): Promise<Sent | undefined> {
  const sent: [string, object][] = []
  for (const [key, question] of questions) {
    const given = await answer(toAsked(key, question.text()))
    if (given !== undefined) sent.push([key, given])
  }
  return questions.size > 0 && sent.length === 0 ? undefined : Object.fromEntries(sent)
}

/** A question that asks the answerer for its answer when the pass reaches it. */
class Answered implements Question {
  readonly needs: Question['needs']
  readonly #key: string
  readonly #question: Question
  readonly #answer: Answerer

  constructor(key: string, question: Question, answer: Answerer) {
    this.needs = question.needs
    this.#key = key
    this.#question = question
    this.#answer = answer
  }

  text(note?: string): string {
    return this.#question.text(note)
  }

  fit(): Fit | Promise<Fit> {
    const answer = this.#answer(toAsked(this.#key, this.#question.text()))
    return answer instanceof Promise ? answer.then((given) => this.#read(given)) : this.#read(answer)
  }

  #read(answer: InputResponse | undefined): Fit | Promise<Fit> {
    if (answer === undefined) return { pending: 'No answer came.' }
    return this.#question.fit(JSON.parse(JSON.stringify(answer)) as Record<string, unknown>)
  }
}

function unanswered(keys: string[]): RallyError {
  const named = keys.map((key) => `"${key}"`).join(', ')
  return new RallyError(
    'UNANSWERED',
    `A question has no valid answer. Questions asked: ${named}. Return an answer for each from \`answer\`.`,
  )
}
