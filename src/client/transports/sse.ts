// Reads a stream of server-sent events, whatever pieces it comes in and however its lines end.

/** Where in a stream one is: what a client asks for the rest with. */
export interface Cursor {
  /** Of the last event that came whole. */
  id: string | undefined
  /** How long the server wants to be left alone for. */
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
  /** Of what is held. */
  #length = 0
  /** A line feed that follows belongs to the line before. */
  #afterReturn = false
  #isOver = false

  /**
   * Gives the data of every message event. Ends at one that is longer than `maxLength` characters. Keeps the `cursor` up
   * to date, where there is one.
   */
  constructor(maxLength: number, receive: (data: string) => void, tooLarge: () => void, cursor?: Cursor) {
    this.#cursor = cursor
    this.#maxLength = maxLength
    this.#receive = receive
    this.#tooLarge = tooLarge
  }

  add(chunk: Uint8Array): void {
    // Takes off a byte order mark at the beginning, and keeps what is not complete of a character.
    const piece = this.#decoder.decode(chunk, { stream: true })
    let from = 0
    const ends = /\r\n|\r|\n/g
    for (let end = ends.exec(piece); end !== null && !this.#isOver; end = ends.exec(piece)) {
      const isRest = this.#afterReturn && end.index === 0 && end[0] === '\n'
      this.#afterReturn = end[0] === '\r' && ends.lastIndex === piece.length
      if (!isRest) {
        this.#keep(piece.slice(from, end.index))
        this.#endLine()
      }
      from = ends.lastIndex
    }
    if (this.#isOver || from === piece.length) return
    this.#afterReturn = false
    this.#keep(piece.slice(from))
  }

  #keep(part: string): void {
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
    if (field === 'data') this.#data.push(value)
    else this.#length -= line.length
    if (field === 'event') this.#type = value
    else if (this.#cursor !== undefined) this.#locate(this.#cursor, field, value)
  }

  #locate(cursor: Cursor, field: string, value: string): void {
    if (field === 'id' && value.length <= LONGEST_ID && ID.test(value)) this.#id = value
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

/** It becomes a header. */
const LONGEST_ID = 4_096
const ID = /^[\x20-\x7e]+$/
const DIGITS = /^\d{1,9}$/
