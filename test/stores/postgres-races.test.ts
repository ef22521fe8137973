// Workers that come too late, on connections of their own, and what a look for work costs.
import { postgres, type PoolLike, type QueryLike } from 'mcp-rally/postgres'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ClaimedTask, Store, TaskStore } from '../../src/tasks/store.ts'
import { newTask } from './contract.ts'
import { emptySchemas, startDatabase, type EmptySchemas, type TestDatabase } from './database.ts'

const LONG_MS = 60_000

let database: TestDatabase
let schemas: EmptySchemas
let pool: pg.Pool
let schema: string
let store: Store
let tasks: TaskStore
/** What was asked of the database, since the test began. */
let asked: QueryLike[]

beforeAll(async () => {
  database = await startDatabase()
  schemas = emptySchemas(database.url)
  pool = new pg.Pool({ connectionString: database.url, max: 20 })
}, 60_000)
afterAll(async () => {
  await schemas?.drop()
  await pool?.end()
  await database?.stop()
})
beforeEach(async () => {
  schema = schemas.next()
  asked = []
  store = postgres(recorded(), { schema })
  tasks = store.tasks
  await tasks.sweep()
  asked = []
})
afterEach(() => store.close())

function recorded(): PoolLike {
  return {
    query: (query) => {
      asked.push(query)
      return pool.query(query)
    },
    connect: () => pool.connect(),
    on: (event, listener) => pool.on(event, listener),
    removeListener: (event, listener) => pool.removeListener(event, listener),
  }
}

async function claimed(leaseMs = LONG_MS, by = tasks): Promise<ClaimedTask> {
  const task = await by.claim({ after: '', leaseMs })
  if (task === undefined) throw new Error('A task should be due, and none is.')
  return task
}

/** Until one that was asked for waits for a lock of another. */
async function oneWaits(): Promise<void> {
  for (;;) {
    const { rows } = await pool.query(
      `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%${schema}%'`,
    )
    if (rows.length > 0) return
  }
}

describe('a worker whose lease ran out', () => {
  /** Takes the task over on a connection of its own, and holds what it did back. */
  const takeOver = async (): Promise<{ commit: () => Promise<void> }> => {
    asked = []
    await tasks.claim({ after: 'nobody has this name, and none comes after it: \u{10FFFF}', except: 'ada', leaseMs: 1 })
    const claim = asked[0] as QueryLike
    const connection = await pool.connect()
    await connection.query('BEGIN')
    const { rows } = await connection.query(claim.text, [LONG_MS, '', 'nobody'])
    expect(rows).toHaveLength(1)
    return {
      commit: async () => {
        await connection.query('COMMIT')
        connection.release()
      },
    }
  }

  test('appends nothing once another is taking the task over, and waits to know it', async () => {
    await tasks.create(newTask('t'))
    const late = await claimed(0)
    const { commit } = await takeOver()
    const appending = tasks.append(late, '"late"')
    await oneWaits()
    await commit()
    expect(await appending).toBe(false)
    expect((await pool.query(`SELECT * FROM "${schema}".journal_entries`)).rows).toEqual([])
  })

  test('changes and renews nothing once another is taking the task over', async () => {
    const { version } = await tasks.create(newTask('t'))
    const late = await claimed(0)
    const { commit } = await takeOver()
    const changing = tasks.change('t', { fence: late.fence }, { status: 'completed', outcome: '"late"' })
    await oneWaits()
    const renewing = tasks.renew([late], LONG_MS)
    await commit()
    expect(await changing).toBeUndefined()
    expect(await renewing).toEqual([])
    expect(await tasks.read('t')).toMatchObject({ status: 'working', version })
  })

  test('is passed over by those that look for work while it is writing', async () => {
    await tasks.create(newTask('t'))
    const late = await claimed(0)
    await tasks.append(late, '1')
    const append = asked.at(-1) as QueryLike
    const connection = await pool.connect()
    await connection.query('BEGIN')
    await connection.query(append.text, ['t', late.fence, '2'])
    expect(await tasks.claim({ after: '', leaseMs: LONG_MS })).toBeUndefined()
    await connection.query('COMMIT')
    connection.release()
    expect(await claimed()).toMatchObject({ journal: '[1,2]', lost: true })
  })

  test('leaves its successor everything that it was told is written, however close they come', async () => {
    const other = postgres(pool, { schema })
    await tasks.create(newTask('t'))
    const written: { number: number; fence: number }[] = []
    const claims: ClaimedTask[] = [await claimed(0)]
    let number = 0
    const write = async (): Promise<void> => {
      while (claims.length < 500) {
        number += 1
        const entry = { number, fence: claims.at(-1)?.fence ?? 0 }
        if (await tasks.append({ id: 't', fence: entry.fence }, String(entry.number))) written.push(entry)
      }
    }
    const take = async (): Promise<void> => {
      while (claims.length < 500) {
        const task = await other.tasks.claim({ after: '', leaseMs: 0 })
        if (task !== undefined) claims.push(task)
      }
    }
    await Promise.all([write(), write(), take(), take()])
    const last = await claimed(LONG_MS, other.tasks)
    for (const { fence, journal } of [...claims, last]) {
      const kept = new Set(JSON.parse(journal) as number[])
      const missing = written.filter((entry) => entry.fence < fence && !kept.has(entry.number))
      expect({ fence, missing }).toEqual({ fence, missing: [] })
    }
    expect(JSON.parse(last.journal)).toHaveLength(written.length)
    expect(written.length).toBeGreaterThan(0)
    await other.close()
  })
})

