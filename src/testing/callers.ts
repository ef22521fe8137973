// Who calls the handler under test. A token may be refreshed between two rounds: then scopes and claims are others, and the
// principal is the same.
import type { Caller, CallSource } from '../flow/caller.ts'
import { REVISION } from '../protocol/revisions/2026-07-28.ts'
import type { Random } from './random.ts'

/** The caller in `io.caller`. */
export type TestCaller = Pick<Caller, 'principal'> & Partial<Caller>

const CLIENT = { name: 'harsh', version: '1.0.0', revision: REVISION, capabilities: {}, extensions: {} }

export function sourceOf(caller: TestCaller | undefined): CallSource {
  return { caller: caller && { scopes: [], claims: {}, ...caller }, client: CLIENT, meta: {} }
}

/** The same caller with another token: every claim has another value, some scopes are gone, and one is new. */
export function refreshed({ principal, scopes, claims }: Caller, round: number, random: Random): Caller {
  const changed = Object.entries(claims).map(([name, value]) => [name, changedValue(value, round)] as const)
  return {
    principal,
    scopes: [...scopes.filter(() => random.chance(0.5)), `refreshed:${round}`],
    claims: Object.fromEntries(changed),
  }
}

function changedValue(value: unknown, round: number): unknown {
  if (typeof value === 'string') return `${value} (refreshed ${round})`
  if (typeof value === 'number') return value + round
  return typeof value === 'boolean' ? !value : undefined
}
