// Runs a handler under the hardest conditions: every pass from the top, everything through JSON, and answers in any order, late,
// wrong at first, or a few at a time.
import { isDeepStrictEqual } from 'node:util'
import type { Caller, CallSource } from '../flow/caller.ts'
import { FlowError } from '../flow/errors.ts'
import type { Asks } from '../flow/io.ts'
import type { Requirements } from '../flow/resolver.ts'
import { RallyError } from '../protocol/errors.ts'
import type { CallToolResult } from '../protocol/messages.ts'
import { shown as shownValue } from '../protocol/text.ts'
import { App } from '../server/app.ts'
import { RefreshedTokens, sourceOf } from './callers.ts'
import { Delivery } from './delivery.ts'
import { madeUp } from './default-answer.ts'
import type { Random } from './random.ts'
import { seeded } from './random.ts'
import type { Ended, Handler, Report, RunOptions } from './report.ts'
import { errorOf, toReport } from './report.ts'
import { Rounds } from './rounds.ts'
import { inOnePass } from './single-pass.ts'
import type { Subject, ToolCallOptions } from './subject.ts'
import { handlerSubject, toolSubject } from './subject.ts'
import { ReplayCheck, ReplayMismatch, lastingError, shown } from './replay-check.ts'

/** Options of `harsh()`. */
export interface HarshOptions<Args, A extends Asks, N = {}> extends RunOptions<Args, A, N>, HarshRunOptions {}

/** How `harsh` runs what it tests. */
export interface HarshRunOptions {
  /** Decides when and in which order answers arrive. The same seed gives the same run. Default 1. */
  seed?: number
  /** How many flows to run, each with the next seed. Default 10. */
  runs?: number
  /** If true, the flow is handed over at random steps. Default: in every second run. */
  deferrals?: boolean
  /**
   * The events that come from outside, by the key of `io.event()`: each some time after the handler first waits for it. The handler
   * runs as a task then. One that is not here never comes, and one that it does not wait for is a warning. Default: none.
   */
  events?: Readonly<Record<string, unknown>>
  /** How many rounds a flow may take. Default 1000. */
  maxRounds?: number
  /**
   * Runs the handler once more in a single pass (`straight`), and compares the results. Set it to false if the result may depend on
   * when answers come: a race, a deadline, or concurrent calls of which one fails or is declined. Default true.
   */
  compare?: boolean
  /** Called before each flow: restores whatever the handler writes to. Default: nothing. */
  reset?: () => void | Promise<void>
  /**
   * Returns what the handler has written, such as the rows of a table. `harsh` compares that too, and so finds side effects outside
   * steps, which happen again in every pass. Default: nothing is compared.
   */
  observe?: () => unknown
}

/**
 * Runs a handler to its end under the hardest conditions, and checks that every pass repeats what the pass before it did. Throws
 * `ReplayMismatch` if one does not. If the handler itself fails, its error is `error` in the report. The report is of the first run.
 *
 * @example
 * const { result, effects } = await harsh(deploy, { args: { env: 'prod' }, answer: () => accept({ confirm: true }) })
 * expect(result).toBe('Deployed')
 * expect(effects).toEqual(['plan', 'ship'])
 */
export function harsh<R, Args = {}, const A extends Asks = Record<never, never>, N extends Requirements = {}>(
  handler: Handler<Args, A, R, N>,
  options?: HarshOptions<Args, A, N>,
): Promise<Report<Ended<R>>>
/**
 * The same for a tool that is registered on an app: with its schemas, defaults, needs, retries and limits, on a virtual clock, and as
 * a task if its clients would get one. `result` is what a client gets. Rejects if the tool fails, in a step too, otherwise than by
 * `ToolError`, `ProtocolError`, `Declined` or `Expired`.
 *
 * @example
 * const { result } = await harsh(app, 'submit_expense', { args: { amount: 12 }, caller: { principal: 'ann' } })
 */
export function harsh(
  app: App,
  tool: string,
  options?: HarshRunOptions & ToolCallOptions & Pick<RunOptions<unknown, Asks>, 'answer'>,
): Promise<Report<CallToolResult>>
export async function harsh(target: unknown, second?: unknown, third?: unknown): Promise<Report> {
  if (typeof target !== 'function') {
    if (!(target instanceof App)) throw invalid('the first argument must be a handler, or an app of rally()', target)
    const options = (third ?? {}) as SeededOptions & ToolCallOptions
    return runAll(toolSubject(target, second as string, options), options)
  }
  const options = (second ?? {}) as HarshOptions<object, Asks>
  const subject = handlerSubject(target as Handler<object, Asks, unknown>, options)
  return runAll(options.events === undefined ? subject : { ...subject, task: 'always' }, options)
}

