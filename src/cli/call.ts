// Calls a tool, gets a prompt, reads a resource, or goes on with any of them from a file.
import type { ClientCall } from '../client/call.ts'
import type { Client } from '../client/client.ts'
import { ClientError } from '../client/errors.ts'
import type { PendingCall, RoundMethod } from '../client/pending.ts'
import type { ClientTask } from '../client/tasks/task.ts'
import { exampleOf } from './answers.ts'
import { cleanJson, cleanLine } from './clean.ts'
import type { ExitCode } from './exit.ts'
import { EXIT, Interrupted, WrongUse } from './exit.ts'
import { tellEnd } from './outcome.ts'
import type { AnswerOptions, Known } from './responder.ts'
import { capabilitiesOf, openDialogue, readKnown, whyUnanswered } from './responder.ts'
import type { Outcome } from './rounds.ts'
import { describe, goRounds } from './rounds.ts'
import { checkPlace, save } from './saved.ts'
import type { Server } from './server.ts'
import { commandFor } from './server.ts'
import type { Surroundings } from './session.ts'
import { nameOf, withClient } from './session.ts'
import { goTask } from './task-view.ts'

export interface CallCommandOptions extends AnswerOptions {
  readonly detach?: boolean
}

/** `prepare` makes the call once the server can be asked about it. */
export async function runCall(
  server: Server,
  options: CallCommandOptions,
  around: Surroundings,
  prepare: (client: Client) => Promise<ClientCall | PendingCall>,
): Promise<ExitCode> {
  if (options.save !== undefined) await checkPlace(options.save)
  const known = await readKnown(options)
  return withClient(server, options, capabilitiesOf(known), around, async (client) => {
    const call = await prepare(client)
    try {
      return await follow(client, call, { server, options, around, known })
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
  readonly known: Known
}

async function follow(client: Client, call: ClientCall | PendingCall, run: Run): Promise<ExitCode> {
  const { server, options, around, known } = run
  const dialogue = await openDialogue(client, server, options, known, around.console)
  const unanswered = whyUnanswered(known, options)
  const going = { ...dialogue, unanswered, signal: around.signal }
  const outcome = await goRounds(client, call, { ...going, stops: options.save !== undefined })
  if (outcome.kind === 'stopped') return stop(outcome, run)
  if (outcome.kind === 'task' && options.detach === true) return leave(outcome.task, run)
  const { result, hasDeclined } =
    outcome.kind === 'done'
      ? outcome
      : await goTask(outcome.task, { ...going, server, declined: outcome.declined, console: around.console })
  return tellEnd({ method: methodOf(call), result, hasDeclined }, nameOf(client), options.json === true, around.console)
}

async function stop({ pending, questions }: Stopped, { server, options, around }: Run): Promise<ExitCode> {
  const { console } = around
  const path = options.save ?? ''
  await save(path, { server, pending })
  for (const question of questions) console.tell(`${describe(question)}.`)
  console.tell(`Saved. Go on in a terminal with: rally resume ${path}`)
  console.tell(`or with answers in a file, {${questions.map(exampleOf).join(', ')}}:`)
  console.tell(`rally resume ${path} --answers answers.json`)
  return EXIT.unanswered
}

type Stopped = Extract<Outcome<unknown>, { kind: 'stopped' }>

function leave(task: ClientTask, { server, options, around: { console } }: Run): ExitCode {
  console.print(options.json === true ? cleanJson(task) : cleanLine(task.id, Infinity))
  if (options.json !== true)
    console.tell(`The server goes on by itself. See to it with: ${commandFor(server, task.id)}`)
  return EXIT.done
}

function methodOf(call: ClientCall | PendingCall): RoundMethod {
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
