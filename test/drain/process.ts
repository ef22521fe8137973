// A process that a test starts, talks with and ends itself.
import type { ChildProcess } from 'node:child_process'
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
}

interface Waiting<Said> {
  readonly wanted: (said: Said) => boolean
  readonly found: (said: Said) => void
  readonly ended: () => void
}

/** `Said` is what it tells the test. */
export class Process<Said> {
  readonly heard: Said[] = []
  readonly ended: Promise<Ended>
  readonly #child: ChildProcess
  readonly #waiting = new Set<Waiting<Said>>()
  #complaints = ''
  #over = false

  /** Runs a module with nothing of our environment, and these options, as JSON, in OPTIONS. */
  constructor(module: URL, options: object, listener?: (said: Said) => void, execArgv: string[] = []) {
    const child = fork(fileURLToPath(module), {
      execArgv,
      env: { OPTIONS: JSON.stringify(options) },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    this.#child = child
    child.on('message', (message) => {
      const said = message as Said
      this.heard.push(said)
      listener?.(said)
      for (const { wanted, found } of this.#waiting) if (wanted(said)) found(said)
    })
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.#complaints += text))
    this.ended = new Promise((resolve) => {
      // Once all that it said has been heard.
      child.once('close', (code, signal) => {
        this.#over = true
        for (const { ended } of this.#waiting) ended()
        resolve({ code, signal })
      })
    })
  }

  tell(message: object): void {
    // One that has just ended does not hear it, and is told of by `ended`.
    if (this.#child.connected) this.#child.send(message, () => {})
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** For the end of a test: whatever it is doing. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.ended
  }

  /** The first thing it said, or says, that is wanted. */
  until(wanted: (said: Said) => boolean): Promise<Said> {
    const said = this.heard.find(wanted)
    if (said !== undefined) return Promise.resolve(said)
    return new Promise((resolve, reject) => {
      const waiting: Waiting<Said> = {
        wanted,
        found: (found) => {
          this.#waiting.delete(waiting)
          resolve(found)
        },
        ended: () => reject(new Error(`It ended without saying so. ${this.#complaints}`)),
      }
      if (this.#over) waiting.ended()
      else this.#waiting.add(waiting)
    })
  }
}
