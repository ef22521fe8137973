// The commands, their arguments and their options.
import { Command, InvalidArgumentError, Option } from 'commander'
import { readArguments, readJsonObject, readTexts } from './arguments.ts'
import type { CallCommandOptions } from './call.ts'
import { findTool, runCall } from './call.ts'
import { clean, cleanJson } from './clean.ts'
import type { ConsentOptions } from './consent.ts'
import { askConsent } from './consent.ts'
import { bold } from './console.ts'
import type { ExitCode } from './exit.ts'
import { EXIT, UsageError } from './exit.ts'
import { runRequest, runSkill } from './extensions.ts'
import type { Listing } from './lists.ts'
import { listPrompts, listResources, listSkills, listTools } from './lists.ts'
import { LiveAnswers } from './live-answers.ts'
import type { AnswerOptions } from './responder.ts'
import { asksPerson, capabilitiesOf, prepareAnswers } from './responder.ts'
import type { LoginCommandOptions } from './login.ts'
import { runLogin, runLogout, runWhoami } from './login.ts'
import { readSaved } from './saved.ts'
import type { CommandLine, Server } from './server.ts'
import { describeServer, isAddress, splitCommand, takeServer } from './server.ts'
import type { ServerOptions, RunContext } from './session.ts'
import { withClient } from './session.ts'
import type { TaskCommandOptions } from './task.ts'
import { runTask } from './task.ts'
import type { Client } from '../client/client.ts'

const EXAMPLES = `
<server> is a URL. To start a server as a program, leave <server> out and put its command after --:

  rally tools http://127.0.0.1:3000/mcp
  rally call http://127.0.0.1:3000/mcp update_work_item id=4522 state=Resolved
  rally call deploy env=prod -- node server.js --stdio
  rally call http://127.0.0.1:3000/mcp deploy env=prod --answers answers.json --json
  rally call http://127.0.0.1:3000/mcp deploy env=prod --save pending.json
  rally resume pending.json
  rally call http://127.0.0.1:3000/mcp provision_vm name=web --detach
  rally task http://127.0.0.1:3000/mcp 8a6f1c52-...
  rally login https://mcp.example.com/mcp
  rally tools --config .mcp.json github

RALLY_TOKEN is sent as a bearer token. Exit codes: 0 a result, 1 the tool failed, 2 usage error, 3 the server failed,
4 declined or not answered, 130 stopped.`

const CALL_HELP = `
Values are converted to the types of the tool's input schema: n=3 is a number, a repeated key is a list. key:=json passes
JSON. The file for --answers has the answers by the keys of the questions: {"confirm": {"confirm": true}, "visit": "accept"}.
A server of 2025 gives its questions no keys. There the key is the text of the question, or "sample" or "roots".`

const RESUME_HELP = `
The file names the server. If rally would run a command, or send RALLY_TOKEN or a header there, it asks you first. Without
a terminal it needs --yes. It does not ask if you name the server yourself.`

const TASK_HELP = `
Shows the task until it ends, and asks you its questions. Ctrl-C leaves the task running on the server, and so does a
question without an answer. You can return to it later.`

/** Runs the command that was typed, and returns the exit code. */
export async function runProgram(argv: readonly string[], runContext: RunContext): Promise<ExitCode> {
  const { words, command } = splitCommand(argv)
  let code: ExitCode = EXIT.done
  const program = newProgram({
    runContext,
    serverOf: (typed, options) => findServer({ words: typed, command }, options, runContext),
    isCommandGiven: command !== undefined,
    run: async (running) => {
      code = await running
    },
  }).version(runContext.version)
  if (words.length === 0) {
    program.outputHelp({ error: true })
    return EXIT.usage
  }
  await program.parseAsync(withoutDashes(words, program), { from: 'user' })
  return code
}

/** What the actions of the commands need. */
interface CommandContext {
  readonly runContext: RunContext
  /** Splits the words of a command into the server and the rest. */
  readonly serverOf: (
    words: readonly string[],
    options: ConsentOptions,
  ) => Promise<{ server: Server; rest: readonly string[] }>
  readonly isCommandGiven: boolean
  readonly run: (running: Promise<ExitCode>) => Promise<void>
}

