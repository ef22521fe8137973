// Splits a stream of bytes into lines. Buffers at most one incomplete line.
import { ByteBuffer, textOf } from './byte-buffer.ts'

const NEWLINE = 0x0a

export class Lines {
  readonly #maxBytes: number
  readonly #receive: (line: string, bytes: number) => void
  readonly #tooLong: () => void
  readonly #line = new ByteBuffer()
  /** The rest of the current line is dropped. */
  #isTooLong = false

  /** Skips empty lines. Calls `tooLong` as soon as a line exceeds `maxBytes`, and drops that line. */
  constructor(maxBytes: number, receive: (line: string, bytes: number) => void, tooLong: () => void) {
    this.#maxBytes = maxBytes
    this.#receive = receive
    this.#tooLong = tooLong
  }

  add(chunk: Buffer): void {
    let from = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      this.#append(chunk.subarray(from, end))
      this.#complete()
      from = end + 1
    }
    if (from < chunk.length) this.#append(from === 0 ? chunk : chunk.subarray(from))
  }

  #append(part: Buffer): void {
    if (this.#isTooLong) return
    if (this.#line.length + part.length <= this.#maxBytes) return void this.#line.append(part)
    this.#isTooLong = true
    this.#line.clear()
    this.#tooLong()
  }

  #complete(): void {
    const bytes = this.#line.length
    const line = textOf(this.#line.view()).trim()
    this.#isTooLong = false
    this.#line.clear()
    if (line !== '') this.#receive(line, bytes)
  }
}
