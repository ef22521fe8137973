// The kill drill on PostgreSQL, which itself goes away once in the middle.
import pg from 'pg'
import type { RunningDatabase } from '../stores/database.ts'
import type { Report } from './kill-drill.ts'
import { every, killDrill } from './kill-drill.ts'
import { PostgresLedger } from './ledger.ts'
import { Workers } from './workers.ts'

export interface PostgresDrillOptions {
  readonly workers: number
  readonly jobs: number
  readonly steps: number
  readonly killEveryMs: number
  /** Nobody is killed that has run fewer steps. */
  readonly ripe: number
  readonly leaseMs: number
  readonly stepMs: number
  readonly pollMs: number
  readonly dists?: readonly string[]
  /** Takes the database away for a moment. */
  readonly restart: () => Promise<void>
}

export interface PostgresReport extends Report {
  /** How many tasks are in which state. */
  readonly standing: unknown
  /** The store retries after a deadlock, so only the server tells. */
  readonly deadlocks: number
}

export async function killOnPostgres(
  { url }: RunningDatabase,
  schema: string,
  options: PostgresDrillOptions,
): Promise<PostgresReport> {
  const { leaseMs, stepMs, steps, killEveryMs, ripe, dists } = options
  const before = await deadlocks(url)
  const ledger = new PostgresLedger(url, schema)
  await ledger.setUp()
  const keys = ['a secret of the kill drill, long enough']
  const workers = new Workers({ store: { url, schema }, keys, leaseMs, stepMs, steps, ...(dists && { dists }) })
  try {
    await workers.start(options.workers)
    const report = await killDrill(workers, ledger, {
      name: `PostgreSQL, ${options.workers} workers`,
      ...options,
      disturb: async ({ half, signal }) => {
        const killing = every(killEveryMs, signal, () => workers.killNext(ripe))
        await half
        await options.restart()
        await killing
      },
    })
    await workers.stop()
    return { ...report, standing: await standing(url, schema), deadlocks: (await deadlocks(url)) - before }
  } finally {
    await workers.stop()
    await ledger.drop()
  }
}

async function standing(url: string, schema: string): Promise<unknown> {
  return ask(url, `SELECT status, count(*)::int FROM "${schema}".tasks GROUP BY status`)
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
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}
