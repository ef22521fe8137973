// The commands for a project of one's own: `rally init` writes it, `rally dev` runs it.
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { InvalidArgumentError } from 'commander'
import type { CommandContext } from './command.ts'
import type { RunContext } from './context.ts'
import type { ExitCode } from './exit.ts'
import { EXIT, UsageError } from './exit.ts'
import type { InitOptions } from './init.ts'
import { packageFile } from './package-file.ts'

const DEV_HELP = `
The file serves an app, over HTTP or standard streams, or exports one. rally dev restarts it when code of its project
changes. Calls that wait for an answer survive: they are sealed with a key in .rally/, unless the app has keys of its own.
Words after -- are arguments of the file.`

export function addProject(program: Command, { runContext, run, args }: CommandContext): void {
  program
    .command('init')
    .usage('[folder] [options]')
    .description('write a new project')
    .argument('[folder]')
    .option('--schema <library>', 'zod, valibot, arktype or json-schema')
    .option('--host <host>', 'http, stdio or workers')
    .option('-y, --yes', 'do not ask: zod and http, where nothing else is said')
    .action(async (folder: string | undefined, options: InitOptions) => {
      const { runInit } = await import('./init.ts')
      return run(runInit(folder, options, runContext))
    })
  program
    .command('dev')
    .usage('<file> [options]')
    .description('run the server in a file, and restart it when its code changes')
    .argument('<file>')
    .option('--port <port>', 'for an app that the file exports and does not serve (default: 3000)', readPort)
    .addHelpText('after', DEV_HELP)
    .action(async (file: string, options: { port?: number }) => run(runDev(file, options, args, runContext)))
}

async function runDev(
  file: string,
  { port = 3000 }: { port?: number },
  args: readonly string[],
  { console, env, signal }: RunContext,
): Promise<ExitCode> {
  const path = resolve(file)
  if (!existsSync(path)) throw new UsageError(`There is no file ${path}.`)
  const { develop, NoTypeScript } = await import('../dev/develop.ts')
  try {
    await develop({
      file: path,
      args,
      port,
      child: packageFile('dist/platform/dev.js'),
      tell: (line) => console.tell(line),
      env,
      input: console.input,
      output: process.stdout,
      signal,
    })
  } catch (error) {
    throw error instanceof NoTypeScript ? new UsageError(error.message) : error
  }
  return EXIT.done
}

function readPort(text: string): number {
  const port = Number(text)
  if (text === '' || !Number.isInteger(port) || port < 0 || port > 65_535)
    throw new InvalidArgumentError('It must be a number from 0 to 65535.')
  return port
}
