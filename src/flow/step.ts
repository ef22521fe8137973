// The context and the options of a step.
import { RallyError } from '../protocol/errors.ts'
import { toJsonText } from '../protocol/json.ts'
import { shown } from '../protocol/text.ts'
import type { OnceOutcome, OnceStore } from '../store/once.ts'
import { useOnce } from '../store/once.ts'
import type { StoreOutages } from '../store/outages.ts'
import { StoreUnavailable } from '../store/outages.ts'
import type { Attempt, RetryOptions } from './retry.ts'
import { checkRetryOptions } from './retry.ts'
import { parked } from './call.ts'
import { idempotencyKey } from './derive.ts'
import type { Pass } from './pass.ts'
import { signalOf } from './step-run.ts'

/** What the function of a step gets: its idempotency key, a signal, and a function that reports progress. */
export interface StepContext {
  /** The same for every run of this step in this flow. Pass it to other services, so that a step that runs twice has one effect. */
  readonly idempotencyKey: string
  /** The attempt's own: aborted when it takes longer than `timeoutMs`, the call is cancelled or fails, or this instance stops. Never after the attempt. */
  readonly signal: AbortSignal
  /** 1 in the first attempt, and one more in each retry. */
  readonly attempt: number
  /** Reports progress to the client, if it asked for that. */
  readonly progress: (progress: number, total?: number, message?: string) => void
  /** Sends a log message to the client, if it asked for this level. */
  readonly log: (level: LogLevel, data: unknown, logger?: string) => void
}

/** The levels of log messages that a handler sends to its client. */
export type LogLevel = 'debug' | 'info' | 'notice' | 'warning' | 'error' | 'critical' | 'alert' | 'emergency'

/** Options of `io.step()`. */
export interface StepOptions extends RetryOptions {
  /** A store that all instances share. Only one pass of the flow runs the step; the others use its result. Default: none. */
  once?: OnceStore
}

/** Throws if an option cannot be used. Without this check, a wrong `once` would look like a store that fails. */
export function checkStepOptions(options: StepOptions, key: string): void {
  const where = `The step "${key}"`
  checkRetryOptions(options, where)
  const { once } = options
  if (once === undefined || typeof once?.claim === 'function') return
  throw new RallyError(
    'OPTION_INVALID',
    `${where}: \`once\` must be a OnceStore, got ${shown(once)}. Pass \`store.once\`.`,
  )
}

export class StepScene implements StepContext {
  readonly #pass: Pass
  readonly #key: string
  readonly #attempt: Attempt
  #signal: AbortSignal | undefined

  constructor(pass: Pass, key: string, attempt: Attempt) {
    this.#pass = pass
    this.#key = key
    this.#attempt = attempt
  }

  get attempt(): number {
    return this.#attempt.number
  }

  get idempotencyKey(): string {
    return idempotencyKey(this.#pass.input.flow.id, this.#key)
  }

  get signal(): AbortSignal {
    return (this.#signal ??= signalOf(this.#pass, this.#key, this.#attempt))
  }

  // A running step is never a replay, so these two always report. They are bound functions, because steps destructure their context.
  get progress(): StepContext['progress'] {
    return (progress, total, message) => {
      if (!this.#pass.ended) this.#pass.input.progress?.(progress, total, message)
    }
  }

  get log(): StepContext['log'] {
    return (level, data, logger) => {
      if (!this.#pass.ended) this.#pass.input.log?.(level, data, logger)
    }
  }
}

/** What a step that runs once uses of its pass. */
interface OncePass {
  readonly outages?: StoreOutages | undefined
  /** True if the pass has ended or the attempt has timed out. */
  readonly gaveUp: () => boolean
  /** Resolves when the attempt has timed out. Another one may run then, so this one gives up its claim. */
  readonly timeout?: Promise<undefined> | undefined
  readonly fail: (error: unknown) => Promise<never>
}

/** Runs a side effect that no other pass of the flow, on any instance, runs again. */
export async function stepOnce<T>(
  store: OnceStore,
  key: string,
  { outages, gaveUp, timeout, fail }: OncePass,
  run: () => T | Promise<T>,
): Promise<T> {
  let own: { value: T } | undefined
  let work: Promise<string | undefined> | undefined
  let used: OnceOutcome | undefined
  const options = { note: '', keepMs: STEP_KEPT_MS, gaveUp }
  const runAndRecord = async (): Promise<string | undefined> => {
    own = { value: await run() }
    return recordOf(own.value)
  }
  try {
    used = await useOnce(outages?.once(store) ?? store, key, options, () => {
      work = runAndRecord()
      return timeout === undefined ? work : Promise.race([work, timeout])
    })
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error
    // The step has not failed, so no failure is recorded: the pass ends, and the next one tries the step again.
    if (own === undefined && !gaveUp()) return fail(error)
  }
  // An attempt that has timed out still runs. Its late result is not used, and is logged.
  if (used === undefined) await work
  // The pass records the value, and reports the error if it is not JSON.
  if (own !== undefined) return own.value
  if (used === undefined || used === 'refused') return parked()
  return (used.record === NO_VALUE ? undefined : JSON.parse(used.record)) as T
}

/** Stands for `undefined`: no JSON text is empty. */
const NO_VALUE = ''

function recordOf(value: unknown): string | undefined {
  if (value === undefined) return NO_VALUE
  try {
    return toJsonText(value, 'a step')
  } catch {
    return undefined
  }
}

/** How long the store keeps a result: as long as a flow may last by default. */
const STEP_KEPT_MS = 24 * 60 * 60 * 1000
