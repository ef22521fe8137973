// Declared needs: values that are resolved before the handler runs, each at most once in a flow.
import { isObject } from '../protocol/json.ts'
import { atCaller, RallyError } from '../protocol/errors.ts'
import { Declined } from './errors.ts'
import type { Asks } from './io.ts'
import { Io } from './io.ts'
import type { Recordable } from './lossless.ts'
import type { Form } from './question.ts'
import { prepareForm } from './question.ts'

/** A value that does not come from the model: looked up, computed, or asked of the user. Create it with `resolver`. */
export interface Resolver<T, in Args = unknown> {
  /** The name of the value. It begins the keys of its questions. */
  readonly name: string
  /** Other values that are resolved first, by name. */
  readonly needs: Readonly<Record<string, Requirement>>
  /** The forms of its questions, by key. */
  readonly forms: ReadonlyMap<string, Form>
  /** Returns the value. */
  readonly run: (args: Args, io: Io, needs: Readonly<Record<string, unknown>>) => T | Promise<T>
}

/** What a handler gets that declared `outcome(resolver)`: the value, or that the user declined or cancelled. */
export type ResolverOutcome<T> = { action: 'accept'; value: T } | { action: 'decline' } | { action: 'cancel' }

export interface OutcomeOf<T, in Args = unknown> {
  readonly of: Resolver<T, Args>
}

/** A declared need of a tool: a resolver, or the `outcome` of one. */
export type Requirement<T = unknown, Args = never> = Resolver<T, Args> | OutcomeOf<T, Args>

/** The declared needs of a tool, by name. */
export type Requirements<Args = never> = Readonly<Record<string, Requirement<unknown, Args>>>

/** The values that a handler gets for its declared needs. */
export type ResolvedNeeds<N> = {
  readonly [K in keyof N]: N[K] extends OutcomeOf<infer T, never>
    ? ResolverOutcome<T>
    : N[K] extends Resolver<infer T, never>
      ? T
      : never
}

/** The arguments that all these needs take. */
type ArgsOf<N> = { [K in keyof N]: (args: ArgsOfNeed<N[K]>) => void }[keyof N] extends (args: infer Args) => void
  ? Args
  : never

type ArgsOfNeed<N> =
  N extends OutcomeOf<unknown, infer Args> ? Args : N extends Resolver<unknown, infer Args> ? Args : never

/** Options of `resolver()`. */
export interface ResolverOptions<T, N extends Requirements, A extends Asks, Args> {
  /** Other values that are resolved before this one, by the names that `run` uses. Default: none. */
  needs?: N
  /** Schemas of the questions that it asks, by key. Default: none. */
  asks?: A
  /** Returns the value, which must be JSON, for the arguments of the call. Once it has returned, it does not run again in the flow. */
  run: (args: Args, io: Io<A>, needs: ResolvedNeeds<N>) => Recordable<T>
}

/**
 * Declares a value that handlers may list under `needs`. The name is a key in the journal: do not change it while flows are open.
 *
 * @example
 * const account = resolver('account', { run: (_args, io) => io.step('load', () => loadAccount()) })
 * app.tool('order', { needs: { account } }, (args, io, { account }) => `Ordered for ${account.name}`)
 */
export function resolver<T, N extends Requirements = {}, const A extends Asks = {}, Args = ArgsOf<N>>(
  name: string,
  { needs, asks, run }: ResolverOptions<T, N, A, Args>,
): Resolver<T, Args & ArgsOf<N>> {
  const forms = atCaller(resolver, () => declaredForms(name, asks ?? {}))
  return { name, needs: needs ?? {}, forms, run: run as unknown as Resolver<T>['run'] }
}

function declaredForms(name: string, asks: Asks): Map<string, Form> {
  if (!/^[A-Za-z0-9_.-]{1,100}$/.test(name)) {
    throw new RallyError(
      'RESOLVER_INVALID',
      `The resolver name ${JSON.stringify(name)} is not valid: use A-Z a-z 0-9 _ . -`,
    )
  }
  return new Map(Object.entries(asks).map(([key, schema]) => [key, prepareForm(schema, `${name}: asks.${key}`)]))
}

/** Declares a need that does not end the call if the user declines the resolver's question: the handler gets what the user did. */
export function outcome<T, Args>(of: Resolver<T, Args>): OutcomeOf<T, Args> {
  return { of }
}

/** Throws if a need is missing, part of a cycle, or has the name of another one. Called when the app is built. */
export function checkNeeds(needs: Readonly<Record<string, Requirement>>, where: string): void {
  const byName = new Map<string, Resolver<unknown, never>>()
  const visit = (each: Readonly<Record<string, Requirement>>, path: readonly string[]): void => {
    for (const [key, need] of Object.entries(each)) {
      const target = isObject(need) ? resolverOf(need) : undefined
      if (!isResolver(target)) throw refused(where, `${[...path, key].join(' > ')} is missing. ${MISSING}`)
      const { name } = target
      if (path.includes(name)) throw refused(where, `${[...path, name].join(' > ')} is a cycle.`)
      const known = byName.get(name)
      if (known === target) continue
      if (known !== undefined) throw refused(where, `two resolvers have the name "${name}". Rename one of them.`)
      byName.set(name, target)
      visit(target.needs, [...path, name])
    }
  }
  visit(needs, [])
}

const MISSING = 'Create it with resolver(...) before it is used.'

/** Resolves the needs. Those that do not depend on each other run concurrently, so that their questions share a round. */
export async function resolveNeeds(
  needs: Readonly<Record<string, Requirement>>,
  args: unknown,
  io: Io,
): Promise<Readonly<Record<string, unknown>>> {
  const started = new Map<string, Promise<unknown>>()

  const all = async (each: Readonly<Record<string, Requirement>>): Promise<Record<string, unknown>> => {
    const entries = Object.entries(each)
    const values = await Promise.all(entries.map(([, need]) => one(need)))
    return Object.fromEntries(entries.map(([key], index) => [key, values[index]]))
  }
  const one = (need: Requirement): Promise<unknown> => {
    const value = start(resolverOf(need))
    return 'of' in need ? value.then((accepted) => ({ action: 'accept', value: accepted }), declined) : value
  }
  const start = (target: Resolver<unknown, never>): Promise<unknown> => {
    const known = started.get(target.name)
    if (known !== undefined) return known
    const value = all(target.needs).then((inner) =>
      Io.within(io, `needs:${target.name}`, target.forms, (scoped) => target.run(args as never, scoped, inner)),
    )
    // Another need may fail first, and nothing awaits this one then.
    value.catch(() => {})
    started.set(target.name, value)
    return value
  }
  return all(needs)
}

function declined(error: unknown): { action: 'decline' | 'cancel' } {
  if (error instanceof Declined) return { action: error.action }
  throw error
}

function refused(where: string, why: string): RallyError {
  return new RallyError('RESOLVER_INVALID', `${where}: ${why}`)
}

function isResolver(target: unknown): target is Resolver<unknown, never> {
  return isObject(target) && typeof target['name'] === 'string' && typeof target['run'] === 'function'
}

function resolverOf(need: Requirement): Resolver<unknown, never> {
  return 'of' in need ? need.of : need
}
