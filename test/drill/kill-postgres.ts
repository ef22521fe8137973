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
  /** Takes the database away for a moment. */
  readonly restart: () => Promise<void>
}

export async function killOnPostgres(
  { url }: RunningDatabase,
  schema: string,
  options: PostgresDrillOptions,
): Promise<Report & { standing: unknown }> {
  const { leaseMs, stepMs, steps, killEveryMs, ripe } = options
  const ledger = new PostgresLedger(url, schema)
  await ledger.setUp()
  const keys = ['a secret of the kill drill, long enough']
  const workers = new Workers({ store: { url, schema }, keys, leaseMs, stepMs, steps })
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
    return { ...report, standing: await standing(url, schema) }
  } finally {
    await workers.stop()
    await ledger.drop()
  }
}

/** How many tasks are in which state. */
async function standing(url: string, schema: string): Promise<unknown> {
  const client = new pg.Client(url)
  await client.connect()
  const { rows } = await client.query(`SELECT status, count(*)::int FROM "${schema}".tasks GROUP BY status`)
  await client.end()
  return rows
}
