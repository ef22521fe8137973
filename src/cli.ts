#!/usr/bin/env node
// The bin `rally`: runs what was typed, and sets the exit code.
import { CommanderError } from 'commander'
import { clean } from './cli/clean.ts'
import { openConsole } from './cli/console.ts'
import type { ExitCode } from './cli/exit.ts'
import { EXIT, exitCodeOf, Interrupted, whyOf } from './cli/exit.ts'
import { runProgram } from './cli/program.ts'
import { VERSION } from './protocol/version.ts'

const console = openConsole(process)
// The program that reads our output may close it early, as `head` does.
process.stdout.on('error', (error: NodeJS.ErrnoException) =>
  process.exit(error.code === 'EPIPE' ? EXIT.done : EXIT.serverFailed),
)
const { signal } = handleInterrupts()
try {
  const context = { console, env: process.env, signal, version: VERSION }
  process.exitCode = await runProgram(process.argv.slice(2), context)
} catch (error) {
  process.exitCode = report(error)
}
if (signal.aborted) process.exit(EXIT.interrupted)

/** The first interrupt stops the call properly, the second one ends the process at once. */
function handleInterrupts(): AbortController {
  const interrupt = new AbortController()
  const stop = (): void => {
    if (interrupt.signal.aborted) process.exit(EXIT.interrupted)
    // The terminal has just shown ^C.
    if (process.stderr.isTTY) process.stderr.write('\n')
    interrupt.abort(new Interrupted())
  }
  process.on('SIGINT', stop).on('SIGTERM', stop)
  return interrupt
}

/** Prints what went wrong, and returns the exit code. */
function report(error: unknown): ExitCode {
  if (error instanceof CommanderError) {
    // Help or the version was asked for, and is printed already.
    if (error.exitCode === 0) return EXIT.done
    console.tell(`${clean(error.message).replace(/^error: /, '')}\nSee npx mcp-rally --help.`)
    return EXIT.usage
  }
  if (signal.aborted || error instanceof Interrupted) {
    console.tell('Stopped.')
    return EXIT.interrupted
  }
  console.tell(`rally: ${whyOf(error)}`)
  if (process.env['RALLY_DEBUG'] === '1' && error instanceof Error) console.tell(clean(error.stack ?? ''))
  return exitCodeOf(error)
}
