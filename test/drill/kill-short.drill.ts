// A short kill drill. `npm run drill` is the long one.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startDatabase, type TestDatabase } from '../stores/database.ts'
import { expectClean } from './kill-drill.ts'
import { expectCleanDatabase, killOnPostgres } from './kill-postgres.ts'
import { killOnSqlite } from './kill-sqlite.ts'
import { outage } from './outage.ts'

const STEPS = 10
const GROUP_LIMIT = 1

describe('workers that are killed again and again', () => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await startDatabase()
  }, 60_000)
  afterAll(() => database?.stop())

  test('lose no task and repeat no effect on PostgreSQL, which is itself restarted', { timeout: 120_000 }, async () => {
    const report = await killOnPostgres(database, `drill_${process.pid}`, {
      workers: 3,
      jobs: 16,
      steps: STEPS,
      killEveryMs: 300,
      ripe: 15,
      leaseMs: 1_000,
      stepMs: 20,
      pollMs: 200,
      groupLimit: GROUP_LIMIT,
      restart: () => outage(database),
      restartsAt: [0.5],
    })
    expectCleanDatabase(report, STEPS, GROUP_LIMIT)
  })
})

test(
  'one worker that is killed again and again loses no task and repeats no effect on SQLite',
  { timeout: 120_000 },
  async () => {
    const kills = 3
    const report = await killOnSqlite({
      jobs: 16,
      steps: STEPS,
      kills,
      leaseMs: 1_000,
      stepMs: 20,
      pollMs: 200,
      groupLimit: GROUP_LIMIT,
    })
    expectClean(report, STEPS, GROUP_LIMIT)
    expect(report.kills).toBe(kills)
  },
)
