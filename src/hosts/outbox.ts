// Writes JSON responses. A busy server writes those of one event-loop turn together: the clients then wake once, and their
// next requests arrive in one batch. Nothing else on this path saves as much time.
import { ServerResponse } from 'node:http'
import { gathered } from '../flow/scheduler.ts'
import type { SlowReaders } from './slow-readers.ts'

/** With fewer active connections there is nothing to batch, and waiting would only add latency. */
const BUSY = 4
const REMEMBERED = 8
/** So many are written without waiting for the rest of the turn, which may take long when handlers compute. */
const FULL = 64
/** A longer response is written at once. Many of them together would fill the memory before anybody knows who does not read. */
const LARGE = 16 * 1024

export class Outbox {
  readonly slowReaders: SlowReaders
  /** The connections of the last requests. */
  readonly #recent: unknown[] = Array.from({ length: REMEMBERED })
  #next = 0
  #waiting: { response: ServerResponse; status: number; text: string }[] = []

  constructor(slowReaders: SlowReaders) {
    this.slowReaders = slowReaders
  }

  send(response: ServerResponse, status: number, text: string): void {
    this.#recent[this.#next] = response.socket
    this.#next = (this.#next + 1) % REMEMBERED
    if (text.length > LARGE || !this.#isBusy()) return this.#write(response, status, text)
    if (this.#waiting.length === 0) gathered(() => this.#flush())
    if (this.#waiting.push({ response, status, text }) >= FULL) this.#flush()
  }

  #isBusy(): boolean {
    const recent = this.#recent
    let connections = 0
    for (let i = 0; i < REMEMBERED; i += 1) {
      if (recent[i] && recent.indexOf(recent[i]) === i && (connections += 1) === BUSY) return true
    }
    return false
  }

  #flush(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const { response, status, text } of waiting) this.#write(response, status, text)
  }

  #write(response: ServerResponse, status: number, text: string): void {
    // Another handler of the same server was faster, such as one that limits the time of requests.
    if (response.headersSent) return
    const bytes = Buffer.byteLength(text)
    response.writeHead(status, ['Content-Type', 'application/json', 'Content-Length', String(bytes)])
    // ASCII is the same in both, and Node writes Latin-1 without encoding it.
    if (bytes !== text.length) response.end(text, 'utf8')
    else if (!writeAtOnce(response, text)) response.end(text, 'latin1')
    this.slowReaders.watch(response)
  }
}

/** The parts of Node's response that tell whether its head was written. */
interface OpenResponse extends ServerResponse {
  _header?: unknown
  _headerSent?: unknown
  _hasBody?: unknown
}

/**
 * Writes head and body as one text. `response.end(text)` writes the text and an empty one behind it, which costs Node a list of buffers
 * for each response: a twentieth of all time. Returns `false` if it is not Node's own response, or not the only thing to write: a
 * middleware may have replaced `end`, for example to compress the body.
 */
function writeAtOnce(response: OpenResponse, text: string): boolean {
  const { socket, _header: head } = response
  if (socket === null || socket.writableLength > 0 || socket.writableCorked > 0) return false
  if (Object.getPrototypeOf(response) !== ServerResponse.prototype) return false
  if (Object.hasOwn(response, 'end') || Object.hasOwn(response, 'write')) return false
  if (typeof head !== 'string' || response._headerSent !== false || response._hasBody !== true) return false
  socket.write(head + text, 'latin1')
  response._headerSent = true
  response.end()
  return true
}
