// Who calls the handler under test. A token may be refreshed between two rounds: then scopes and claims are others, and the
// principal is the same.
import type { Caller, CallSource } from '../flow/caller.ts'
import { RallyError } from '../protocol/errors.ts'
import { isObject } from '../protocol/json.ts'
import { REVISION } from '../protocol/revisions/2026-07-28.ts'
import { shown } from '../protocol/text.ts'
import type { Random } from './random.ts'

/** The caller in `io.caller`. */
export type TestCaller = Pick<Caller, 'principal'> & Partial<Caller>

const CLIENT = { name: 'harsh', version: '1.0.0', revision: REVISION, capabilities: {}, extensions: {} }

export function sourceOf(caller: TestCaller | undefined): CallSource {
  if (caller !== undefined && typeof caller?.principal !== 'string')
    throw new RallyError(
      'OPTION_INVALID',
      `\`caller\` must be an object with a principal, got ${shown(caller)}. Pass { principal: 'ann' }.`,
    )
  return { caller: caller && { scopes: [], claims: {}, ...caller }, client: CLIENT, meta: {} }
}

/**
 * The tokens of one caller, another one in every round. After the first, every claim has another value of the same type, some scopes
 * are gone, and one is new. So is every claim that the handler looked for in vain.
 */
export class RefreshedTokens {
  readonly #caller: Caller
  readonly #random: Random
  /** The names of claims that the handler looked for in vain. */
  readonly #missed = new Set<string>()

  constructor(caller: Caller, random: Random) {
    this.#caller = caller
    this.#random = random
  }

  callerIn(round: number): Caller {
    const { principal, scopes, claims } = this.#caller
    if (round === 0) return { principal, scopes, claims: this.#noting(claims) }
    const missed = [...this.#missed].map((name) => [name, newValue(round)] as const)
    return {
      principal,
      scopes: [...scopes.filter(() => this.#random.chance(0.5)), `refreshed:${round}`],
      claims: this.#noting({ ...Object.fromEntries(missed), ...changedMembers(claims, round) }),
    }
  }

  /** The same claims, on a prototype that notes what it is asked for. */
  #noting(claims: Caller['claims']): Caller['claims'] {
    const note = (name: string | symbol): void => {
      if (typeof name === 'string' && !(name in Object.prototype) && name !== 'toJSON') this.#missed.add(name)
    }
    const prototype = new Proxy(Object.create(null) as object, {
      get: (_target, name): unknown => (note(name), Reflect.get(Object.prototype, name)),
      has: (_target, name) => (note(name), name in Object.prototype),
    })
    return Object.create(prototype, Object.getOwnPropertyDescriptors(claims)) as Caller['claims']
  }
}

function changedMembers(value: Readonly<Record<string, unknown>>, round: number): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, changedValue(each, round)]))
}

function changedValue(value: unknown, round: number): unknown {
  if (typeof value === 'string') return `${value} (refreshed ${round})`
  if (typeof value === 'number') return value + round
  if (typeof value === 'boolean') return !value
  if (Array.isArray(value)) return value.length === 0 ? [newValue(1)] : value.map((each) => changedValue(each, round))
  return isObject(value) ? changedMembers(value, round) : newValue(round)
}

/** Of what type a claim would be that is not there, nobody knows. */
function newValue(round: number): unknown {
  const text = `refreshed ${round}`
  return [true, text, [text]][(round - 1) % 3]
}
