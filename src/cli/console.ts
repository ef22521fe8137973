// The output of the program: only results on the standard output, everything else on the error stream.
import { Writable } from 'node:stream'
import type { ReadStream, WriteStream } from 'node:tty'
import type { ProgressUpdate } from '../client/options.ts'
import { cleanLine } from './clean.ts'

export interface Console {
  /** Prints a result. */
  print(text: string): void
  /** Prints a result that is binary. */
  printBytes(bytes: Uint8Array): void
  /** Prints any other line, on the error stream. */
  tell(line: string): void
  readonly input: ReadStream
  readonly errors: WriteStream
  readonly isResultOnScreen: boolean
  /** True if a person can be asked. */
  readonly isInteractive: boolean
  /** The width of a table on the standard output. */
  readonly columns: number
  /** Whether each stream may have colours. */
  readonly colours: { readonly results: boolean; readonly errors: boolean }
}

export function openConsole({ stdin, stdout, stderr, env }: NodeJS.Process): Console {
  const isAllowed = (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb'
  return {
    print: (text) => void stdout.write(`${text}\n`),
    printBytes: (bytes) => void stdout.write(bytes),
    tell: (line) => void stderr.write(`${line}\n`),
    input: stdin,
    errors: stderr,
    isResultOnScreen: stdout.isTTY,
    isInteractive: stdin.isTTY && stderr.isTTY,
    columns: stdout.isTTY ? stdout.columns : Infinity,
    colours: { results: isAllowed && stdout.isTTY, errors: isAllowed && stderr.isTTY },
  }
}

export function bold(text: string, isAllowed: boolean): string {
  return isAllowed ? `\u001B[1m${text}\u001B[22m` : text
}

// oxlint-disable-next-line no-control-regex -- the escape character is what is looked for
const COLOURS = /\u001B\[[\d;]*m/g

/** A screen that removes colours from everything that is written to it. */
export class Colourless extends Writable {
  readonly isTTY = true
  readonly #screen: WriteStream

  constructor(screen: WriteStream) {
    super({ decodeStrings: false })
    this.#screen = screen
    screen.on('resize', () => this.emit('resize'))
  }

  get columns(): number {
    return this.#screen.columns
  }

  get rows(): number {
    return this.#screen.rows
  }

  override _write(chunk: string | Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#screen.write(String(chunk).replaceAll(COLOURS, ''))
    done()
  }
}

/** Characters of the bar. */
const WIDTH = 30

export interface BarOutput {
  write(text: string): unknown
  readonly columns?: number
}

/** The progress of a call, on one line that is rewritten each time. */
export class ProgressBar {
  readonly #output: BarOutput
  #shown = ''

  constructor(output: BarOutput) {
    this.#output = output
  }

  show(progress: ProgressUpdate): void {
    this.line(barText(progress))
  }

  /** Shows any text in place of the bar. */
  line(text: string): void {
    const line = text.slice(0, (this.#output.columns ?? 80) - 1)
    if (line === this.#shown) return
    this.#output.write(`\r\u001B[2K${line}`)
    this.#shown = line
  }

  /** Call it before anything else is written. */
  clear(): void {
    if (this.#shown !== '') this.#output.write('\r\u001B[2K')
    this.#shown = ''
  }
}

/** The numbers come from the server and may have any value. */
export function barText({ progress, total, message = '' }: ProgressUpdate): string {
  const said = cleanLine(message)
  if (total === undefined || !(total > 0)) return `${progress} ${said}`.trimEnd()
  const share = Math.min(Math.max(progress / total, 0), 1)
  const filled = Math.floor(share * WIDTH)
  const bar = '#'.repeat(filled) + '.'.repeat(WIDTH - filled)
  return `[${bar}] ${Math.floor(share * 100)}% ${progress}/${total} ${said}`.trimEnd()
}
