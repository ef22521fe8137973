// Where the program speaks: results on the standard output and nothing else there, all else on the error stream.
import { Writable } from 'node:stream'
import type { ReadStream, WriteStream } from 'node:tty'

export interface Console {
  /** A result. */
  print(text: string): void
  /** One that is no text. */
  printBytes(bytes: Uint8Array): void
  /** Anything else, a line of it. */
  tell(line: string): void
  readonly input: ReadStream
  readonly errors: WriteStream
  readonly isResultOnScreen: boolean
  /** Whether there is somebody to ask. */
  readonly isInteractive: boolean
  /** Columns of a table on the standard output. */
  readonly columns: number
  /** Whether results, and what is told, may have colours. */
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

/** A screen that shows no colours, whatever is written to it. */
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
