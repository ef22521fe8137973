// Calls a tool, gets a prompt, reads a resource, or resumes one of these calls from a file.
import type { ClientCall } from '../client/call.ts'
import type { Client } from '../client/client.ts'
import { RESUMABLE_REVISIONS } from '../client/discovery.ts'
import { ClientError } from '../client/errors.ts'
import type { PendingCall, RoundMethod } from '../client/saved.ts'
import type { ClientTask } from '../client/tasks/task.ts'
import { exampleOf } from './answers.ts'
import { cleanJson, cleanLine } from './clean.ts'
import type { ExitCode } from './exit.ts'
import { EXIT, Interrupted, UsageError } from './exit.ts'
import { LiveAnswers } from './live-answers.ts'
import { finishCall } from './results.ts'
import type { AnswerOptions, PreparedAnswers } from './responder.ts'
import { asksPerson, capabilitiesOf, openDialogue, prepareAnswers, whyUnanswered } from './responder.ts'
import type { CallOutcome } from './rounds.ts'
import { describe, runRounds } from './rounds.ts'
import { checkWritable, save } from './saved.ts'
import type { Server } from './server.ts'
import { commandFor } from './server.ts'
import type { RunContext } from './session.ts'
import { nameOf, withClient } from './session.ts'
import { followTask } from './task-view.ts'

export interface CallCommandOptions extends AnswerOptions {
  readonly detach?: boolean
}

/** `prepare` builds the call. It may ask the server about the tool first. */
export async function runCall(
  server: Server,
  options: CallCommandOptions,
  context: RunContext,
  prepare: (client: Client) => Promise<ClientCall | PendingCall>,
): Promise<ExitCode> {
  if (options.save !== undefined) await checkWritable(options.save)
  const prepared = await prepareAnswers(options)
  const live = new LiveAnswers(capabilitiesOf(prepared, asksPerson(context.console, options)), prepared.roots)
  return withClient(server, options, live.answerers, context, async (client) => {
    const call = await prepare(client)
    try {
      return await follow(client, call, {
        server,
        options: savedOnly(options, client, context),
        context,
        prepared,
        live,
      })
    } catch (error) {
      if (context.signal.aborted) throw new Interrupted()
      if (options.save === undefined || !(error instanceof ClientError) || error.pending === undefined) throw error
      await save(options.save, { server, pending: error.pending })
      context.console.tell(`The call was saved after its last round. Resume it with: rally resume ${options.save}`)
      throw error
    }
  })
}

interface CallRun {
  readonly server: Server
  readonly options: CallCommandOptions
  readonly context: RunContext
  readonly prepared: PreparedAnswers
  readonly live: LiveAnswers
}

/** Without --save if the server's calls cannot be saved: it asks in the middle of a call. */
function savedOnly(options: CallCommandOptions, client: Client, { console }: RunContext): CallCommandOptions {
  const { save: path, ...others } = options
  if (path === undefined || RESUMABLE_REVISIONS.includes(client.revision)) return options
  console.tell(
    `--save has no effect: ${nameOf(client)} uses revision ${client.revision}, in which questions are answered during the call.`,
  )
  return others
}

async function follow(client: Client, call: ClientCall | PendingCall, run: CallRun): Promise<ExitCode> {
  const { server, options, context, prepared, live } = run
  const dialogue = await openDialogue(client, server, options, prepared, context.console)
  const unanswered = whyUnanswered(prepared, options)
  const shared = { ...dialogue, unanswered, signal: context.signal }
  live.open({ ...dialogue, unanswered, server: nameOf(client) })
  const outcome = await runRounds(client, call, { ...shared, stops: options.save !== undefined })
  if (outcome.kind === 'stopped') return stop(outcome, run)
  if (outcome.kind === 'task' && options.detach === true) return leave(outcome.task, run)
  const { result, hasDeclined } =
    outcome.kind === 'done'
      ? outcome
      : await followTask(outcome.task, { ...shared, server, declined: outcome.declined, console: context.console })
  return finishCall(
    { method: methodOf(call), result, hasDeclined: hasDeclined || live.hasDeclined },
    nameOf(client),
    options.json === true,
    context.console,
  )
}

async function stop({ pending, questions }: Stopped, { server, options, context }: CallRun): Promise<ExitCode> {
  const { console } = context
  const path = options.save ?? ''
  await save(path, { server, pending })
  for (const question of questions) console.tell(`${describe(question)}.`)
  console.tell(`Saved. Resume it in a terminal with: rally resume ${path}`)
  console.tell(`or with the answers in a file, {${questions.map(exampleOf).join(', ')}}:`)
  console.tell(`rally resume ${path} --answers answers.json`)
  return EXIT.unanswered
}

type Stopped = Extract<CallOutcome<unknown>, { kind: 'stopped' }>

function leave(task: ClientTask, { server, options, context: { console } }: CallRun): ExitCode {
  console.print(options.json === true ? cleanJson(task) : cleanLine(task.id, Infinity))
  if (options.json !== true) console.tell(`The task runs on the server. Follow it with: ${commandFor(server, task.id)}`)
  return EXIT.done
}

function methodOf(call: ClientCall | PendingCall): RoundMethod {
  if ('method' in call) return call.method
  if ('tool' in call) return 'tools/call'
  return 'prompt' in call ? 'prompts/get' : 'resources/read'
}

/** The tool with that name in the server's list. */
export async function findTool(client: Client, name: string): Promise<{ inputSchema: Record<string, unknown> }> {
  const tools = await client.listTools()
  const tool = tools.find((each) => each.name === name)
  if (tool !== undefined) return tool
  const names = tools.map((each) => cleanLine(each.name, 60)).slice(0, 20)
  throw new UsageError(`${nameOf(client)} has no tool "${cleanLine(name)}". It has: ${names.join(', ') || 'none'}.`)
}
