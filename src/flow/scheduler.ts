// How the engine waits: for microtasks, for a turn of the event loop, for a time. Tests replace it.

export interface Scheduler {
  /** Runs it after all microtasks that are due. */
  drained(run: () => void): void
  /** Runs it after one macrotask turn. */
  turn(run: () => void): void
  /** Resolves after `ms`, or when the signal aborts. Leaves neither a timer nor a listener behind. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
  /** Runs it after `ms`, which a timer must be able to wait. Returns a function that cancels it. */
  after(ms: number, run: () => void): () => void
}

/** The longest delay of a timer, in milliseconds. A longer one would end at once. */
export const MAX_TIMER_MS = 2_147_483_647

/** Its `then` is a microtask without the async-hooks overhead of `queueMicrotask`. */
const now = Promise.resolve()

/** What waits for the next turn. All of it shares one immediate. */
let waiting: (() => void)[] = []

/** True from the start of a turn until everything that it caused has run. */
let turning = false

/** What waits for the end of the current turn. */
let afterTurn: (() => void)[] = []

/** Runs after the current work of the event loop, so that its results can be handled together, such as in one write. */
export function gathered(run: () => void): void {
  if (turning) afterTurn.push(run)
  else setImmediate(runGathered, run)
}

function runGathered(run: () => void): void {
  // A turn that is due in the same phase of the loop may add more.
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
      // Thrown separately, so that the other callbacks still run.
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
 * `drained` is a microtask that calls `nextTick`: the tick queue runs only when the microtask queue is empty. `setImmediate` would
 * work too, but costs three times as much, and would raise unhandled rejections while a caught failure is replayed.
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
  after: (ms, run) => {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
}
