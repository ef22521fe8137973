// Responses that their readers have not taken at once. What they do not read stays in memory. So a reader that takes nothing for a
// while is disconnected, and so is the one with most to read when all of them together leave too much. A slow reader that takes
// some keeps its connection.
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

interface Progress {
  /** What the system has not sent yet of the write under way. */
  queued: number
  /** What waits in all. Grows with every further write. */
  waiting: number
  since: number
}

const SWEEPS = 4

export class SlowReaders {
  readonly #stallMs: number
  readonly #maxBytes: number
  readonly #responses = new Map<ServerResponse, Progress>()
  /** The sum of `waiting`. */
  #bytes = 0
  #timer: NodeJS.Timeout | undefined

  constructor(stallMs: number, maxBytes: number) {
    this.#stallMs = stallMs
    this.#maxBytes = maxBytes
  }

  /** Call it after each write. The usual response is with the system already, and costs nothing here. */
  watch(response: ServerResponse): void {
    const { writableLength } = response
    if (writableLength === 0) return
    const known = this.#responses.get(response)
    if (known === undefined) {
      this.#responses.set(response, progressOf(response, performance.now()))
      this.#bytes += writableLength
      this.#timer ??= setInterval(() => this.#sweep(performance.now()), this.#stallMs / SWEEPS).unref()
    } else if (writableLength > known.waiting) {
      this.#bytes += writableLength - known.waiting
      known.waiting = writableLength
    }
    if (this.#bytes > this.#maxBytes) this.#makeRoom()
  }

  #sweep(now: number): void {
    for (const [response, last] of this.#responses) {
      if (this.#isOver(response)) continue
      const current = progressOf(response, now)
      // It waits for an earlier response on the same connection, which is watched itself if its reader is slow.
      const isWaiting = response.socket === null
      if (isWaiting || current.queued !== last.queued || current.waiting < last.waiting) {
        this.#responses.set(response, current)
        this.#bytes += current.waiting - last.waiting
      } else if (now - last.since >= this.#stallMs) this.#disconnect(response)
    }
    if (this.#responses.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Forgets what was read meanwhile, and then disconnects those with most to read. */
  #makeRoom(): void {
    for (const response of this.#responses.keys()) this.#isOver(response)
    while (this.#bytes > this.#maxBytes) {
      let largest: ServerResponse | undefined
      let most = 0
      for (const [response, { waiting }] of this.#responses) {
        if (waiting > most) [largest, most] = [response, waiting]
      }
      if (largest === undefined) return
      this.#disconnect(largest)
    }
  }

  /** Forgets a response that was read to its end, or lost. */
  #isOver(response: ServerResponse): boolean {
    if (response.writableLength > 0 && !response.destroyed) return false
    this.forget(response)
    return true
  }

  #disconnect(response: ServerResponse): void {
    this.forget(response)
    response.destroy()
  }

  /** The response was read, or its connection is lost. */
  forget(response: ServerResponse): void {
    this.#bytes -= this.#responses.get(response)?.waiting ?? 0
    this.#responses.delete(response)
  }
}

function progressOf({ socket, writableLength }: ServerResponse, now: number): Progress {
  return { queued: socket === null ? 0 : queuedBy(socket), waiting: writableLength, since: now }
}

/** Node keeps one large write as a whole until its end. Only its handle knows how much of it is left. */
function queuedBy(socket: Socket): number {
  const handle: unknown = Reflect.get(socket, '_handle')
  const size: unknown =
    typeof handle === 'object' && handle !== null ? Reflect.get(handle, 'writeQueueSize') : undefined
  return typeof size === 'number' ? size : 0
}
