// The status message of a task while it is worked on. What a handler reports faster than anybody reads is not written each time.
import type { Progress } from '../flow/carrier.ts'

const GATHER_MS = 100
const LONGEST = 1_000

export class Message {
  readonly #write: () => void
  #waiting: string | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(write: () => void) {
    this.#write = write
  }

  readonly progress: Progress = (progress, total, message) => {
    const counted = total === undefined ? String(progress) : `${progress} of ${total}`
    this.#waiting = (typeof message === 'string' && message !== '' ? message : counted).slice(0, LONGEST)
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      if (this.#waiting !== undefined) this.#write()
    }, GATHER_MS)
  }

  /** For the write that is next, whatever it is for. */
  take(): { message?: string } {
    const message = this.#waiting
    this.#waiting = undefined
    return message === undefined ? {} : { message }
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}
