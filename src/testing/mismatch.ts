// What the test kit found: the handler did not do the same again.
import { inspect } from 'node:util'
import { RallyError } from '../protocol/errors.ts'

/** The handler, run again, did something else than before. `key` names the call, where it is one. */
export class ReplayMismatch extends RallyError {
  declare readonly code: 'REPLAY_MISMATCH'
  readonly key: string | undefined
  readonly before: unknown
  readonly after: unknown

  constructor(message: string, key: string | undefined, before: unknown, after: unknown) {
    super('REPLAY_MISMATCH', message)
    this.key = key
    this.before = before
    this.after = after
  }

  /** The same, with the options that lead to it again. */
  in(options: string): ReplayMismatch {
    return new ReplayMismatch(`${this.message} To see it again: { ${options} }.`, this.key, this.before, this.after)
  }
}

export function shown(value: unknown): string {
  if (value instanceof Error) return `${value.name}: ${value.message}`
  return inspect(value, { depth: 6, breakLength: Infinity, maxStringLength: 300 })
}
