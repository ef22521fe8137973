// The harshest way to run a handler: every pass from scratch, everything through JSON, answers in any order, late, wrong
// at first, a few at a time.
import { isDeepStrictEqual } from 'node:util'
import type { Asks } from '../flow/io.ts'
import type { Requirements } from '../flow/resolver.ts'
import { RallyError } from '../protocol/errors.ts'
import { Delivery } from './delivery.ts'
import { madeUp } from './default-answer.ts'
import { ReplayMismatch, shown } from './mismatch.ts'
import type { Random } from './random.ts'
import { seeded } from './random.ts'
import type { Ended, Handler, Report, RunOptions } from './report.ts'
import { toReport, toRun } from './report.ts'
import { Rounds } from './rounds.ts'
import { straight } from './single-pass.ts'
import { essenceOfError, Watch } from './replay-check.ts'

export interface HarshOptions<Args, A extends Asks, N = {}> extends RunOptions<Args, A, N> {
  /** Decides how the answers come; the same seed is the same run. Default 1. */
  seed?: number
  /** How many ways to try: each is a whole flow with the next seed. Default 10. */
  runs?: number
  /** Whether the instance hands the flow over at random step boundaries. Default: in every second run. */
  deferrals?: boolean
  /** How many rounds a flow may take. Default 1000. */
  maxRounds?: number
  /**
   * Runs the handler once more with every answer at hand (`straight`), and compares. Switch it off where the order of
   * answers may decide what comes out: a race, or calls made together of which one fails or is declined. Default true.
   */
  compare?: boolean
  /** Called before each flow: puts what the handler writes to back to its start. Default: nothing. */
  reset?: () => void | Promise<void>
  /**
   * Gives what the handler has written to, such as the rows of a table, to be compared too. It shows effects outside of
   * steps, which happen again on every pass. Default: nothing.
   */
  observe?: () => unknown
}

/**
 * Runs a handler to its end in the harshest way, and checks on every pass that it does again what it did before. Throws
 * `ReplayMismatch` where it does not; a failure of the handler itself is `error` in the report, which is of the first run.
 *
 * @example
 * const { result, effects } = await harsh(deploy, { args: { env: 'prod' }, answer: () => accept({ confirm: true }) })
 * expect(result).toBe('Deployed')
 * expect(effects).toEqual(['plan', 'ship'])
 */
export async function harsh<
  R,
  Args = Record<string, never>,
  const A extends Asks = Record<never, never>,
  N extends Requirements = {},
>(handler: Handler<Args, A, R, N>, options: HarshOptions<Args, A, N> = {}): Promise<Report<Ended<R>>> {
  const { seed = 1, runs = 10 } = options
  const report = await oneWay(handler, { ...options, seed })
  for (let run = 1; run < runs; run += 1) {
    await oneWay(handler, { deferrals: run % 2 === 1, ...options, seed: seed + run })
  }
  return report
}

/** One flow, and the same with every answer at hand. */
async function oneWay<R, Args, A extends Asks, N extends Requirements>(
  handler: Handler<Args, A, R, N>,
  options: HarshOptions<Args, A, N> & { seed: number },
): Promise<Report<Ended<R>>> {
  const { seed, answer = madeUp, compare = true, reset, observe } = options
  const random = seeded(seed)
  const delivery = new Delivery(random, answer)
  try {
    await reset?.()
    const report = await inRounds(handler, options, delivery, random)
    if (!compare) return report
    const left = structuredClone(observe?.())
    await reset?.()
    const once = await straight(handler, { ...options, answer: (question) => delivery.made(question) })
    // A question that nobody answers leaves nothing to compare.
    if (once.error instanceof RallyError && once.error.code === 'UNANSWERED') return report
    checkSame(report, once)
    checkLeft(report, left, observe?.())
    return report
  } catch (error) {
    throw error instanceof ReplayMismatch ? error.in(`seed: ${seed}, runs: 1`) : error
  }
}

async function inRounds<R, Args, A extends Asks, N extends Requirements>(
  handler: Handler<Args, A, R, N>,
  options: HarshOptions<Args, A, N>,
  delivery: Delivery,
  random: Random,
): Promise<Report<Ended<R>>> {
  const { asks, capabilities, deferrals = false, maxRounds = 1_000 } = options
  const watch = new Watch()
  const rounds = new Rounds({
    asks,
    capabilities,
    observer: {
      asked: (key, question) => {
        watch.asked(key, question.text())
        return question
      },
      ran: (key) => watch.ran(key),
    },
  })
  const run = toRun(handler, options)
  const wantsHandover = deferrals ? (): boolean => random.chance(0.5) : undefined
  let answers: Awaited<ReturnType<Delivery['next']>>
  for (let round = 0; round < maxRounds; round += 1) {
    // What a handler does after a round by hand is a new beginning.
    const before = rounds.byHand ? [] : (rounds.passes.at(-1) ?? [])
    const outcome = await rounds.next(run, answers, { wantsHandover })
    watch.passed(before, rounds.passes.at(-1) ?? [], outcome.kind === 'failed')
    if (outcome.kind === 'done') return toReport(rounds, { result: outcome.value })
    if (outcome.kind === 'failed') return toReport(rounds, { error: outcome.error })
    answers = outcome.kind === 'asks' ? await delivery.next(outcome.flowState.open, rounds.questions) : undefined
  }
  throw new RallyError('TOO_MANY_ROUNDS', `The flow was not over after ${maxRounds} rounds.`)
}

function checkSame(harshly: Report, straightly: Report): void {
  const before = straightly.error ?? straightly.result
  const after = harshly.error ?? harshly.result
  if (
    !isDeepStrictEqual(harshly.result, straightly.result) ||
    !isDeepStrictEqual(essenceOfError(harshly.error), essenceOfError(straightly.error))
  ) {
    throw new ReplayMismatch(
      `With every answer at hand the handler came to ${shown(before)}, and over ${harshly.rounds} rounds to ${shown(after)}. ${LIKELY}`,
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
      `The step "${odd}" ran ${harshly.effects.includes(odd) ? 'over several rounds, and not' : 'only'} when every answer was at hand. ${LIKELY}`,
      odd,
      straightly.effects,
      harshly.effects,
    )
  }
}

function checkLeft({ rounds }: Report, after: unknown, before: unknown): void {
  if (isDeepStrictEqual(after, before)) return
  throw new ReplayMismatch(
    `With every answer at hand the handler left ${shown(before)} behind, and over ${rounds} rounds ${shown(after)}. Likely it has an effect outside a step, which happens again on every pass: put it into io.step.`,
    undefined,
    before,
    after,
  )
}

const LIKELY =
  'Likely a step assigns a variable outside it (return the value instead), something outside a step is done again on every pass (put it into io.step), or the handler uses Date.now() or Math.random() (use io.now(), io.random()). If the order of answers may decide, as in a race, pass compare: false.'
