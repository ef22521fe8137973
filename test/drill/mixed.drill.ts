// A fleet during an upgrade: workers of this checkout and of the commit before statements were shared by several tasks, on one database.
import { afterAll, beforeAll, test } from 'vitest'
import { buildOfCommit, type BuiltCommit } from '../../scripts/build-of-commit.mjs'
import { useDatabase } from '../stores/database.ts'
import { expectCleanDatabase, FULL_SIZE, killOnPostgres } from './kill-postgres.ts'
import { outage } from './outage.ts'

/** It has steps that are retried, sleeps and deadlines, but no events from outside. */
const EARLIER = 'ce10e78c773eb045e7f2874c2c578102fe2ef2c8'
const OWN = new URL('../../dist/', import.meta.url).href

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
      ...FULL_SIZE,
      jobs: 300,
      dists: [OWN, earlier?.dist ?? ''],
      hasEvents: false,
      restart: () => outage(database),
    })
    console.table({ [report.name]: report })
    expectCleanDatabase(report, FULL_SIZE.steps)
  },
)
