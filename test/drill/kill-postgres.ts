// The kill drill on PostgreSQL, which itself goes away in between.
import pg from 'pg'
import { expect } from 'vitest'
import type { RunningDatabase } from '../stores/database.ts'
import type { Report } from './kill-drill.ts'
import { every, expectClean, killDrill } from './kill-drill.ts'
import { PostgresLedger } from './ledger.ts'
import { Workers } from './workers.ts'

export interface PostgresDrillOptions {
  readonly workers: number
  readonly jobs: number
  readonly steps: number
  /** Every fourth time, a worker is not killed but stands still for two leases. */
  readonly killEveryMs: number
  /** Nobody is killed or stopped that has run fewer steps. */
  readonly ripe: number
  readonly leaseMs: number
  readonly stepMs: number
  readonly pollMs: number
  readonly dists?: readonly string[]
  readonly hasEvents?: boolean
  /** How many jobs of a group run at a time. Default: jobs are in no group. */
  readonly groupLimit?: number
  /** Takes the database away for a moment. */
  readonly restart: () => Promise<void>
  /** The shares of the jobs after which that happens. */
  readonly restartsAt: readonly number[]
}

/** Four workers, one of which is killed or stopped every 300 ms, and three restarts of the database. */
export const FULL_SIZE = {
  workers: 4,
  steps: 10,
  killEveryMs: 300,
  // Fewer, and most tasks of a worker would be lost before they record anything. After five such losses a task is given up.
  ripe: 40,
  leaseMs: 1_500,
  stepMs: 20,
  pollMs: 1_000,
  restartsAt: [0.25, 0.5, 0.75],
} as const

export interface PostgresReport extends Report {
  /** How many tasks are in which state. */
  readonly standing: unknown
  /** The store retries after a deadlock, so only the server tells. */
  readonly deadlocks: number
}

/** Of the disturbances. */
const STOP_EVERY = 4

export async function killOnPostgres(
  { url }: RunningDatabase,
  schema: string,
  options: PostgresDrillOptions,
): Promise<PostgresReport> {
  const {
    leaseMs,
    stepMs,
    steps,
    killEveryMs,
    ripe,
    dists,
    hasEvents = true,
    groupLimit,
    restart,
    restartsAt,
  } = options
  const before = await deadlocks(url)
  const ledger = new PostgresLedger(url, schema)
  await ledger.setUp()
  const keys = ['a secret of the kill drill, long enough']
  const own = { keys, leaseMs, stepMs, steps, hasEvents, ...(groupLimit && { groupLimit }) }
  const workers = new Workers({ store: { url, schema }, ...own, ...(dists && { dists }) })
  let turns = 0
  const disturb = (): Promise<void> => {
    turns += 1
    return turns % STOP_EVERY === 0 ? workers.stopNext(ripe, 2 * leaseMs) : workers.killNext(ripe)
  }
  try {
    await workers.start(options.workers)
    const report = await killDrill(workers, ledger, {
      name: `PostgreSQL, ${options.workers} workers`,
      ...options,
      ...(groupLimit && { mostOfGroup: () => mostOfGroup(url, schema) }),
      disturb: async ({ reached, signal }) => {
        const disturbing = every(killEveryMs, signal, disturb)
        for (const share of restartsAt) {
          await reached(share)
          await restart()
        }
        await disturbing
      },
    })
    await workers.stop()
    return { ...report, standing: await standing(url, schema), deadlocks: (await deadlocks(url)) - before }
  } finally {
    await workers.stop()
    await ledger.drop()
  }
}

/** As `expectClean`, and all tasks are completed, without any deadlock. */
export function expectCleanDatabase(report: PostgresReport, steps: number, groupLimit?: number): void {
  expectClean(report, steps, groupLimit)
  expect(report.standing).toEqual([{ status: 'completed', count: report.jobs }])
  expect(report.deadlocks).toBe(0)
}

async function standing(url: string, schema: string): Promise<unknown> {
  return ask(url, `SELECT status, count(*)::int FROM "${schema}".tasks GROUP BY status`)
}

async function mostOfGroup(url: string, schema: string): Promise<number> {
  const [row] = await ask(
    url,
    `SELECT count(*)::int AS most FROM "${schema}".tasks WHERE group_name IS NOT NULL AND ready_at IS NOT NULL
     GROUP BY group_name ORDER BY 1 DESC LIMIT 1`,
  )
  return Number(row?.['most'] ?? 0)
}

/** Since the statistics of the database began. A server process adds what it counted at its end at the latest. */
async function deadlocks(url: string): Promise<number> {
  const others = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`
  for (const until = performance.now() + 10_000; performance.now() < until && (await ask(url, others)).length > 0;);
  const [row] = await ask(url, 'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()')
  return Number(row?.['deadlocks'])
}

async function ask(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url)
  // If the database is restarted meanwhile, the query fails, or the next one does.
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}
