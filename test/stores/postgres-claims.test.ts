// What the PostgreSQL store claims in one statement: several tasks at once, or a task with the write that makes it due.
import { rally, send, type Rally } from 'mcp-rally'
import { postgres } from 'mcp-rally/postgres'
import { beforeEach, describe, expect, test } from 'vitest'
import type { ClaimedTask, ClaimRequest, TaskStore } from '../../src/store/tasks.ts'
import { WITH_TASKS } from '../tasks/caller.ts'
import { accept, call, request, resultOf } from '../wire/messages.ts'
import { newTask } from './contract.ts'
import { LONG_MS, useRecordedStore, type RecordedStore } from './recorded-store.ts'

const recorded = useRecordedStore()
const { queriesOf, claimed } = recorded
let schema: RecordedStore['schema']
let pool: RecordedStore['pool']
let tasks: Required<TaskStore>
beforeEach(() => {
  ;({ schema, pool } = recorded)
  tasks = recorded.tasks as Required<TaskStore>
})

async function make(owners: Readonly<Record<string, number>>): Promise<void> {
  for (const [owner, count] of Object.entries(owners)) {
    for (let i = 1; i <= count; i += 1) {
      await tasks.create(newTask(`${owner}${i}`, { owner, journal: `[${i}]` }))
      // Their due times differ.
      await pool.query('SELECT pg_sleep(0.002)')
    }
  }
}

async function claimMany(given: Partial<ClaimRequest>, limit: number): Promise<ClaimedTask[]> {
  return tasks.claimMany({ after: '', leaseMs: LONG_MS, ...given }, limit)
}

describe('several tasks', () => {
  test('are claimed in one statement, each with its own fence and journal', async () => {
    await make({ ada: 3 })
    let got: ClaimedTask[] = []
    expect(await queriesOf(async () => (got = await claimMany({}, 10)))).toHaveLength(1)
    expect(got.map(({ id, journal, lost }) => [id, journal, lost])).toEqual([
      ['ada1', '[1]', false],
      ['ada2', '[2]', false],
      ['ada3', '[3]', false],
    ])
    expect(new Set(got.map(({ fence }) => fence)).size).toBe(3)
    for (const task of got) expect(await tasks.append(task, '"mine"')).toBe(true)
    expect(await claimMany({}, 10)).toEqual([])
  })

  test.each([
    { what: 'equal shares', after: '', limit: 6, ids: ['ada1', 'bob1', 'cyd1', 'ada2', 'bob2', 'cyd2'] },
    { what: 'the next owner first', after: 'ada', limit: 3, ids: ['bob1', 'cyd1', 'ada1'] },
    { what: 'one of the next owners', after: 'bob', limit: 2, ids: ['cyd1', 'ada1'] },
    { what: 'no task of an owner', after: '', except: 'ada', limit: 4, ids: ['bob1', 'cyd1', 'bob2', 'cyd2'] },
    { what: 'no task of another', after: 'bob', except: 'cyd', limit: 2, ids: ['ada1', 'bob1'] },
    { what: 'no task of the last', after: 'bob', except: 'bob', limit: 2, ids: ['cyd1', 'ada1'] },
  ])('of several owners: $what', async ({ after, except, limit, ids }) => {
    await make({ ada: 4, bob: 4, cyd: 4 })
    expect((await claimMany({ after, except }, limit)).map(({ id }) => id)).toEqual(ids)
  })

  test('of an owner that has more fill the places that others leave', async () => {
    await make({ '': 1, ada: 6, bob: 1 })
    const got = await claimMany({ after: 'ada' }, 7)
    expect(got.map(({ id }) => id).toSorted()).toEqual(['1', 'ada1', 'ada2', 'ada3', 'ada4', 'ada5', 'bob1'])
    expect(await claimMany({}, 7)).toMatchObject([{ id: 'ada6' }])
  })

  test('that have expired do not take the turn of their owner', async () => {
    await make({ ada: 2, bob: 1 })
    await pool.query(`UPDATE "${schema}".tasks SET expires_at = 1 WHERE id = 'ada1'`)
    expect(await claimMany({}, 1)).toMatchObject([{ id: 'ada2' }])
    expect(await claimMany({}, 1)).toMatchObject([{ id: 'bob1' }])
  })

  test('that the caller runs are not claimed', async () => {
    await make({ ada: 2 })
    const running = await claimMany({ leaseMs: 0 }, 2)
    expect(await claimMany({ running }, 2)).toEqual([])
    expect(await claimMany({ running: running.slice(1) }, 2)).toMatchObject([{ id: 'ada1', lost: true }])
  })

  test('go to one worker each, however many claim and write at once, and nobody waits for a deadlock', async () => {
    const other = postgres(pool, { schema })
    const stores = [tasks, other.tasks as Required<TaskStore>]
    const ids = Array.from({ length: 120 }, (_, i) => `task ${(i * 77) % 120}`)
    await Promise.all(ids.map((id, i) => tasks.create(newTask(id, { owner: `owner ${i % 3}` }))))
    const got: string[] = []
    const work = async (store: Required<TaskStore>): Promise<void> => {
      for (;;) {
        const some = await store.claimMany({ after: '', leaseMs: LONG_MS }, 9)
        if (some.length === 0 && got.length === ids.length) return
        got.push(...some.map(({ id }) => id))
        const written = await Promise.all([
          store.renew(some, LONG_MS).then((renewed) => renewed.length === some.length),
          ...some.map((task) => store.append(task, '1')),
          // Another instance answers them meanwhile.
          ...some.map(async ({ id }) => (await stores[0]?.change(id, {}, { message: 'Hello.' })) !== undefined),
        ])
        expect(written).not.toContain(false)
      }
    }
    await Promise.all([...stores, ...stores].map(work))
    expect(got.toSorted()).toEqual(ids.toSorted())
    const { rows } = await pool.query('SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()')
    expect(rows).toEqual([{ deadlocks: 0 }])
    await other.close()
  })
})

