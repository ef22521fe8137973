// The status message of a running task. A handler may report faster than anybody reads, so reports are collected and the
// last one is written.
import type { Progress } from '../flow/carrier.ts'

const COLLECT_MS = 100
const LONGEST = 1_000

export class StatusMessage {
  readonly #write: () => void
  #pending: string | undefined
  /** A lower number comes from a step that is behind, and is dropped. */
  #highest = -Infinity
  #timer: NodeJS.Timeout | undefined

  constructor(write: () => void) {
    this.#write = write
  }

  readonly progress: Progress = (progress, total, message) => {
    if (progress < this.#highest) return
    this.#highest = progress
    const counted = total === undefined ? String(progress) : `${progress} of ${total}`
    this.#pending = (typeof message === 'string' && message !== '' ? message : counted).slice(0, LONGEST)
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      if (this.#pending !== undefined) this.#write()
    }, COLLECT_MS)
  }

  /** Takes the message that is not written yet, to send it along with any other write. */
  take(): { message?: string } {
    const message = this.#pending
    this.#pending = undefined
    return message === undefined ? {} : { message }
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}