test('each operation on a task is one round trip', async () => {
  const count = async (run: () => Promise<unknown>): Promise<number> => {
    asked = []
    await run()
    return asked.length
  }
  expect(await count(() => tasks.create(newTask('t')))).toBe(1)
  expect(await count(() => tasks.create(newTask('t')))).toBe(1)
  let held: ClaimedTask | undefined
  expect(await count(async () => (held = await claimed()))).toBe(1)
  if (held === undefined) return
  const { fence } = held
  expect(await count(() => tasks.append({ id: 't', fence }, '1,2'))).toBe(1)
  expect(await count(() => tasks.renew([{ id: 't', fence }], LONG_MS))).toBe(1)
  expect(await count(() => tasks.change('t', { fence }, { letGo: true, dueMs: 0 }))).toBe(1)
  expect(await count(() => claimed())).toBe(1)
  expect(await count(() => tasks.change('t', {}, { status: 'completed', outcome: '1' }))).toBe(1)
  expect(await count(() => tasks.list('ada', 10))).toBe(1)
  expect(await count(() => tasks.sweep())).toBe(1)
})

test('entries of one task that wait for each other are written together', async () => {
  await tasks.create(newTask('t'))
  const held = await claimed(0)
  asked = []
  const numbers = Array.from({ length: 100 }, (_, i) => i)
  await Promise.all(numbers.map((n) => tasks.append(held, String(n))))
  expect(asked).toHaveLength(2)
  expect((await claimed()).journal).toBe(JSON.stringify(numbers))
})

