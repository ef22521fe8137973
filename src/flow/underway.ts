// The passes that run: found here when their time is up, and by whoever has to interrupt them.
//
// One sweep looks after all of them, because a timer of its own costs a short call more than all the rest of its pass.
// They are linked through themselves: a Set that is added to and deleted from all the time leaves old tables behind,
// which keep alive what was in them until the next full collection.

export interface Running {
  /** When its time is up, by `performance.now()`. */
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
    // Does not keep the process alive: what a pass waits for does that.
    this.#sweep ??= setInterval(() => this.#expireDue(), SWEEP_MS).unref()
  }

  /** Must be called when the pass ends, once: nothing else lets go of it. */
  delete(pass: T): void {
    const { before, after } = pass
    if (before !== undefined) before.after = after
    else if (this.#first === pass) this.#first = after
    if (after !== undefined) after.before = before
    pass.before = undefined
    pass.after = undefined
  }

  /** Those that run now, whatever becomes of them meanwhile. */
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
