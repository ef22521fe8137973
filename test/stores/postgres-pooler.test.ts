// A pool whose connections share server processes, as behind PgBouncer in transaction mode, is refused unless the store polls.
// `npm run drill -- pooler` tries the real one.
import type { ConnectionLike, PoolLike, QueryLike } from 'mcp-rally/postgres'
import { postgres } from 'mcp-rally/postgres'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newTask } from './contract.ts'
import { useDatabase } from './database.ts'

const database = useDatabase()
let servers: pg.Client[]

beforeAll(async () => {
  servers = [1, 2].map(() => new pg.Client({ connectionString: database.url }))
  for (const server of servers) {
    server.on('error', () => {})
    await server.connect()
  }
})
afterAll(() => Promise.all(servers.map((server) => server.end())))

/** The server may stop before the last connection of a pool has ended, which is then an error of the pool. */
function quietPool(options: pg.PoolConfig = {}): pg.Pool {
  return new pg.Pool({ connectionString: database.url, ...options }).on('error', () => {})
}

/** `pick` is the server process of a query, by the number of its connection and of the query. */
function pooler(pick: (connection: number, query: number) => number): PoolLike & { queries: string[] } {
  let connections = 0
  let count = 0
  const queries: string[] = []
  const ask = (connection: number, query: QueryLike): Promise<pg.QueryResult> => {
    if (query.name !== undefined) throw new Error(`Another process does not know the statement ${query.name}.`)
    queries.push(query.text)
    const server = servers[pick(connection, (count += 1)) % servers.length] as pg.Client
    return server.query(query.text, query.values)
  }
  const connect = async (): Promise<ConnectionLike> => {
    const number = (connections += 1)
    // A pooler makes up the id.
    return { processID: 7, query: (query) => ask(number, query), release: () => {}, on: () => {} }
  }
  return { queries, connect, query: (query) => ask(0, query), on: () => {}, removeListener: () => {} }
}

test.each([
  ['the same process to all', () => 0],
  ['the next process to each query', (_connection: number, query: number) => query],
])('a pooler that gives %s is refused with what to do', async (_how, pick) => {
  const pool = pooler(pick)
  const schema = database.nextSchema()
  const store = postgres(pool, { schema })
  for (const call of [() => store.tasks.read('t'), () => store.once.claim('k', 'n', 1)]) {
    await expect(call()).rejects.toMatchObject({
      code: 'STORE_POOLER',
      message: expect.stringMatching(
        /such as PgBouncer with `pool_mode = transaction`.*or to a pool with `pool_mode = session`/,
      ),
    })
  }
  expect(new Set(pool.queries)).toEqual(new Set(['SELECT pg_backend_pid() AS id']))
  await store.close()
})

test('a store that polls uses ordinary statements without names, and neither LISTEN nor NOTIFY', async () => {
  const pool = pooler(() => 0)
  const store = postgres(pool, { schema: database.nextSchema(), notify: 'poll' })
  const { tasks, once, mailbox } = store
  const events: unknown[] = []
  const arrived = new Promise<void>((resolve) => mailbox.watch('box', resolve))
  tasks.watch((event) => events.push(event))
  await tasks.create(newTask('t'))
  const claimed = await tasks.claim({ after: '', leaseMs: 1_000 })
  expect(await tasks.append({ id: 't', fence: claimed?.fence ?? 0 }, '1')).toBe(true)
  expect(await tasks.change('t', {}, { status: 'completed' })).toBe(2)
  expect(await once.claim('key', 'note', 1_000)).toMatchObject({ kind: 'yours' })
  expect(await tasks.renew([{ id: 't', fence: 1 }], 1_000)).toEqual([])
  await tasks.sweep()
  // As another instance leaves it: no event tells of it.
  await arrived
  expect(events).toEqual([{ type: 'due' }, { type: 'changed', id: 't', version: 2 }])
  expect(pool.queries.join('\n')).not.toMatch(/LISTEN|NOTIFY|pg_backend_pid|set_config|PREPARE/i)
  await store.close()
})

test('a pooler in session mode is used: each connection has a process of its own', async () => {
  const pool = quietPool()
  const store = postgres(
    { ...pooler((connection) => connection), query: (query) => pool.query(query) },
    { schema: database.nextSchema() },
  )
  expect(await store.tasks.read('t')).toBeUndefined()
  await store.close()
  await pool.end()
})

test('without a pooler the check is one query', async () => {
  const pool = quietPool({ max: 2 })
  const asked: string[] = []
  const recording: PoolLike = {
    query: (query) => pool.query(query),
    connect: async () => {
      const connection = await pool.connect()
      return new Proxy(connection, {
        get: (target, name) => {
          if (name === 'query') {
            return (query: { text: string }) => {
              asked.push(query.text)
              return target.query(query)
            }
          }
          const value: unknown = Reflect.get(target, name)
          return typeof value === 'function' ? (value.bind(target) as unknown) : value
        },
      })
    },
    on: (event, listener) => pool.on(event, listener),
    removeListener: (event, listener) => pool.removeListener(event, listener),
  }
  const store = postgres(recording, { schema: database.nextSchema() })
  await store.tasks.read('t')
  expect(asked.filter((text) => text.includes('pg_backend_pid'))).toHaveLength(1)
  await store.close()
  await pool.end()
})
