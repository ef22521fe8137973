// How SQLite goes about what is asked of it: by indexes, so that it takes no longer with a hundred thousand tasks than with ten.
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { SqliteDatabase } from '../../src/store/sqlite/driver.ts'
import { openDatabase } from '../../src/store/sqlite/driver.ts'
import { SqliteFile } from '../../src/store/sqlite/file.ts'
import { SqliteMailbox } from '../../src/store/sqlite/mailbox.ts'
import { SqliteOnceStore } from '../../src/store/sqlite/once.ts'
import { upgrade } from '../../src/store/sqlite/schema.ts'
import { SQL } from '../../src/store/sqlite/statements.ts'
import { SqliteTasks } from '../../src/store/sqlite/tasks.ts'

let database: SqliteDatabase

beforeAll(() => {
  database = openDatabase(':memory:', { synchronous: 'full' })
  upgrade(database)
})
afterAll(() => void database.close())

function planOf(sql: string): string[] {
  const parameters = [...new Set(sql.match(/\?\d+/g) ?? sql.match(/\?/g))].map(() => 1)
  const rows = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(parameters) as { detail: string }[]
  return rows.map(({ detail }) => detail)
}

/** All that the parts of a store ask of their database. */
function statements(): string[] {
  const asked: string[] = []
  const recording: SqliteDatabase = {
    inTransaction: false,
    exec: (sql) => database.exec(sql),
    prepare: (sql) => {
      asked.push(sql)
      return database.prepare(sql)
    },
    close: () => {},
  }
  const file = new SqliteFile(recording, { pollMs: 1_000, now: Date.now })
  void new SqliteTasks(file)
  void new SqliteOnceStore(file)
  void new SqliteMailbox(file)
  return asked
}

test('nothing is looked for row by row, and nothing is sorted', () => {
  // Of these there is one row, and one for each table that counts. What `json_each` reads is the parameter.
  const SMALL = /^SCAN (rally_count|sqlite_sequence|json_each VIRTUAL TABLE INDEX \d+:)$/
  const asked = statements()
  expect(asked.length).toBeGreaterThan(Object.keys(SQL).length)
  const slow = asked.filter((sql) => planOf(sql).some((step) => /SCAN|TEMP B-TREE/.test(step) && !SMALL.test(step)))
  expect(slow).toEqual([])
})

test('a statement without an index would be found out', () => {
  expect(planOf('SELECT id FROM rally_task WHERE status = ? ORDER BY message')).toEqual([
    'SCAN rally_task',
    'USE TEMP B-TREE FOR ORDER BY',
  ])
})

test.each([
  { name: 'dueAfter', step: 'SEARCH rally_task USING INDEX rally_task_due (owner>?)' },
  { name: 'dueFrom', step: 'SEARCH rally_task USING INDEX rally_task_due (owner>?)' },
  { name: 'markDue', step: 'SEARCH rally_task USING INDEX rally_task_waiting (ready_at>? AND ready_at<?)' },
  { name: 'expired', step: 'SEARCH rally_task USING COVERING INDEX rally_task_expiry (expires_at<?)' },
  { name: 'list', step: 'SEARCH rally_task USING INDEX rally_task_of_owner (owner=? AND (created_at,id)>(?,?))' },
] as const)('$name goes by the index that holds what it looks for and nothing else', ({ name, step }) => {
  expect(planOf(SQL[name])).toContain(step)
})

test('parked tasks and those at their end are in no index that a claim looks at', () => {
  const indexed = database
    .prepare(`SELECT sql FROM sqlite_schema WHERE name IN ('rally_task_due', 'rally_task_waiting') ORDER BY name`)
    .all([]) as { sql: string }[]
  expect(indexed.map(({ sql }) => sql.replace(/.* WHERE /, ''))).toEqual([
    'is_due = 1',
    'is_due = 0 AND ready_at IS NOT NULL',
  ])
})
