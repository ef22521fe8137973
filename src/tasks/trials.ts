// When a task that was lost with its worker may run again.
//
// When an instance dies, it loses every task that it ran, and nothing tells which of them ended it. So each of them is on trial until it
// has recorded something:
//
// 1. One trial starts at a time: the next one when the first has ended, has recorded something, or has run for a while.
// 2. A worker counts as lost only if the task ran there. One that had merely claimed it, to see whether it is its turn, does not count.
// 3. The last trial is alone for its first lease: the instance runs nothing else beside it. So a task that ends its process fails
//    alone, and one with a long step does not keep an instance from all others.
// 4. An instance whose other tasks do not hand over in time tries less and less often: it claims nothing while it tries.
import type { Backoff } from '../protocol/backoff.ts'
import { backoff } from '../protocol/backoff.ts'

/** How many workers a task may lose before it fails. Counted from the last journal entry. */
export const MOST_LOSSES = 5

/** So many tasks that wait for a trial are looked at in one `trialMs`. More of them wait longer. */
const LOOKS = 20

/** One claim of a task. */
interface Run {
  readonly task: { readonly id: string }
}

export class Trials {
  readonly #leaseMs: number
  #current: { readonly run: Run; readonly until: number } | undefined
  /** How many tasks were turned away since the last trial began. */
  #turnedAway = 0
  /** How many tries in a row failed to run a task alone. */
  #crowded = 0
  /** When the next such try may begin. */
  #aloneFrom = 0

  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs
  }

  /** Returns `false` if another task is on trial. A later claim of the same task takes the place of the one before. */
  begin(run: Run): boolean {
    const now = performance.now()
    if (this.#current !== undefined && this.#current.run.task.id !== run.task.id && now < this.#current.until) {
      this.#turnedAway += 1
      return false
    }
    this.#current = { run, until: now + this.#trialMs }
    this.#turnedAway = 0
    return true
  }

  /** The task has ended or has recorded something. */
  end(run: Run): void {
    if (this.#current?.run === run) this.#current = undefined
  }

  get mayTryAlone(): boolean {
    return performance.now() >= this.#aloneFrom
  }

  /** A try to run a task alone is over. */
  triedAlone(isAlone: boolean): void {
    this.#crowded = isAlone ? 0 : this.#crowded + 1
    this.#aloneFrom = isAlone ? 0 : performance.now() + backoff(this.#crowded, this.#aloneBackoff)
  }

  /** How long a task waits that could not run alone. */
  waitForAlone(): number {
    return Math.max(0, this.#aloneFrom - performance.now()) + this.waitForTrial()
  }

  /** How long to wait after this loss, the first of which is number 1. */
  waitAfterLoss(count: number): number {
    // The first loss is most often that of an innocent task, which has waited for its lease to expire already.
    return count === 1 ? this.waitForTrial() : backoff(count - 1, this.#lossBackoff)
  }

  /** How long a task waits that was turned away. */
  waitForTrial(): number {
    const ms = this.#trialMs * Math.max(1, this.#turnedAway / LOOKS)
    return backoff(1, { firstMs: ms, jitter: [0.2, 1] })
  }

  get #trialMs(): number {
    return this.#leaseMs / 3
  }

  get #aloneBackoff(): Backoff {
    return { firstMs: 4 * this.#leaseMs, maxMs: Math.max(4 * this.#leaseMs, 300_000) }
  }

  /** The first wait is a lease: a task that blocks the event loop of its instance must not block one instance after the other. */
  get #lossBackoff(): Backoff {
    return { firstMs: this.#leaseMs, maxMs: Math.max(this.#leaseMs, 300_000), jitter: [0.75, 1.25] }
  }
}
