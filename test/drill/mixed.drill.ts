// A fleet during an upgrade: workers of this checkout and of the commit before statements were shared by several tasks, on one database.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildOfCommit, type BuiltCommit } from '../../scripts/build-of-commit.mjs'
import { useDatabase } from '../stores/database.ts'
import { expectClean } from './kill-drill.ts'
import { killOnPostgres } from './kill-postgres.ts'
import { outage } from './outage.ts'

const EARLIER = 'ce10e78c773eb045e7f2874c2c578102fe2ef2c8'
const OWN = new URL('../../dist/', import.meta.url).href
const JOBS = 300
const STEPS = 10

const database = useDatabase()
let earlier: BuiltCommit | undefined
beforeAll(() => {
  earlier = buildOfCommit(EARLIER)
}, 300_000)
afterAll(() => earlier?.remove())

test(
  'two workers of this version and two of an earlier one, killed in turn, lose no task and repeat no effect',
  { timeout: 900_000 },
  async () => {
    const report = await killOnPostgres(database, database.nextSchema(), {
      workers: 4,
      jobs: JOBS,
      steps: STEPS,
      killEveryMs: 300,
      ripe: 10,
      leaseMs: 1_500,
      stepMs: 20,
      pollMs: 1_000,
      dists: [OWN, earlier?.dist ?? ''],
      restart: () => outage(database),
    })
    console.table({ [report.name]: report })
    expectClean(report, STEPS)
    expect(report.standing).toEqual([{ status: 'completed', count: JOBS }])
    expect(report.deadlocks).toBe(0)
  },
)
