// When this instance wants its flows to continue on another one: it drains, or it has too much to do.
//
// A pass hands over only after it has recorded something new, at the boundary of a step or at a yield. No further step
// starts, running steps finish, and the round ends with its open questions, or with a state alone. An interrupted pass hands
// over at once with what it has recorded. A handler that never used `io` cannot be run again unasked, so it fails.
import type { Pass } from '../flow/pass.ts'
import { Underway } from '../flow/underway.ts'
import { callSafely } from '../protocol/call-safely.ts'
import type { Logger } from '../protocol/logger.ts'

/** When this instance is overloaded: if the event loop lags by more than `lagMs`, or if the function returns true. */
export type ShedLoad = { lagMs: number } | (() => boolean)

/** Limits for overload: most clients give up after ten rounds, and a flow that is only handed over makes no progress. */
const MOST_DEFERRALS = 3
const LAST_ROUND = 5

const LAG_SAMPLE_MS = 50

export class Handover {
  readonly underway = new Underway<Pass>()
  readonly #overloaded: (() => boolean) | undefined
  #draining = false

  constructor(shed: ShedLoad | undefined, logger: Logger) {
    this.#overloaded = typeof shed === 'object' ? laggingBy(shed.lagMs) : shed && withoutThrowing(shed, logger)
  }

  get draining(): boolean {
    return this.#draining
  }

  /** True always while draining, and under overload as long as the flow can afford more rounds. `round` is 0 in the first round. */
  wanted(round: number, deferrals: number): boolean {
    if (this.#draining) return true
    if (this.#overloaded === undefined || deferrals >= MOST_DEFERRALS || round >= LAST_ROUND) return false
    return this.#overloaded()
  }

  drain(): void {
    this.#draining = true
  }

  /** Ends the passes that still run. Another instance continues from what they recorded. */
  interrupt(): void {
    for (const pass of this.underway.all()) pass.interrupt()
  }
}

/** An error in the author's function must not fail a call. */
function withoutThrowing(test: () => boolean, logger: Logger): () => boolean {
  return () => {
    const sheds = callSafely(test, (error) =>
      logger.error('`shed()` threw; load shedding is skipped for this call.', { error }),
    )
    // A promise is no answer.
    return sheds === true
  }
}

/** A timer that fires late shows how long a request waits before it is served. */
function laggingBy(lagMs: number): () => boolean {
  let lag = 0
  let due = performance.now() + LAG_SAMPLE_MS
  setInterval(() => {
    const now = performance.now()
    lag = now - due
    due = now + LAG_SAMPLE_MS
  }, LAG_SAMPLE_MS).unref()
  // A sample that is overdue right now counts too.
  return () => Math.max(lag, performance.now() - due) > lagMs
}