function newProgram(context: CommandContext): Command {
  const program = new Command('rally')
    .description('Calls the tools of MCP servers from a terminal, and answers their questions.')
    .helpCommand(false)
    .addHelpText('after', EXAMPLES)
    .configureHelp({ subcommandTerm: termOf })
    .exitOverride()
    // src/cli.ts reports these errors, like all others.
    .configureOutput({ outputError: () => {} })
  addCall(program, context)
  addResume(program, context)
  addTask(program, context)
  addPrompt(program, context)
  addRead(program, context)
  addSkill(program, context)
  addRequest(program, context)
  for (const [name, list] of Object.entries(LISTS)) addList(program, name, list, context)
  addLogins(program, context)
  return program
}

/** From the words, from the command after `--`, or by its name in a configuration file. */
async function findServer(
  line: CommandLine,
  options: ConsentOptions,
  context: RunContext,
): Promise<{ server: Server; rest: readonly string[] }> {
  const [name, ...rest] = line.words
  if (options.config === undefined) return takeServer(line)
  if (line.command !== undefined) throw new UsageError('Leave out the command after --, or --config.')
  const { readConfig } = await import('./config.ts')
  const server = await readConfig(options.config, name, context.env)
  await askConsent(server, options, context, `To use the server ${clean(name)}`)
  return { server, rest }
}

function addLogins(program: Command, { runContext, run }: CommandContext): void {
  program
    .command('login')
    .usage('<server> [options]')
    .description('log in to a server, and keep the login for later commands')
    .argument('<server>')
    .option('--no-open', 'show the page of the login, but do not open it')
    .option('--scope <scope>', 'a scope to ask for (repeatable)', added)
    .option('--client-id <id>', 'a client that is registered already; RALLY_CLIENT_SECRET is its secret, if it has one')
    .action(async (url: string, options: LoginCommandOptions) => run(runLogin(addressIn(url), options, runContext)))
  program
    .command('logout')
    .usage('<server>')
    .description('forget the login to a server')
    .argument('<server>')
    .action(async (url: string) => run(runLogout(addressIn(url), runContext)))
  program
    .command('whoami')
    .usage('[server] [options]')
    .description('show your logins')
    .argument('[server]')
    .option('--json', 'print JSON, for scripts')
    .action(async (url: string | undefined, options: ServerOptions) =>
      run(runWhoami(url === undefined ? undefined : addressIn(url), options, runContext)),
    )
}

function addressIn(word: string): string {
  if (isAddress(word) && URL.canParse(word)) return word
  throw new UsageError(`"${word}" is not the URL of a server.`)
}

function addCall(program: Command, { runContext, serverOf, run }: CommandContext): void {
  withCallOptions(program.command('call').usage('<server> <tool> [key=value...] [options]'))
    .description('call a tool')
    .argument('[words...]')
    .option('--args <json>', 'arguments as one JSON object')
    .option('--detach', 'if the call becomes a task, print its id and do not wait')
    .addHelpText('after', CALL_HELP)
    .action(async (words: string[], options: CallCommandOptions & { args?: string }) => {
      const { server, rest } = await serverOf(words, options)
      const [tool, ...pairs] = rest
      if (tool === undefined) throw new UsageError('Which tool? rally tools <server> lists them.')
      const args = options.args === undefined ? {} : readJsonObject(options.args, '--args')
      return run(
        runCall(server, options, runContext, async (client) => {
          const { inputSchema } = await findTool(client, tool)
          return { tool, arguments: readArguments(pairs, inputSchema, args) }
        }),
      )
    })
}

