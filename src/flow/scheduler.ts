// When the engine goes on: the two waits that a pass needs, so that tests can drive them by hand.

export interface Scheduler {
  /** After every microtask that is due has run. */
  drained(run: () => void): void
  /** After one macrotask turn. */
  turn(run: () => void): void
  /** Resolves after so many milliseconds. */
  sleep(ms: number): Promise<void>
}

/**
 * `queueMicrotask` into `nextTick`: the tick queue is only reached once the microtask queue is empty. `setImmediate` would
 * do too, at three times the cost, and lets unhandled rejections be raised while a caught failure is replayed.
 */
export const scheduler: Scheduler = {
  drained: (run) => queueMicrotask(() => process.nextTick(run)),
  turn: (run) => void setImmediate(run),
  sleep: (ms) => new Promise((resolve) => void setTimeout(resolve, ms)),
}
