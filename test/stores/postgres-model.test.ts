// The PostgreSQL store beside the one in memory, by the same clock.
import { postgres } from 'mcp-rally/postgres'
import pg from 'pg'
import { afterAll, beforeAll, test } from 'vitest'
import type { Store } from '../../src/store/store.ts'
import type { ClaimedTask, TaskLease, TaskRecord, TaskStore } from '../../src/store/tasks.ts'
import { emptySchemas, startDatabase, type EmptySchemas, type TestDatabase } from './database.ts'
import { likeTheModel } from './model.ts'

let database: TestDatabase
let schemas: EmptySchemas
let pool: pg.Pool
let clock: string
let schema: string
let stores: Store[]

beforeAll(async () => {
  database = await startDatabase()
  schemas = emptySchemas(database.url)
  clock = schemas.next()
  schema = schemas.next()
  // What is found first by the name of now() is this clock.
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
  await schemas?.drop()
  await pool?.end()
  await database?.stop()
})

/** Numbers the fences of each task from 1 on, as the model does. */
class Fences {
  readonly #lives = new Map<string, { createdAt: number; fences: number[] }>()

  made({ id, createdAt }: TaskRecord): void {
    if (this.#lives.get(id)?.createdAt !== createdAt) this.#lives.set(id, { createdAt, fences: [] })
  }

  claimed(task: ClaimedTask | undefined): ClaimedTask | undefined {
    if (task === undefined) return undefined
    const { fences = [] } = this.#lives.get(task.id) ?? {}
    if (task.fence <= (fences.at(-1) ?? 0)) throw new Error('A fence is not higher than the one before.')
    return { ...task, fence: fences.push(task.fence) }
  }

  real<T extends TaskLease>(held: T): T {
    return { ...held, fence: this.#lives.get(held.id)?.fences[held.fence - 1] ?? Number.MAX_SAFE_INTEGER }
  }

  counted<T extends TaskLease>(held: T): T {
    return { ...held, fence: (this.#lives.get(held.id)?.fences.indexOf(held.fence) ?? -1) + 1 }
  }
}

/** A store that is asked once the clock stands right. */
function atTheTime(tasks: TaskStore, ready: () => Promise<unknown>, fences: Fences): TaskStore {
  const at = async <T>(ask: () => Promise<T>): Promise<T> => {
    await ready()
    return ask()
  }
  return {
    create: (task) =>
      at(async () => {
        const made = await tasks.create(task)
        fences.made(made)
        return made
      }),
    read: (id) => at(() => tasks.read(id)),
    list: (owner, limit, after) => at(() => tasks.list(owner, limit, after)),
    claim: (turn) => at(async () => fences.claimed(await tasks.claim(turn))),
    renew: (held, leaseMs) =>
      at(async () => {
        const real = held.map((each) => fences.real(each))
        return (await tasks.renew(real, leaseMs)).map((standing) => fences.counted(standing))
      }),
    append: (held, entries) => at(() => tasks.append(fences.real(held), entries)),
    change: (id, belief, change) =>
      at(() => {
        const { fence } = belief
        return tasks.change(id, fence === undefined ? belief : { ...belief, ...fenceOf(fences, id, fence) }, change)
      }),
    sweep: () => at(() => tasks.sweep()),
    watch: (listener) => tasks.watch(listener),
  }
}

function fenceOf(fences: Fences, id: string, fence: number): { fence: number } {
  return { fence: fences.real({ id, fence }).fence }
}

test('whatever is asked of two stores on one database, they answer as the store in memory does', async () => {
  await likeTheModel((now) => {
    const emptied = pool.query(`TRUNCATE ${schema}.tasks CASCADE`)
    const ready = async (): Promise<void> => {
      await emptied
      await pool.query(`UPDATE ${clock}.at SET ms = ${now()}`)
    }
    const fences = new Fences()
    return { handles: stores.map(({ tasks }) => atTheTime(tasks, ready, fences)), close: async () => {} }
  }, 40)
})
