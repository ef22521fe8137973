// An error that says: not now, send the same request again later. Over HTTP it is a 503 with `Retry-After`; its data says the same to
// clients on other hosts.
import { INTERNAL_ERROR, ProtocolError } from './errors.ts'
import { isObject } from './json.ts'

/** When to send a request again. */
export interface RetryAdvice {
  /** How long to wait before the next attempt. */
  readonly retryAfterMs: number
  /** True if the server did nothing with the request, so that any request may be sent again. */
  readonly isUnprocessed: boolean
}

/**
 * Asks the client to send the same request again later (-32603, HTTP 503 with `Retry-After`). With `isUnprocessed`, which is false by
 * default, clients may do that by themselves: say so only if nothing was done.
 *
 * @example
 * app.use((call, next) => {
 *   if (isDown()) throw new Unavailable('Down for maintenance.', { retryAfterMs: 5_000, isUnprocessed: true })
 *   return next()
 * })
 */
export class Unavailable extends ProtocolError {
  /** When to send the request again. */
  readonly advice: RetryAdvice

  constructor(
    message: string,
    { retryAfterMs, isUnprocessed = false }: Partial<RetryAdvice> & Pick<RetryAdvice, 'retryAfterMs'>,
    options?: ErrorOptions,
  ) {
    super(INTERNAL_ERROR, message, { retryAfterMs, ...(isUnprocessed && { unprocessed: true }) }, options)
    this.advice = { retryAfterMs, isUnprocessed }
  }

  /** The value of the header `Retry-After`: whole seconds. */
  get retryAfter(): string {
    return String(Math.ceil(this.advice.retryAfterMs / 1_000))
  }
}

/** A wait that is longer than this is not believed. */
const MAX_RETRY_AFTER_MS = 60_000

/** Reads the untrusted data of an error, and the header `Retry-After` if there is one. Returns `undefined` if neither names a time. */
export function readRetryAdvice(data: unknown, header?: string): RetryAdvice | undefined {
  const { retryAfterMs, unprocessed } = isObject(data) ? data : {}
  const seconds = header !== undefined && /^\d{1,9}$/.test(header.trim()) ? Number(header) : undefined
  const ms = typeof retryAfterMs === 'number' && retryAfterMs >= 0 ? retryAfterMs : seconds && seconds * 1_000
  if (ms === undefined) return undefined
  return { retryAfterMs: Math.min(ms, MAX_RETRY_AFTER_MS), isUnprocessed: unprocessed === true }
}
