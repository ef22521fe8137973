// A server process with a small heap, and what every attack on it must leave intact: it lives, answers another caller, and
// its memory comes back.
import type { ChildProcess } from 'node:child_process'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { LimitOptions } from 'mcp-rally'
import type { ServeOptions } from 'mcp-rally/node'
import { expect, onTestFinished } from 'vitest'
import { call, textOf } from '../wire/messages.ts'
import { Connection, fieldLines, post } from '../wire/socket.ts'

const SERVER = fileURLToPath(new URL('./server.mjs', import.meta.url))
const HEAP_MB = 256

export interface AttackedAppOptions {
  limits?: LimitOptions
  file?: string
}

interface State {
  used: number
  peak: number
  connections: number
}

export class Target {
  readonly port: number
  readonly #child: ChildProcess
  readonly #connections = new Set<Connection>()
  #base = 0

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.port = port
  }

  /** With options of the app its callers have principals, and it has a store: in `file`, or in memory. Ends with the test. */
  static async start(serve: ServeOptions = {}, app?: AttackedAppOptions): Promise<Target> {
    const child = fork(SERVER, {
      execArgv: [`--max-old-space-size=${HEAP_MB}`, '--expose-gc'],
      env: { OPTIONS: JSON.stringify({ serve, app }) },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    const [{ port }] = (await once(child, 'message')) as [{ port: number }]
    const target = new Target(child, port)
    await expectServed(target)
    target.#base = (await target.#state()).used
    return target
  }

  /** How many megabytes it uses beyond those at its start. */
  async growth(): Promise<number> {
    return ((await this.#state()).used - this.#base) / 1_000_000
  }

  /** How many megabytes it used at most beyond those at its start. */
  async peak(): Promise<number> {
    return ((await this.#state()).peak - this.#base) / 1_000_000
  }

  /** How many connections it has open. */
  async open(): Promise<number> {
    return (await this.#state()).connections
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/mcp`
  }

  async connect(): Promise<Connection> {
    const connection = await Connection.open(this.port)
    this.#connections.add(connection)
    void connection.closed.then(() => this.#connections.delete(connection))
    return connection
  }

  /** The attacker goes. */
  disconnectAll(): void {
    for (const { socket } of this.#connections) socket.destroy()
  }

  connections(count: number): Promise<Connection[]> {
    return Promise.all(Array.from({ length: count }, () => this.connect()))
  }

  async #state(): Promise<State> {
    this.#child.send('state')
    const [state] = (await once(this.#child, 'message')) as [State]
    return state
  }
}

/** Another caller, on a connection of its own. */
export async function expectServed(target: Target): Promise<void> {
  const connection = await target.connect()
  connection.write(post(call('greet')))
  const { status, body } = await connection.next()
  expect({ status, text: textOf(JSON.parse(body) as object) }).toEqual({ status: 200, text: 'Hello' })
  connection.socket.destroy()
}

export async function expectMemoryBack(target: Target): Promise<void> {
  await expect.poll(() => target.growth(), { timeout: 5_000, interval: 100 }).toBeLessThan(12)
}

/** The head of a request whose body the test writes itself. */
export function head(fields: Readonly<Record<string, string>>): string {
  const sent = { Host: 'localhost', 'Content-Type': 'application/json', ...fields }
  return `POST /mcp HTTP/1.1\r\n${fieldLines(sent)}\r\n`
}