describe('with many tasks that nobody has to take up', () => {
  const PARKED = 30_000

  /** As many of one owner as of many, with a time to live and without. */
  const park = (): Promise<unknown> =>
    pool.query(`
      INSERT INTO "${schema}".tasks (
        id, owner, request, state, status, poll_ms, ttl_ms, expires_at, created_at, updated_at, version, fence,
        journal, journal_from, journal_to
      )
      SELECT 'parked ' || n, CASE WHEN n % 2 = 0 THEN 'ada' ELSE 'owner ' || n END, repeat('x', 200), '{}', 'input_required',
        1000, 1e12, 1e14, n, n, 1, 0, '', 0, 0
      FROM generate_series(1, ${PARKED}) n`)

  /** How many pages of tables and indexes the last thing asked for looks at, planned as for any values. */
  const pagesOf = async ({ text, values = [] }: QueryLike): Promise<number> => {
    const connection = await pool.connect()
    try {
      await connection.query('SET plan_cache_mode = force_generic_plan')
      await connection.query(`PREPARE looked AS ${text}`)
      const given = values.map((value) => (typeof value === 'number' ? String(value) : pg.escapeLiteral(String(value))))
      const explain = `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE looked${given.length ? `(${given.join(', ')})` : ''}`
      const { rows } = await connection.query<{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }>(explain)
      const plan = rows[0]?.['QUERY PLAN'][0].Plan ?? {}
      return (plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0)
    } finally {
      connection.release(true)
    }
  }

  // All of them fill about a thousand pages.
  const FEW = 100

  test.each([
    { statistics: 'fresh', after: '', except: undefined },
    { statistics: 'fresh', after: 'owner 5', except: 'ada' },
    { statistics: 'fresh', after: '', except: 'owner 7' },
    { statistics: 'none', after: '', except: undefined },
    { statistics: 'none', after: 'owner 5', except: 'ada' },
  ])('a look for work after "$after" except "$except" costs little, statistics: $statistics', async (turn) => {
    await pool.query(`ALTER TABLE "${schema}".tasks SET (autovacuum_enabled = false)`)
    await park()
    if (turn.statistics === 'fresh') await pool.query(`ANALYZE "${schema}".tasks`)
    const { rows } = await pool.query<{ pages: number }>(
      `SELECT (pg_relation_size('"${schema}".tasks') / 8192)::int AS pages`,
    )
    expect(rows[0]?.pages).toBeGreaterThan(5 * FEW)
    asked = []
    expect(await tasks.claim({ after: turn.after, except: turn.except, leaseMs: 0 })).toBeUndefined()
    expect(await pagesOf(asked[0] as QueryLike)).toBeLessThan(FEW)
    await tasks.create(newTask('due', { owner: 'zoe' }))
    expect(await pagesOf(asked[0] as QueryLike)).toBeLessThan(FEW)
    asked = []
    expect(await tasks.claim({ after: turn.after, except: turn.except, leaseMs: 0 })).toMatchObject({ id: 'due' })
  })

  test('an owner of whom nothing is to be taken is not gone through', async () => {
    await park()
    await pool.query(`UPDATE "${schema}".tasks SET due_at = 0 WHERE owner = 'ada'`)
    await tasks.create(newTask('due', { owner: 'zoe' }))
    for (const after of ['', 'ada', 'zoe']) {
      asked = []
      expect(await tasks.claim({ after, except: 'ada', leaseMs: 0 })).toMatchObject({ id: 'due' })
      expect(await pagesOf(asked[0] as QueryLike)).toBeLessThan(FEW)
    }
  })

  test('reading, listing, changing and sweeping cost as little', async () => {
    await park()
    await pool.query(`ANALYZE "${schema}".tasks`)
    asked = []
    await tasks.read('parked 77')
    await tasks.list('ada', 10, { id: 'parked 20000', createdAt: 20_000 })
    await tasks.sweep()
    expect(await Promise.all(asked.map(pagesOf))).toEqual(asked.map(() => expect.toSatisfy((n: number) => n < FEW)))
  })
})

test('what has lapsed of once and the mailbox goes as fast as new ones come', async () => {
  for (let i = 0; i < 300; i += 1) {
    await store.once.claim(`key ${i}`, 'note', 0)
    await store.mailbox.leave('box', i, 'text', 0)
  }
  const left = async (table: string): Promise<number> => {
    const { rows } = await pool.query<{ count: string }>(`SELECT count(*) FROM "${schema}".${table}`)
    return Number(rows[0]?.count)
  }
  // The last sweep may still be under way.
  while ((await left('once')) >= 100 || (await left('letters')) >= 100) await new Promise(setImmediate)
  expect(await left('once')).toBeLessThan(100)
})
