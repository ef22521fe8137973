// The cancellation of one request. Cheaper than an AbortSignal, because a host creates one per request.

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

  /** Sets the only listener, the running pass. `undefined` removes it, so a suspended pass can be collected. */
  listen(listener: (() => void) | undefined): void {
    this.#listener = listener
    if (this.#cancelled) listener?.()
  }
}
