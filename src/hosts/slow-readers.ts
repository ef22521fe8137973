// Responses that their readers have not taken at once. A reader that takes nothing for a while is disconnected, because what it
// does not read stays in memory. A slow reader that takes some keeps its connection.
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
  readonly #responses = new Map<ServerResponse, Progress>()
  #timer: NodeJS.Timeout | undefined

  constructor(stallMs: number) {
    this.#stallMs = stallMs
  }

  /** Call it after each write. The usual response is with the system already, and costs nothing here. */
  watch(response: ServerResponse): void {
    if (response.writableLength === 0 || this.#responses.has(response)) return
    this.#responses.set(response, progressOf(response, performance.now()))
    this.#timer ??= setInterval(() => this.#sweep(performance.now()), this.#stallMs / SWEEPS).unref()
  }

  #sweep(now: number): void {
    for (const [response, last] of this.#responses) {
      if (response.writableLength === 0 || response.destroyed) {
        this.#responses.delete(response)
        continue
      }
      const current = progressOf(response, now)
      // It waits for an earlier response on the same connection, which is watched itself if its reader is slow.
      const isWaiting = response.socket === null
      if (isWaiting || current.queued !== last.queued || current.waiting < last.waiting) {
        this.#responses.set(response, current)
      } else if (now - last.since >= this.#stallMs) {
        this.#responses.delete(response)
        response.destroy()
      } else last.waiting = current.waiting
    }
    if (this.#responses.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
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
