// What a step is given, and how it may be done.
import { toJsonText } from '../protocol/json.ts'
import type { OnceStore } from '../store/once.ts'
import { useOnce } from '../store/once.ts'
import { parked } from './call.ts'
import { idempotencyKey } from './derive.ts'
import type { Pass } from './pass.ts'

export interface StepContext {
  /** Stable for this flow and step: pass it on, so that a step done twice takes effect once. */
  readonly idempotencyKey: string
  /** Aborted when the call is cancelled or over for good. */
  readonly signal: AbortSignal
  readonly progress: (progress: number, total?: number, message?: string) => void
  readonly log: (level: LogLevel, data: unknown, logger?: string) => void
}

export type LogLevel = 'debug' | 'info' | 'notice' | 'warning' | 'error' | 'critical' | 'alert' | 'emergency'

export interface StepOptions {
  /** Where passes of the same flow, on whatever instance, agree which one of them does it. */
  once?: OnceStore
}

export class StepScene implements StepContext {
  readonly #pass: Pass
  readonly #key: string

  constructor(pass: Pass, key: string) {
    this.#pass = pass
    this.#key = key
  }

  get idempotencyKey(): string {
    return idempotencyKey(this.#pass.input.flow.id, this.#key)
  }

  get signal(): AbortSignal {
    return this.#pass.signal
  }

  // A step that runs is new work: what it reports is never a repetition. These two are functions of their own, because a
  // step takes its context apart.
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

/** A side effect that no other pass of the flow, wherever it runs, does again once it is done. */
export async function stepOnce<T>(
  store: OnceStore,
  key: string,
  gaveUp: () => boolean,
  run: () => T | Promise<T>,
): Promise<T> {
  let own: { value: T } | undefined
  const used = await useOnce(store, key, { note: '', keepMs: STEP_KEPT_MS, gaveUp }, async () => {
    own = { value: await run() }
    return recordOf(own.value)
  })
  // The pass records what the step gave, and says what is wrong with it where it is no JSON.
  if (own !== undefined) return own.value
  if (used === undefined || used === 'refused') return parked()
  return (used.record === NO_VALUE ? undefined : JSON.parse(used.record)) as T
}

/** No JSON text is empty. */
const NO_VALUE = ''

function recordOf(value: unknown): string | undefined {
  if (value === undefined) return NO_VALUE
  try {
    return toJsonText(value, 'a step')
  } catch {
    return undefined
  }
}

/** As long as a flow may take by default. */
const STEP_KEPT_MS = 24 * 60 * 60 * 1000
