// The kill drill: many jobs at once, each with steps that fail at random, a sleep, a deadline, a question and an event, on workers
// that are killed again and again.
import { setTimeout } from 'node:timers/promises'
import { expect } from 'vitest'
import { gate } from '../../src/testing/manual-scheduler.ts'
import { Job } from './job.ts'
import type { Ledger, Tally } from './ledger.ts'
import type { Workers } from './workers.ts'

export interface DrillOptions {
  readonly name: string
  readonly jobs: number
  /** Of each job. */
  readonly steps: number
  readonly pollMs: number
  /** False if the workers have no events. Default true. */
  readonly hasEvents?: boolean
  /** How many tasks of a group have a place, at most. Looked at again and again. */
  readonly mostOfGroup?: () => Promise<number>
  /** Goes on as long as the drill does, and makes trouble. */
  readonly disturb: (drill: Course) => Promise<void>
}

export interface Course {
  /** Resolves when this share of the jobs is done. */
  readonly reached: (share: number) => Promise<void>
  /** Aborted when all are done. */
  readonly signal: AbortSignal
}

export interface Report extends Tally {
  readonly name: string
  readonly jobs: number
  readonly kills: number
  readonly stops: number
  readonly takeovers: number
  readonly retries: number
  readonly probes: number
  /** What a stranger was told that is not "there is no such task". */
  readonly admitted: readonly unknown[]
  /** Jobs that did not come to their right result. */
  readonly wrong: readonly string[]
  /** Those of them that were given up because five workers were lost while they ran them. */
  readonly gaveUp: number
  readonly tasks: number
  /** How often a state was refused, by the reason. */
  readonly refusals: Readonly<Record<string, number>>
  /** The longest time from a state to the task that was made of it. */
  readonly oldestStateSeconds: number
  /** The most tasks of a group that had a place at the same time. */
  readonly mostOfGroup: number
  readonly seconds: number
}

const PRINCIPALS = 8
/** Requests that the client has under way. */
const HANDS = 24
const LOOK_MS = 100

export async function killDrill(workers: Workers, ledger: Ledger, options: DrillOptions): Promise<Report> {
  const { name, steps, pollMs, hasEvents = true } = options
  const began = performance.now()
  const client = { port: () => workers.port(), pollMs, inTurn: hands(HANDS) }
  const jobs = Array.from(
    { length: options.jobs },
    (_, id) => new Job(id, client, { principals: PRINCIPALS, hasEvents }),
  )
  const wrong: string[] = []
  const over = new AbortController()
  let done = 0
  let mostOfGroup = 0
  const gates = jobs.map(() => gate())
  const disturbing = options.disturb({
    reached: (share) => gates[Math.floor((jobs.length - 1) * share)]?.promise ?? Promise.resolve(),
    signal: over.signal,
  })
  const looking = every(LOOK_MS, over.signal, async () => {
    // The database may be away.
    const most = await options.mostOfGroup?.().catch(() => 0)
    mostOfGroup = Math.max(mostOfGroup, most ?? 0)
  })
  await Promise.all(
    jobs.map(async (job) => {
      const text = await job.run().catch((error: unknown) => String(error))
      if (text !== job.expected(steps)) wrong.push(text)
      gates[done]?.open()
      done += 1
    }),
  )
  over.abort()
  await Promise.all([disturbing, looking])
  const total = (count: (job: Job) => number): number => jobs.reduce((sum, job) => sum + count(job), 0)
  return {
    name,
    jobs: jobs.length,
    kills: workers.kills,
    stops: workers.stops,
    takeovers: workers.takeovers,
    retries: total(({ retries }) => retries),
    probes: total(({ probes }) => probes),
    admitted: jobs.flatMap(({ admitted }) => admitted),
    wrong,
    gaveUp: wrong.filter((text) => text.includes('workers were lost while they ran it')).length,
    tasks: new Set(jobs.map(({ taskId }) => taskId)).size,
    refusals: workers.refusals,
    mostOfGroup,
    oldestStateSeconds: Math.round(Math.max(...jobs.map(({ stateMs }) => stateMs)) / 1000),
    ...(await ledger.tally()),
    seconds: Math.round((performance.now() - began) / 100) / 10,
  }
}

/** Every so often, until the drill is over. */
export async function every(ms: number, signal: AbortSignal, run: () => Promise<void>): Promise<void> {
  const running: Promise<void>[] = []
  while (!signal.aborted) {
    running.push(run())
    await setTimeout(ms)
  }
  await Promise.all(running)
}

/** All results right, each effect exactly once, nothing stuck, no group beyond its limit, and nothing seen by another. */
export function expectClean(report: Report, steps: number, groupLimit = 0): void {
  const { jobs, tasks, wrong, admitted, refusals, probes, effects, runs, kills, takeovers } = report
  expect(refusals).toEqual({})
  expect(wrong).toEqual([])
  expect(admitted).toEqual([])
  expect(probes).toBeGreaterThanOrEqual(jobs * 2)
  expect(tasks).toBe(jobs)
  expect({ effects, steps: report.steps }).toEqual({ effects: jobs * steps, steps: jobs * steps })
  expect(runs).toBeGreaterThanOrEqual(effects)
  expect(report.mostOfGroup).toBe(groupLimit)
  expect(kills).toBeGreaterThan(0)
  expect(takeovers).toBeGreaterThan(0)
}

/** Runs as many at a time, and the others when it is their turn. */
function hands(count: number): <T>(run: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = []
  let free = count
  return async (run) => {
    if (free > 0) free -= 1
    else await new Promise<void>((resolve) => waiting.push(resolve))
    try {
      return await run()
    } finally {
      const next = waiting.shift()
      if (next === undefined) free += 1
      else next()
    }
  }
}
