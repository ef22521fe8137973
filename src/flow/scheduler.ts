// When the engine goes on: the two waits that a pass needs, so that tests can drive them by hand.

export interface Scheduler {
  /** After every microtask that is due has run. */
  drained(run: () => void): void
  /** After one macrotask turn. */
  turn(run: () => void): void
  /** Resolves after so many milliseconds, or as soon as the signal aborts; it leaves neither a timer nor a listener. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
}

/** A microtask without what `queueMicrotask` keeps for async hooks. */
const now = Promise.resolve()

/** Whatever waits for the same turn shares one immediate. */
let waiting: (() => void)[] = []

/** From when a turn begins until all that it led to has run. */
let turning = false

/** What waits for the end of the turn. */
let afterTurn: (() => void)[] = []

/** Runs once what the event loop has at hand is done, so that what comes of it can be done together. */
export function gathered(run: () => void): void {
  if (turning) afterTurn.push(run)
  else setImmediate(runGathered, run)
}

function runGathered(run: () => void): void {
  // A turn that is due in the same phase of the loop has something to add.
  if (waiting.length > 0) afterTurn.push(run)
  else run()
}

function runWaiting(): void {
  const due = waiting
  waiting = []
  turning = true
  scheduler.drained(endTurn)
  for (const run of due) {
    try {
      run()
    } catch (error) {
      // As an error of its own, so that nobody else loses their turn.
      queueMicrotask(() => {
        throw error
      })
    }
  }
}

function endTurn(): void {
  const due = afterTurn
  afterTurn = []
  turning = false
  for (const run of due) run()
}

/**
 * A microtask into `nextTick`: the tick queue is only reached once the microtask queue is empty. `setImmediate` would
 * do too, at three times the cost, and lets unhandled rejections be raised while a caught failure is replayed.
 */
export const scheduler: Scheduler = {
  drained: (run) => void now.then(() => process.nextTick(run)),
  turn: (run) => {
    if (waiting.push(run) === 1) setImmediate(runWaiting)
  },
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', wake)
        resolve()
      }
      const timer = setTimeout(wake, ms)
      signal.addEventListener('abort', wake)
    }),
}
