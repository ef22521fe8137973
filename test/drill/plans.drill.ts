// Every statement of the PostgreSQL store with a million finished and a hundred thousand parked tasks: it reads no whole table, looks at
// as many pages as with a hundred tasks, and takes as long.
import type { Store } from 'mcp-rally'
import { postgres } from 'mcp-rally/postgres'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { MAX_LOOKED } from '../../src/store/operations.ts'
import type { PoolLike, QueryLike } from '../../src/store/postgres/pool.ts'
import type { ClaimedTask, TaskStore } from '../../src/store/tasks.ts'
import { newTask } from '../stores/contract/hands.ts'
import { useDatabase } from '../stores/database.ts'
import { explain, nodesOf, type Explained } from '../stores/explain.ts'

const SIZES = {
  small: { finished: 100, parked: 10, backlog: 1_000 },
  large: { finished: 1_000_000, parked: 100_000, backlog: 100_000 },
} as const
type Size = keyof typeof SIZES
const TABLES = ['tasks', 'journal_entries', 'once', 'letters']

/** Each statement is run so often, and the fastest counts. */
const TIMES = 5
const MOST_TIMES = 3
/** What a machine that does other things too may add to any statement. */
const SLACK_MS = 0.5
/** Indexes of large tables are deeper: a lookup of each of 32 tasks takes three or four pages more. */
const SLACK_PAGES = 130

const LONG_MS = 600_000
const DUE_OWNERS = 8
const DUE = 160

/** The connections of a pool that the store makes, and of one that the app passes in. */
const SETTINGS = {
  'own pool': 'SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET jit = off',
  'pool of the app': 'SET plan_cache_mode = force_custom_plan',
} as const

type Measured = Map<string, Explained>

/** Measurements so far. */
let rounds = 0

const database = useDatabase()
let client: pg.Client
const measured: Record<keyof typeof SETTINGS, { small: Measured; large: Measured }> = {
  'own pool': { small: new Map(), large: new Map() },
  'pool of the app': { small: new Map(), large: new Map() },
}

beforeAll(async () => {
  client = new pg.Client(database.url)
  await client.connect()
  const schemas = { small: database.nextSchema(), large: database.nextSchema() }
  await fill(schemas.small, SIZES.small)
  await fill(schemas.large, SIZES.large)
  for (const [name, settings] of Object.entries(SETTINGS) as [keyof typeof SETTINGS, string][]) {
    for (const size of ['small', 'large'] as const) {
      measured[name][size] = await measure(schemas[size], size, settings)
    }
  }
}, 600_000)
afterAll(() => client?.end())

test.each(Object.keys(SETTINGS) as (keyof typeof SETTINGS)[])('%s', (name) => {
  const { small, large } = measured[name]
  const rows = [...large].map(([statement, many]) => {
    const few = small.get(statement)
    if (few === undefined) throw new Error(`"${statement}" was not measured on small tables.`)
    return { statement, few, many, problem: problemOf(statement, few, many) }
  })
  console.log(name)
  console.table(
    Object.fromEntries(
      rows.map(({ statement, few, many, problem }) => [
        statement,
        {
          'pages of 100': few.pages,
          'of 1.1 million': many.pages,
          'ms of 100': few.ms,
          'ms of 1.1 million': many.ms,
          scans: scansOf(many),
          problem: problem ?? '',
        },
      ]),
    ),
  )
  expect(rows.flatMap(({ statement, problem }) => (problem === undefined ? [] : `${statement}: ${problem}`))).toEqual(
    [],
  )
})

/**
 * Looks at so many pages at most. A claim with a long backlog passes the index entries of all tasks that are asleep, if no owner is left
 * that has due tasks.
 */
const BOUNDED: Readonly<Record<string, number>> = {
  'find what failed': 2 * MAX_LOOKED,
  'backlog: claim': 2_000,
  'backlog: claim 32': 2_000,
  'backlog: claim 32 but for an owner': 2_000,
}

