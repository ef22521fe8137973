// The kill drill on one machine: one worker, a SQLite file, and the worker killed so often.
import { openExisting } from '../../src/store/sqlite/driver.ts'
import { Folder } from '../stores/folder.ts'
import type { Report } from './kill-drill.ts'
import { killDrill } from './kill-drill.ts'
import { MemoryLedger } from './ledger.ts'
import { Workers } from './workers.ts'

export interface SqliteDrillOptions {
  readonly jobs: number
  readonly steps: number
  /** Spread over the whole of the work. */
  readonly kills: number
  readonly leaseMs: number
  readonly stepMs: number
  readonly pollMs: number
  /** How many jobs of a group run at a time. */
  readonly groupLimit: number
}

export async function killOnSqlite(options: SqliteDrillOptions): Promise<Report> {
  const { jobs, steps, kills, leaseMs, stepMs, groupLimit } = options
  const folder = new Folder()
  const ledger = new MemoryLedger()
  const keys = ['a secret of the kill drill, long enough']
  const file = folder.file()
  const workers = new Workers({ store: { file }, keys, leaseMs, stepMs, steps, groupLimit }, ledger)
  try {
    await workers.start(1)
    return await killDrill(workers, ledger, {
      name: 'SQLite, 1 worker',
      ...options,
      mostOfGroup: async () => mostOfGroup(file),
      disturb: async () => {
        for (let kill = 1; kill <= kills; kill += 1) {
          await ledger.reaches(Math.floor((kill * jobs * steps) / (kills + 1)))
          await workers.killNext(0)
        }
      },
    })
  } finally {
    await workers.stop()
    folder.remove()
  }
}

function mostOfGroup(file: string): number {
  const database = openExisting(file)
  try {
    const [row] = database
      .prepare(
        `SELECT count(*) AS most FROM rally_task WHERE group_name IS NOT NULL AND ready_at IS NOT NULL
         GROUP BY group_name ORDER BY 1 DESC LIMIT 1`,
      )
      .all([]) as { most: number }[]
    return row?.most ?? 0
  } finally {
    database.close()
  }
}
