// Workers that have lost their lease, on connections of their own.
import { postgres } from 'mcp-rally/postgres'
import { beforeEach, describe, expect, test } from 'vitest'
import type { ClaimedTask } from '../../src/store/tasks.ts'
import { newTask } from './contract.ts'
import { LONG_MS, useRecordedStore, type RecordedStore } from './recorded-store.ts'

const recorded = useRecordedStore()
const { queriesOf, claimed } = recorded
let pool: RecordedStore['pool']
let schema: RecordedStore['schema']
let tasks: RecordedStore['tasks']
beforeEach(async () => {
  ;({ pool, schema, tasks } = recorded)
  await tasks.create(newTask('t'))
})

/** Runs the query of `ask` again, with other values, in a transaction on its own connection that stays open until `commit`. */
async function heldBack(
  ask: () => Promise<unknown>,
  change: (values: unknown[]) => unknown[],
): Promise<{ rows: unknown[]; commit: () => Promise<void> }> {
  const [query] = await queriesOf(ask)
  const connection = await pool.connect()
  await connection.query('BEGIN')
  const { rows } = await connection.query(query?.text ?? '', change(query?.values ?? []))
  return {
    rows,
    commit: async () => {
      await connection.query('COMMIT')
      connection.release()
    },
  }
}

/** Claims the task as another worker, in a transaction that stays open until the returned function is called. */
async function takeOver(): Promise<() => Promise<void>> {
  const takesNothing = { after: '', except: 'ada', leaseMs: 0 }
  const { rows, commit } = await heldBack(
    () => tasks.claim(takesNothing),
    () => [LONG_MS, '', [], null, 1, 'nobody'],
  )
  expect(rows).toMatchObject([{ id: 't' }])
  return commit
}

/** Resolves when a query waits for a lock in these tables. */
async function oneWaits(): Promise<void> {
  for (;;) {
    const waiting = `
      SELECT 1 FROM pg_locks waiting JOIN pg_locks held USING (pid)
      WHERE NOT waiting.granted AND held.relation = '"${schema}".tasks'::regclass`
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
    expect((await pool.query(`SELECT journal FROM "${schema}".tasks`)).rows).toEqual([{ journal: '' }])
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
    const { commit } = await heldBack(
      () => tasks.append(late, '"a"'),
      (values) => values.map((column) => (String(column) === '"a"' ? ['"b"'] : column)),
    )
    expect(await tasks.claim({ after: '', leaseMs: LONG_MS })).toBeUndefined()
    await commit()
    expect(await claimed()).toMatchObject({ journal: '["a","b"]', lost: true })
  })

  test('leaves its successor everything that it was told is written, however close they come', async () => {
    const other = postgres(pool, { schema })
    const written: { number: number; fence: number }[] = []
    const claims: ClaimedTask[] = [await claimed(0)]
    let number = 0
    // On a busy machine every write may come too late for a while.
    const goesOn = (): boolean => claims.length < 500 || (written.length === 0 && claims.length < 10_000)
    const write = async (): Promise<void> => {
      while (goesOn()) {
        number += 1
        const entry = { number, fence: claims.at(-1)?.fence ?? 0 }
        if (await tasks.append({ id: 't', fence: entry.fence }, String(entry.number))) written.push(entry)
      }
    }
    const take = async (): Promise<void> => {
      while (goesOn()) {
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
