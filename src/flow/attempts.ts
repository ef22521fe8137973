// The attempts of a step that may be retried, or that has a time limit.
//
// 1. All attempts have one idempotency key. Only the outcome of the last one is recorded.
// 2. How many attempts failed, and when the next one is due, is carried with the flow. So another instance continues the count.
// 3. In a task a long wait releases the worker. Otherwise the pass waits, as long as its time limit allows.
// 4. No step is retried once a scope around it has settled: its result would not be recorded.
import { isPublicProtocolError } from '../protocol/errors.ts'
import { backoff } from '../protocol/backoff.ts'
import type { Call } from './call.ts'
import { derivedRandom } from './derive.ts'
import { Declined, Fatal, FlowError, StepTimeout, ToolError } from './errors.ts'
import { detailsOf, nameOf } from './failure-log.ts'
import type { Begun, StepEnd } from './observer.ts'
import type { Attempt, RetryPolicy } from './retry.ts'
import { scheduler as defaultScheduler } from './scheduler.ts'
import type { StepHost } from './step-run.ts'
import { endAttempt, NOTHING_THROWN, runStep, stepReturned, stepThrew } from './step-run.ts'
import type { Waits } from './waits.ts'

/** A quarter more or less, so that many flows do not retry together. */
const JITTER = 0.25

type TimedAttempt = { -readonly [K in keyof Attempt]: Attempt[K] } & {
  /** Present if an observer watches the attempt. */
  observation?: Begun<StepEnd> | undefined
}

/** What the attempts of a step need from their pass. */
export interface AttemptHost extends StepHost {
  readonly ended: boolean
  readonly waits: Waits
  /** How long the pass may still take, in milliseconds. */
  readonly leftMs: number
  /** True if the pass is handed over, so that no attempt starts in it. */
  isLeaving(): boolean
  /** True if a scope around the key has settled, so that what the step results in is not recorded. */
  isInClosedScope(key: string): boolean
}

export class Attempts {
  readonly #host: AttemptHost
  readonly #call: Call
  readonly #run: (attempt: Attempt) => unknown
  readonly #policy: RetryPolicy

  constructor(host: AttemptHost, call: Call, run: (attempt: Attempt) => unknown, policy: RetryPolicy) {
    this.#host = host
    this.#call = call
    this.#run = run
    this.#policy = policy
  }

  /** Starts the next attempt when it is due. */
  begin(): void {
    const { attempts = 0, dueAt = 0 } = this.#host.waits.carried(this.#call.key) ?? {}
    if (attempts === 0) return this.#start(1)
    this.#call.failure = new Error(`Attempt ${attempts} failed in an earlier pass.`)
    this.#wait(attempts + 1, dueAt)
  }

  #wait(number: number, dueAt: number): void {
    const { waits, input } = this.#host
    const holds = input.journalWriter === undefined || !waits.releases(dueAt)
    waits.add(this.#call.key, { dueAt, holds, recorded: false, fire: () => this.#start(number) })
  }

  #start(number: number): void {
    const host = this.#host
    if (host.ended || (number > 1 && host.isLeaving())) return
    const attempt: TimedAttempt = { number, state: 'running' }
    const cancelTimer = this.#startTimer(attempt)
    const ended = (report: () => void): void => {
      cancelTimer?.()
      if (attempt.state === 'timed out') return this.#logLate(number)
      attempt.state = 'over'
      report()
    }
    attempt.observation = runStep(
      host,
      this.#call,
      () => this.#run(attempt),
      (value) => ended(() => stepReturned(host, this.#call, value)),
      (error) => {
        // It stopped in time: its signal was aborted.
        if (attempt.state === 'timed out' && isAbort(error)) return
        ended(() => this.#failed(number, error))
      },
    )
  }

  /** Returns a function that stops the timer; `undefined` if the step has no time limit. */
  #startTimer(attempt: TimedAttempt): (() => void) | undefined {
    const { timeoutMs } = this.#policy
    if (timeoutMs === undefined) return undefined
    const { scheduler = defaultScheduler } = this.#host.input
    let passed: (value: undefined) => void
    attempt.timeout = new Promise((resolve) => (passed = resolve))
    return scheduler.after(timeoutMs, () => {
      this.#timedOut(attempt, timeoutMs)
      // After the end of the pass too: another pass may wait for what this attempt holds.
      passed(undefined)
    })
  }

  #timedOut(attempt: TimedAttempt, ms: number): void {
    const error = new StepTimeout(this.#call.key, ms)
    // The function may still run, or never end.
    attempt.observation?.end({ outcome: 'failed', error })
    if (this.#host.ended) return
    attempt.state = 'timed out'
    this.#failed(attempt.number, error)
  }

  #failed(number: number, error: unknown): void {
    const host = this.#host
    const { key } = this.#call
    const delayMs = this.#delayMs(number, error)
    const aborting = error instanceof StepTimeout ? error : undefined
    if (delayMs === undefined) {
      // The signal of an attempt that took too long is aborted before the step fails.
      if (aborting !== undefined) endAttempt(host, this.#call, aborting)
      return stepThrew(host, this.#call, error)
    }
    const { target, flow, logger } = host.input
    logger.warn(
      `${nameOf(target)}: attempt ${number} of the step "${key}" failed. The next one is in ${delayMs} ms.`,
      detailsOf({ target, flow }, error, key),
    )
    const dueAt = host.waits.now + delayMs
    host.waits.carry(key, { dueAt, attempts: number })
    this.#call.failure = error ?? NOTHING_THROWN
    endAttempt(host, this.#call, aborting)
    this.#wait(number + 1, dueAt)
  }

  /** The wait before the next attempt; `undefined` if there is none. */
  #delayMs(number: number, error: unknown): number | undefined {
    const { ended, input, leftMs, waits } = this.#host
    const { retries } = this.#policy
    if (ended || number > retries || isFinal(error) || this.#host.isResult(error)) return undefined
    if (this.#host.isInClosedScope(this.#call.key)) return undefined
    // Derived, not random: a test that is repeated has the same waits.
    const jitter = 1 - JITTER + 2 * JITTER * derivedRandom(input.flow.id, `${this.#call.key} attempt ${number}`)
    const delayMs = Math.ceil(backoff(number, this.#policy.backoff) * jitter)
    const mostMs = input.journalWriter === undefined ? leftMs : waits.longestSleepMs
    return delayMs < mostMs ? delayMs : undefined
  }

  #logLate(number: number): void {
    const { target, flow, logger } = this.#host.input
    const { key } = this.#call
    logger.warn(
      `${nameOf(target)}: attempt ${number} of the step "${key}" ended after its \`timeoutMs\`. Its result is ignored. Pass \`signal\` on, so that it stops in time.`,
      detailsOf({ target, flow }, undefined, key),
    )
  }
}

/** True for what a call throws whose signal was aborted: the reason of the signal, or an error of its own. */
function isAbort(error: unknown): boolean {
  return error instanceof StepTimeout || (error instanceof Error && error.name === 'AbortError')
}

/** True if another attempt would not help: the author has decided, or a rule of the flow was broken. */
function isFinal(error: unknown): boolean {
  if (error instanceof ToolError || isPublicProtocolError(error) || error instanceof Declined) return true
  return error instanceof Fatal || error instanceof FlowError
}