function problemOf(statement: string, few: Explained, many: Explained): string | undefined {
  if (
    nodesOf(many.plan).some((node) => node['Node Type'] === 'Seq Scan' && TABLES.includes(node['Relation Name'] ?? ''))
  )
    return 'reads a whole table'
  const bound = BOUNDED[statement]
  if (bound !== undefined) return many.pages > bound ? `looks at ${many.pages} pages` : undefined
  if (many.pages > few.pages * MOST_TIMES + SLACK_PAGES) return `looks at ${many.pages} pages instead of ${few.pages}`
  if (many.ms > few.ms * MOST_TIMES + SLACK_MS) return `takes ${many.ms} ms instead of ${few.ms} ms`
  return undefined
}

/** How it reads the tables, each way once. */
function scansOf({ plan }: Explained): string {
  const scans = nodesOf(plan).flatMap((node) => {
    const where = node['Index Name'] ?? node['Relation Name']
    return /Scan/.test(node['Node Type']) && where !== undefined ? `${node['Node Type']} ${where}` : []
  })
  return [...new Set(scans)].join(', ')
}

/**
 * Finished tasks of a thousand owners. Of the parked ones, half sleep or have a deadline, a third are of callers without a principal, and
 * a third are of an owner each. A fifth of those that sleep are of a group. Beside them, fifty tasks of "ada", whatever the size.
 */
async function fill(schema: string, { finished, parked }: (typeof SIZES)[Size]): Promise<void> {
  const store = postgres(database.url, { schema })
  await store.tasks.sweep()
  await store.close()
  const owner = `CASE n % 3 WHEN 0 THEN '' WHEN 1 THEN 'owner ' || n % 1000 ELSE 'single ' || n END`
  await client.query(rowsText(schema, 'finished', `'owner ' || n % 1000`, 'completed', 'NULL', finished))
  await client.query(
    rowsText(schema, 'parked', owner, 'input_required', `CASE WHEN n % 2 = 0 THEN ${now} + 3600000 + n END`, parked),
  )
  await client.query(rowsText(schema, 'ada', `'ada'`, 'completed', 'NULL', 50))
  await client.query(`
    UPDATE "${schema}".tasks SET journal_to = 3 WHERE status IN ('input_required', 'working');
    UPDATE "${schema}".tasks SET group_name = 'group', group_limit = 1, wanted_at = due_at, due_at = NULL
    WHERE status = 'input_required' AND fence % 10 = 0;
    INSERT INTO "${schema}".journal_entries (task, number, text)
    SELECT id, number, '["step",1]' FROM "${schema}".tasks, generate_series(1, 3) number WHERE journal_to = 3;
    INSERT INTO "${schema}".once (key, note, fence, record, expires_at)
    SELECT ${idOf('owner')} || '/' || n, 'note', n, '{}', ${now} + 600000 + n FROM generate_series(1, ${parked}) n;
    INSERT INTO "${schema}".letters (box, number, text, expires_at)
    SELECT 'box ' || n / 10, n % 10, '{}', ${now} + 600000 + n FROM generate_series(1, ${parked}) n`)
  for (const table of TABLES) await client.query(`VACUUM ANALYZE "${schema}".${table}`)
}

const now = 'floor(extract(epoch FROM now()) * 1000)::bigint'
const idOf = (what: string): string => `encode(sha256(('${what} ' || n)::bytea), 'hex')`

function rowsText(schema: string, what: string, owner: string, status: string, due: string, count: number): string {
  return `
    INSERT INTO "${schema}".tasks (
      id, owner, request, state, status, poll_ms, ttl_ms, expires_at, created_at, updated_at, due_at, outcome, version, fence, journal,
      journal_from, journal_to
    )
    SELECT ${idOf(what)}, ${owner}, '{"tool":"deploy","args":{"text":"' || repeat('x', 200) || '"}}', '{"carry":{}}', '${status}',
      1000, 86400000, ${now} + 86400000 + n, ${now} - n * 10, ${now} - n, ${due},
      CASE WHEN '${status}' = 'completed' THEN '{"content":[]}' END, 4, n, '', 0, 0
    FROM generate_series(1, ${count}) n`
}

