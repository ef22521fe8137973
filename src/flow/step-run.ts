// One run of a step's function: it counts as busy while it runs, has a signal of its own, and its result or error is recorded.
import type { Call } from './call.ts'
import { attempt } from './call.ts'
import type { PassInput } from './carrier.ts'
import { nestedCall, toFailure } from './errors.ts'
import type { Tag } from './journal.ts'
import { runInStep } from './nesting.ts'
import type { Begun, StepEnd } from './observer.ts'
import type { Attempt } from './retry.ts'

/** Stands for `undefined` in the log: some code throws that. */
export const NOTHING_THROWN = 'undefined was thrown'

/** What a step that runs needs from its pass. */
export interface StepHost {
  readonly input: PassInput
  /** The step whose synchronous part is running. */
  insideStep: string | undefined
  /** Of the steps that run and have read their signal. */
  stepAborts: Map<string, AbortController> | undefined
  /** True if what still runs is to stop. */
  readonly stopsWork: boolean
  find(key: string): Call | undefined
  /** A step starts (1) or ends (-1). */
  busy(change: 1 | -1): void
  /** The number of the attempt that runs next. */
  attemptOf(call: Call): number
  /** True if what the handler threw is a result, which no step may have. */
  isResult(thrown: unknown): boolean
  record(call: Call, tag: Tag, result: unknown, thrown?: unknown): void
  fail(error: unknown, key?: string): Promise<never>
}

/** Runs the function of the step. Returns how observers know it. */
export function runStep(
  host: StepHost,
  call: Call,
  run: () => unknown,
  returned: (value: unknown) => void,
  threw: (error: unknown) => void,
): Begun<StepEnd> | undefined {
  host.busy(1)
  call.running = true
  host.insideStep = call.key
  const { strict, observed } = host.input
  const work = strict ? () => runInStep(host, call.key, run) : run
  const observation = observed?.step(call.key, host.attemptOf(call))
  if (observation === undefined) attempt(work, returned, threw)
  else attemptObserved(observation, work, returned, threw)
  host.insideStep = undefined
  return observation
}

/** The function does not run any more, or its result is not wanted. With an error, the signal of the attempt is aborted. */
export function endAttempt(host: StepHost, call: Call, abortWith?: Error): void {
  if (!call.running) return
  call.running = false
  if (abortWith !== undefined) host.stepAborts?.get(call.key)?.abort(abortWith)
  host.stepAborts?.delete(call.key)
  host.busy(-1)
}

export function stepReturned(host: StepHost, call: Call, value: unknown): void {
  endAttempt(host, call)
  host.record(call, value === undefined ? 'sv' : 's', value ?? null)
}

export function stepThrew(host: StepHost, call: Call, error: unknown): void {
  if (host.isResult(error)) void host.fail(nestedCall('inputRequired', call.key), call.key)
  endAttempt(host, call)
  host.record(call, 'se', toFailure(error), error ?? NOTHING_THROWN)
}

/** The signal of one attempt of a step, which ends with the attempt: what outlives one that succeeded is not aborted. */
export function signalOf(host: StepHost, key: string, { state }: Attempt): AbortSignal {
  const abort = new AbortController()
  if (host.stopsWork || state === 'timed out') abort.abort()
  else if (state === 'running' && host.find(key)?.running) (host.stepAborts ??= new Map()).set(key, abort)
  return abort.signal
}

function attemptObserved(
  step: Begun<StepEnd>,
  run: () => unknown,
  returned: (value: unknown) => void,
  threw: (error: unknown) => void,
): void {
  attempt(
    () => step.run(run),
    (value) => {
      step.end({ outcome: 'completed' })
      returned(value)
    },
    (error) => {
      step.end({ outcome: 'failed', error })
      threw(error)
    },
  )
}
