// Calls a tool, gets a prompt, reads a resource, or goes on with any of them from a file.
import type { Call } from '../client/call.ts'
import type { Capability } from '../client/capabilities.ts'
import type { Client } from '../client/client.ts'
import { ClientError } from '../client/errors.ts'
import type { Pending, Results, RoundMethod } from '../client/pending.ts'
import type { CallToolResult, Root } from '../protocol/messages.ts'
import type { Answers } from './answers.ts'
import { answeredBy, answerFrom, exampleOf, readAnswers } from './answers.ts'
import { clean, cleanJson, cleanLine, cut } from './clean.ts'
import type { Console } from './console.ts'
import type { ExitCode } from './exit.ts'
import { EXIT, Interrupted, WrongUse } from './exit.ts'
import { ProgressBar } from './progress-bar.ts'
import { onlyBytes, resultText } from './results.ts'
import type { Follower, Responder } from './rounds.ts'
import { describe, goRounds } from './rounds.ts'
import { checkPlace, save } from './saved.ts'
import type { Server } from './server.ts'
import { describeServer, readRoots } from './server.ts'
import type { ServerOptions, Surroundings } from './session.ts'
import { nameOf, withClient } from './session.ts'

export interface CallCommandOptions extends ServerOptions {
  readonly answers?: string
  readonly save?: string
  readonly open: boolean
  readonly root?: readonly string[]
}

/** `prepare` makes the call once the server can be asked about it. */
export async function runCall(
  server: Server,
  options: CallCommandOptions,
  around: Surroundings,
  prepare: (client: Client) => Promise<Call | Pending>,
): Promise<ExitCode> {
  if (options.save !== undefined) await checkPlace(options.save)
  const answers = options.answers === undefined ? undefined : await readAnswers(options.answers)
  const roots = readRoots(options.root ?? [])
  return withClient(server, options, capabilities(answers, roots), around, async (client) => {
    const call = await prepare(client)
    try {
      return await follow(client, call, { server, options, around, answers, roots })
    } catch (error) {
      if (around.signal.aborted) throw new Interrupted()
      if (options.save === undefined || !(error instanceof ClientError) || error.pending === undefined) throw error
      await save(options.save, { server, pending: error.pending })
      around.console.tell(`The call was saved where it had come to. Go on with: rally resume ${options.save}`)
      throw error
    }
  })
}

interface Run {
  readonly server: Server
  readonly options: CallCommandOptions
  readonly around: Surroundings
  readonly answers: Answers | undefined
  readonly roots: readonly Root[]
}

async function follow(client: Client, call: Call | Pending, run: Run): Promise<ExitCode> {
  const { options, around } = run
  const { console } = around
  const { responder, tell } = await responderFor(client, run)
  const outcome = await goRounds(client, call, {
    respond: responder,
    follower: followerOn(console, options.json === true, tell),
    signal: around.signal,
    stops: options.save !== undefined,
    unanswered:
      run.answers === undefined ? 'there is no terminal to ask in.' : `${options.answers} has no answer to it.`,
  })
  if (outcome.kind === 'done') {
    showResult(methodOf(call), outcome.result, options.json === true, console)
    if (!hasFailed(outcome.result)) return EXIT.done
    if (outcome.hasDeclined) return EXIT.unanswered
    if (options.json !== true) console.tell(`${nameOf(client)} says that this failed.`)
    return EXIT.toolFailed
  }
  const path = options.save ?? ''
  await save(path, { server: run.server, pending: outcome.pending })
  for (const question of outcome.questions) console.tell(`${describe(question)}.`)
  console.tell(`Saved. Go on in a terminal with: rally resume ${path}`)
  console.tell(`or with answers in a file, {${outcome.questions.map(exampleOf).join(', ')}}:`)
  console.tell(`rally resume ${path} --answers answers.json`)
  return EXIT.unanswered
}

function capabilities(answers: Answers | undefined, roots: readonly Root[]): Capability[] {
  const known = answers === undefined ? [] : answeredBy(answers)
  const can = new Set<Capability>(['elicitation.form', 'elicitation.url', ...known])
  if (roots.length > 0) can.add('roots')
  return [...can]
}

/** Who answers: the file, where there is one; what was given as roots; the person at the terminal. */
async function responderFor(
  client: Client,
  { server, options, around: { console }, answers, roots }: Run,
): Promise<{ responder: Responder; tell: (line: string) => void }> {
  const known: Responder = async (question) => {
    const answer = answers === undefined ? undefined : answerFrom(answers, question)
    if (answer !== undefined && question.kind === 'visit') console.tell(`To be visited: ${new URL(question.url).href}`)
    return answer ?? (question.kind === 'roots' && roots.length > 0 ? { roots: [...roots] } : undefined)
  }
  const isAsked = console.isInteractive && answers === undefined && options.save === undefined
  if (!isAsked) return { responder: known, tell: (line) => console.tell(line) }
  const { Terminal } = await import('./terminal.ts')
  const terminal = new Terminal(console, {
    server: `${nameOf(client)} (${clean(describeServer(server))})`,
    opens: options.open,
  })
  return {
    responder: async (question) => (await known(question)) ?? terminal.ask(question),
    tell: (line) => terminal.tell(line),
  }
}

/** With JSON asked for, it is a script that reads: nothing is told that is no question and no error. */
function followerOn(console: Console, isQuiet: boolean, tell: (line: string) => void): Follower {
  const bar = console.errors.isTTY && !isQuiet ? new ProgressBar(console.errors) : undefined
  return {
    tell: isQuiet ? () => {} : tell,
    progress: (progress) => bar?.show(progress),
    pause: () => bar?.clear(),
  }
}

function hasFailed(result: Results[RoundMethod]): boolean {
  return (result as CallToolResult).isError === true
}

/** Most characters on a screen; a file or a pipe takes them all. */
const MOST_ON_SCREEN = 20_000

function showResult(method: RoundMethod, result: Results[RoundMethod], isJson: boolean, console: Console): void {
  if (isJson) return console.print(cleanJson(result))
  if (console.isResultOnScreen) return console.print(cut(resultText(method, result), MOST_ON_SCREEN))
  const bytes = onlyBytes(method, result)
  if (bytes === undefined) console.print(resultText(method, result))
  else console.printBytes(bytes)
}

function methodOf(call: Call | Pending): RoundMethod {
  if ('method' in call) return call.method
  if ('tool' in call) return 'tools/call'
  return 'prompt' in call ? 'prompts/get' : 'resources/read'
}

/** The tool of that name, as the server lists it. */
export async function findTool(client: Client, name: string): Promise<{ inputSchema: Record<string, unknown> }> {
  const tools = await client.listTools()
  const tool = tools.find((each) => each.name === name)
  if (tool !== undefined) return tool
  const names = tools.map((each) => cleanLine(each.name, 60)).slice(0, 20)
  throw new WrongUse(`${nameOf(client)} has no tool "${cleanLine(name)}". It has: ${names.join(', ') || 'none'}.`)
}
