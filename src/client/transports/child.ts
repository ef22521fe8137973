// The process of a server, from its start to its end: lines in, lines out, and the last that it said on its error stream.
import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { Lines } from '../../protocol/lines.ts'

export interface ServerCommand {
  /** The program to run. */
  readonly command: string
  readonly args?: readonly string[]
  /** Added to the few variables that a program cannot do without, such as PATH. */
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
}

export interface ChildEvents {
  readonly line: (line: string) => void
  readonly tooLong: () => void
  /** Told once, however it went. */
  readonly gone: (how: string, wasStarted: boolean) => void
}

/** How long it may take to end by itself, and then after it was told to. */
const GRACE_MS = 1_000

/** For what it said before it ended. */
const DRAIN_MS = 200

const LONGEST_TAIL = 4_096

/** Not the secrets that our own environment may hold. */
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
  readonly #ended: Promise<void>
  #tail = ''
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
      this.#tail = `${this.#tail}${text}`.slice(-LONGEST_TAIL)
    })
    // One that does not listen any more is no server, nor is one that has closed its output: it ends, or is ended.
    child.stdin.on('error', () => void this.close())
    child.stdout.once('end', () => void this.close())
    this.#ended = new Promise((resolve) => {
      const over = (how: string): void => {
        events.gone(how, this.#isStarted)
        resolve()
      }
      child.once('error', (error) => {
        if (!this.#isStarted) over(error.message)
      })
      // Something that it left behind may hold its streams open; what it said itself is there by then.
      child.once('exit', () => setTimeout(() => this.#letGo(), DRAIN_MS).unref())
      child.once('close', (code, signal) => {
        if (this.#isStarted) over(this.#epitaph(code, signal))
      })
    })
  }

  /** Gives whether it could be said at all. */
  say(line: string): boolean {
    const { stdin } = this.#child
    if (!stdin?.writable) return false
    stdin.write(`${line}\n`)
    return true
  }

  /** How many bytes it has not taken yet of what was said. */
  get backlog(): number {
    return this.#child.stdin?.writableLength ?? 0
  }

  /** Ends its input, which tells a server to go; then tells it by signals. */
  async close(): Promise<void> {
    this.#child.stdin?.end()
    const terminate = setTimeout(() => this.#child.kill('SIGTERM'), GRACE_MS)
    const kill = setTimeout(() => this.#child.kill('SIGKILL'), 2 * GRACE_MS)
    await this.#ended
    clearTimeout(terminate)
    clearTimeout(kill)
  }

  #letGo(): void {
    const { stdin, stdout, stderr } = this.#child
    for (const stream of [stdin, stdout, stderr]) stream?.destroy()
  }

  #epitaph(code: number | null, signal: NodeJS.Signals | null): string {
    const how = signal === null ? `ended with status ${code}` : `was ended by ${signal}`
    const said = this.#tail.trim()
    return `${this.#command} ${how}${said === '' ? ', and said nothing on its error stream' : `. It said last:\n${said}\n`}`
  }
}

function inherited(): Record<string, string> {
  const env: Record<string, string> = {}
  for (const name of INHERITED) {
    const value = process.env[name]
    // A shell's function, which is code.
    if (value !== undefined && !value.startsWith('()')) env[name] = value
  }
  return env
}