function addResume(program: Command, { runContext, serverOf, isCommandGiven, run }: CommandContext): void {
  withCallOptions(program.command('resume').usage('<file> [server] [options]'))
    .description('resume a call that --save wrote to a file')
    .argument('<file>')
    .argument('[server]', 'another address of the same server')
    .addHelpText('after', RESUME_HELP)
    .action(async (file: string, other: string | undefined, options: CallCommandOptions & ConsentOptions) => {
      const saved = await readSaved(file)
      const isElsewhere = other !== undefined || isCommandGiven
      const server = isElsewhere ? (await serverOf(other === undefined ? [] : [other], options)).server : saved.server
      runContext.console.tell(`Resuming with ${clean(describeServer(server))}`)
      if (!isElsewhere) await askConsent(server, options, runContext)
      return run(runCall(server, options, runContext, async () => saved.pending))
    })
}

function addTask(program: Command, { runContext, serverOf, run }: CommandContext): void {
  withAnswerOptions(program.command('task').usage('<server> <id> [options]'))
    .description('follow a call that became a task')
    .argument('[words...]')
    .option('--no-wait', 'show its status once, and do not wait')
    .option('--cancel', 'ask the server to cancel it')
    .addOption(new Option('--id <id>').hideHelp())
    .addHelpText('after', TASK_HELP)
    .action(async (words: string[], options: TaskCommandOptions & { id?: string }) => {
      const { server, rest } = await serverOf(words, options)
      const [id, ...others] = options.id === undefined ? rest : [options.id, ...rest]
      if (id === undefined) throw new UsageError('Which task? rally call <server> <tool> --detach prints its id.')
      noMore(others)
      return run(runTask(server, id, options, runContext))
    })
}

/** A server may choose an id that begins like an option. The word right after the server is the id all the same. */
function withoutDashes(words: readonly string[], program: Command): string[] {
  const [name, first = ''] = words
  const at = isAddress(first) ? 2 : 1
  const word = words[at] ?? ''
  if (name !== 'task' || !word.startsWith('-')) return [...words]
  const flag = word.replace(/^(--[^=]*)=.*$/, '$1')
  const { options = [] } = program.commands.find((each) => each.name() === name) ?? {}
  const flags = ['-h', '--help', ...options.flatMap(({ short, long }) => [short, long])]
  return flags.includes(flag) ? [...words] : words.with(at, `--id=${word}`)
}

function addPrompt(program: Command, { runContext, serverOf, run }: CommandContext): void {
  withCallOptions(program.command('prompt').usage('<server> <name> [key=value...] [options]'))
    .description('get a prompt')
    .argument('[words...]')
    .action(async (words: string[], options: CallCommandOptions) => {
      const { server, rest } = await serverOf(words, options)
      const [prompt, ...pairs] = rest
      if (prompt === undefined) throw new UsageError('Which prompt? rally prompts <server> lists them.')
      const args = readTexts(pairs)
      return run(runCall(server, options, runContext, async () => ({ prompt, arguments: args })))
    })
}

function addRead(program: Command, { runContext, serverOf, run }: CommandContext): void {
  withCallOptions(program.command('read').usage('<server> <uri> [options]'))
    .description('read a resource')
    .argument('[words...]')
    .action(async (words: string[], options: CallCommandOptions) => {
      const { server, rest } = await serverOf(words, options)
      const [resource, ...others] = rest
      if (resource === undefined) throw new UsageError('Which resource? rally resources <server> lists them.')
      noMore(others)
      return run(runCall(server, options, runContext, async () => ({ resource })))
    })
}

function addSkill(program: Command, { runContext, serverOf, run }: CommandContext): void {
  withServerOptions(program.command('skill').usage('<server> <name or uri> [file] [options]'))
    .description('print a file of a skill, by default its SKILL.md, after verifying it')
    .argument('[words...]')
    .action(async (words: string[], options: ServerOptions) => {
      const { server, rest } = await serverOf(words, options)
      const [named, path, ...others] = rest
      if (named === undefined) throw new UsageError('Which skill? rally skills <server> lists them.')
      noMore(others)
      return run(runSkill(server, { named, path }, options, runContext))
    })
}

