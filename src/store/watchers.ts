// Who listens to a store, and tells them.

export class Watchers<T> {
  readonly #listeners = new Set<(news: T) => void>()

  get size(): number {
    return this.#listeners.size
  }

  /** Gives how to stop. */
  add(listener: (news: T) => void): () => void {
    // Its own, so that the same function may listen twice.
    const own = (news: T): void => listener(news)
    this.#listeners.add(own)
    return () => void this.#listeners.delete(own)
  }

  tell(news: T): void {
    for (const listener of this.#listeners) {
      try {
        listener(news)
      } catch {
        // One that fails keeps nobody else from hearing it, and least of all the write that it tells of from being done.
      }
    }
  }
}
