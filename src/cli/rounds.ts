// Runs a call through its rounds: reports each one, gets its questions answered, and stops where the call is to be saved.
import type { ClientCall, ResultOf } from '../client/call.ts'
import type { Client } from '../client/client.ts'
import type { AskingRound } from '../client/flow.ts'
import type { ProgressUpdate } from '../client/options.ts'
import type { PendingCall } from '../client/saved.ts'
import type { ServerQuestion } from '../client/answers/question.ts'
import type { ClientTask } from '../client/tasks/task.ts'
import { ProtocolError } from '../protocol/errors.ts'
import type { InputResponse, InputResponses } from '../protocol/messages.ts'
import { exampleOf } from './answers.ts'
import { cleanLine } from './clean.ts'
import { Unanswered } from './exit.ts'

/**
 * Answers a question, or returns undefined. The signal is aborted when the server withdraws the question. `keys` are the keys under
 * which a file may have the answer; by default, the question's own.
 */
export type Responder = (
  question: ServerQuestion,
  signal?: AbortSignal,
  keys?: readonly string[],
) => Promise<InputResponse | undefined>

export interface Reporter {
  /** Reports a round. */
  tell(line: string): void
  /** True if it draws a bar for the progress. */
  readonly draws: boolean
  progress(progress: ProgressUpdate): void
  /** Reports the status of a task. */
  status(line: string): void
  /** Removes the progress bar, before anything else is shown. */
  pause(): void
}

export interface RoundOptions {
  readonly respond: Responder
  readonly reporter: Reporter
  readonly signal: AbortSignal
  /** Stop at the first round without an answer, instead of failing. */
  readonly stops: boolean
  /** Why a question has no answer. */
  readonly unanswered: string
}

export type CallOutcome<R> =
  | { readonly kind: 'done'; readonly result: R; readonly hasDeclined: boolean }
  /** The call became a task, which runs on the server. */
  | { readonly kind: 'task'; readonly task: ClientTask; readonly declined: ReadonlySet<string> }
  | { readonly kind: 'stopped'; readonly pending: PendingCall; readonly questions: readonly ServerQuestion[] }

export async function runRounds<C extends ClientCall | PendingCall>(
  client: Client,
  call: C,
  { respond, reporter, signal, stops, unanswered }: RoundOptions,
): Promise<CallOutcome<ResultOf<C>>> {
  const server = cleanLine(client.server.title ?? client.server.name)
  const declined = new Set<string>()
  let count = 0
  try {
    for await (const round of client.rounds(call, { signal, onProgress: (progress) => reporter.progress(progress) })) {
      reporter.pause()
      count += 1
      if (round.kind === 'done') {
        if (count > 1) reporter.tell(`Round ${count}: ${server} is done.`)
        return { kind: 'done', result: round.result, hasDeclined: declined.size > 0 }
      }
      if (round.kind === 'task') {
        reporter.tell(`Round ${count}: ${server} continues as a task.`)
        return { kind: 'task', task: round.task, declined }
      }
      if (round.kind === 'deferred') {
        reporter.tell(`Round ${count}: ${server} asks to be called again.`)
        continue
      }
      reporter.tell(`Round ${count}: ${server} asks ${counted(round.questions.length)}.`)
      const answers = await answersTo(round, respond)
      const missing = round.questions.filter(({ key }) => !Object.hasOwn(answers, key))
      const [first] = missing
      if (first !== undefined && stops) return { kind: 'stopped', pending: round.pending, questions: missing }
      if (first !== undefined) throw new Unanswered(`${describe(first)}, and ${unanswered}\n${hintFor(first)}`)
      for (const [key, answer] of Object.entries(answers)) {
        if ('action' in answer && answer.action !== 'accept') declined.add(key)
      }
      round.answer(answers)
    }
  } catch (error) {
    // A prompt or a resource has no result that could say so.
    if (declined.size > 0 && error instanceof ProtocolError) throw new Unanswered(error.message, { cause: error })
    throw error
  } finally {
    reporter.pause()
  }
  throw new Error('The call ended without a result.')
}

/** The beginning of a sentence about a question. */
export function describe(question: ServerQuestion): string {
  const asked = 'message' in question && question.message !== question.key ? ` (${cleanLine(question.message)})` : ''
  return `The server asks "${cleanLine(question.key)}"${asked}, ${KINDS[question.kind]}`
}

/** How to answer a question from a file. */
export function hintFor(question: ServerQuestion): string {
  return `An answer in a file for --answers looks like this: {${exampleOf(question)}}`
}

const KINDS = { form: 'a form', visit: 'a page to visit', sample: 'a question to a model', roots: 'for folders' }

function counted(questions: number): string {
  return questions === 1 ? '1 question' : `${questions} questions`
}

/** One after the other, because there is one terminal. */
async function answersTo({ questions }: AskingRound, respond: Responder): Promise<InputResponses> {
  const answers: [string, InputResponse][] = []
  for (const question of questions) {
    const answer = await respond(question)
    if (answer !== undefined) answers.push([question.key, answer])
  }
  return Object.fromEntries(answers)
}
