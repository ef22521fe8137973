// A handler or a step is written by others: it may return, throw, or give a promise of either.

/** Runs what may return, throw or give a promise, and tells how it went. */
export function attempt(run: () => unknown, returned: (value: unknown) => void, threw: (error: unknown) => void): void {
  let result: unknown
  try {
    result = run()
  } catch (error) {
    return threw(error)
  }
  if (isThenable(result)) result.then(returned, threw)
  else returned(result)
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}
