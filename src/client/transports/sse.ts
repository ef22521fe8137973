// Reads a stream of server-sent events, with chunks of any size and all three kinds of line ends.

/** A position in a stream, from which the client can ask for the rest. */
export interface Cursor {
  /** The id of the last complete event. */
  id: string | undefined
  /** How long the server asks the client to wait before it reconnects. */
  retryMs: number | undefined
}

export class EventReader {
  readonly #maxLength: number
  readonly #receive: (data: string) => void
  readonly #tooLarge: () => void
  readonly #cursor: Cursor | undefined
  #id: string | undefined
  readonly #decoder = new TextDecoder()
  /** The pieces of a line that is not complete. */
  #line: string[] = []
  #data: string[] = []
  #type = ''
  /** How many characters the event has so far. */
  #length = 0
  /** The chunk ended with a carriage return: a line feed at the start of the next one belongs to the same line end. */
  #afterReturn = false
  #isOver = false

  /**
   * Calls `receive` with the data of every message event. Stops and calls `tooLarge` at an event with more than
   * `maxLength` characters. Keeps the `cursor` up to date, if one is given.
   */
  constructor(maxLength: number, receive: (data: string) => void, tooLarge: () => void, cursor?: Cursor) {
    this.#cursor = cursor
    this.#maxLength = maxLength
    this.#receive = receive
    this.#tooLarge = tooLarge
  }

  add(chunk: Uint8Array): void {
    // The decoder drops a byte order mark at the start, and holds back an incomplete character.
    const piece = this.#decoder.decode(chunk, { stream: true })
    let from = 0
    const ends = /\r\n|\r|\n/g
    for (let end = ends.exec(piece); end !== null && !this.#isOver; end = ends.exec(piece)) {
      const isSecondHalf = this.#afterReturn && end.index === 0 && end[0] === '\n'
      this.#afterReturn = end[0] === '\r' && ends.lastIndex === piece.length
      if (!isSecondHalf) {
        this.#append(piece.slice(from, end.index))
        this.#endLine()
      }
      from = ends.lastIndex
    }
    if (this.#isOver || from === piece.length) return
    this.#afterReturn = false
    this.#append(piece.slice(from))
  }

  #append(part: string): void {
    if (part === '') return
    this.#length += part.length
    if (this.#length > this.#maxLength) {
      this.#isOver = true
      this.#line = []
      this.#data = []
      this.#tooLarge()
    } else {
      this.#line.push(part)
    }
  }

  #endLine(): void {
    if (this.#isOver) return
    const line = this.#line.length === 1 ? (this.#line[0] ?? '') : this.#line.join('')
    this.#line = []
    if (line === '') return this.#endEvent()
    const colon = line.indexOf(':')
    const field = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    // Only data stays in memory until the event ends, so only data counts against the limit.
    if (field === 'data') this.#data.push(value)
    else this.#length -= line.length
    if (field === 'event') this.#type = value
    else if (this.#cursor !== undefined) this.#moveCursor(this.#cursor, field, value)
  }

  #moveCursor(cursor: Cursor, field: string, value: string): void {
    if (field === 'id' && value.length <= MAX_ID_LENGTH && ID.test(value)) this.#id = value
    else if (field === 'retry' && DIGITS.test(value)) cursor.retryMs = Number(value)
  }

  #endEvent(): void {
    if (this.#cursor !== undefined && this.#id !== undefined) this.#cursor.id = this.#id
    const data = this.#data.join('\n')
    const isMessage = this.#data.length > 0 && (this.#type === '' || this.#type === 'message')
    this.#data = []
    this.#type = ''
    this.#length = 0
    if (isMessage) this.#receive(data)
  }
}

/** The client sends the id back in a header. */
const MAX_ID_LENGTH = 4_096
const ID = /^[\x20-\x7e]+$/
const DIGITS = /^\d{1,9}$/
