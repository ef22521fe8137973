// When this instance wants its flows to continue on another one: it drains, or it has too much to do.
//
// A pass hands over only after it has recorded something new, at the boundary of a step or at a yield. No further step
// starts, running steps finish, and the round ends with its open questions, or with a state alone. An interrupted pass hands
// over at once with what it has recorded. A handler that never used `io` cannot be run again unasked, so it fails.
import type { Pass } from '../flow/pass.ts'
import { Underway } from '../flow/underway.ts'
import type { Logger } from '../protocol/logger.ts'

/** Whether to hand flows over for load: past this lag of the event loop, or by the author's own test. */
export type ShedLoad = { lagMs: number } | (() => boolean)

/** Most clients give up after ten rounds, and a flow that is only pushed around gets nowhere. */
const MOST_DEFERRALS = 3
const LAST_ROUND = 5

const LAG_SAMPLE_MS = 50

export class Handover {
  readonly underway = new Underway<Pass>()
  readonly #overloaded: (() => boolean) | undefined
  #draining = false

  constructor(shed: ShedLoad | undefined, logger: Logger) {
    this.#overloaded = typeof shed === 'object' ? laggingBy(shed.lagMs) : shed && harmless(shed, logger)
  }

  get draining(): boolean {
    return this.#draining
  }

  /** For a drain always; for load only as long as it does the flow no harm. `round` is 0 in the first one. */
  wanted(round: number, deferrals: number): boolean {
    if (this.#draining) return true
    if (this.#overloaded === undefined || deferrals >= MOST_DEFERRALS || round >= LAST_ROUND) return false
    return this.#overloaded()
  }

  drain(): void {
    this.#draining = true
  }

  /** Ends what still runs: with what is recorded, it goes on elsewhere. */
  interrupt(): void {
    for (const pass of this.underway.all()) pass.interrupt()
  }
}

/** A test that fails is no reason for a call to. */
function harmless(test: () => boolean, logger: Logger): () => boolean {
  return () => {
    try {
      return test()
    } catch (error) {
      logger.error('The test for load failed, so nothing is handed over for it.', { error })
      return false
    }
  }
}

/** How late a timer comes is how long a request waits before anybody looks at it. */
function laggingBy(lagMs: number): () => boolean {
  let lag = 0
  let due = performance.now() + LAG_SAMPLE_MS
  setInterval(() => {
    const now = performance.now()
    lag = now - due
    due = now + LAG_SAMPLE_MS
  }, LAG_SAMPLE_MS).unref()
  // The sample that is overdue right now counts too.
  return () => Math.max(lag, performance.now() - due) > lagMs
}
