// The list of running passes, to time them out and to interrupt them.
//
// One timer serves all of them: a timer per pass costs a short call more than the rest of its pass. The passes themselves are the
// links of the list: a Set with so many additions and deletions leaves old tables behind, and these keep their entries alive
// until the next full garbage collection.

export interface Running {
  /** When its time limit passes, by `performance.now()`. */
  deadline: number
  before: Running | undefined
  after: Running | undefined
  expire(): void
}

export interface Interruptible extends Running {
  interrupt(): void
}

const SWEEP_MS = 100

export class Underway<T extends Running = Running> {
  #first: Running | undefined
  #sweep: NodeJS.Timeout | undefined

  add(pass: T, ms: number): void {
    pass.deadline = performance.now() + ms
    pass.after = this.#first
    if (this.#first !== undefined) this.#first.before = pass
    this.#first = pass
    // Does not keep the process alive. Whatever the pass waits for does.
    this.#sweep ??= setInterval(() => this.#expireDue(), SWEEP_MS).unref()
  }

  /** Must be called once when the pass ends: nothing else removes it. */
  delete(pass: T): void {
    const { before, after } = pass
    if (before !== undefined) before.after = after
    else if (this.#first === pass) this.#first = after
    if (after !== undefined) after.before = before
    pass.before = undefined
    pass.after = undefined
  }

  /** A copy of the list: passes may end while the caller goes through it. */
  all(): T[] {
    const running: T[] = []
    for (let pass = this.#first; pass !== undefined; pass = pass.after) running.push(pass as T)
    return running
  }

  #expireDue(): void {
    const now = performance.now()
    for (const pass of this.all()) if (pass.deadline <= now) pass.expire()
    if (this.#first !== undefined) return
    clearInterval(this.#sweep)
    this.#sweep = undefined
  }
}