/** Runs every operation of the store, and explains each of its statements before it is run. */
async function measure(schema: string, size: Size, settings: string): Promise<Measured> {
  rounds += 1
  await client.query(rowsText(schema, `due ${rounds}`, `'due ' || n % ${DUE_OWNERS}`, 'working', `${now} - n`, DUE))
  const plans: Measured = new Map()
  const explaining = new pg.Client(database.url)
  await explaining.connect()
  await explaining.query(settings)
  const pool = new pg.Pool({ connectionString: database.url })
  // A connection may still be open for a moment when the server stops.
  pool.on('error', () => {})
  let statement = ''
  // One statement at a time is explained.
  let turn: Promise<unknown> = Promise.resolve()
  const explained = async (query: QueryLike): Promise<void> => {
    const found = await explain(explaining, query, TIMES)
    // Of several statements of an operation, the one with most items counts.
    if (found.ms >= (plans.get(statement)?.ms ?? 0)) plans.set(statement, found)
  }
  const recording: PoolLike = {
    query: async (query) => {
      await (turn = turn.then(() => explained(query)))
      return pool.query(query)
    },
    connect: () => pool.connect(),
    on: (event, listener) => pool.on(event, listener),
    removeListener: (event, listener) => pool.removeListener(event, listener),
  }
  const store = postgres(recording, { schema, notify: 'poll' })
  const run: Run = (name, operation) => {
    statement = name
    return operation()
  }
  await operations(store, run)
  await withBacklog(schema, SIZES[size].backlog, () => claimBacklog(store, run))
  await store.close()
  await pool.end()
  await explaining.end()
  return plans
}

type Run = <T>(name: string, run: () => Promise<T>) => Promise<T>

function ids(what: string, count = 32): string[] {
  return Array.from({ length: count }, (_, i) => `${what} ${rounds} ${i}`)
}

function all(given: readonly string[], each: (id: string) => Promise<unknown>): Promise<unknown> {
  return Promise.all(given.map(each))
}

