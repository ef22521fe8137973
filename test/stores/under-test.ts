// A part of a store under test: what the contracts of tasks, once and mailbox need of it.
import type { Store } from 'mcp-rally'

export interface UnderTest<Part> {
  readonly part: Part
  /** The same part, as another instance of the fleet has it. It shares the data. */
  readonly another: Part
  /** Lets time pass for the store, by its clock or by waiting. */
  elapse(ms: number): void | Promise<void>
  close?(): void | Promise<void>
}

export type Open<Part> = () => UnderTest<Part> | Promise<UnderTest<Part>>

/** Opens one part of a store. */
export function partOf<Name extends 'tasks' | 'once' | 'mailbox'>(name: Name, open: Open<Store>): Open<Store[Name]> {
  return async () => {
    const opened = await open()
    return {
      part: opened.part[name],
      another: opened.another[name],
      elapse: (ms) => opened.elapse(ms),
      close: () => opened.close?.(),
    }
  }
}

/** Long and short, by any clock and on any machine. */
export const LONG_MS = 60_000
export const SHORT_MS = 50
export const PAST_SHORT_MS = 100
