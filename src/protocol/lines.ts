// Splits a stream of bytes into lines. Buffers at most one incomplete line.

const NEWLINE = 0x0a

export class Lines {
  readonly #maxBytes: number
  readonly #receive: (line: string) => void
  readonly #tooLong: () => void
  #parts: Buffer[] = []
  #bytes = 0

  /** Skips empty lines. Calls `tooLong` as soon as a line exceeds `maxBytes`, and drops that line. */
  constructor(maxBytes: number, receive: (line: string) => void, tooLong: () => void) {
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
    this.#append(chunk.subarray(from))
  }

  #append(part: Buffer): void {
    const wasWithin = this.#bytes <= this.#maxBytes
    this.#bytes += part.length
    if (this.#bytes <= this.#maxBytes) return void (part.length > 0 && this.#parts.push(part))
    this.#parts = []
    if (wasWithin) this.#tooLong()
  }

  #complete(): void {
    const line = Buffer.concat(this.#parts).toString('utf8').trim()
    this.#parts = []
    this.#bytes = 0
    if (line !== '') this.#receive(line)
  }
}
