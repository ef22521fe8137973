// The program, from what was typed to its exit code.
import { CommanderError } from 'commander'
import { VERSION } from '../protocol/version.ts'
import { clean } from './clean.ts'
import { openConsole } from './console.ts'
import type { ExitCode } from './exit.ts'
import { EXIT, exitCodeOf, Interrupted, whyOf } from './exit.ts'
import { runProgram } from './program.ts'

export async function main(): Promise<void> {
  const console = openConsole(process)
  // Whoever reads the results may have read enough.
  process.stdout.on('error', (error: NodeJS.ErrnoException) =>
    process.exit(error.code === 'EPIPE' ? EXIT.done : EXIT.serverFailed),
  )
  const interrupt = new AbortController()
  const stop = (): void => {
    // Once more: now, and not properly.
    if (interrupt.signal.aborted) process.exit(EXIT.interrupted)
    // The terminal has just shown ^C.
    if (process.stderr.isTTY) process.stderr.write('\n')
    interrupt.abort(new Interrupted())
  }
  process.on('SIGINT', stop).on('SIGTERM', stop)
  const around = { console, env: process.env, signal: interrupt.signal, version: VERSION }
  try {
    process.exitCode = await runProgram(process.argv.slice(2), around)
  } catch (error) {
    process.exitCode = told(error, interrupt.signal.aborted, (line) => console.tell(line))
  }
  if (interrupt.signal.aborted) process.exit(EXIT.interrupted)
}

/** Says what went wrong, and gives the exit code. */
function told(error: unknown, isInterrupted: boolean, tell: (line: string) => void): ExitCode {
  if (error instanceof CommanderError) {
    // It has printed what was asked for.
    if (error.exitCode === 0) return EXIT.done
    tell(`${clean(error.message).replace(/^error: /, '')}\nrally --help tells more.`)
    return EXIT.wrongUse
  }
  if (isInterrupted || error instanceof Interrupted) {
    tell('Stopped.')
    return EXIT.interrupted
  }
  tell(`rally: ${whyOf(error)}`)
  if (process.env['RALLY_DEBUG'] === '1' && error instanceof Error) tell(clean(error.stack ?? ''))
  return exitCodeOf(error)
}
