// Workers that come too late, on connections of their own.
import { postgres } from 'mcp-rally/postgres'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Store } from '../../src/store/store.ts'
import type { ClaimedTask, TaskStore } from '../../src/store/tasks.ts'
import { newTask } from './contract.ts'
import { emptySchemas, startDatabase, type EmptySchemas, type TestDatabase } from './database.ts'
import { askedBy, recordedPool, type RecordedPool } from './recorded-pool.ts'

const LONG_MS = 60_000

let database: TestDatabase
let schemas: EmptySchemas
let pool: pg.Pool
let recorded: RecordedPool
let schema: string
let store: Store
let tasks: TaskStore

beforeAll(async () => {
  database = await startDatabase()
  schemas = emptySchemas(database.url)
  pool = new pg.Pool({ connectionString: database.url, max: 20 })
  // Its connections may outlive it by a moment, and the server not.
  pool.on('error', () => {})
}, 60_000)
afterAll(async () => {
  await schemas?.drop()
  await pool?.end()
  await database?.stop()
})
beforeEach(async () => {
  schema = schemas.next()
  recorded = recordedPool(pool)
  store = postgres(recorded, { schema })
  tasks = store.tasks
  await tasks.create(newTask('t'))
})
afterEach(() => store.close())

async function claimed(leaseMs = LONG_MS, by = tasks): Promise<ClaimedTask> {
  const task = await by.claim({ after: '', leaseMs })
  if (task === undefined) throw new Error('A task should be due, and none is.')
  return task
}

/** Does what was asked last again, with other values, on a connection of its own, and holds it back. */
async function heldBack(
  ask: () => Promise<unknown>,
  values: unknown[],
): Promise<{ rows: unknown[]; commit: () => Promise<void> }> {
  const [query] = await askedBy(recorded, ask)
  const connection = await pool.connect()
  await connection.query('BEGIN')
  const { rows } = await connection.query(query?.text ?? '', values)
  return {
    rows,
    commit: async () => {
      await connection.query('COMMIT')
      connection.release()
    },
  }
}

/** Takes the task over. */
async function takeOver(): Promise<() => Promise<void>> {
  const takesNothing = { after: '', except: 'ada', leaseMs: 0 }
  const { rows, commit } = await heldBack(() => tasks.claim(takesNothing), [LONG_MS, '', 'nobody'])
  expect(rows).toMatchObject([{ id: 't' }])
  return commit
}

/** Until something that was asked waits for a lock of another. */
async function oneWaits(): Promise<void> {
  for (;;) {
    const waiting = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%${schema}%'`
    if ((await pool.query(waiting)).rows.length > 0) return
  }
}

describe('a worker whose lease ran out', () => {
  test('appends nothing once another is taking the task over, and waits to know it', async () => {
    const late = await claimed(0)
    const commit = await takeOver()
    const appending = tasks.append(late, '"late"')
    await oneWaits()
    await commit()
    expect(await appending).toBe(false)
    expect((await pool.query(`SELECT * FROM "${schema}".journal_entries`)).rows).toEqual([])
  })

  test('changes nothing once another is taking the task over', async () => {
    const late = await claimed(0)
    const commit = await takeOver()
    const changing = tasks.change('t', { fence: late.fence }, { status: 'completed', outcome: '"late"' })
    await oneWaits()
    await commit()
    expect(await changing).toBeUndefined()
    expect(await tasks.read('t')).toMatchObject({ status: 'working', outcome: undefined, version: late.version })
  })

  test('renews nothing once another is taking the task over', async () => {
    const late = await claimed(0)
    const commit = await takeOver()
    const renewing = tasks.renew([late], 0)
    await oneWaits()
    await commit()
    expect(await renewing).toEqual([])
    expect(await tasks.claim({ after: '', leaseMs: LONG_MS })).toBeUndefined()
  })

  test('is passed over by those that look for work while it is writing', async () => {
    const late = await claimed(0)
    const { commit } = await heldBack(() => tasks.append(late, '1'), ['t', late.fence, '2'])
    expect(await tasks.claim({ after: '', leaseMs: LONG_MS })).toBeUndefined()
    await commit()
    expect(await claimed()).toMatchObject({ journal: '[1,2]', lost: true })
  })

  test('leaves its successor everything that it was told is written, however close they come', async () => {
    const other = postgres(pool, { schema })
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
