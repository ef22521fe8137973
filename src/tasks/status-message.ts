// The status message of a running task, and the numbers of its progress. A handler may report faster than anybody reads, so reports are
// collected and the last one is written.
//
// Both are stored as one text, so that a report is one small write: the numbers, a separator and the message.
import type { Progress } from '../flow/carrier.ts'
import type { TaskProgress } from '../server/tasks.ts'

const COLLECT_MS = 100
const LONGEST = 1_000
/** The unit separator of ASCII. No number contains it, and no other stored message begins with a number and this. */
const SEPARATOR = '\u001f'
const STORED = new RegExp(`^([-+.\\de]+)(?:/([-+.\\de]+))?${SEPARATOR}`)

export class StatusMessage {
  readonly #write: () => void
  #pending: string | undefined
  /** A lower number comes from a step that is behind, and is dropped. */
  #highest: number
  #timer: NodeJS.Timeout | undefined

  /** `stored` is the message that an earlier worker may have left. */
  constructor(stored: string | undefined, write: () => void) {
    this.#highest = readMessage(stored).progress?.progress ?? -Infinity
    this.#write = write
  }

  readonly progress: Progress = (progress, total, message) => {
    if (!Number.isFinite(progress) || progress < this.#highest) return
    this.#highest = progress
    const numbers = Number.isFinite(total) ? `${progress}/${total}` : String(progress)
    const text = typeof message === 'string' ? message.slice(0, LONGEST) : ''
    this.#pending = `${numbers}${SEPARATOR}${text}`
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

/** What a stored message says. Without a text of the handler, the message is made of the numbers. */
export function readMessage(stored: string | undefined): { message?: string; progress?: TaskProgress } {
  if (stored === undefined) return {}
  const [prefix = '', progress, total] = STORED.exec(stored) ?? []
  if (progress === undefined) return { message: stored }
  const text = stored.slice(prefix.length)
  const counted = total === undefined ? progress : `${progress} of ${total}`
  return {
    message: text === '' ? counted : text,
    progress: {
      progress: Number(progress),
      ...(total !== undefined && { total: Number(total) }),
      ...(text !== '' && { message: text }),
    },
  }
}
