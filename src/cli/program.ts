// The program: its commands, and the server that they are for.
import { Command } from 'commander'
import { addCall, addPrompt, addRead, addResume } from './call.ts'
import { clean } from './clean.ts'
import type { CommandContext } from './command.ts'
import type { ConsentOptions } from './consent.ts'
import { askConsent } from './consent.ts'
import type { RunContext } from './context.ts'
import type { ExitCode } from './exit.ts'
import { EXIT, UsageError } from './exit.ts'
import { addProject } from './dev.ts'
import { addRequest, addSkill } from './extensions.ts'
import { addLists } from './lists.ts'
import { addLogins } from './login.ts'
import type { CommandLine, Server } from './server.ts'
import { splitCommand, takeServer } from './server.ts'
import { addTask, withoutDashes } from './task.ts'
import { addTasks } from './tasks.ts'
import { addTypes } from './types.ts'

const EXAMPLES = `
<server> is a URL. To start a server as a program, leave <server> out and put its command after --:

  npx mcp-rally tools http://127.0.0.1:3000/mcp
  npx mcp-rally call http://127.0.0.1:3000/mcp update_work_item id=4522 state=Resolved
  npx mcp-rally call deploy env=prod -- node server.js --stdio
  npx mcp-rally call http://127.0.0.1:3000/mcp deploy env=prod --answers answers.json --json
  npx mcp-rally call http://127.0.0.1:3000/mcp deploy env=prod --save pending.json
  npx mcp-rally resume pending.json
  npx mcp-rally call http://127.0.0.1:3000/mcp provision_vm name=web --detach
  npx mcp-rally task http://127.0.0.1:3000/mcp 8a6f1c52-...
  npx mcp-rally tasks show 8a6f1c52 --store tasks.db
  npx mcp-rally types http://127.0.0.1:3000/mcp > server.d.ts
  npx mcp-rally login https://mcp.example.com/mcp
  npx mcp-rally tools --config .mcp.json github
  npx mcp-rally init my-server
  npx mcp-rally dev src/server.ts

RALLY_TOKEN is sent as a bearer token. Exit codes: 0 a result, 1 the tool failed, 2 usage error, 3 the server failed,
4 declined or not answered, 130 stopped.`

/** Runs the command that was typed, and returns the exit code. */
export async function runProgram(argv: readonly string[], runContext: RunContext): Promise<ExitCode> {
  const { words, command } = splitCommand(argv)
  let code: ExitCode = EXIT.done
  const program = newProgram({
    runContext,
    serverOf: (typed, options) => findServer({ words: typed, command }, options, runContext),
    isCommandGiven: command !== undefined,
    args: command ?? [],
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

function newProgram(context: CommandContext): Command {
  const program = new Command('npx mcp-rally')
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
  addTasks(program, context)
  addPrompt(program, context)
  addRead(program, context)
  addSkill(program, context)
  addRequest(program, context)
  addLists(program, context)
  addTypes(program, context)
  addLogins(program, context)
  addProject(program, context)
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
  const configured = await readConfig(options.config, name, context.env)
  await askConsent({ ...configured, why: `To use the server ${clean(name)}` }, options, context)
  return { server: configured.server, rest }
}

function termOf(command: Command): string {
  return `${command.name()} ${command.usage().replace(' [options]', '')}`
}
