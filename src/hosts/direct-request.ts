// A request that gives its body to one reader as Node's parser reads it, without the queue and the events of a stream. These
// took 5 to 9 % of the CPU time of a call.
import { IncomingMessage } from 'node:http'

/** Receives a body in chunks, in order. */
export interface BodyReader {
  receiveChunk(chunk: Buffer): void
  receiveEnd(): void
}

/** For Node's server alone: other runtimes read bodies in their own way. */
export class DirectRequest extends IncomingMessage {
  #reader: BodyReader | undefined

  /** Returns `false` if some of the body has come already. Then it must be read as a stream. */
  readBody(reader: BodyReader): boolean {
    if (this.complete || this.readableLength > 0 || this.readableFlowing !== null) return false
    this.#reader = reader
    return true
  }

  /** Drops the rest of the body, and what its reader refers to: a connection keeps its last request until the next one. */
  dropBody(): void {
    this.#reader = NOBODY
  }

  /** Node's parser calls it for each chunk. */
  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (this.#reader === undefined) return super.push(chunk, encoding)
    if (chunk === null) this.#reader.receiveEnd()
    else this.#reader.receiveChunk(chunk)
    // Another listener of the server may read the body as a stream too, or wait for its end.
    if (this.readableFlowing !== null) return super.push(chunk, encoding)
    if (chunk === null && ENDS.some((name) => this.listenerCount(name) > 0)) {
      super.push(null)
      this.resume()
    }
    return true
  }

  /** Node calls it after the response, so that what is left of a body is read and dropped. Here nothing is left. */
  protected _dump(): void {
    if (this.#reader !== undefined && this.complete) return
    const dump: unknown = Reflect.get(IncomingMessage.prototype, '_dump')
    if (typeof dump === 'function') dump.call(this)
  }
}

/** What a stream emits at its end, or at the end of its connection. */
const ENDS = ['end', 'close', 'aborted', 'error'] as const

const NOBODY: BodyReader = { receiveChunk() {}, receiveEnd() {} }
