// A store that can be taken away and given back.
import type { Store } from 'mcp-rally'

export class BreakableStore implements Store {
  readonly tasks: Store['tasks']
  readonly once: Store['once']
  readonly mailbox: Store['mailbox']
  isDown = false
  /** How many calls have failed. */
  failures = 0
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
    this.tasks = this.#breakable(store.tasks)
    this.once = this.#breakable(store.once)
    this.mailbox = this.#breakable(store.mailbox)
  }

  close(): Promise<void> {
    return this.#store.close()
  }

  #breakable<T extends object>(part: T): T {
    return new Proxy(part, {
      // Not taken for the store in memory, which cannot fail.
      getPrototypeOf: () => Object.prototype,
      get: (_part, name) => {
        const method = (part as Record<string | symbol, unknown>)[name]
        if (typeof method !== 'function') return method
        return (...args: unknown[]) => {
          if (this.isDown && name !== 'watch') return this.#refuse()
          return method.apply(part, args) as unknown
        }
      },
    })
  }

  async #refuse(): Promise<never> {
    this.failures += 1
    throw Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:5432'), { code: 'ECONNREFUSED' })
  }
}
