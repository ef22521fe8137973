// What tools, prompts and resources have in common: a handler that may take several rounds. It is checked when the app is built.
import type { InputRequired } from '../flow/by-hand.ts'
import type { Asks, Io } from '../flow/io.ts'
import type { Form } from '../flow/question.ts'
import { prepareForm } from '../flow/question.ts'
import type { Requirement, Requirements } from '../flow/resolver.ts'
import { checkNeeds, resolveNeeds } from '../flow/resolver.ts'
import type { Check } from '../schema/validator.ts'
import { RallyError } from '../protocol/errors.ts'
import type { InputRequiredResult } from '../protocol/messages.ts'
import { isAboveZero } from '../protocol/options.ts'
import { shown } from '../protocol/text.ts'
import type { Checked } from '../schema/standard.ts'
import type { VisibilityTest, Visible } from './visibility.ts'

/** Options that tools, prompts and resources have in common. */
export interface HandlerOptions<A extends Asks, N> {
  /** The schemas of the questions that the handler asks, by key. Default: schemas are passed to `io.ask`. */
  asks?: A
  /** Values that are resolved before the handler runs: see `resolver`. The caller cannot supply them. Default: none. */
  needs?: N
  /** A flow with recorded steps resumes only under the same version. Change it when old journals do not fit any more. Default: none. */
  version?: string
  /** The longest pass, in milliseconds. Default: `timeoutMs` of the app. */
  timeoutMs?: number
  /** The OAuth scopes that the caller needs. Default: none. */
  scopes?: readonly string[]
  /** Hides it from callers for whom this returns false. Default: every caller may know of it. */
  visible?: Visible
}

/** What a handler may return. With `needs` it cannot take its rounds by hand, because needs are asked through io. */
export type ReturnWithNeeds<R, N> = keyof N extends never ? R : Exclude<R, AnotherRound>

/** What a handler returns that takes its rounds by hand: `inputRequired(...)`, or a result as the protocol writes it. */
export type AnotherRound = InputRequired | Unchanged<InputRequiredResult>

/** Rally only reads what a handler returns. */
export type Unchanged<T> = T extends object ? { readonly [K in keyof T]: Unchanged<T[K]> } : T

export interface Handled {
  readonly version: string | undefined
  readonly timeoutMs: number | undefined
  readonly scopes: readonly string[] | undefined
  readonly visible: VisibilityTest | undefined
  readonly forms: ReadonlyMap<string, Form>
  readonly run: (args: unknown, io: Io) => unknown
}

/** Throws when an option is not valid. `where` starts the message, such as `Tool "x"`. */
export function prepareHandler(where: string, options: HandlerOptions<Asks, Requirements>, handler: unknown): Handled {
  if (typeof handler !== 'function')
    throw new RallyError('HANDLER_INVALID', `${where}: the handler must be a function.`)
  const { asks = {}, needs = {}, version, timeoutMs, scopes, visible } = options
  if (visible !== undefined && typeof visible !== 'function') {
    throw new RallyError('HANDLER_INVALID', `${where}: \`visible\` must be a function that returns true or false.`)
  }
  if (timeoutMs !== undefined && !isAboveZero(timeoutMs)) {
    throw new RallyError(
      'HANDLER_INVALID',
      `${where}: \`timeoutMs\` must be a number above 0, got ${shown(timeoutMs)}.`,
    )
  }
  if (scopes !== undefined && !(Array.isArray(scopes) && scopes.every(isScope))) {
    throw new RallyError(
      'HANDLER_INVALID',
      `${where}: \`scopes\` must be an array of scopes, such as ['deploy:write'], got ${shown(scopes)}. Use visible ASCII without space, " and \\.`,
    )
  }
  const forms = new Map(Object.entries(asks).map(([key, ask]) => [key, prepareForm(ask, `${where}, asks.${key}`)]))
  const visibility = visible && { where, test: visible }
  return { version, timeoutMs, scopes, visible: visibility, forms, run: runner(where, needs, handler as Handler) }
}

function isScope(scope: unknown): boolean {
  return typeof scope === 'string' && /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope)
}

type Handler = (args: unknown, io: Io, needs: Readonly<Record<string, unknown>>) => unknown

const NOTHING = {}

function runner(where: string, needs: Readonly<Record<string, Requirement>>, handler: Handler): Handled['run'] {
  if (Object.keys(needs).length === 0) return (args, io) => handler(args, io, NOTHING)
  checkNeeds(needs, where)
  return async (args, io) => handler(args, io, await resolveNeeds(needs, args, io))
}

/** The schema of a tool or prompt without arguments. */
export const NO_ARGUMENTS = { type: 'object', additionalProperties: false } as const

/** Checks against it without a validator: loading one would take most of the start-up time of a small app. */
export function checkNone(args: unknown): Checked<unknown> {
  const extra = Object.keys(args as object)
  if (extra.length === 0) return { value: args }
  return { issues: extra.slice(0, 10).map((name) => `must NOT have additional properties: ${JSON.stringify(name)}`) }
}

/** Runs the handler with the output of its schema. Throws `invalid` when the arguments do not match. */
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

/** The keys that are set, in the given order. */
export function pick<T extends object, K extends keyof T>(from: T, keys: readonly K[]): Pick<T, K> {
  return Object.fromEntries(keys.filter((key) => from[key] !== undefined).map((key) => [key, from[key]])) as Pick<T, K>
}
