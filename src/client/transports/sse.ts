// Reads a stream of server-sent events, with chunks of any size and all three kinds of line ends.
import { ByteBuffer, textOf, type ByteBudget } from '../../protocol/byte-buffer.ts'

/** A position in a stream, from which the client can ask for the rest. */
export interface Cursor {
  /** The id of the last complete event. */
  id: string | undefined
  /** How long the server asks the client to wait before it reconnects. */
  retryMs: number | undefined
}

export interface EventReaderOptions {
  /** Called with the data of every message event. */
  readonly receive: (data: string) => void
  /** Called with the data of every event of the type `endpoint`, which servers of 2024-11-05 send. */
  readonly endpoint?: ((data: string) => void) | undefined
  /** Called at most once: an event has more than `maxBytes` bytes. */
  readonly tooLarge: () => void
  /** Called at most once: the budget is used up. */
  readonly overBudget?: () => void
  readonly maxBytes: number
  /** For the bytes of incomplete lines and events. */
  readonly budget?: ByteBudget | undefined
  /** Kept up to date with the ids of the events. */
  readonly cursor?: Cursor | undefined
}

export class EventReader {
  readonly #options: EventReaderOptions
  /** A line that is not complete. */
  readonly #line: ByteBuffer
  /** The data of the event that is not complete, with a line feed between two lines of it. */
  readonly #data: ByteBuffer
  #hasData = false
  /** Bytes of the lines that `#data` was taken from. */
  #dataBytes = 0
  #type: 'message' | 'endpoint' | 'other' = 'message'
  #id: string | undefined
  #isFirstLine = true
  /** The chunk ended with a carriage return: a line feed at the start of the next one belongs to the same line end. */
  #afterReturn = false
  #isOver = false

  /** Stops for good after `tooLarge` or `overBudget`. */
  constructor(options: EventReaderOptions) {
    this.#options = options
    this.#line = new ByteBuffer(options.budget)
    this.#data = new ByteBuffer(options.budget)
  }

  add(chunk: Uint8Array): void {
    if (this.#isOver || chunk.byteLength === 0) return
    let from = this.#afterReturn && chunk[0] === LF ? 1 : 0
    this.#afterReturn = false
    // Both are searched once per occurrence, so that a chunk of many short lines takes linear time.
    let feed = chunk.indexOf(LF, from)
    let carriage = chunk.indexOf(CR, from)
    while (feed !== -1 || carriage !== -1) {
      const end = carriage === -1 || (feed !== -1 && feed < carriage) ? feed : carriage
      this.#endLine(chunk.subarray(from, end))
      if (this.#isOver) return
      const isReturn = end === carriage
      this.#afterReturn = isReturn && end + 1 === chunk.byteLength
      from = isReturn && chunk[end + 1] === LF ? end + 2 : end + 1
      if (feed !== -1 && feed < from) feed = chunk.indexOf(LF, from)
      if (carriage !== -1 && carriage < from) carriage = chunk.indexOf(CR, from)
    }
    // A view costs much more than a tiny chunk.
    if (from < chunk.byteLength) this.#keep(this.#line, from === 0 ? chunk : chunk.subarray(from))
  }

  /** Frees what is buffered. */
  close(): void {
    this.#isOver = true
    this.#line.clear()
    this.#data.clear()
  }

  #keep(buffer: ByteBuffer, bytes: Uint8Array): void {
    if (this.#isOver) return
    const { maxBytes, tooLarge, overBudget } = this.#options
    const isTooLarge = this.#line.length + this.#dataBytes + bytes.byteLength > maxBytes
    if (!isTooLarge && buffer.append(bytes)) return
    this.close()
    if (isTooLarge) tooLarge()
    else overBudget?.()
  }

  /** `rest` is the last part of the line. */
  #endLine(rest: Uint8Array): void {
    if (this.#line.length === 0) return this.#readLine(rest)
    this.#keep(this.#line, rest)
    if (this.#isOver) return
    const line = this.#line.view()
    this.#line.clear()
    this.#readLine(line)
  }

  #readLine(bytes: Uint8Array): void {
    const line = this.#isFirstLine ? withoutMark(bytes) : bytes
    this.#isFirstLine = false
    if (line.byteLength === 0) return this.#endEvent()
    const data = valueOf(line, DATA)
    if (data !== undefined) {
      if (this.#hasData) this.#keep(this.#data, NEXT_LINE)
      this.#hasData = true
      this.#keep(this.#data, data)
      this.#dataBytes += line.byteLength
      return
    }
    const type = valueOf(line, EVENT)
    if (type !== undefined) {
      this.#type = typeOf(type)
    } else if (this.#options.cursor !== undefined) {
      this.#moveCursor(this.#options.cursor, line)
    }
  }

  #moveCursor(cursor: Cursor, line: Uint8Array): void {
    const id = shortText(valueOf(line, ID))
    if (id !== undefined && VALID_ID.test(id)) this.#id = id
    const retry = shortText(valueOf(line, RETRY))
    if (retry !== undefined && DIGITS.test(retry)) cursor.retryMs = Math.min(Number(retry), MAX_RETRY_MS)
  }

  #endEvent(): void {
    const { cursor, receive, endpoint } = this.#options
    if (cursor !== undefined && this.#id !== undefined) cursor.id = this.#id
    const receiver =
      !this.#hasData || this.#type === 'other' ? undefined : this.#type === 'message' ? receive : endpoint
    const data = receiver === undefined ? '' : textOf(this.#data.view())
    this.#data.clear()
    this.#dataBytes = 0
    this.#hasData = false
    this.#type = 'message'
    receiver?.(data)
  }
}

const LF = 0x0a
const CR = 0x0d
const COLON = 0x3a
const SPACE = 0x20
const NEXT_LINE = Uint8Array.of(LF)

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)
const DATA = bytesOf('data')
const EVENT = bytesOf('event')
const ID = bytesOf('id')
const RETRY = bytesOf('retry')
const MESSAGE = 'message'
const ENDPOINT = 'endpoint'
const BYTE_ORDER_MARK = bytesOf('\uFEFF')

/** The client sends the id back in a header. */
const MAX_ID_BYTES = 4_096
const VALID_ID = /^[\x20-\x7e]+$/
const DIGITS = /^\d{1,9}$/
/** Whatever the server asks for: a call would only wait until its time is over. */
const MAX_RETRY_MS = 60_000

/** The value of a field, or undefined if the line is another field. */
function valueOf(line: Uint8Array, field: Uint8Array): Uint8Array | undefined {
  const { length } = field
  if (line.byteLength > length && line[length] !== COLON) return undefined
  if (line.byteLength < length || !startsWith(line, field)) return undefined
  return line.subarray(line[length + 1] === SPACE ? length + 2 : length + 1)
}

function typeOf(name: Uint8Array): 'message' | 'endpoint' | 'other' {
  if (name.byteLength === 0) return 'message'
  // Longer names are not decoded.
  const text = name.byteLength > ENDPOINT.length ? '' : textOf(name)
  return text === MESSAGE || text === ENDPOINT ? text : 'other'
}

function shortText(bytes: Uint8Array | undefined): string | undefined {
  return bytes === undefined || bytes.byteLength > MAX_ID_BYTES ? undefined : textOf(bytes)
}

function withoutMark(line: Uint8Array): Uint8Array {
  return startsWith(line, BYTE_ORDER_MARK) ? line.subarray(BYTE_ORDER_MARK.length) : line
}

function startsWith(bytes: Uint8Array, start: Uint8Array): boolean {
  return start.every((byte, index) => bytes[index] === byte)
}
