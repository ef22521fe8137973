// Keeps quiet event streams open: a comment now and then, so that nobody on the way takes them for dead.

export class KeepAlive {
  readonly #everyMs: number
  readonly #streams = new Set<(comment: string) => void>()
  #timer: NodeJS.Timeout | undefined

  constructor(everyMs: number) {
    this.#everyMs = everyMs
  }

  /** One timer for all streams, and none while there is no stream. */
  add(write: (comment: string) => void): void {
    this.#streams.add(write)
    this.#timer ??= setInterval(() => {
      for (const each of this.#streams) each(':\n\n')
    }, this.#everyMs).unref()
  }

  delete(write: (comment: string) => void): void {
    this.#streams.delete(write)
    if (this.#streams.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
