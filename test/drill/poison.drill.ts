// One poison task among 60 others, for each kind of poison, on one instance and on three, on SQLite and PostgreSQL.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startDatabase, type TestDatabase } from '../stores/database.ts'
import type { Poison } from './poisoning.ts'
import { runPoisonDrill } from './poisoning.ts'

const INNOCENTS = 60
const CASES = (['exit', 'loop', 'rejection'] satisfies Poison[]).flatMap((poison) =>
  [1, 3].flatMap((instances) => ['SQLite', 'PostgreSQL'].map((kind) => ({ poison, instances, kind }))),
)

describe('one poison task among 60 others', () => {
  let database: TestDatabase
  const rows: object[] = []
  beforeAll(async () => {
    database = await startDatabase()
  }, 60_000)
  afterAll(() => console.table(rows))
  afterAll(() => database?.stop())

  test.each(CASES)(
    '$poison, $instances instances, $kind',
    { timeout: 300_000 },
    async ({ poison, instances, kind }) => {
      const schema = `poison_${process.pid}_${poison}_${instances}`
      const store = kind === 'SQLite' ? {} : { store: { url: database.url, schema } }
      const began = performance.now()
      const report = await runPoisonDrill({ poison, instances, innocents: INNOCENTS, ...store })
      expect(report.innocents.map(({ status }) => status)).toEqual(Array.from({ length: INNOCENTS }, () => 'completed'))
      expect(report.poison.status).toBe('failed')
      expect(report.losses).toEqual([1, 2, 3, 4, 5])
      rows.push({
        poison,
        instances,
        store: kind,
        completed: report.innocents.filter(({ status }) => status === 'completed').length,
        restarts: report.restarts,
        seconds: Math.round((performance.now() - began) / 1_000),
      })
    },
  )
})
