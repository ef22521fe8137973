// Timers on every platform.

/** Lets the process end before the timer. Browsers and Workers have numbers for timers, and no process that one keeps alive. */
export function unref<T>(timer: T): T {
  ;(timer as { unref?: () => void }).unref?.()
  return timer
}
