// All who wait for the results of tasks on this instance.
import { INTERNAL_ERROR, ProtocolError } from '../protocol/errors.ts'
import type { Stoppable } from './session.ts'

const MOST_WAITS = 1_000

export class TaskWaits {
  readonly #all = new Set<Stoppable>()

  get size(): number {
    return this.#all.size
  }

  /** Throws where too many wait. */
  add(wait: Stoppable): void {
    if (this.#all.size >= MOST_WAITS) {
      throw new ProtocolError(INTERNAL_ERROR, 'Too many wait for the results of tasks. Poll tasks/get instead.')
    }
    this.#all.add(wait)
  }

  delete(wait: Stoppable): void {
    this.#all.delete(wait)
  }

  /** The instance goes down: nobody waits here any more. */
  end(): void {
    for (const wait of this.#all) wait.interrupt()
  }
}
