// Who answers a server's questions, and how a call is followed while nobody is asked.
import type { Capability } from '../client/capabilities.ts'
import type { Client } from '../client/client.ts'
import type { Root } from '../protocol/messages.ts'
import type { Answers } from './answers.ts'
import { answeredBy, answerFrom, readAnswers } from './answers.ts'
import { clean } from './clean.ts'
import type { Console } from './console.ts'
import { ProgressBar } from './progress-bar.ts'
import type { Follower, Responder } from './rounds.ts'
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

/** What is known before the server is. */
export interface Known {
  readonly answers: Answers | undefined
  readonly roots: readonly Root[]
}

export async function readKnown(options: AnswerOptions): Promise<Known> {
  const answers = options.answers === undefined ? undefined : await readAnswers(options.answers)
  return { answers, roots: readRoots(options.root ?? []) }
}

export function capabilitiesOf({ answers, roots }: Known): Capability[] {
  const known = answers === undefined ? [] : answeredBy(answers)
  const can = new Set<Capability>(['elicitation.form', 'elicitation.url', ...known])
  if (roots.length > 0) can.add('roots')
  return [...can]
}

/** Why a question has no answer. */
export function whyUnanswered({ answers }: Known, options: AnswerOptions): string {
  return answers === undefined ? 'there is no terminal to ask in.' : `${options.answers} has no answer to it.`
}

export interface Dialogue {
  readonly respond: Responder
  readonly follower: Follower
}

/** Answers come from the file, where there is one; from what was given as roots; from the person at the terminal. */
export async function openDialogue(
  client: Client,
  server: Server,
  options: AnswerOptions,
  { answers, roots }: Known,
  console: Console,
  ctrlC = 'stops the call',
): Promise<Dialogue> {
  const known: Responder = async (question) => {
    const answer = answers === undefined ? undefined : answerFrom(answers, question)
    if (answer !== undefined && question.kind === 'visit') console.tell(`To be visited: ${new URL(question.url).href}`)
    return answer ?? (question.kind === 'roots' && roots.length > 0 ? { roots: [...roots] } : undefined)
  }
  const isQuiet = options.json === true
  const isAsked = console.isInteractive && answers === undefined && options.save === undefined
  if (!isAsked) return { respond: known, follower: followerOn(console, isQuiet, (line) => console.tell(line)) }
  const { Terminal } = await import('./terminal.ts')
  const terminal = new Terminal(console, {
    server: `${nameOf(client)} (${clean(describeServer(server))})`,
    opens: options.open,
    ctrlC,
  })
  return {
    respond: async (question, signal) => (await known(question)) ?? terminal.ask(question, signal),
    follower: followerOn(console, isQuiet, (line) => terminal.tell(line)),
  }
}

/** With JSON asked for, it is a script that reads: nothing is told that is no question and no error. */
function followerOn(console: Console, isQuiet: boolean, tell: (line: string) => void): Follower {
  const bar = console.errors.isTTY && !isQuiet ? new ProgressBar(console.errors) : undefined
  return {
    tell: isQuiet ? () => {} : tell,
    progress: (progress) => bar?.show(progress),
    status: (line) => {
      if (bar !== undefined) bar.line(line)
      else if (!isQuiet) console.tell(line)
    },
    pause: () => bar?.clear(),
  }
}
