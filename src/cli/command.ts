// What the commands have in common: what their actions need, and the options that they share.
import type { Command } from 'commander'
import { InvalidArgumentError } from 'commander'
import type { ConsentOptions } from './consent.ts'
import type { RunContext } from './context.ts'
import type { ExitCode } from './exit.ts'
import { UsageError } from './exit.ts'
import type { Server } from './server.ts'

/** What the actions of the commands need. */
export interface CommandContext {
  readonly runContext: RunContext
  /** Splits the words of a command into the server and the rest. */
  readonly serverOf: (
    words: readonly string[],
    options: ConsentOptions,
  ) => Promise<{ server: Server; rest: readonly string[] }>
  readonly isCommandGiven: boolean
  /** The words after `--`. */
  readonly args: readonly string[]
  readonly run: (running: Promise<ExitCode>) => Promise<void>
}

export function withServerOptions(command: Command): Command {
  return command
    .option('--json', 'print JSON, for scripts')
    .option('-H, --header <header>', "send a header, such as 'Authorization: Bearer ...' (repeatable)", added)
    .option('-e, --env <variable>', 'pass a variable to the command: NAME=value, or NAME (repeatable)', added)
    .option('--config <file>', 'take the server by its name from a file of Claude, Cursor or VS Code')
    .option('-y, --yes', 'run the command in the file, or send secrets to its address, without asking')
    .option('--timeout <seconds>', 'how long to wait for the server (default: 60)', readSeconds)
}

export function withCallOptions(command: Command): Command {
  return withAnswerOptions(command).option(
    '--save <file>',
    'stop at the first question without an answer, and save the call to a file',
  )
}

export function withAnswerOptions(command: Command): Command {
  return withDeclaredOptions(command).option('--no-open', 'show the pages to visit, but never open one')
}

/** What a server is told that rally can answer depends on them. */
export function withDeclaredOptions(command: Command): Command {
  return withServerOptions(command)
    .option('--answers <file>', 'take the answers from a JSON file, and do not ask')
    .option('--root <path>', 'a folder to tell the server about (repeatable)', added)
}

export function added(value: string, before: readonly string[] = []): string[] {
  return [...before, value]
}

function readSeconds(text: string): number {
  const seconds = Number(text)
  if (!(seconds > 0)) throw new InvalidArgumentError('It must be a number above 0.')
  return seconds
}

export function noMore(words: readonly string[]): void {
  if (words.length > 0) throw new UsageError(`Too many arguments: "${words.join(' ')}" is not expected.`)
}
