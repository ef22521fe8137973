// Tasks that wait for an answer cost an instance nothing. `npm run drill` has a hundred thousand of them, and compares times.
import pg from 'pg'
import { afterAll, expect, test } from 'vitest'
import { openDatabase } from '../../src/store/sqlite/driver.ts'
import { taskStatements } from '../../src/store/postgres/statements.ts'
import { SQL } from '../../src/store/sqlite/statements.ts'
import { useDatabase } from '../stores/database.ts'
import { Folder } from '../stores/folder.ts'
import { parkMany } from './parking.ts'

const COUNT = 20_000
const LOOKS = 300
/** A tenth of what a hundred thousand may grow it by, and a little for the noise of a collector. */
const MOST_BYTES = 4_000_000 + 2_000_000

const database = useDatabase()
const folder = new Folder()
afterAll(async () => {
  folder.remove()
})

test(
  'an instance holds nothing of tasks that are parked in SQLite, and finds one by its index',
  { timeout: 60_000 },
  async () => {
    const file = folder.file()
    const { few, many } = await parkMany({ file }, COUNT, LOOKS)
    expect(many.held - few.held).toBeLessThan(MOST_BYTES)
    const opened = openDatabase(file, { synchronous: 'normal' })
    const plan = opened.prepare(`EXPLAIN QUERY PLAN ${SQL.read}`).all(['copy-1', 0]) as { detail: string }[]
    opened.close()
    expect(plan.map(({ detail }) => detail)).toEqual([
      'SEARCH rally_task USING INDEX sqlite_autoindex_rally_task_1 (id=?)',
      'SEARCH rally_task_text USING INTEGER PRIMARY KEY (rowid=?)',
    ])
  },
)

test(
  'an instance holds nothing of tasks that are parked in PostgreSQL, and finds one by its index',
  { timeout: 60_000 },
  async () => {
    const schema = database.nextSchema()
    const { few, many } = await parkMany({ url: database.url, schema }, COUNT, LOOKS)
    expect(many.held - few.held).toBeLessThan(MOST_BYTES)
    const client = new pg.Client(database.url)
    await client.connect()
    const { text } = taskStatements(`"${schema}"`).read
    const { rows } = await client.query<Record<'QUERY PLAN', string>>(`EXPLAIN ${text}`, [['copy-1']])
    await client.end()
    expect(rows[0]?.['QUERY PLAN']).toMatch(/^Index Scan using tasks_pkey on tasks /)
  },
)
