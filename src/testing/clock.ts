// The clock of a flow under test: nothing waits in real time.
//
// It advances with each settlement, so that a handler sees the same times however its rounds are split. When nothing runs, it jumps
// to what is due next. A step takes the time that it takes: what is due meanwhile, such as its own time limit, comes in real time.

export const STARTED_AT = Date.UTC(2026, 6, 28)
/** Short, as in a real pass: many steps must not use up the deadline of a question. */
const SETTLING_MS = 1
/** After so many turns, what runs is real work, and is looked at less often. */
const MOST_TURNS = 20

export class VirtualClock {
  #settledAt = STARTED_AT

  /** The time of the next settlement. */
  now = (): number => this.#settledAt + SETTLING_MS

  /** Something was recorded. */
  settled(): void {
    this.#settledAt += SETTLING_MS
  }

  /** Jumps to this time, if it is later. */
  advanceTo(time: number): void {
    this.#settledAt = Math.max(this.#settledAt, time - SETTLING_MS)
  }

  /**
   * Runs it when `ms` have passed: at once when nothing runs, and in real time while steps run. Never if the pass is about to end.
   * Returns a function that cancels it.
   */
  after(ms: number, run: () => void, pass: () => 'busy' | 'ending' | 'idle'): () => void {
    const dueAt = this.now() + ms
    const reallyDueAt = performance.now() + ms
    let isCancelled = false
    let looks = 0
    const look = (): void => {
      if (isCancelled) return
      looks += 1
      const state = pass()
      const isWork = looks > MOST_TURNS
      const isDue = state === 'idle' || (state === 'busy' && isWork && performance.now() >= reallyDueAt)
      if (!isDue) return void (isWork ? setTimeout(look, 1) : setImmediate(look))
      this.advanceTo(dueAt)
      run()
    }
    setImmediate(look)
    return () => {
      isCancelled = true
    }
  }
}
