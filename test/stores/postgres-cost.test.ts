// What the PostgreSQL store costs its database: round trips, and how many pages it reads when there are many tasks.
import { postgres, type QueryLike } from 'mcp-rally/postgres'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Store } from '../../src/store/store.ts'
import type { ClaimedTask } from '../../src/store/tasks.ts'
import { newTask } from './contract.ts'
import { explain } from './explain.ts'
import { LONG_MS, useRecordedStore, type RecordedStore } from './recorded-store.ts'

const recorded = useRecordedStore()
const { queriesOf, claimed } = recorded
let pool: RecordedStore['pool']
let schema: RecordedStore['schema']
let store: RecordedStore['store']
let tasks: RecordedStore['tasks']
beforeEach(() => {
  ;({ pool, schema, store, tasks } = recorded)
})

/** How many pages of tables and indexes it looks at, planned for any values rather than for these. */
async function pagesOf(query: QueryLike): Promise<number> {
  const connection = await pool.connect()
  try {
    await connection.query('SET plan_cache_mode = force_generic_plan')
    return (await explain(connection, query)).pages
  } finally {
    connection.release(true)
  }
}

async function numberOf(query: string): Promise<number> {
  const { rows } = await pool.query<{ number: string }>(query)
  return Number(rows[0]?.number)
}

async function trips(run: () => Promise<unknown>): Promise<number> {
  return (await queriesOf(run)).length
}

test('each operation on a task is one round trip', async () => {
  expect(await trips(() => tasks.create(newTask('t')))).toBe(1)
  let fence = 0
  expect(await trips(async () => ({ fence } = await claimed()))).toBe(1)
  expect(await trips(() => tasks.append({ id: 't', fence }, '1,2'))).toBe(1)
  expect(await trips(() => tasks.renew([{ id: 't', fence }], LONG_MS))).toBe(1)
  expect(await trips(() => tasks.change('t', { fence }, { release: true, dueMs: 0 }))).toBe(1)
  expect(await trips(() => claimed())).toBe(1)
  expect(await trips(() => tasks.change('t', {}, { status: 'completed', outcome: '1' }))).toBe(1)
  expect(await trips(() => tasks.read('t'))).toBe(1)
  expect(await trips(() => tasks.list('ada', 10))).toBe(1)
  // It exists already, so it is read.
  expect(await trips(() => tasks.create(newTask('t')))).toBe(2)
})

test('operations on many tasks at once share their statements', async () => {
  const ids = Array.from({ length: 100 }, (_, i) => `task ${i}`)
  const all = (run: (id: string) => Promise<unknown>) => () => Promise.all(ids.map(run))
  expect(await trips(all((id) => tasks.create(newTask(id))))).toBeLessThanOrEqual(2)
  const fences = new Map<string, number>()
  for (const _ of ids) {
    const { id, fence } = await claimed()
    fences.set(id, fence)
  }
  const fenceOf = (id: string): { fence: number } => ({ fence: fences.get(id) ?? 0 })
  expect(await trips(all((id) => tasks.append({ id, ...fenceOf(id) }, '1')))).toBeLessThanOrEqual(2)
  expect(await trips(all((id) => tasks.change(id, fenceOf(id), { status: 'completed' })))).toBeLessThanOrEqual(2)
  expect(await trips(all((id) => tasks.read(id)))).toBeLessThanOrEqual(2)
})

test('a value that the database refuses fails its own operation, and no other of the same statement', async () => {
  await pool.query(`ALTER TABLE "${schema}".tasks ADD CHECK (state <> '"refused"')`)
  await Promise.all(['a', 'b', 'c'].map((id) => tasks.create(newTask(id))))
  const states = ['"1"', '"refused"', '"3"']
  const changes = ['a', 'b', 'c'].map((id, i) => tasks.change(id, {}, { state: states[i] ?? '' }))
  const outcomes = await Promise.allSettled(changes)
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(await Promise.all(changes.toSpliced(1, 1))).toEqual([2, 2])
})

