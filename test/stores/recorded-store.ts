// A PostgreSQL store for each test of a file, whose queries are recorded.
import { postgres, type PoolLike, type QueryLike } from 'mcp-rally/postgres'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import type { Store } from '../../src/store/store.ts'
import type { ClaimedTask, TaskStore } from '../../src/store/tasks.ts'
import { useDatabase } from './database.ts'

export interface RecordedStore {
  /** The pool beneath the store. Queries on it are not recorded. */
  readonly pool: pg.Pool
  readonly url: string
  readonly schema: string
  readonly store: Store
  readonly tasks: TaskStore
  /** The queries of the store while this runs. */
  readonly queriesOf: (run: () => Promise<unknown>) => Promise<QueryLike[]>
  /** Claims the task that is due. */
  readonly claimed: (leaseMs?: number, by?: TaskStore) => Promise<ClaimedTask>
}

export const LONG_MS = 60_000

/** Register it before hooks that use it: each test begins with an empty schema. */
export function useRecordedStore(): RecordedStore {
  const database = useDatabase()
  const queries: QueryLike[] = []
  let pool: pg.Pool
  let schema: string
  let store: Store

  beforeAll(() => {
    pool = new pg.Pool({ connectionString: database.url, max: 20 })
    // A connection may still be open for a moment when the server stops.
    pool.on('error', () => {})
  })
  afterAll(() => pool?.end())
  beforeEach(async () => {
    schema = database.nextSchema()
    store = postgres(recording(pool, queries), { schema })
    // Sets up the schema.
    await store.tasks.sweep()
  })
  afterEach(() => store.close())

  return {
    get pool() {
      return pool
    },
    get url() {
      return database.url
    },
    get schema() {
      return schema
    },
    get store() {
      return store
    },
    get tasks() {
      return store.tasks
    },
    queriesOf: async (run) => {
      queries.length = 0
      await run()
      return [...queries]
    },
    claimed: async (leaseMs = LONG_MS, by = store.tasks) => {
      const task = await by.claim({ after: '', leaseMs })
      if (task === undefined) throw new Error('A task should be due, but none is.')
      return task
    },
  }
}

function recording(pool: PoolLike, queries: QueryLike[]): PoolLike {
  return {
    query: (query) => {
      // No operation waits for its events to be sent.
      if (!query.text.includes('pg_notify')) queries.push(query)
      return pool.query(query)
    },
    connect: () => pool.connect(),
    on: (event, listener) => pool.on(event, listener),
    removeListener: (event, listener) => pool.removeListener(event, listener),
  }
}
