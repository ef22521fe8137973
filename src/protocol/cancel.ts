// A cancellation that costs nothing until somebody listens: what a host holds for each request instead of an AbortSignal.

export class Cancel {
  #cancelled = false
  #listener: (() => void) | undefined

  get cancelled(): boolean {
    return this.#cancelled
  }

  cancel(): void {
    if (this.#cancelled) return
    this.#cancelled = true
    const listener = this.#listener
    this.#listener = undefined
    listener?.()
  }

  /** One listener, the running pass. `undefined` lets go of it, so that nothing long-lived holds a parked pass. */
  listen(listener: (() => void) | undefined): void {
    this.#listener = listener
    if (this.#cancelled) listener?.()
  }
}