function addRequest(program: Command, { runContext, serverOf, run }: CommandContext): void {
  withServerOptions(program.command('request').usage('<server> <method> [key=value...] [options]'))
    .description("send a request for a method of the server's own")
    .argument('[words...]')
    .option('--args <json>', 'params as one JSON object')
    .action(async (words: string[], options: ServerOptions & { args?: string }) => {
      const { server, rest } = await serverOf(words, options)
      const [method, ...pairs] = rest
      if (method === undefined) throw new UsageError('Which method? It has a name such as com.example/thing.')
      const given = options.args === undefined ? {} : readJsonObject(options.args, '--args')
      return run(runRequest(server, { method, params: readArguments(pairs, {}, given) }, options, runContext))
    })
}

function addList(
  program: Command,
  name: string,
  list: (client: Client) => Promise<Listing>,
  { runContext, serverOf, run }: CommandContext,
): void {
  withDeclaredOptions(program.command(name).usage('<server> [options]'))
    .description(`list the ${name} of a server`)
    .argument('[words...]')
    .action(async (words: string[], options: AnswerOptions) => {
      const { server, rest } = await serverOf(words, options)
      noMore(rest)
      return run(showList(server, options, list, runContext))
    })
}

/** With the capabilities of a call: a server may show other tools to a client that cannot be asked. */
async function showList(
  server: Server,
  options: AnswerOptions,
  list: (client: Client) => Promise<Listing>,
  context: RunContext,
): Promise<ExitCode> {
  const prepared = await prepareAnswers(options)
  const { answerers } = new LiveAnswers(capabilitiesOf(prepared, asksPerson(context.console, options)), prepared.roots)
  return withClient(server, options, answerers, context, async (client) => {
    show(await list(client), options, context)
    return EXIT.done
  })
}

const LISTS: Readonly<Record<string, (client: Client) => Promise<Listing>>> = {
  tools: listTools,
  prompts: listPrompts,
  resources: listResources,
  skills: listSkills,
}

function termOf(command: Command): string {
  return `${command.name()} ${command.usage().replace(' [options]', '')}`
}

function withServerOptions(command: Command): Command {
  return command
    .option('--json', 'print JSON, for scripts')
    .option('-H, --header <header>', "send a header, such as 'Authorization: Bearer ...' (repeatable)", added)
    .option('-e, --env <variable>', 'pass a variable to the command: NAME=value, or NAME (repeatable)', added)
    .option('--config <file>', 'take the server by its name from a file of Claude, Cursor or VS Code')
    .option('-y, --yes', 'run the command in the file, or send your token to its address, without asking')
    .option('--timeout <seconds>', 'how long to wait for the server (default: 60)', readSeconds)
}

function withCallOptions(command: Command): Command {
  return withAnswerOptions(command).option(
    '--save <file>',
    'stop at the first question without an answer, and save the call to a file',
  )
}

function withAnswerOptions(command: Command): Command {
  return withDeclaredOptions(command).option('--no-open', 'show the pages to visit, but never open one')
}

/** What a server is told that rally can answer depends on them. */
function withDeclaredOptions(command: Command): Command {
  return withServerOptions(command)
    .option('--answers <file>', 'take the answers from a JSON file, and do not ask')
    .option('--root <path>', 'a folder to tell the server about (repeatable)', added)
}

function added(value: string, before: readonly string[] = []): string[] {
  return [...before, value]
}

function readSeconds(text: string): number {
  const seconds = Number(text)
  if (!(seconds > 0)) throw new InvalidArgumentError('It must be a number above 0.')
  return seconds
}

function noMore(words: readonly string[]): void {
  if (words.length > 0) throw new UsageError(`Too many arguments: "${words.join(' ')}" is not expected.`)
}

function show({ value, lines }: Listing, { json }: ServerOptions, { console }: RunContext): void {
  if (json === true) return console.print(cleanJson(value))
  const [headings = '', ...rows] = lines(console.columns)
  if (rows.length === 0) return console.tell('There are none.')
  console.print([bold(headings, console.colours.results), ...rows].join('\n'))
}
