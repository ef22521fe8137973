// A process that a test starts and ends itself, read by what it prints.
import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'

const DEMO = fileURLToPath(new URL('../../dist-examples/demo.js', import.meta.url))

/** What Node is given to start the demo, which then keeps nothing; a later `--store` stands over this one. */
export const DEMO_ARGS: readonly string[] = [DEMO, '--store', 'memory']

export interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
}

export class Child {
  readonly printed: Printed
  readonly complained: Printed
  readonly ended: Promise<Ended>
  readonly #child: ChildProcess

  /** Starts a command with nothing of our environment but the path. */
  constructor(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const child = spawn(command, args, { env: { PATH: process.env['PATH'], ...env } })
    this.#child = child
    this.printed = new Printed(child.stdout)
    this.complained = new Printed(child.stderr)
    this.ended = new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code, signal) => resolve({ code, signal }))
    })
    // One that ends while a line is on its way to it is told of by `ended`.
    child.stdin.on('error', () => {})
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  /** Sends text to its standard input. */
  say(text: string): void {
    this.#child.stdin?.write(text)
  }

  /** Ends its standard input. */
  hangUp(): void {
    this.#child.stdin?.end()
  }

  /** Resolves once it is gone. */
  async kill(): Promise<Ended> {
    this.#child.kill('SIGKILL')
    return this.ended
  }
}

/** What a stream has said so far. */
export class Printed {
  text = ''
  #over = false
  readonly #waiting = new Set<() => void>()

  constructor(stream: Readable) {
    stream.setEncoding('utf8')
    stream.on('data', (chunk: string) => {
      this.text += chunk
      for (const look of this.#waiting) look()
    })
    stream.on('close', () => {
      this.#over = true
      for (const look of this.#waiting) look()
    })
  }

  /** Waits until what was said matches, and gives the match. */
  match(pattern: RegExp): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const found = pattern.exec(this.text)
        if (found) resolve(found)
        else if (this.#over) reject(new Error(`It ended without saying ${String(pattern)}. It said: ${this.text}`))
        else return
        this.#waiting.delete(look)
      }
      this.#waiting.add(look)
      look()
    })
  }
}
