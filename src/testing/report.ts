// What a test asks for, and what it gets back.
import type { InputRequired } from '../flow/by-hand.ts'
import type { Asks, Io } from '../flow/io.ts'
import type { TraceEvent } from '../flow/carrier.ts'
import type { Capability } from '../flow/question.ts'
import type { Requirements, ResolvedNeeds } from '../flow/resolver.ts'
import { checkNeeds, resolveNeeds } from '../flow/resolver.ts'
import type { Answerer } from './questions.ts'
import type { Rounds, Run } from './rounds.ts'

/** A handler as a tool, prompt or resource has it. */
export type Handler<Args, A extends Asks, R, N = {}> = (
  args: Args,
  io: Io<A>,
  needs: ResolvedNeeds<N>,
) => R | Promise<R>

export interface RunOptions<Args, A extends Asks, N = {}> {
  /** What the handler is called with; every pass gets a copy. Default: `{}`. */
  args?: Args
  /** Schemas of the questions it asks, as they are declared with the tool. Default: none. */
  asks?: A
  /** Resolvers of the values it needs, as they are declared with the tool. Default: none. */
  needs?: N
  /** Says what the user, the model or the client answers. Default: `madeUp`, which accepts everything. */
  answer?: Answerer
  /** What the client declared. Default: everything. */
  capabilities?: readonly Capability[]
}

export interface Report<R = unknown> {
  /** What the handler returned; `undefined` when it failed. */
  readonly result: R | undefined
  /** What ended the flow, when it failed. */
  readonly error: unknown
  readonly rounds: number
  /** The trace of each pass: its io calls and what they came to. */
  readonly passes: readonly (readonly TraceEvent[])[]
  /** The keys of steps, in the order they were run. */
  readonly effects: readonly string[]
  /** The text of the journal when the flow ended. */
  readonly journal: string
  /** What the engine would have logged. */
  readonly warnings: readonly string[]
}

/** A round taken by hand is not how a handler ends. */
export type Ended<R> = Exclude<R, InputRequired>

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
