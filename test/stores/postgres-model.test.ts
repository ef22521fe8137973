// The PostgreSQL store beside the one in memory, by the same clock.
import { postgres } from 'mcp-rally/postgres'
import pg from 'pg'
import { afterAll, beforeAll, test } from 'vitest'
import type { Store } from '../../src/store/store.ts'
import type { TaskStore } from '../../src/store/tasks.ts'
import { useDatabase } from './database.ts'
import { likeTheModel } from './model.ts'

const database = useDatabase()
let pool: pg.Pool
let clock: string
let schema: string
let stores: Store[]

beforeAll(async () => {
  clock = database.nextSchema()
  schema = database.nextSchema()
  // now() finds this function first, so it is the clock of the stores.
  pool = new pg.Pool({ connectionString: database.url, options: `-c search_path=${clock},pg_catalog` })
  pool.on('error', () => {})
  await pool.query(`
    CREATE SCHEMA ${clock};
    CREATE TABLE ${clock}.at AS SELECT 0::bigint AS ms;
    CREATE FUNCTION ${clock}.now() RETURNS timestamptz STABLE LANGUAGE sql AS
      'SELECT to_timestamp(ms / 1000.0) FROM ${clock}.at'`)
  stores = [postgres(pool, { schema }), postgres(pool, { schema })]
  await Promise.all(stores.map((store) => store.tasks.sweep()))
}, 60_000)
afterAll(async () => {
  await Promise.all(stores?.map((store) => store.close()) ?? [])
  await pool?.end()
})

/** A store that sets the database's clock before each call. */
function atTheTime(given: TaskStore, setClock: () => Promise<unknown>): Required<TaskStore> {
  const tasks = given as Required<TaskStore>
  const at = async <T>(ask: () => Promise<T>): Promise<T> => {
    await setClock()
    return ask()
  }
  return {
    create: (task) => at(() => tasks.create(task)),
    createAndClaim: (task, leaseMs) => at(() => tasks.createAndClaim(task, leaseMs)),
    claimMany: (request, limit) => at(() => tasks.claimMany(request, limit)),
    changeAndClaim: (id, precondition, change, leaseMs) =>
      at(() => tasks.changeAndClaim(id, precondition, change, leaseMs)),
    read: (id) => at(() => tasks.read(id)),
    versions: (ids) => at(() => tasks.versions(ids)),
    list: (owner, limit, after) => at(() => tasks.list(owner, limit, after)),
    claim: (request) => at(() => tasks.claim(request)),
    renew: (leases, leaseMs) => at(() => tasks.renew(leases, leaseMs)),
    append: (lease, entries) => at(() => tasks.append(lease, entries)),
    change: (id, precondition, change) => at(() => tasks.change(id, precondition, change)),
    usage: (owner) => at(() => tasks.usage(owner)),
    sweep: () => at(() => tasks.sweep()),
    find: (query) => at(() => tasks.find(query)),
    inspect: (id) => at(() => tasks.inspect(id)),
    remove: (ids) => at(() => tasks.remove(ids)),
    watch: (listener) => tasks.watch(listener),
  }
}

test('whatever is asked of two stores on one database, they answer as the store in memory does', async () => {
  await likeTheModel((now) => {
    const emptied = pool.query(`TRUNCATE ${schema}.tasks CASCADE`)
    const setClock = async (): Promise<void> => {
      await emptied
      await pool.query(`UPDATE ${clock}.at SET ms = ${now()}`)
    }
    return { handles: stores.map(({ tasks }) => atTheTime(tasks, setClock)), close: async () => {} }
  }, 40)
}, 60_000)
