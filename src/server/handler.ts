// What tools, prompts and resources have in common: a handler that may take several rounds, made ready once.
import type { Asks, Io } from '../flow/io.ts'
import type { Form } from '../flow/question.ts'
import { prepareForm } from '../flow/question.ts'
import type { Requirement, Requirements } from '../flow/resolver.ts'
import { checkNeeds, resolveNeeds } from '../flow/resolver.ts'
import type { Check } from '../schema/validator.ts'
import { RallyError } from '../protocol/errors.ts'
import type { Checked } from '../schema/standard.ts'

export interface HandlerOptions<A extends Asks, N> {
  /** Schemas of the questions it asks, by key. */
  asks?: A
  /** Values that are resolved before the handler runs, and given to it: see `resolver`. The caller cannot supply them. */
  needs?: N
  /** The same string is compatible: a flow that has recorded steps goes on only under the version that recorded them. */
  version?: string
  /** Longest pass, in milliseconds. Default: the app's. */
  timeoutMs?: number
  /** OAuth scopes that the caller must have. */
  scopes?: readonly string[]
}

export interface Handled {
  readonly version: string | undefined
  readonly timeoutMs: number | undefined
  readonly scopes: readonly string[] | undefined
  readonly forms: ReadonlyMap<string, Form>
  readonly run: (args: unknown, io: Io) => unknown
}

/** Whatever is wrong with the options is an error here, not when somebody calls. `where` is such as `The tool "x"`. */
export function prepareHandler(where: string, options: HandlerOptions<Asks, Requirements>, handler: unknown): Handled {
  if (typeof handler !== 'function') throw new RallyError('HANDLER_INVALID', `${where} needs a handler, a function.`)
  const { asks = {}, needs = {}, version, timeoutMs, scopes } = options
  if (timeoutMs !== undefined && !(timeoutMs > 0)) {
    throw new RallyError('HANDLER_INVALID', `${where} has a timeoutMs of ${timeoutMs}; it must be above 0.`)
  }
  if (scopes?.some((scope) => !/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope))) {
    throw new RallyError(
      'HANDLER_INVALID',
      `${where} has a scope that is not one: visible ASCII, without space, " and \\.`,
    )
  }
  const forms = new Map(Object.entries(asks).map(([key, ask]) => [key, prepareForm(ask, `${where}, asks.${key}`)]))
  return { version, timeoutMs, scopes, forms, run: runner(where, needs, handler as Handler) }
}

type Handler = (args: unknown, io: Io, needs: Readonly<Record<string, unknown>>) => unknown

const NOTHING = {}

function runner(where: string, needs: Readonly<Record<string, Requirement>>, handler: Handler): Handled['run'] {
  if (Object.keys(needs).length === 0) return (args, io) => handler(args, io, NOTHING)
  checkNeeds(needs, where)
  return async (args, io) => handler(args, io, await resolveNeeds(needs, args, io))
}

/** The schema of what takes none. */
export const NO_ARGUMENTS = { type: 'object', additionalProperties: false } as const

/** Checks against it without a validator, whose loading would be most of the start of a small app. */
export function checkNone(args: unknown): Checked<unknown> {
  const extra = Object.keys(args as object)
  if (extra.length === 0) return { value: args }
  return { issues: extra.slice(0, 10).map((name) => `must NOT have additional properties: ${JSON.stringify(name)}`) }
}

/** Runs the handler on arguments that fit, and with what their schema makes of them. */
export function checkedRun(run: Handled['run'], check: Check, invalid: (issues: string[]) => Error): Handled['run'] {
  const valid = (checked: Checked<unknown>): unknown => {
    if ('value' in checked) return checked.value
    throw invalid(checked.issues)
  }
  return (args, io) => {
    const checked = check(args)
    return checked instanceof Promise ? checked.then((later) => run(valid(later), io)) : run(valid(checked), io)
  }
}

/** The given keys that are there, in the order in which they are given. */
export function pick<T extends object, K extends keyof T>(from: T, keys: readonly K[]): Pick<T, K> {
  return Object.fromEntries(keys.filter((key) => from[key] !== undefined).map((key) => [key, from[key]])) as Pick<T, K>
}
