// `rally dev`: runs a file in a process of its own, and starts it again when the code of its project changes.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { dirname, extname, join, relative } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { pathToFileURL } from 'node:url'
import { Lines } from '../protocol/lines.ts'
import { projectOf } from './key.ts'
import { Relay } from './relay.ts'
import { watchCode } from './watch.ts'

export interface Development {
  /** Its absolute path. */
  readonly file: string
  readonly args: readonly string[]
  /** For an app that the file exports and does not serve. */
  readonly port: number
  /** The file of the build that runs in the process. */
  readonly child: string
  /** Prints a line about the development itself. */
  readonly tell: (line: string) => void
  readonly env: NodeJS.ProcessEnv
  readonly input: Readable & { readonly isTTY?: boolean }
  readonly output: Writable
  readonly signal: AbortSignal
}

/** How long a server may drain before it is killed. */
const DRAIN_MS = 3_000
const MOST_LINE_BYTES = 64 * 1024 * 1024

/** Resolves when the signal is aborted, or when the client of a stdio server has left. */
export async function develop(development: Development): Promise<void> {
  const { file, tell, signal } = development
  const runtime = runtimeFor(file)
  const project = projectOf(file)
  const over = new AbortController()
  const stop = (): void => over.abort()
  signal.addEventListener('abort', stop, { once: true })
  const supervisor = new Supervisor(development, runtime, stop)
  const changed = (path: string): void => {
    tell(`${relative(project, path)} changed: the server restarts.`)
    supervisor.restart()
  }
  const unwatch = watchCode([...new Set([project, dirname(file)])], changed, tell)
  try {
    supervisor.restart()
    if (!over.signal.aborted) await once(over.signal, 'abort')
  } finally {
    unwatch()
    signal.removeEventListener('abort', stop)
    await supervisor.close()
  }
}

/** One process at a time: the next one starts when the old one has ended, because both want the same port. */
class Supervisor {
  readonly #development: Development
  readonly #nodeOptions: readonly string[]
  readonly #leave: () => void
  readonly #relay: Relay | undefined
  #child: ChildProcess | undefined
  #turn: Promise<void> = Promise.resolve()
  #isWanted = false
  #hasInput = true

  constructor(development: Development, nodeOptions: readonly string[], leave: () => void) {
    this.#development = development
    this.#nodeOptions = nodeOptions
    this.#leave = leave
    // A terminal is not a client of a stdio server.
    if (development.input.isTTY !== true) this.#relay = this.#relayInput()
  }

  restart(): void {
    // One that is planned already will see this change too.
    if (this.#isWanted) return
    this.#isWanted = true
    this.#turn = this.#turn.then(async () => {
      await this.#end()
      this.#isWanted = false
      this.#start()
    })
  }

  async close(): Promise<void> {
    await this.#turn
    await this.#end()
    this.#development.input.destroy()
  }

  #start(): void {
    const { file, args, port, child: entry, env, output, tell } = this.#development
    const isRelayed = this.#relay !== undefined
    const child = spawn(process.execPath, [...this.#nodeOptions, entry, file, String(port), ...args], {
      // Errors of tools show their messages.
      env: { NODE_ENV: 'development', ...env },
      stdio: [isRelayed ? 'pipe' : 'inherit', isRelayed ? 'pipe' : 'inherit', 'inherit'],
    })
    this.#child = child
    child.once('exit', (code, how) => {
      // It was ended for a restart.
      if (this.#child !== child) return
      this.#child = undefined
      this.#relay?.stopped('crashed')
      if (!this.#hasInput && (code === 0 || this.#relay?.hasClient === true)) return this.#leave()
      tell(`The server ended with ${how ?? `code ${code}`}. It starts again when a file changes.`)
    })
    child.once('error', (error) => tell(`The server could not be started: ${error.message}`))
    if (this.#relay === undefined || child.stdin === null || child.stdout === null) return
    const { stdin, stdout } = child
    const relay = this.#relay
    const lines = new Lines(MOST_LINE_BYTES, (line) => relay.fromServer(line), tooLong(tell))
    stdout.on('data', (chunk: Buffer) => lines.add(chunk))
    // The process has ended: its exit tells why.
    stdin.on('error', () => {})
    relay.started({ send: (line) => void stdin.write(`${line}\n`) })
    if (!this.#hasInput) stdin.end()
    output.on('error', this.#leave)
  }

  async #end(): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined) return
    this.#relay?.stopped('restarting')
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    const late = setTimeout(() => child.kill('SIGKILL'), DRAIN_MS)
    await ended
    clearTimeout(late)
  }

  #relayInput(): Relay {
    const { input, output, tell } = this.#development
    const relay = new Relay((line) => void output.write(`${line}\n`))
    const lines = new Lines(MOST_LINE_BYTES, (line) => relay.fromClient(line), tooLong(tell))
    input.on('data', (chunk: Buffer) => lines.add(chunk))
    input.once('end', () => {
      this.#hasInput = false
      if (this.#child !== undefined) this.#child.stdin?.end()
      // The server has crashed, and there is nobody to start it again for.
      else if (relay.hasClient) this.#leave()
    })
    return relay
  }
}

function tooLong(tell: (line: string) => void): () => void {
  return () => tell(`A line of more than ${MOST_LINE_BYTES} bytes is dropped.`)
}

/** The options of Node that run the file. Throws if it is TypeScript and nothing here can run that. */
function runtimeFor(file: string): readonly string[] {
  const isTypeScript = ['.ts', '.mts', '.cts', '.tsx'].includes(extname(file))
  if (!isTypeScript || (process.features as { typescript?: unknown }).typescript) return []
  try {
    const tsx = createRequire(join(projectOf(file), 'package.json')).resolve('tsx')
    return ['--import', pathToFileURL(tsx).href]
  } catch {
    throw new NoTypeScript()
  }
}

export class NoTypeScript extends Error {
  constructor() {
    super(
      `Node ${process.version} does not run TypeScript. Use Node 22.18 or later, run npm install -D tsx, or compile the file and give rally dev the JavaScript.`,
    )
  }
}
