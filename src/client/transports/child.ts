// The process of a server, from its start to its exit: lines in, lines out, and the end of its stderr.
import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { Lines } from '../../protocol/lines.ts'

/** A server that is started as a program, and talks over its standard streams. */
export interface ServerCommand {
  /** The program to run. */
  readonly command: string
  /** Its arguments. Default: none. */
  readonly args?: readonly string[]
  /** Environment variables, added to PATH and a few others that programs need. Nothing else is inherited. Default: none. */
  readonly env?: Readonly<Record<string, string>>
  /** Its working directory. Default: that of this process. */
  readonly cwd?: string
}

export interface ChildEvents {
  readonly line: (line: string) => void
  readonly tooLong: () => void
  /** Called once. `wasStarted` is false if the program could not be started. */
  readonly exited: (reason: string, wasStarted: boolean) => void
}

/** After its stdin is closed, the process gets this long before SIGTERM, and again before SIGKILL. */
const GRACE_MS = 1_000

/** After the exit, output that is still in the pipes is read for this long. */
const DRAIN_MS = 200

const MAX_STDERR_LENGTH = 4_096

/** A list, because our own environment may hold secrets. */
const INHERITED =
  process.platform === 'win32'
    ? [
        'APPDATA',
        'HOMEDRIVE',
        'HOMEPATH',
        'LOCALAPPDATA',
        'PATH',
        'PATHEXT',
        'PROCESSOR_ARCHITECTURE',
        'PROGRAMFILES',
        'SYSTEMDRIVE',
        'SYSTEMROOT',
        'TEMP',
        'USERNAME',
        'USERPROFILE',
      ]
    : ['HOME', 'LANG', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'TMPDIR', 'USER']

export class Child {
  readonly #command: string
  readonly #child: ChildProcess
  readonly #exited: Promise<void>
  /** The end of what it wrote to stderr. */
  #stderr = ''
  #isStarted = false

  constructor({ command, args = [], env, cwd }: ServerCommand, maxLineBytes: number, events: ChildEvents) {
    this.#command = command
    const child = spawn(command, args, {
      cwd,
      env: { ...inherited(), ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
      windowsHide: true,
    })
    this.#child = child
    child.once('spawn', () => {
      this.#isStarted = true
    })
    const lines = new Lines(maxLineBytes, events.line, events.tooLong)
    child.stdout.on('data', (chunk: Buffer) => lines.add(chunk))
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = `${this.#stderr}${text}`.slice(-MAX_STDERR_LENGTH)
    })
    // A process that closed its stdin or stdout cannot serve any more, so it is ended.
    child.stdin.on('error', () => void this.close())
    child.stdout.once('end', () => void this.close())
    this.#exited = new Promise((resolve) => {
      const settle = (reason: string): void => {
        events.exited(reason, this.#isStarted)
        resolve()
      }
      child.once('error', (error) => {
        if (!this.#isStarted) settle(error.message)
      })
      // A grandchild may hold the streams open for ever. What the process itself wrote has been read by then.
      child.once('exit', () => setTimeout(() => this.#destroyStreams(), DRAIN_MS).unref())
      child.once('close', (code, signal) => {
        if (this.#isStarted) settle(this.#exitReason(code, signal))
      })
    })
  }

  /** Returns false if the process does not accept input any more. */
  write(line: string): boolean {
    const { stdin } = this.#child
    if (!stdin?.writable) return false
    stdin.write(`${line}\n`)
    return true
  }

  /** Bytes that were written and the process has not read yet. */
  get backlog(): number {
    return this.#child.stdin?.writableLength ?? 0
  }

  /** Closes its stdin, which asks a server to exit; then sends signals. */
  async close(): Promise<void> {
    this.#child.stdin?.end()
    const terminate = setTimeout(() => this.#child.kill('SIGTERM'), GRACE_MS)
    const kill = setTimeout(() => this.#child.kill('SIGKILL'), 2 * GRACE_MS)
    await this.#exited
    clearTimeout(terminate)
    clearTimeout(kill)
  }

  #destroyStreams(): void {
    const { stdin, stdout, stderr } = this.#child
    for (const stream of [stdin, stdout, stderr]) stream?.destroy()
  }

  #exitReason(code: number | null, signal: NodeJS.Signals | null): string {
    const how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`
    const stderr = this.#stderr.trim()
    return `${this.#command} ${how}${stderr === '' ? ' and wrote nothing to stderr' : `. Its stderr ends with:\n${stderr}\n`}`
  }
}

function inherited(): Record<string, string> {
  const env: Record<string, string> = {}
  for (const name of INHERITED) {
    const value = process.env[name]
    // An exported shell function is code.
    if (value !== undefined && !value.startsWith('()')) env[name] = value
  }
  return env
}
