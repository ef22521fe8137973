// Where the answers to a server's questions come from, and how progress is reported between them.
import type { Capability } from '../client/capabilities.ts'
import type { Client } from '../client/client.ts'
import type { Root } from '../protocol/messages.ts'
import type { FileAnswers } from './answers.ts'
import { answeredBy, answerFrom, readAnswers } from './answers.ts'
import { clean } from './clean.ts'
import type { Console } from './console.ts'
import { ProgressBar } from './console.ts'
import type { Reporter, Responder } from './rounds.ts'
import type { Server } from './server.ts'
import { describeServer, readRoots } from './server.ts'
import type { ServerOptions } from './session.ts'
import { nameOf } from './session.ts'

export interface AnswerOptions extends ServerOptions {
  readonly answers?: string
  readonly save?: string
  readonly open: boolean
  readonly root?: readonly string[]
}

/** The answers that are known before the server is asked anything. */
export interface PreparedAnswers {
  readonly answers: FileAnswers | undefined
  readonly roots: readonly Root[]
}

export async function prepareAnswers(options: AnswerOptions): Promise<PreparedAnswers> {
  const answers = options.answers === undefined ? undefined : await readAnswers(options.answers)
  return { answers, roots: readRoots(options.root ?? []) }
}

/** The same for every command, so that lists show what a call can use. `isAsked`: a person at the terminal answers. */
export function capabilitiesOf({ answers, roots }: PreparedAnswers, isAsked: boolean): Capability[] {
  const known: Capability[] = answers === undefined ? (isAsked ? ['sampling'] : []) : answeredBy(answers)
  const can = new Set<Capability>(['elicitation.form', 'elicitation.url', ...known])
  if (roots.length > 0) can.add('roots')
  return [...can]
}

/** True if questions go to the person at the terminal. */
export function asksPerson(
  { isInteractive }: Console,
  { answers, save }: Pick<AnswerOptions, 'answers' | 'save'>,
): boolean {
  return isInteractive && answers === undefined && save === undefined
}

/** Why a question has no answer. */
export function whyUnanswered({ answers }: PreparedAnswers, options: AnswerOptions): string {
  return answers === undefined ? 'there is no terminal to ask in.' : `${options.answers} has no answer to it.`
}

export interface Dialogue {
  readonly respond: Responder
  readonly reporter: Reporter
}

/** Answers come from the file, from --root, and from the person at the terminal, in this order. */
export async function openDialogue(
  client: Client,
  server: Server,
  options: AnswerOptions,
  { answers, roots }: PreparedAnswers,
  console: Console,
  ctrlC = 'stops the call',
): Promise<Dialogue> {
  const known: Responder = async (question, _signal, keys) => {
    const answer = answers === undefined ? undefined : answerFrom(answers, question, keys)
    if (answer !== undefined && question.kind === 'visit')
      console.tell(`Visit this page: ${new URL(question.url).href}`)
    return answer ?? (question.kind === 'roots' && roots.length > 0 ? { roots: [...roots] } : undefined)
  }
  const isQuiet = options.json === true
  if (!asksPerson(console, options))
    return { respond: known, reporter: reporterOn(console, isQuiet, (line) => console.tell(line)) }
  const { Terminal } = await import('./terminal.ts')
  const terminal = new Terminal(console, {
    server: `${nameOf(client)} (${clean(describeServer(server))})`,
    opens: options.open,
    ctrlC,
  })
  return {
    respond: async (question, signal, keys) => (await known(question, signal, keys)) ?? terminal.ask(question, signal),
    reporter: reporterOn(console, isQuiet, (line) => terminal.tell(line)),
  }
}

/** With --json a script reads the output: only questions and errors are printed. */
function reporterOn(console: Console, isQuiet: boolean, tell: (line: string) => void): Reporter {
  const bar = console.errors.isTTY && !isQuiet ? new ProgressBar(console.errors) : undefined
  return {
    tell: isQuiet ? () => {} : tell,
    draws: bar !== undefined,
    progress: (progress) => bar?.show(progress),
    status: (line) => {
      if (bar !== undefined) bar.line(line)
      else if (!isQuiet) console.tell(line)
    },
    pause: () => bar?.clear(),
  }
}
