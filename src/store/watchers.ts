// The listeners of a store.

export class Watchers<T> {
  readonly #listeners = new Set<(event: T) => void>()

  get size(): number {
    return this.#listeners.size
  }

  /** Returns a function that removes the listener. */
  add(listener: (event: T) => void): () => void {
    // Wrapped, so that the same function can be added twice.
    const own = (event: T): void => listener(event)
    this.#listeners.add(own)
    return () => void this.#listeners.delete(own)
  }

  /**
   * For a write of this process: after its caller has learned of it. So a worker that releases a task has a free place before anybody
   * hears of the release.
   */
  notifySoon(event: T): void {
    process.nextTick(() => this.notify(event))
  }

  notify(event: T): void {
    for (const listener of this.#listeners) {
      try {
        listener(event)
      } catch {
        // A listener that throws must not stop the other listeners, nor the write that it is notified of.
      }
    }
  }
}

/** Listeners by the key that they listen to. A key without listeners takes no memory. */
export class KeyedWatchers {
  readonly #byKey = new Map<string, Watchers<void>>()

  get size(): number {
    return this.#byKey.size
  }

  add(key: string, listener: () => void): () => void {
    const watchers = this.#byKey.get(key) ?? new Watchers<void>()
    this.#byKey.set(key, watchers)
    const remove = watchers.add(listener)
    return () => {
      remove()
      if (watchers.size === 0 && this.#byKey.get(key) === watchers) this.#byKey.delete(key)
    }
  }

  notify(key: string): void {
    this.#byKey.get(key)?.notify()
  }

  notifyAll(): void {
    for (const watchers of this.#byKey.values()) watchers.notify()
  }
}
