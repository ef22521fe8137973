// Calls a tool, gets a prompt, reads a resource, or resumes one of these calls from a file.
import type { Command } from 'commander'
import type { ClientCall } from '../client/call.ts'
import type { Client } from '../client/client.ts'
import { RESUMABLE_REVISIONS } from '../client/discovery.ts'
import { ClientError } from '../client/errors.ts'
import type { PendingCall, RoundMethod } from '../client/saved.ts'
import type { ClientTask } from '../client/tasks/task.ts'
import { shown } from '../protocol/text.ts'
import { exampleOf } from './answers.ts'
import { readArguments, readJsonObject, readTexts } from './arguments.ts'
import { clean, cleanJson, cleanLine } from './clean.ts'
import type { CommandContext } from './command.ts'
import { noMore, withCallOptions } from './command.ts'
import type { ConsentOptions } from './consent.ts'
import { askConsent } from './consent.ts'
import type { ExitCode } from './exit.ts'
import { EXIT, Interrupted, UsageError } from './exit.ts'
import { LiveAnswers } from './live-answers.ts'
import { hasLogin } from './logins.ts'
import { finishCall } from './results.ts'
import type { AnswerOptions, PreparedAnswers } from './responder.ts'
import { asksPerson, capabilitiesOf, openDialogue, prepareAnswers, whyUnanswered } from './responder.ts'
import type { CallOutcome } from './rounds.ts'
import { describe, runRounds } from './rounds.ts'
import { checkWritable, readSaved, save } from './saved.ts'
import type { Server } from './server.ts'
import { commandFor, describeServer } from './server.ts'
import type { RunContext } from './session.ts'
import { nameOf, withClient } from './session.ts'
import { followTask } from './task-view.ts'

const CALL_HELP = `
Values are converted to the types of the tool's input schema: n=3 is a number, a repeated key is a list. key:=json passes
JSON. The file for --answers has the answers by the keys of the questions: {"confirm": {"confirm": true}, "visit": "accept"}.
A server of 2025 gives its questions no keys. There the key is the text of the question, or "sample" or "roots".`

const RESUME_HELP = `
The file names the server. If rally would run a command, or send RALLY_TOKEN, your login or a header there, it asks you
first. Without a terminal it needs --yes. It does not ask if you name the server yourself.`

export function addCall(program: Command, { runContext, serverOf, run }: CommandContext): void {
  withCallOptions(program.command('call').usage('<server> <tool> [key=value...] [options]'))
    .description('call a tool')
    .argument('[words...]')
    .option('--args <json>', 'arguments as one JSON object')
    .option('--detach', 'if the call becomes a task, print its id and do not wait')
    .addHelpText('after', CALL_HELP)
    .action(async (words: string[], options: CallCommandOptions & { args?: string }) => {
      const { server, rest } = await serverOf(words, options)
      const [tool, ...pairs] = rest
      if (tool === undefined) throw new UsageError('Which tool? npx mcp-rally tools <server> lists them.')
      const args = options.args === undefined ? {} : readJsonObject(options.args, '--args')
      return run(
        runCall(server, options, runContext, async (client) => {
          const { inputSchema } = await findTool(client, tool, server, runContext)
          return { tool, arguments: readArguments(pairs, inputSchema, args) }
        }),
      )
    })
}

export function addResume(program: Command, { runContext, serverOf, isCommandGiven, run }: CommandContext): void {
  withCallOptions(program.command('resume').usage('<file> [server] [options]'))
    .description('resume a call that --save wrote to a file')
    .argument('<file>')
    .argument('[server]', 'another address of the same server')
    .addHelpText('after', RESUME_HELP)
    .action(async (file: string, other: string | undefined, options: CallCommandOptions & ConsentOptions) => {
      const saved = await readSaved(file)
      const isElsewhere = other !== undefined || isCommandGiven
      const server = isElsewhere ? (await serverOf(other === undefined ? [] : [other], options)).server : saved.server
      const target = targetOf(saved.pending)
      runContext.console.tell(`Resuming ${target} with ${clean(describeServer(server))}`)
      if (!isElsewhere) await askConsent({ server, why: `To resume ${target}` }, options, runContext)
      const { revision } = saved.pending
      return run(runCall(server, { ...options, revision }, runContext, async () => saved.pending))
    })
}

