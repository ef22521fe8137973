// What a step is given, and how it may be done.
import { idempotencyKey } from './derive.ts'
import type { OnceStore } from './once.ts'
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
