// `npm run model`: runs histories, counts what happened in them, and prints the first one that breaks an invariant.
import { parseArgs } from 'node:util'
import { BUGS } from './bugs.ts'
import type { HistoryReport, Plan, RunOptions } from './history.ts'
import { makePlan, runHistory, shrink } from './history.ts'

const USAGE = `Usage: npm run model -- [--histories N] [--seed S] [--minutes M] [--shrink] [--plant NUMBER]

  --histories N     how many histories to run (default 1000)
  --seed S          the seed of the first one (default 1); history i has the seed S + i
  --minutes M       stop after so many minutes, even if histories are left
  --shrink          leave out of a history that fails what it does not need to fail
  --plant NUMBER    plant a bug, to see how it is found:
${BUGS.map(({ name }, number) => `                    ${number}  ${name}`).join('\n')}`

/** How many histories run before the clock is looked at. */
const BATCH = 100

/** What many histories had together. */
export class Totals {
  histories = 0
  events = 0
  requests = 0
  readonly ends = new Map<string, number>()
  readonly faults = new Map<string, number>()

  add({ events, requests, ends, faults }: HistoryReport): void {
    this.histories += 1
    this.events += events
    this.requests += requests
    for (const [kind, count] of ends) this.ends.set(kind, (this.ends.get(kind) ?? 0) + count)
    for (const [kind, count] of faults) this.faults.set(kind, (this.faults.get(kind) ?? 0) + count)
  }

  toString(): string {
    const { histories, events, requests } = this
    return `${histories} histories, ${events} events, ${requests} requests\nflows: ${counts(this.ends)}\nfaults: ${counts(this.faults)}`
  }
}

function counts(map: ReadonlyMap<string, number>): string {
  return [...map]
    .toSorted(([, one], [, other]) => other - one)
    .map(([kind, count]) => `${count} ${kind}`)
    .join(', ')
}

/** Runs histories until one breaks an invariant. */
export async function findViolation(
  seed: number,
  histories: number,
  options: RunOptions = {},
  totals = new Totals(),
): Promise<HistoryReport | undefined> {
  for (let i = 0; i < histories; i += 1) {
    const report = await runHistory(makePlan(seed + i), options)
    totals.add(report)
    if (report.violations.length > 0) return report
  }
  return undefined
}

export async function main(args: string[]): Promise<number> {
  try {
    const { values } = parseArgs({
      args,
      options: {
        histories: { type: 'string', default: '1000' },
        seed: { type: 'string', default: '1' },
        minutes: { type: 'string', default: '600' },
        shrink: { type: 'boolean', default: false },
        plant: { type: 'string' },
      },
    })
    const seed = readCount('--seed', values.seed)
    const histories = readCount('--histories', values.histories)
    const bug = values.plant === undefined ? undefined : BUGS[readCount('--plant', values.plant)]
    if (values.plant !== undefined && bug === undefined) throw new Error(`--plant: there is no bug ${values.plant}.`)
    const minutes = readCount('--minutes', values.minutes)
    return await search(seed, histories, {
      isShrunk: values.shrink,
      minutes,
      options: bug === undefined ? {} : { plant: bug.plant },
    })
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`)
    return 2
  }
}

async function search(
  seed: number,
  histories: number,
  { isShrunk, minutes, options }: { isShrunk: boolean; minutes: number; options: RunOptions },
): Promise<number> {
  const startedAt = performance.now()
  const totals = new Totals()
  let found: HistoryReport | undefined
  while (found === undefined && totals.histories < histories && performance.now() - startedAt < minutes * 60_000) {
    const next = Math.min(BATCH, histories - totals.histories)
    found = await findViolation(seed + totals.histories, next, options, totals)
  }
  console.log(`${totals.toString()}\n${((performance.now() - startedAt) / 1_000).toFixed(1)} s`)
  if (found === undefined) {
    console.log('No violations.')
    return 0
  }
  await print(isShrunk ? await shrink(found.plan, options) : found.plan, options)
  return 1
}

async function print(plan: Plan, options: RunOptions): Promise<void> {
  const { story, violations } = await runHistory(plan, { ...options, isTold: true })
  console.log(
    `\nThe history of seed ${plan.seed} breaks an invariant (see ARCHITECTURE.md):\n${JSON.stringify(plan)}\n`,
  )
  console.log(story.join('\n'))
  for (const { invariant, what } of violations) console.log(`\n${invariant}: ${what}`)
}

function readCount(option: string, text: string): number {
  const count = Number(text)
  if (!Number.isSafeInteger(count) || count < 0) throw new Error(`${option} takes a whole number, got ${text}.`)
  return count
}