test('every statement is prepared, and by one name only', async () => {
  const statements = await queriesOf(async () => {
    await tasks.create(newTask('t'))
    await tasks.read('t')
    await tasks.read('u')
    await store.once.claim('key', 'note', LONG_MS)
    await store.mailbox.leave('box', 1, 'text', LONG_MS)
  })
  expect(new Set(statements.map(({ name }) => name)).size).toBe(4)
  expect(statements.map(({ name }) => name)).toEqual(statements.map(() => expect.stringMatching(/^rally_\w{32}$/)))
})

test('entries of one task that wait for each other are written together', async () => {
  await tasks.create(newTask('t'))
  const held = await claimed(0)
  const numbers = Array.from({ length: 100 }, (_, i) => i)
  const statements = await queriesOf(() => Promise.all(numbers.map((n) => tasks.append(held, String(n)))))
  expect(statements).toHaveLength(2)
  expect((await claimed()).journal).toBe(JSON.stringify(numbers))
})

/** An entry that does not fit into the task's row. */
const LONG_ENTRY = JSON.stringify('x'.repeat(2_000))

test('a journal is in the row of its task while it is short', async () => {
  await tasks.create(newTask('t', { journal: '["first"]' }))
  const held = await claimed(0)
  for (const entry of ['1', '2', LONG_ENTRY, '3']) await tasks.append(held, entry)
  const { rows } = await pool.query(`SELECT text FROM "${schema}".journal_entries ORDER BY number`)
  expect(rows).toEqual([{ text: LONG_ENTRY }, { text: '3' }])
  expect((await claimed()).journal).toBe(`["first",1,2,${LONG_ENTRY},3]`)
})

test('a journal that instances of this and of an earlier version write in turn keeps its order', async () => {
  await tasks.create(newTask('t', { journal: '[0]' }))
  const held = await claimed(0)
  await tasks.append(held, '1')
  // As an earlier version appends.
  await pool.query(`
    WITH leased AS (UPDATE "${schema}".tasks SET journal_to = journal_to + 1 RETURNING id, journal_to)
    INSERT INTO "${schema}".journal_entries (task, number, text) SELECT id, journal_to, '2' FROM leased`)
  await tasks.append(held, '3')
  expect(await claimed(0)).toMatchObject({ journal: '[0,1,2,3]' })
  // As an earlier version reads.
  const read = `SELECT journal, (SELECT string_agg(text, ',' ORDER BY number) FROM "${schema}".journal_entries) AS entries FROM "${schema}".tasks`
  expect((await pool.query(read)).rows).toEqual([{ journal: '0,1', entries: '2,3' }])
})

test('what has come to its end keeps no journal', async () => {
  await tasks.create(newTask('t', { journal: '["first"]' }))
  const held = await claimed()
  for (const entry of [LONG_ENTRY, '2', '3']) await tasks.append(held, entry)
  expect(await numberOf(`SELECT count(*) AS number FROM "${schema}".journal_entries`)).toBe(3)
  await tasks.change('t', { fence: held.fence }, { status: 'completed', outcome: '1' })
  expect(await numberOf(`SELECT count(*) AS number FROM "${schema}".journal_entries`)).toBe(0)
  expect(await numberOf(`SELECT length(journal) AS number FROM "${schema}".tasks`)).toBe(0)
})

test('a journal goes with its task', async () => {
  await tasks.create(newTask('t', { ttlMs: 2_000 }))
  expect(await tasks.append(await claimed(), LONG_ENTRY)).toBe(true)
  while ((await tasks.sweep()) === 0);
  expect(await numberOf(`SELECT count(*) AS number FROM "${schema}".journal_entries`)).toBe(0)
})