async function operations(store: Store, run: Run): Promise<void> {
  const tasks = store.tasks as Required<TaskStore>

  await run('create', () => tasks.create(newTask(`new ${rounds}`, { owner: 'due 0' })))
  await run('create 32', () => all(ids('many'), (id) => tasks.create(newTask(id, { owner: 'due 1' }))))
  const one = (await run('create and claim', () =>
    tasks.createAndClaim(newTask(`own ${rounds}`), LONG_MS),
  )) as ClaimedTask
  const claims = await run('claim 32', () => tasks.claimMany({ after: '', leaseMs: LONG_MS }, 32))
  expect(claims).toHaveLength(32)
  await run('claim', () => tasks.claim({ after: '', leaseMs: LONG_MS }))
  await run('claim but for a later owner', () => tasks.claim({ after: 'due 3', except: 'due 5', leaseMs: LONG_MS }))
  await run('claim but for an earlier owner', () => tasks.claim({ after: 'due 5', except: 'due 3', leaseMs: LONG_MS }))
  await run('claim 32 but for an owner', () =>
    tasks.claimMany({ after: 'due 5', except: 'due 3', leaseMs: LONG_MS }, 32),
  )
  while ((await run('claim what is left', () => tasks.claimMany({ after: '', leaseMs: LONG_MS }, 64))).length > 0);
  expect(await run('claim, nothing is due', () => tasks.claim({ after: 'm', leaseMs: LONG_MS }))).toBeUndefined()
  const polls = { after: '', leaseMs: LONG_MS, groups: true }
  expect(await run('claim 32 and look at the groups', () => tasks.claimMany(polls, 32))).toEqual([])
  expect(await run('claim 32, nothing is due', () => tasks.claimMany({ after: 'm', leaseMs: LONG_MS }, 32))).toEqual([])

  const held = claims.map(({ id, fence }) => ({ id, fence }))
  const fenceOf = new Map(held.map(({ id, fence }) => [id, fence]))
  expect(await run('renew 32', () => tasks.renew(held, LONG_MS))).toHaveLength(32)
  expect(await run('append', () => tasks.append(one, '"entry"'))).toBe(true)
  await run('append 32', () => Promise.all(held.map((lease) => tasks.append(lease, '"entry"'))))
  await run('change', () => tasks.change(one.id, { fence: one.fence }, { message: 'Hello.' }))
  const park = { status: 'input_required', release: true, dueMs: null } as const
  await run('park 32', () => all([...fenceOf.keys()], (id) => tasks.change(id, { fence: fenceOf.get(id) ?? 0 }, park)))
  const [first = '', ...others] = fenceOf.keys()
  await run('change and claim', () => tasks.changeAndClaim(first, {}, { dueMs: 0 }, LONG_MS))
  await run('end 31', () => all(others, (id) => tasks.change(id, {}, { status: 'completed', outcome: '{}' })))

  expect(await run('read', () => tasks.read(first))).toBeDefined()
  await run('read 32', () => all([...fenceOf.keys()], (id) => tasks.read(id)))
  expect(await run('versions of 32', () => tasks.versions([...fenceOf.keys()]))).toHaveLength(32)
  const [last] = (await run('list', () => tasks.list('ada', 20))).slice(-1)
  await run('list further', () => tasks.list('ada', 20, last))
  expect((await run('usage', () => tasks.usage('ada'))).open).toBeGreaterThan(0)
  expect((await run('find', () => tasks.find({ limit: 50 }))).tasks).toHaveLength(50)
  expect((await run('find of an owner', () => tasks.find({ owner: 'ada', limit: 20 }))).tasks).toHaveLength(20)
  expect(await run('inspect', () => tasks.inspect(first))).toBeDefined()
  expect(await run('remove 5', () => tasks.remove(others.slice(0, 5)))).toBe(5)
  expect((await run('find what failed', () => tasks.find({ statuses: ['failed'], limit: 50 }))).tasks).toEqual([])
  await run('sweep, nothing has expired', () => tasks.sweep())
  await run('create what expires', () => all(ids('short', 10), (each) => tasks.create(newTask(each, { ttlMs: 1 }))))
  expect(await run('sweep 10', () => tasks.sweep())).toBe(10)

  await run('once: claim', () => Promise.resolve(store.once.claim(`ada/${rounds}`, 'note', LONG_MS)))
  await run('once: claim again', () => Promise.resolve(store.once.claim(`ada/${rounds}`, 'note', LONG_MS)))
  await run('once: renew', () => Promise.resolve(store.once.renew(`ada/${rounds}`, '0', LONG_MS)))
  await run('once: settle', () => Promise.resolve(store.once.settle(`ada/${rounds}`, '0', '{}', LONG_MS)))
  await run('once: release', () => Promise.resolve(store.once.release(`ada/${rounds}`, '0')))
  await run('once: bytes', () => Promise.resolve(store.once.bytes?.('ada')))
  await run('mailbox: leave', () => Promise.resolve(store.mailbox.leave(`new ${rounds}`, 1, 'text', LONG_MS)))
  await run('mailbox: after', () => Promise.resolve(store.mailbox.after(`new ${rounds}`, 0)))
}

/** Many due tasks, nearly all of one owner. */
async function withBacklog(schema: string, count: number, run: () => Promise<void>): Promise<void> {
  const owner = `'backlog ' || (n % 10 = 0)::int`
  await client.query(rowsText(schema, `backlog ${rounds}`, owner, 'working', `${now} - n`, count))
  await client.query(`ANALYZE "${schema}".tasks`)
  await run()
  await client.query(`DELETE FROM "${schema}".tasks WHERE owner LIKE 'backlog%'`)
  await client.query(`VACUUM ANALYZE "${schema}".tasks`)
}

async function claimBacklog(store: Store, run: Run): Promise<void> {
  const tasks = store.tasks as Required<TaskStore>
  const turn = { after: '', leaseMs: LONG_MS }
  expect(await run('backlog: claim', () => tasks.claim(turn))).toBeDefined()
  expect(await run('backlog: claim 32', () => tasks.claimMany(turn, 32))).toHaveLength(32)
  const except = { ...turn, except: 'backlog 0' }
  expect((await run('backlog: claim 32 but for an owner', () => tasks.claimMany(except, 32))).length).toBeGreaterThan(0)
}
