// The options and the report of a test run.
import type { Asks, Io } from '../flow/io.ts'
import type { Outcome, TraceEvent } from '../flow/carrier.ts'
import type { Capability } from '../flow/question.ts'
import type { Requirements, ResolvedNeeds } from '../flow/resolver.ts'
import { checkNeeds, resolveNeeds } from '../flow/resolver.ts'
import { NOTHING_THROWN } from '../flow/step-run.ts'
import type { AnotherRound } from '../server/handler.ts'
import type { TestCaller } from './callers.ts'
import type { Answerer } from './questions.ts'
import type { Rounds, Run } from './rounds.ts'

/** The handler of a tool, prompt or resource. */
export type Handler<Args, A extends Asks, R, N = {}> = (
  args: Args,
  io: Io<A>,
  needs: ResolvedNeeds<N>,
) => R | Promise<R>

/** Options that `harsh` and `straight` have in common. */
export interface RunOptions<Args, A extends Asks, N = {}> {
  /** The arguments of the handler. Every pass gets a copy. Default: `{}`. */
  args?: Args
  /** Schemas of the questions it asks, as declared with the tool. Default: none. */
  asks?: A
  /** Resolvers of the values it needs, as declared with the tool. Default: none. */
  needs?: N
  /** Answers the questions. Default: `madeUp`, which accepts everything. */
  answer?: Answerer
  /** The capabilities that the client declares. Default: all. */
  capabilities?: readonly Capability[]
  /**
   * The caller, as `io.caller` has it. `harsh` also runs flows in which scopes and claims change from pass to pass, as after a refreshed
   * token: it finds a handler that did not read in a step what picks a branch, a key or a text. Default: an anonymous caller.
   */
  caller?: TestCaller
}

/** What `harsh` and `straight` found out about a flow. */
export interface Report<R = unknown> {
  /** The return value of the handler; `undefined` if it failed. */
  readonly result: R | undefined
  /** The error that ended the flow; `undefined` if it did not fail. */
  readonly error: unknown
  /** How many rounds the flow took. */
  readonly rounds: number
  /** The trace of each pass: its io calls and their results. */
  readonly passes: readonly (readonly TraceEvent[])[]
  /** The keys of the steps, in the order in which they ran. */
  readonly effects: readonly string[]
  /** The text of the journal when the flow ended. */
  readonly journal: string
  /** The warnings and errors that the engine logged. */
  readonly warnings: readonly string[]
}

/** The final results of a handler: `inputRequired` is not one. */
export type Ended<R> = Exclude<R, AnotherRound>

/** What ended a flow that failed. Some code throws `undefined`, which would read as no failure. */
export function errorOf({ error }: Extract<Outcome, { kind: 'failed' }>): unknown {
  return error ?? new Error(NOTHING_THROWN)
}

export function toReport<R>(rounds: Rounds, end: { result?: unknown; error?: unknown }): Report<R> {
  return {
    result: end.result as R | undefined,
    error: end.error,
    rounds: rounds.passes.length,
    passes: rounds.passes,
    effects: rounds.effects,
    journal: rounds.journal,
    warnings: rounds.warnings,
  }
}

export function toRun<Args, A extends Asks, N extends Requirements>(
  handler: Handler<Args, A, unknown, N>,
  { args, needs }: RunOptions<Args, A, N>,
): Run {
  const run = (io: Io, resolved: unknown): unknown =>
    handler(structuredClone(args ?? {}) as Args, io as unknown as Io<A>, resolved as ResolvedNeeds<N>)
  if (needs === undefined) return (io) => run(io, {})
  checkNeeds(needs, 'The handler')
  return async (io) => run(io, await resolveNeeds(needs, structuredClone(args ?? {}), io))
}