describe.each(['no', 'fresh'])('with many tasks that nobody has to take up, and %s statistics', (statistics) => {
  const PARKED = 15_000
  /** Where all of them fill many more. A claim looks at up to 256 tasks that are due. */
  const FEW_PAGES = 150

  /** Half of them of one owner, the others of one each. */
  beforeEach(async () => {
    await pool.query(`
      ALTER TABLE "${schema}".tasks SET (autovacuum_enabled = false);
      INSERT INTO "${schema}".tasks (
        id, owner, request, state, status, poll_ms, ttl_ms, expires_at, created_at, updated_at, version, fence,
        journal, journal_from, journal_to
      )
      SELECT
        'parked ' || n, CASE WHEN n % 2 = 0 THEN 'ada' ELSE 'owner ' || n END, repeat('x', 200), '{}', 'input_required',
        1000, 1e12, 1e14, n, n, 1, 0, '', 0, 0
      FROM generate_series(1, ${PARKED}) n`)
    if (statistics === 'fresh') await pool.query(`ANALYZE "${schema}".tasks`)
  })

  test('a look for work looks at few pages, whether there is any or not', async () => {
    expect(await numberOf(`SELECT pg_relation_size('"${schema}".tasks') / 8192 AS number`)).toBeGreaterThan(500)
    const turns = [{ after: '' }, { after: 'owner 5', except: 'ada' }, { after: '', except: 'owner 7' }]
    const claims = await queriesOf(async () => {
      for (const turn of turns) expect(await tasks.claim({ ...turn, leaseMs: 0 })).toBeUndefined()
    })
    for (const claim of claims) expect(await pagesOf(claim)).toBeLessThan(FEW_PAGES)
    await tasks.create(newTask('due', { owner: 'zoe' }))
    for (const claim of claims) expect(await pagesOf(claim)).toBeLessThan(FEW_PAGES)
    expect(await tasks.claim({ after: '', leaseMs: 0 })).toMatchObject({ id: 'due' })
  })

  test('tasks that are asleep are not gone through', async () => {
    await pool.query(`UPDATE "${schema}".tasks SET due_at = 1e15, owner = 'owner ' || id`)
    await pool.query(`VACUUM "${schema}".tasks`)
    const turns = [{ after: '' }, { after: 'owner 5', except: 'ada' }]
    const claims = await queriesOf(async () => {
      for (const turn of turns) expect(await tasks.claim({ ...turn, leaseMs: 0 })).toBeUndefined()
    })
    await tasks.create(newTask('due', { owner: 'zoe' }))
    for (const claim of claims) expect(await pagesOf(claim)).toBeLessThan(80)
  })

  test('the work of an owner that is left out is not gone through', async () => {
    await pool.query(`UPDATE "${schema}".tasks SET due_at = 0 WHERE owner = 'ada'`)
    await tasks.create(newTask('due', { owner: 'zoe' }))
    const claims = await queriesOf(async () => {
      for (const after of ['', 'ada', 'zoe'])
        expect(await tasks.claim({ after, except: 'ada', leaseMs: 0 })).toMatchObject({ id: 'due' })
    })
    for (const claim of claims) expect(await pagesOf(claim)).toBeLessThan(FEW_PAGES)
  })

  test('reading, listing and sweeping look at few pages', async () => {
    const queries = await queriesOf(async () => {
      expect(await tasks.read('parked 77')).toBeDefined()
      expect(await tasks.list('ada', 10, { id: 'parked 9000', createdAt: 9_000 })).toHaveLength(10)
      expect(await tasks.sweep()).toBe(0)
    })
    for (const query of queries) expect(await pagesOf(query)).toBeLessThan(FEW_PAGES)
  })
})

/** Runs each statement of the store, and closes it. Its connections then tell the server what they counted. */
async function withOwnConnections(run: (store: Store) => Promise<void>): Promise<number> {
  const name = `own_${schema}`
  const own = postgres(`${recorded.url}&application_name=${name}`, { schema: name })
  await run(own)
  await own.close()
  while ((await numberOf(`SELECT count(*) AS number FROM pg_stat_activity WHERE application_name = '${name}'`)) > 0);
  return numberOf(
    `SELECT sum(seq_scan) AS number FROM pg_stat_user_tables WHERE schemaname = '${name}' AND relname <> 'version'`,
  )
}