describe('several tasks of a long backlog', () => {
  const BACKLOG = 300

  beforeEach(async () => {
    await make({ ada: 4, bob: 4, cyd: 4 })
    await Promise.all(
      Array.from({ length: BACKLOG }, (_, i) =>
        tasks.create(newTask(`dan${100 + i}`, { owner: 'dan', journal: '[7]' })),
      ),
    )
    // Longer due than those of the others.
    await pool.query(`UPDATE "${schema}".tasks SET due_at = substr(id, 4)::int WHERE owner = 'dan'`)
  })

  test.each([
    {
      what: 'equal shares',
      after: '',
      limit: 8,
      ids: ['ada1', 'bob1', 'cyd1', 'dan100', 'ada2', 'bob2', 'cyd2', 'dan101'],
    },
    { what: 'the next owner first', after: 'bob', limit: 4, ids: ['cyd1', 'dan100', 'ada1', 'bob1'] },
    { what: 'one', after: 'ada', limit: 1, ids: ['bob1'] },
    { what: 'no task of the one with most', after: '', except: 'dan', limit: 4, ids: ['ada1', 'bob1', 'cyd1', 'ada2'] },
    { what: 'no task of another', after: 'bob', except: 'cyd', limit: 2, ids: ['dan100', 'ada1'] },
  ])('of several owners: $what', async ({ after, except, limit, ids }) => {
    const got = await claimMany({ after, except }, limit)
    expect(got.map(({ id }) => id)).toEqual(ids)
    for (const { journal, id } of got) expect(journal).toBe(id.startsWith('dan') ? '[7]' : `[${id.slice(3)}]`)
    // Nothing else is held back.
    expect(await claimMany({}, 2 * BACKLOG)).toHaveLength(BACKLOG + 12 - limit)
  })

  test('of the owner that has more fill the places that others leave', async () => {
    const got = await claimMany({}, 20)
    expect(got.filter(({ owner }) => owner === 'dan').map(({ id }) => id)).toEqual(
      Array.from({ length: 8 }, (_, i) => `dan${100 + i}`),
    )
    expect(got).toHaveLength(20)
  })

  test('go to one worker each', async () => {
    const got: string[] = []
    const work = async (): Promise<void> => {
      while (got.length < BACKLOG + 12) got.push(...(await claimMany({}, 7)).map(({ id }) => id))
    }
    await Promise.all(Array.from({ length: 6 }, work))
    expect(got).toHaveLength(BACKLOG + 12)
    expect(new Set(got).size).toBe(BACKLOG + 12)
  })
})

describe('a task that is claimed when it is created', () => {
  test('is its creator, and nobody else claims it', async () => {
    const task = newTask('t', { journal: '["s"]' })
    const made = (await tasks.createAndClaim(task, LONG_MS)) as ClaimedTask
    expect(made).toEqual({ ...(await tasks.read('t')), fence: expect.any(Number), journal: '["s"]', lost: false })
    expect(await tasks.claim({ after: '', leaseMs: LONG_MS })).toBeUndefined()
    expect(await tasks.append(made, '1')).toBe(true)
    await tasks.change('t', { fence: made.fence }, { release: true, dueMs: 0 })
    const next = await claimed()
    expect(next).toMatchObject({ journal: '["s",1]', lost: false })
    expect(next.fence).toBeGreaterThan(made.fence)
  })

  test('is lost when its lease expires', async () => {
    await tasks.createAndClaim(newTask('t'), 0)
    expect(await claimed()).toMatchObject({ id: 't', lost: true })
  })

  test('is not claimed if it exists', async () => {
    const made = await tasks.create(newTask('t'))
    expect(await tasks.createAndClaim(newTask('t'), LONG_MS)).toEqual(made)
    expect(await claimed()).toMatchObject({ id: 't' })
  })

  test('replaces one that has outlived its ttl, under a higher fence', async () => {
    const first = (await tasks.createAndClaim(newTask('t', { ttlMs: 1 }), LONG_MS)) as ClaimedTask
    while ((await tasks.read('t')) !== undefined);
    const second = (await tasks.createAndClaim(newTask('t'), LONG_MS)) as ClaimedTask
    expect(second.fence).toBeGreaterThan(first.fence)
    expect(await tasks.append(first, '1')).toBe(false)
    expect(await tasks.append(second, '1')).toBe(true)
  })
})

