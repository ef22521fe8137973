// How far a call has come, on one line of a terminal that is written again and again.
import type { ProgressUpdate } from '../client/options.ts'
import { cleanLine } from './clean.ts'

const WIDTH = 30

export interface BarOutput {
  write(text: string): unknown
  readonly columns?: number
}

export class ProgressBar {
  readonly #output: BarOutput
  #shown = ''

  constructor(output: BarOutput) {
    this.#output = output
  }

  show(progress: ProgressUpdate): void {
    this.line(barText(progress))
  }

  /** Any other text. */
  line(text: string): void {
    const line = text.slice(0, (this.#output.columns ?? 80) - 1)
    if (line === this.#shown) return
    this.#output.write(`\r\u001B[2K${line}`)
    this.#shown = line
  }

  /** Before anything else is written. */
  clear(): void {
    if (this.#shown !== '') this.#output.write('\r\u001B[2K')
    this.#shown = ''
  }
}

/** The server's numbers may be any. */
export function barText({ progress, total, message = '' }: ProgressUpdate): string {
  const said = cleanLine(message)
  if (total === undefined || !(total > 0)) return `${progress} ${said}`.trimEnd()
  const share = Math.min(Math.max(progress / total, 0), 1)
  const filled = Math.floor(share * WIDTH)
  const bar = '#'.repeat(filled) + '.'.repeat(WIDTH - filled)
  return `[${bar}] ${Math.floor(share * 100)}% ${progress}/${total} ${said}`.trimEnd()
}
