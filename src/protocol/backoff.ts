// How long to wait before the next try: longer each time, up to a limit.

export interface Backoff {
  /** The wait before the first retry. */
  readonly firstMs: number
  /** The longest wait, before jitter. Default: no limit. */
  readonly maxMs?: number
  /** How many times longer each wait is than the one before. Default 2. */
  readonly factor?: number
  /** The wait is multiplied by a random number in this range, so that many callers do not retry together. Default: no jitter. */
  readonly jitter?: readonly [min: number, max: number]
}

/** The wait in milliseconds before this retry, the first of which is number 1. */
export function backoff(retry: number, { firstMs, maxMs = Infinity, factor = 2, jitter }: Backoff): number {
  const ms = Math.min(firstMs * factor ** (retry - 1), maxMs)
  if (jitter === undefined) return ms
  const [min, max] = jitter
  return ms * (min + Math.random() * (max - min))
}