export function addPrompt(program: Command, { runContext, serverOf, run }: CommandContext): void {
  withCallOptions(program.command('prompt').usage('<server> <name> [key=value...] [options]'))
    .description('get a prompt')
    .argument('[words...]')
    .action(async (words: string[], options: CallCommandOptions) => {
      const { server, rest } = await serverOf(words, options)
      const [prompt, ...pairs] = rest
      if (prompt === undefined) throw new UsageError('Which prompt? npx mcp-rally prompts <server> lists them.')
      const args = readTexts(pairs)
      return run(runCall(server, options, runContext, async () => ({ prompt, arguments: args })))
    })
}

export function addRead(program: Command, { runContext, serverOf, run }: CommandContext): void {
  withCallOptions(program.command('read').usage('<server> <uri> [options]'))
    .description('read a resource')
    .argument('[words...]')
    .action(async (words: string[], options: CallCommandOptions) => {
      const { server, rest } = await serverOf(words, options)
      const [resource, ...others] = rest
      if (resource === undefined) throw new UsageError('Which resource? npx mcp-rally resources <server> lists them.')
      noMore(others)
      return run(runCall(server, options, runContext, async () => ({ resource })))
    })
}

interface CallCommandOptions extends AnswerOptions {
  readonly detach?: boolean
}

/** `prepare` builds the call. It may ask the server about the tool first. */
async function runCall(
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
      context.console.tell(
        `The call was saved after its last round. Resume it with: npx mcp-rally resume ${options.save}`,
      )
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
  console.tell(`Saved. Resume it in a terminal with: npx mcp-rally resume ${path}`)
  console.tell(`or with the answers in a file, {${questions.map(exampleOf).join(', ')}}:`)
  console.tell(`npx mcp-rally resume ${path} --answers answers.json`)
  return EXIT.unanswered
}

type Stopped = Extract<CallOutcome<unknown>, { kind: 'stopped' }>

function leave(task: ClientTask, { server, options, context: { console } }: CallRun): ExitCode {
  console.print(options.json === true ? cleanJson(task) : cleanLine(task.id, Infinity))
  if (options.json !== true) console.tell(`The task runs on the server. Follow it with: ${commandFor(server, task.id)}`)
  return EXIT.done
}

/** What a saved call calls, for the user, who may not know the file. */
function targetOf({ method, params }: PendingCall): string {
  if (method === 'resources/read') return `the resource ${cleanLine(shown(params.uri))}`
  return `the ${method === 'tools/call' ? 'tool' : 'prompt'} ${cleanLine(shown(params.name))}`
}

function methodOf(call: ClientCall | PendingCall): RoundMethod {
  if ('method' in call) return call.method
  if ('tool' in call) return 'tools/call'
  return 'prompt' in call ? 'prompts/get' : 'resources/read'
}

/**
 * The tool with that name in the server's list. A server that knows the user may leave out what needs more scopes: such a tool is
 * called without its schema, and the call offers a login with these scopes.
 */
async function findTool(
  client: Client,
  name: string,
  server: Server,
  { env }: RunContext,
): Promise<{ inputSchema: Record<string, unknown> }> {
  const tools = await client.listTools()
  const tool = tools.find((each) => each.name === name)
  if (tool !== undefined) return tool
  if ('url' in server && (await hasLogin(server.url, env))) return { inputSchema: {} }
  const names = tools.map((each) => cleanLine(each.name, 60)).slice(0, 20)
  throw new UsageError(`${nameOf(client)} has no tool "${cleanLine(name)}". It has: ${names.join(', ') || 'none'}.`)
}
