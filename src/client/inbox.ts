// Changes on their way to whoever looks at them. Those that say the same are one, so that a slow consumer holds little.

const MOST_WAITING = 1_000

export class ChangeQueue<T> {
  readonly #waiting = new Map<string, T>()
  #wake: () => void = () => {}
  #isOver = false
  readonly #missed: T

  /** `missed` stands for all that comes when too much is waiting already. */
  constructor(missed: T) {
    this.#missed = missed
  }

  /** Nothing more will come. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Changes of the same key say the same. */
  put(key: string, change: T): void {
    if (this.#waiting.has(key)) return
    if (this.#waiting.size < MOST_WAITING) this.#waiting.set(key, change)
    else this.#waiting.set('missed', this.#missed)
    this.#wake()
  }

  /** The oldest, if there is one. */
  take(): T | undefined {
    for (const [key, change] of this.#waiting) {
      this.#waiting.delete(key)
      return change
    }
    return undefined
  }

  /** Resolves once there may be something to take, or nothing more will come. */
  more(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
      if (this.#waiting.size > 0 || this.#isOver) resolve()
    })
  }

  end(): void {
    this.#isOver = true
    this.#wake()
  }
}