async function runAll(subject: Subject, options: SeededOptions): Promise<Report> {
  const { seed = 1, runs = 10, maxRounds = 1 } = options
  for (const [name, value] of Object.entries({ runs, maxRounds })) {
    if (!(Number.isSafeInteger(value) && value >= 1))
      throw invalid(`\`${name}\` must be a whole number of at least 1`, value)
  }
  const report = await runSeed(subject, { ...options, seed })
  for (let run = 1; run < runs; run += 1) {
    await runSeed(subject, { deferrals: run % 2 === 1, ...options, seed: seed + run })
  }
  return report
}

function invalid(problem: string, got: unknown): RallyError {
  return new RallyError('OPTION_INVALID', `harsh: ${problem}, got ${shownValue(got)}.`)
}

type SeededOptions = HarshRunOptions & Pick<RunOptions<unknown, Asks>, 'answer'>

/** Runs one flow, and the same handler in a single pass. */
async function runSeed(subject: Subject, options: SeededOptions & { seed: number }): Promise<Report> {
  const { seed, answer = madeUp, compare = true, reset, observe } = options
  const random = seeded(seed)
  const delivery = new Delivery(random, answer)
  try {
    await reset?.()
    const { report, isTask } = await inRounds(subject, options, delivery, random)
    // A single pass asks nothing, and so has other limits than the rounds.
    if (report.error instanceof FlowError && LIMITS.has(report.error.code)) return await subject.conclude(report)
    if (!compare) {
      await checkRefreshed(subject, options)
      return await subject.conclude(report)
    }
    const left = structuredClone(observe?.())
    await reset?.()
    // What a task may do and a plain call may not fails in both.
    const { events } = options
    const once = await inOnePass(subject, (question) => delivery.made(question), { events, isTask })
    // A question without an answer: there is no result to compare.
    if (once.error instanceof RallyError && once.error.code === 'UNANSWERED') return await subject.conclude(report)
    checkSame(report, once)
    checkLeft(report, left, observe?.())
    await checkRefreshed(subject, options)
    return await subject.conclude(report)
  } catch (error) {
    throw error instanceof ReplayMismatch ? error.withOptions(`seed: ${seed}, runs: 1`) : error
  }
}

/**
 * Runs the flow once more with scopes and claims that change from pass to pass. The handler may refuse at any time, and a step may
 * record other values. But what it did before, it must repeat. A task keeps the caller of the request that made it.
 */
async function checkRefreshed(subject: Subject, options: SeededOptions & { seed: number }): Promise<void> {
  const { seed, answer = madeUp, reset } = options
  const caller = subject.input.source?.caller
  if (caller === undefined || subject.task === 'always') return
  const random = seeded(seed)
  const tokens = new RefreshedTokens(caller, random)
  await reset?.()
  try {
    const { report } = await inRounds(subject, options, new Delivery(random, answer), random, (round) =>
      tokens.callerIn(round),
    )
    const { error } = report
    if (!(error instanceof FlowError) || error.code === 'ASKED_TOO_OFTEN') return
    throw new ReplayMismatch(`The flow failed: ${error.message}`, undefined, undefined, error)
  } catch (error) {
    if (!(error instanceof ReplayMismatch)) throw error
    throw new ReplayMismatch(`${error.message} ${REFRESHED}`, error.key, error.before, error.after)
  }
}

const REFRESHED =
  'Scopes and claims of the caller changed from pass to pass, as after a refreshed token. Use them only to refuse, and read in a step what picks a branch, a key or a text.'