describe('a task that is claimed with a change', () => {
  test('comes with what was changed and its whole journal', async () => {
    await tasks.create(newTask('t', { journal: '[1]' }))
    const first = await claimed()
    const long = JSON.stringify('x'.repeat(2_000))
    for (const entry of ['2', long, '3']) await tasks.append(first, entry)
    await tasks.change('t', { fence: first.fence }, { status: 'input_required', release: true, dueMs: null })
    const got = await tasks.changeAndClaim('t', { version: 2 }, { state: '"answered"', dueMs: 0 }, LONG_MS)
    const record = await tasks.read('t')
    expect(record).toMatchObject({ state: '"answered"', version: 3 })
    expect(got).toEqual({ ...record, fence: expect.any(Number), journal: `[1,2,${long},3]`, lost: false })
    expect(await tasks.append(first, '4')).toBe(false)
    expect(await tasks.append(got as ClaimedTask, '4')).toBe(true)
  })

  test.each([
    { what: 'a worker has it', change: { dueMs: 0 }, isLeased: true },
    { what: 'it is not due', change: { dueMs: LONG_MS }, isLeased: false },
    { what: 'it never falls due', change: { dueMs: null }, isLeased: false },
    { what: 'it ends', change: { status: 'cancelled' as const }, isLeased: false },
  ])('is only changed if $what', async ({ change, isLeased }) => {
    await tasks.create(newTask('t'))
    const first = await claimed()
    if (!isLeased) await tasks.change('t', { fence: first.fence }, { release: true, dueMs: null })
    const { version = 0 } = (await tasks.read('t')) ?? {}
    expect(await tasks.changeAndClaim('t', { version }, change, LONG_MS)).toBe(version + 1)
    expect(await tasks.append(first, '1')).toBe(isLeased)
  })

  test('is neither changed nor claimed if its precondition does not hold', async () => {
    await tasks.create(newTask('t'))
    expect(await tasks.changeAndClaim('t', { version: 7 }, { dueMs: 0 }, LONG_MS)).toBeUndefined()
    expect(await claimed()).toMatchObject({ id: 't', version: 1 })
  })
})

/** A task with two steps, a question and two steps. */
function appWithLives(store: RecordedStore['store']): Rally {
  const app = rally({ name: 'lives', version: '1', keys: ['a secret of the test of lives of tasks'], store })
  app.tool('live', { task: 'always', asks: { go: { type: 'object' } } }, async (_args, io) => {
    for (const key of ['one', 'two']) await io.step(key, () => key)
    await io.ask('go', 'Go on?')
    for (const key of ['three', 'four']) await io.step(key, () => key)
    return 'Done.'
  })
  return app
}

/** Runs one task from its call to its end. */
async function live(app: Rally): Promise<void> {
  const { taskId } = resultOf(await send(app, call('live', {}, {}, WITH_TASKS)))
  const untilItIs = async (status: string): Promise<void> => {
    const query = { text: `SELECT 1 FROM "${schema}".tasks WHERE id = $1 AND status = $2`, values: [taskId, status] }
    while ((await pool.query(query)).rows.length === 0);
  }
  await untilItIs('input_required')
  resultOf(await send(app, request('tasks/update', { taskId, inputResponses: { go: accept() } }, WITH_TASKS)))
  await untilItIs('completed')
}

test('a life of create, two steps, a question, its answer, two steps and the end takes 10 statements, and no claim', async () => {
  const app = appWithLives(recorded.store)
  await live(app)
  const queries = await queriesOf(() => live(app))
  // A worker that polls may look for work meanwhile.
  const own = queries.filter(({ text }) => !text.includes('SKIP LOCKED'))
  // The answer is read, changed and recorded in the journal. The others are one write each.
  expect(own).toHaveLength(10)
  expect(queries.length - own.length).toBeLessThanOrEqual(1)
  app.drain()
  await app.idle()
})

test('lives at the same time share their statements, and none is lost', async () => {
  const app = appWithLives(recorded.store)
  const count = 40
  const queries = await queriesOf(() => Promise.all(Array.from({ length: count }, () => live(app))))
  expect(queries.length / count).toBeLessThan(4)
  app.drain()
  await app.idle()
})
