// All requests on this instance that wait for the result of a task.
import { INTERNAL_ERROR, ProtocolError } from '../protocol/errors.ts'
import type { Stoppable } from './session.ts'

const MAX_WAITS = 1_000

export class TaskWaits {
  readonly #all = new Set<Stoppable>()

  get size(): number {
    return this.#all.size
  }

  /** Throws if too many requests wait. */
  add(wait: Stoppable): void {
    if (this.#all.size >= MAX_WAITS) {
      throw new ProtocolError(
        INTERNAL_ERROR,
        `${MAX_WAITS} requests already wait for results of tasks. Poll tasks/get instead.`,
      )
    }
    this.#all.add(wait)
  }

  delete(wait: Stoppable): void {
    this.#all.delete(wait)
  }

  /** Makes all of them fail, because the server is shutting down. */
  end(): void {
    for (const wait of this.#all) wait.interrupt()
  }
}
