// Many parked tasks, made as copies of a real one, and an instance that has them.
import pg from 'pg'
import { openDatabase } from '../../src/store/sqlite/driver.ts'
import { Process } from '../drain/process.ts'
import type { StoreTarget } from './workers.ts'

export interface Cost {
  /** Bytes of the heap and beside it, once everything was collected that can be. */
  readonly held: number
  /** Of the process. */
  readonly rss: number
  /** Microseconds of a `tasks/get`, at the median. */
  readonly median: number
}

type Said = Partial<Cost> & { readonly ready?: boolean; readonly parked?: string }

export interface Parked {
  readonly few: Cost
  readonly many: Cost
}

const FEW = 10

/** What an instance costs with ten parked tasks and with so many, after so many looks at some of them. */
export async function parkMany(target: StoreTarget, count: number, looks: number): Promise<Parked> {
  const instance = new Process<Said>(new URL('parked.mjs', import.meta.url), { store: target })
  try {
    await instance.until(({ ready }) => ready === true)
    instance.tell({ park: true })
    const { parked = '' } = await instance.until((said) => said.parked !== undefined)
    const copy = 'file' in target ? copyInSqlite : copyInPostgres
    await copy(target as never, parked, 1, FEW)
    const few = someOf(parked, FEW, looks)
    // The first is for whatever is made once.
    await costOf(instance, few)
    const before = await costOf(instance, few)
    await copy(target as never, parked, FEW + 1, count)
    const after = await costOf(instance, someOf(parked, count, looks))
    return { few: before, many: after }
  } finally {
    await instance.kill()
  }
}

async function costOf(instance: Process<Said>, ids: readonly string[]): Promise<Cost> {
  const heard = instance.heard.length
  instance.tell({ ids })
  return (await instance.until((said) => instance.heard.indexOf(said) >= heard)) as Cost
}

/** The ids of copies are as the original's, but for digits at their end. */
const DIGITS = 8

function someOf(id: string, copies: number, count: number): string[] {
  const number = (): number => 1 + Math.floor(Math.random() * copies)
  return Array.from({ length: count }, () => id.slice(0, -DIGITS) + String(number()).padStart(DIGITS, '0'))
}

async function copyInPostgres(
  { url, schema }: { url: string; schema: string },
  id: string,
  from: number,
  to: number,
): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    for (const [table, key] of [
      ['tasks', 'id'],
      ['journal_entries', 'task'],
    ] as const) {
      const { rows } = await client.query<{ name: string }>(
        `SELECT column_name AS name FROM information_schema.columns
         WHERE table_schema = $1 AND table_name = $2 AND is_generated = 'NEVER' AND column_name <> $3`,
        [schema, table, key],
      )
      const columns = rows.map(({ name }) => name).join(', ')
      await client.query(
        `INSERT INTO "${schema}".${table} (${key}, ${columns})
         SELECT $2::text || lpad(n::text, ${DIGITS}, '0'), ${columns}
         FROM "${schema}".${table}, generate_series(${from}, ${to}) n WHERE ${key} = $1`,
        [id, id.slice(0, -DIGITS)],
      )
    }
    await client.query(`ANALYZE "${schema}".tasks`)
  } finally {
    await client.end()
  }
}

async function copyInSqlite({ file }: { file: string }, id: string, from: number, to: number): Promise<void> {
  const database = openDatabase(file, { synchronous: 'normal' })
  try {
    const columns = database
      .prepare(`SELECT name FROM pragma_table_info('rally_task') WHERE name NOT IN ('seq', 'id', 'ready_at')`)
      .all([])
      .map((row) => (row as { name: string }).name)
      .join(', ')
    const copy = `substr(?1, 1, length(?1) - ${DIGITS}) || printf('%0${DIGITS}d', n)`
    const copied = `t.id IN (SELECT ${copy} FROM numbers)`
    const numbers = `WITH RECURSIVE numbers (n) AS (SELECT ${from} UNION ALL SELECT n + 1 FROM numbers WHERE n < ${to})`
    const original = 'SELECT seq FROM rally_task WHERE id = ?1'
    for (const sql of [
      `INSERT INTO rally_task (id, ${columns}) ${numbers} SELECT ${copy}, ${columns} FROM numbers, rally_task WHERE id = ?1`,
      `INSERT INTO rally_task_text (task, request, state, outcome) ${numbers} SELECT t.seq, x.request, x.state, x.outcome
       FROM rally_task t, rally_task_text x WHERE ${copied} AND x.task = (${original})`,
      `INSERT INTO rally_task_entry (task, number, text) ${numbers} SELECT t.seq, x.number, x.text
       FROM rally_task t, rally_task_entry x WHERE ${copied} AND x.task = (${original})`,
    ])
      database.prepare(sql).run([id])
  } finally {
    database.close()
  }
}
