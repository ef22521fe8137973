// The kill drill at its full size.
import { afterAll, expect, test } from 'vitest'
import { useDatabase } from '../stores/database.ts'
import type { Report } from './kill-drill.ts'
import { expectClean } from './kill-drill.ts'
import { expectCleanDatabase, FULL_SIZE, killOnPostgres } from './kill-postgres.ts'
import { killOnSqlite } from './kill-sqlite.ts'
import { outage } from './outage.ts'

const JOBS = 500
/** Of each group of jobs, so many run at a time. */
const GROUP_LIMIT = 8
/** How long the drill on PostgreSQL repeats, for at least one round. */
const MINUTES = Number(process.env['RALLY_DRILL_MINUTES'] ?? 0)
const LIMIT_MS = 900_000 + MINUTES * 60_000

const database = useDatabase()
const reports: Report[] = []

afterAll(async () => {
  console.table(Object.fromEntries(reports.map((report) => [report.name, row(report)])))
})

function row({ jobs, kills, stops, takeovers, effects, runs, retries, probes, seconds, ...others }: Report): object {
  const perKill = Math.round((seconds * 1000) / kills)
  const prevented = runs - effects
  return {
    tasks: jobs,
    kills,
    stops,
    'ms a kill': perKill,
    takeovers,
    effects,
    'duplicates prevented': prevented,
    retries,
    probes,
    'oldest state, s': others.oldestStateSeconds,
    'most of a group': others.mostOfGroup,
    'given up': others.gaveUp,
    seconds,
    ...('deadlocks' in others && { deadlocks: others.deadlocks }),
  }
}

test(
  '4 workers on PostgreSQL, one that has worked killed or stopped every 300 ms, and PostgreSQL restarted three times',
  { timeout: LIMIT_MS },
  async () => {
    const until = performance.now() + MINUTES * 60_000
    for (let round = 1; round === 1 || performance.now() < until; round += 1) {
      const report = await killOnPostgres(database, database.nextSchema(), {
        ...FULL_SIZE,
        jobs: JOBS,
        groupLimit: GROUP_LIMIT,
        restart: () => outage(database),
      })
      reports.push({ ...report, name: `${report.name}, round ${round}` })
      expectCleanDatabase(report, FULL_SIZE.steps, GROUP_LIMIT)
    }
  },
)

test('1 worker on SQLite, killed 20 times', { timeout: LIMIT_MS }, async () => {
  const kills = 20
  const { steps, leaseMs, stepMs, pollMs } = FULL_SIZE
  const report = await killOnSqlite({ jobs: JOBS, steps, kills, leaseMs, stepMs, pollMs, groupLimit: GROUP_LIMIT })
  reports.push(report)
  expectClean(report, steps, GROUP_LIMIT)
  expect(report.kills).toBe(kills)
})
