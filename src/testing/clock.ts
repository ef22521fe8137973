// The clock of a flow under test: nothing waits in real time.
//
// It advances with each settlement, so that a handler sees the same times however its rounds are split. When nothing runs, it jumps
// to what is due next.

export const STARTED_AT = Date.UTC(2026, 6, 28)
const SETTLING_MS = 1_000
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

  /** Runs it when nothing else runs, as if `ms` had passed. Returns a function that cancels it. */
  after(ms: number, run: () => void, isBusy: () => boolean): () => void {
    const dueAt = this.now() + ms
    let isCancelled = false
    let looks = 0
    const look = (): void => {
      if (isCancelled) return
      looks += 1
      if (isBusy()) return void (looks < MOST_TURNS ? setImmediate(look) : setTimeout(look, 1))
      this.advanceTo(dueAt)
      run()
    }
    setImmediate(look)
    return () => {
      isCancelled = true
    }
  }
}
