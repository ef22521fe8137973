// How steps are retried: the options, their defaults and their checks.
import type { Backoff } from '../protocol/backoff.ts'
import { RallyError } from '../protocol/errors.ts'
import { isObject } from '../protocol/json.ts'
import { shown } from '../protocol/text.ts'
import { MAX_TIMER_MS } from './scheduler.ts'

/** How a step is retried. The same options as `rally({ steps })` set them for every step of the app. */
export interface RetryOptions {
  /** How many further attempts a step gets when it throws. Never after a `ToolError`, `Declined`, `Fatal` or a `ProtocolError` of your own. Default 0. */
  retries?: number
  /**
   * The wait before the first retry, and the longest one, in milliseconds. Each wait is twice the one before, give or take a
   * quarter. Default `{ firstMs: 500, maxMs: 30_000 }`.
   */
  backoff?: { readonly firstMs?: number; readonly maxMs?: number }
  /** How long one attempt may take, in milliseconds, at most 24 days. Then its signal is aborted, and it has failed. Default: no limit of its own. */
  timeoutMs?: number
}

/** The options with their defaults. */
export interface RetryPolicy {
  readonly retries: number
  readonly backoff: Backoff
  readonly timeoutMs: number | undefined
}

/** One run of a step's function. */
export interface Attempt {
  /** 1 for the first. */
  readonly number: number
  readonly state: 'running' | 'over' | 'timed out'
  /** Resolves when `timeoutMs` has passed. `undefined` without a time limit. */
  readonly timeout?: Promise<undefined> | undefined
}

/** Of a step that is not retried. */
export const ONLY_ATTEMPT: Attempt = { number: 1, state: 'running' }

const FIRST_MS = 500
const MAX_MS = 30_000

/** Returns `undefined` if the step has one attempt without a time limit. `app` is what `rally({ steps })` says. */
export function retryPolicy(step: RetryOptions, app: RetryOptions | undefined): RetryPolicy | undefined {
  const { retries = app?.retries ?? 0, timeoutMs = app?.timeoutMs } = step
  if (retries === 0 && timeoutMs === undefined) return undefined
  const { firstMs = FIRST_MS, maxMs = Math.max(MAX_MS, firstMs) } = { ...app?.backoff, ...step.backoff }
  return { retries, backoff: { firstMs, maxMs }, timeoutMs }
}

/** Throws if an option cannot be used. `where` names the options. */
export function checkRetryOptions(options: RetryOptions, where: string): void {
  checkObject(options, `${where}: the options`)
  const { retries, timeoutMs, backoff = {} } = options
  checkObject(backoff, `${where}: \`backoff\``)
  const { firstMs, maxMs } = backoff
  if (retries !== undefined && (!Number.isSafeInteger(retries) || retries < 0)) {
    throw invalid(`${where}: \`retries\` must be a whole number of 0 or more, got ${shown(retries)}`)
  }
  for (const [name, ms] of Object.entries({ 'backoff.firstMs': firstMs, 'backoff.maxMs': maxMs, timeoutMs })) {
    if (ms !== undefined && !(Number.isFinite(ms) && ms > 0)) {
      throw invalid(`${where}: \`${name}\` must be a number of milliseconds above 0, got ${shown(ms)}`)
    }
  }
  // The waits between attempts may be longer: they are made of several timers.
  if (timeoutMs !== undefined && timeoutMs > MAX_TIMER_MS) {
    throw invalid(`${where}: \`timeoutMs\` must be at most ${MAX_TIMER_MS}, which is 24 days, got ${shown(timeoutMs)}`)
  }
}

function checkObject(value: unknown, what: string): void {
  if (!isObject(value)) throw invalid(`${what} must be an object, got ${shown(value)}`)
}

function invalid(message: string): RallyError {
  return new RallyError('OPTION_INVALID', `${message}.`)
}