async function useAll(own: Store, round: string): Promise<void> {
  const ids = ['a', 'b', 'c'].map((id) => `${id} ${round}`)
  await Promise.all(ids.map((id) => own.tasks.create(newTask(id, { ttlMs: 100_000 }))))
  await own.tasks.create(newTask(ids[0] ?? ''))
  const made = await own.tasks.createAndClaim?.(newTask(`d ${round}`), LONG_MS)
  const claims = (await own.tasks.claimMany?.({ after: '', leaseMs: LONG_MS }, 2)) ?? []
  const one = await own.tasks.claim({ after: '', except: 'bob', running: claims, leaseMs: LONG_MS })
  await own.tasks.claimMany?.({ after: '', except: 'bob', leaseMs: LONG_MS }, 2)
  const held = [...claims, made as ClaimedTask, ...(one === undefined ? [] : [one])]
  expect(held).toHaveLength(4)
  await own.tasks.renew(held, LONG_MS)
  for (const lease of held) {
    expect(await own.tasks.append(lease, LONG_ENTRY)).toBe(true)
    await own.tasks.change(lease.id, { fence: lease.fence }, { journal: '[]', release: true, dueMs: null })
    await own.tasks.changeAndClaim?.(lease.id, {}, { dueMs: 0 }, LONG_MS)
    await own.tasks.change(lease.id, {}, { status: 'completed' })
  }
  expect(await own.tasks.read(ids[0] ?? '')).toBeDefined()
  await own.tasks.versions(ids)
  await own.tasks.list('ada', 2)
  await own.tasks.usage('ada')
  const hold = await own.once.claim(round, 'note', LONG_MS)
  if (hold.kind !== 'yours') throw new Error('Nobody else has claimed it.')
  await own.once.renew(round, hold.fence, LONG_MS)
  await own.once.settle(round, hold.fence, '1', LONG_MS)
  await own.mailbox.leave(round, 1, 'text', LONG_MS, 'ada')
  await own.mailbox.after(round, 0)
  await own.once.bytes?.('ada')
  const other = await own.once.claim(`other ${round}`, 'note', LONG_MS)
  if (other.kind === 'yours') await own.once.release(`other ${round}`, other.fence)
  await own.tasks.sweep()
}

test('a store with connections of its own never reads a whole table, not even by a statement that was planned while the table was empty', async () => {
  const before = await withOwnConnections(async (own) => void (await own.tasks.sweep()))
  await pool.query(
    `VACUUM ANALYZE ${['tasks', 'journal_entries', 'once', 'letters'].map((table) => `"own_${schema}".${table}`).join(', ')}`,
  )
  const after = await withOwnConnections(async (own) => {
    for (let round = 0; round < 3; round += 1) await useAll(own, `${round}`)
    await pool.query(`
      INSERT INTO "own_${schema}".tasks (
        id, owner, request, state, status, poll_ms, ttl_ms, expires_at, created_at, updated_at, version, fence,
        journal, journal_from, journal_to
      )
      SELECT 'parked ' || n, 'owner ' || n, '{}', '{}', 'input_required', 1, 1, 1e14, n, n, 1, 0, '', 0, 0 FROM generate_series(1, 2000) n`)
    await useAll(own, 'filled')
  })
  expect(after).toBe(before)
})

function numberLeft(): Promise<number> {
  return numberOf(
    `SELECT (SELECT count(*) FROM "${schema}".once) + (SELECT count(*) FROM "${schema}".letters) AS number`,
  )
}

test('what has lapsed in once and the mailbox goes as fast as more comes', async () => {
  for (let i = 0; i < 300; i += 1) {
    await store.once.claim(`key ${i}`, 'note', 0)
    await store.mailbox.leave('box', i, 'text', 0)
  }
  // The last sweep may still be under way.
  while ((await numberLeft()) >= 200);
})

test('what has lapsed in once and the mailbox also goes with a sweep of the tasks', async () => {
  await store.once.claim('lapsed', 'note', 0)
  await store.once.claim('held', 'note', LONG_MS)
  await store.mailbox.leave('box', 1, 'text', 0)
  expect(await numberLeft()).toBe(3)
  expect(await tasks.sweep()).toBe(0)
  expect(await numberLeft()).toBe(1)
})
