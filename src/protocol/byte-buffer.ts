// Collects bytes that arrive in chunks. The other side chooses the size of the chunks, and a list of one-byte chunks takes
// about 400 bytes of memory for each. So they are copied into one buffer that grows.

/** The most bytes that several buffers may hold together. */
export class ByteBudget {
  readonly maxBytes: number
  #used = 0

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes
  }

  get used(): number {
    return this.#used
  }

  /** Returns false, and takes nothing, if that would be too much. */
  take(bytes: number): boolean {
    if (this.#used + bytes > this.maxBytes) return false
    this.#used += bytes
    return true
  }

  release(bytes: number): void {
    this.#used -= bytes
  }
}

export class ByteBuffer {
  readonly #budget: ByteBudget | undefined
  /** Only its first `#length` bytes are used. */
  #bytes: Uint8Array = NO_BYTES
  #length = 0
  #chunks = 0

  /** With a budget, the buffer counts until it is cleared. */
  constructor(budget?: ByteBudget) {
    this.#budget = budget
  }

  get length(): number {
    return this.#length
  }

  /** True if it came in so many tiny chunks that reading it takes more time than it is worth. */
  get isCrumbled(): boolean {
    return this.#chunks > MANY_CHUNKS && this.#length < this.#chunks * TINY_BYTES
  }

  /** The first chunk is kept, not copied, so it must not change later. Returns false, and adds nothing, over the budget. */
  append(chunk: Uint8Array): boolean {
    const length = this.#length + chunk.byteLength
    const capacity = this.#bytes.byteLength
    if (length > capacity) {
      // Doubled when it is full, so that the bytes of millions of tiny chunks are copied about twice.
      const grown = this.#length === 0 ? chunk.byteLength : Math.max(length, 2 * capacity)
      if (this.#budget?.take(grown - capacity) === false) return false
      if (this.#length === 0) {
        this.#bytes = chunk
      } else {
        const bytes = new Uint8Array(grown)
        bytes.set(this.#bytes)
        this.#bytes = bytes
        bytes.set(chunk, this.#length)
      }
    } else {
      this.#bytes.set(chunk, this.#length)
    }
    this.#length = length
    this.#chunks += 1
    return true
  }

  /** The bytes so far. Not valid any more after the next `append`. */
  view(): Uint8Array {
    return this.#bytes.byteLength === this.#length ? this.#bytes : this.#bytes.subarray(0, this.#length)
  }

  clear(): void {
    this.#budget?.release(this.#bytes.byteLength)
    this.#bytes = NO_BYTES
    this.#length = 0
    this.#chunks = 0
  }
}

const MANY_CHUNKS = 4_096
const TINY_BYTES = 16

const NO_BYTES = new Uint8Array(0)

/** Decodes UTF-8. Node's Buffer decodes small texts faster than TextDecoder, and other platforms do not have it. */
export function textOf(bytes: Uint8Array): string {
  if (typeof Buffer !== 'undefined' && bytes instanceof Buffer) return bytes.toString('utf8')
  return decoder.decode(bytes)
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
