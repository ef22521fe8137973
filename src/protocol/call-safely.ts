// Calls a function of the author's whose failure must not fail anything else.

/**
 * Returns what it returns, or `undefined` if it throws. Nothing waits for a promise that it returns, but a rejection is reported too:
 * an unhandled one would end the process.
 */
export function callSafely<T>(call: () => T, failed: (error: unknown) => void): T | undefined {
  try {
    const value = call()
    if (value instanceof Promise) value.catch(failed)
    return value
  } catch (error) {
    failed(error)
    return undefined
  }
}