async function inRounds(
  subject: Subject,
  { deferrals = false, maxRounds = 1_000, events = {} }: SeededOptions,
  delivery: Delivery,
  random: Random,
  callerOf?: (round: number) => Caller,
): Promise<{ report: Report; isTask: boolean }> {
  let source: CallSource | undefined
  const check = new ReplayCheck()
  const unusedEvents = new Set(Object.keys(events))
  const coming = new Set(Object.keys(events))
  const rounds = new Rounds({
    ...subject,
    // Perhaps it has not come yet.
    eventFor: (key) => {
      unusedEvents.delete(key)
      return coming.has(key) && random.chance(0.5) ? events[key] : undefined
    },
    // The event is still open, but its value would not match the next time either.
    eventRefused: (key) => void coming.delete(key),
    hasOwnRecords: true,
    waitsCount: true,
    observer: {
      asked: (key, question) => {
        check.asked(key, question.text())
        return question
      },
      ran: (key) => check.ran(key),
    },
  })
  const wantsHandover = deferrals ? (): boolean => random.chance(0.5) : undefined
  let answers: Awaited<ReturnType<Delivery['next']>>
  for (let round = 0; round < maxRounds; round += 1) {
    // By hand, a pass continues from the handler's state and repeats nothing.
    const before = rounds.byHand ? [] : (rounds.passes.at(-1) ?? [])
    if (callerOf !== undefined && !rounds.isTask) source = sourceOf(callerOf(round))
    const outcome = await rounds.next(subject.run, answers, { wantsHandover, ...(source && { source }) })
    // Another token may be refused, and so end the flow early.
    const mayEndEarly = outcome.kind === 'failed' || (callerOf !== undefined && outcome.kind === 'done')
    check.passed(before, rounds.passes.at(-1) ?? [], mayEndEarly)
    if (outcome.kind === 'done' || outcome.kind === 'failed')
      for (const key of unusedEvents) rounds.warnings.push(unusedEvent(key))
    const { isTask } = rounds
    if (outcome.kind === 'done') return { report: toReport(rounds, { result: outcome.value }), isTask }
    if (outcome.kind === 'failed') return { report: toReport(rounds, { error: errorOf(outcome) }), isTask }
    answers = undefined
    if (outcome.kind !== 'asks' && outcome.kind !== 'waiting') continue
    const { dueAt, events: awaited = [] } = outcome
    if (awaited.some((key) => coming.has(key))) continue
    if (outcome.kind === 'waiting') {
      if (dueAt === undefined) throw noEvent(awaited, rounds.warnings)
      rounds.advanceTo(dueAt)
      continue
    }
    answers = await delivery.next(outcome.flowState.open, rounds.questions)
    // Nobody will answer any of them: what is due next comes.
    if (dueAt !== undefined && !(await delivery.hasAnswer(outcome.questions.keys(), rounds.questions)))
      rounds.advanceTo(dueAt)
  }
  throw new RallyError(
    'TOO_MANY_ROUNDS',
    `harsh: the flow was not done after maxRounds = ${maxRounds} rounds. Check that the handler's loop ends, or raise maxRounds.`,
  )
}

function unusedEvent(key: string): string {
  return `harsh: the handler did not wait for the event "${key}" in \`events\`. Check the keys of io.event().`
}

function noEvent(keys: readonly string[], warnings: readonly string[]): RallyError {
  const named = keys.map((key) => `"${key}"`).join(', ')
  const refused = warnings.filter((warning) => keys.some((key) => warning.includes(`the value of the event "${key}"`)))
  const why = `the flow waits for the event ${named}, which never comes.`
  const advice = 'Pass its value in `events`, or give it a deadline with `withinMs`.'
  return new RallyError('UNANSWERED', ['harsh:', why, ...refused, advice].join(' '))
}

function checkSame(harshly: Report, straightly: Report): void {
  const before = straightly.error ?? straightly.result
  const after = harshly.error ?? harshly.result
  if (
    !isDeepStrictEqual(harshly.result, straightly.result) ||
    !isDeepStrictEqual(lastingError(harshly.error), lastingError(straightly.error))
  ) {
    throw new ReplayMismatch(
      `The handler returned ${shown(before)} in a single pass, and ${shown(after)} over ${harshly.rounds} rounds. ${LIKELY}`,
      undefined,
      before,
      after,
    )
  }
  const odd =
    harshly.effects.find((key) => !straightly.effects.includes(key)) ??
    straightly.effects.find((key) => !harshly.effects.includes(key))
  if (odd !== undefined) {
    throw new ReplayMismatch(
      `The step "${odd}" ran ${harshly.effects.includes(odd) ? 'over several rounds, but not in a single pass' : 'in a single pass, but not over several rounds'}. ${LIKELY}`,
      odd,
      straightly.effects,
      harshly.effects,
    )
  }
}

function checkLeft({ rounds }: Report, after: unknown, before: unknown): void {
  if (isDeepStrictEqual(after, before)) return
  throw new ReplayMismatch(
    `\`observe\` returned ${shown(before)} after a single pass, and ${shown(after)} after ${rounds} rounds. A side effect outside a step happens again in every pass: put it into io.step.`,
    undefined,
    before,
    after,
  )
}

const LIMITS: ReadonlySet<string | number> = new Set(['TIME_LIMIT', 'WAIT_TOO_LONG'])

const LIKELY =
  'Possible causes: a step assigns an outer variable (return the value instead), a side effect is outside a step (put it into io.step), or the handler uses Date.now() or Math.random() (use io.now(), io.random()). If the result may depend on when answers come, as in a race or at a deadline, pass compare: false.'
