import { readFileSync } from 'node:fs'
import { postgres } from 'mcp-rally/postgres'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newTask } from './contract.ts'
import { useDatabase } from './database.ts'

const database = useDatabase()
let client: pg.Client
beforeAll(async () => {
  client = new pg.Client(database.url)
  await client.connect()
}, 60_000)
afterAll(async () => {
  await client?.end()
})

async function versionsOf(schema: string): Promise<unknown[]> {
  return (await client.query(`SELECT version FROM "${schema}".version`)).rows
}

/** The columns, and the indexes. */
async function partsOf(schema: string): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT table_name || '.' || column_name AS name FROM information_schema.columns WHERE table_schema = $1
     UNION ALL SELECT indexname FROM pg_indexes WHERE schemaname = $1 ORDER BY name`,
    [schema],
  )
  return rows.map(({ name }) => name)
}

/** What the tables have in version 1 of the schema, which an earlier release made. */
const TASK_COLUMNS =
  'id owner request state status message poll_ms ttl_ms created_at updated_at expires_at outcome version fence lease_until due_at ready_at journal journal_from journal_to'
const INDEXES =
  'tasks_pkey tasks_due tasks_of_owner tasks_expiry journal_entries_pkey once_pkey once_expiry letters_pkey letters_expiry'

async function removeAdditions(schema: string): Promise<void> {
  for (const name of await partsOf(schema)) {
    const [table, column] = name.split('.')
    if (column === undefined && !INDEXES.split(' ').includes(name))
      await client.query(`DROP INDEX IF EXISTS "${schema}".${name}`)
    if (table === 'tasks' && column !== undefined && !TASK_COLUMNS.split(' ').includes(column))
      await client.query(`ALTER TABLE "${schema}".tasks DROP COLUMN ${column}`)
  }
}

/** Recorded once. Do not make them anew: they are what instances of that release run. */
const EARLIER = JSON.parse(readFileSync(new URL('earlier-statements.json', import.meta.url), 'utf8')) as Record<
  'create' | 'claim' | 'write',
  string
>

/** Runs the statements of the release before tasks had columns for operations, as they were, prepared on its own connection. */
class EarlierInstance {
  readonly #pool = new pg.Pool({ connectionString: database.url, max: 1 })
  readonly #schema: string
  #made = 0

  constructor(schema: string) {
    this.#schema = schema
  }

  /** A task from its creation to its end. */
  async live(): Promise<void> {
    const id = await this.create(`earlier ${this.#made}`)
    const { rows } = await client.query(`SELECT status FROM "${this.#schema}".tasks WHERE id = $1`, [id])
    if (!(await this.finishNext()) || rows.length !== 1) throw new Error(`"${id}" should have been there.`)
  }

  async create(id: string): Promise<string> {
    this.#made += 1
    const rows = await this.#run('create', [[id], ['earlier'], ['{}'], ['{}'], [''], [null], [1_000], [null], [null]])
    if (rows.length !== 1) throw new Error(`"${id}" should have been created.`)
    return id
  }

  /** Claims the next task, adds to its journal and ends it. False if nothing is due, or if it has lost it. */
  async finishNext(): Promise<boolean> {
    const [task] = await this.#run('claim', [60_000, 'a', []])
    if (task === undefined) return false
    const { id, fence } = task
    const n = [null]
    const append = [[id], [fence], n, [false], n, [false], n, n, n, n, ['"entry"'], [false], n, [false], n]
    const end = [[id], [fence], n, [true], ['completed'], [false], n, n, ['1'], [''], n, [true], n, [true], n]
    return (await this.#run('write', append)).length === 1 && (await this.#run('write', end)).length === 1
  }

  close(): Promise<void> {
    return this.#pool.end()
  }

  async #run(name: keyof typeof EARLIER, values: unknown[]): Promise<Record<string, unknown>[]> {
    const text = EARLIER[name].replaceAll('"SCHEMA"', `"${this.#schema}"`)
    return (await this.#pool.query<Record<string, unknown>>({ name, text, values })).rows
  }
}

describe('the tables of the PostgreSQL store', () => {
  test('are made once when 20 instances start at once', async () => {
    const schema = database.nextSchema()
    const stores = Array.from({ length: 20 }, () => postgres(database.url, { schema, connections: 2 }))
    await Promise.all(stores.map((store, i) => store.tasks.create(newTask(`task ${i}`))))
    expect(await stores[0]?.tasks.list('ada', 100)).toHaveLength(20)
    expect(await versionsOf(schema)).toEqual([{ version: 1 }])
    await Promise.all(stores.map((store) => store.close()))
  })

  test('are made completely or not at all', async () => {
    const schema = database.nextSchema()
    // In the way of one of the last.
    await client.query(`CREATE SCHEMA "${schema}"; CREATE TABLE "${schema}".letters ()`)
    const store = postgres(database.url, { schema })
    await expect(store.tasks.read('t')).rejects.toThrow(/"letters" already exists/)
    const { rows } = await client.query(`SELECT tablename FROM pg_tables WHERE schemaname = $1`, [schema])
    expect(rows).toEqual([{ tablename: 'letters' }])

    await client.query(`DROP TABLE "${schema}".letters`)
    expect(await store.tasks.read('t')).toBeUndefined()
    await store.close()
  })

  test('of a later version are left alone, with an error that says what to do', async () => {
    const schema = database.nextSchema()
    const store = postgres(database.url, { schema })
    await store.tasks.create(newTask('t'))
    await store.close()
    await client.query(`UPDATE "${schema}".version SET version = 99`)

    const older = postgres(database.url, { schema })
    await expect(older.tasks.read('t')).rejects.toMatchObject({
      code: 'STORE_SCHEMA',
      message: expect.stringMatching(
        /has version 99, .* up to 1\. Update mcp-rally, or set the option `schema` to another name/,
      ),
    })
    expect(await versionsOf(schema)).toEqual([{ version: 99 }])
    await older.close()
  })

  test('get what was added since, while an instance of an earlier version works on with its own statements', async () => {
    const schema = database.nextSchema()
    const first = postgres(database.url, { schema })
    await first.tasks.create(newTask('kept', { owner: 'new' }))
    await first.close()
    const now = await partsOf(schema)
    await removeAdditions(schema)
    expect(await partsOf(schema)).not.toEqual(now)

    const earlier = new EarlierInstance(schema)
    await earlier.live()
    let isUpgraded = false
    const working = (async () => {
      // Statements that were prepared before the upgrade, during it and after it.
      for (let after = 0; after < 20; after += isUpgraded ? 1 : 0) await earlier.live()
    })()
    const stores = Array.from({ length: 4 }, () => postgres(database.url, { schema, connections: 2 }))
    await Promise.all(stores.map((store, i) => store.tasks.create(newTask(`new ${i}`, { owner: 'new' }))))
    isUpgraded = true
    await working
    expect(await partsOf(schema)).toEqual(now)

    // Each version runs the tasks of the other.
    const [store] = stores
    const made = await earlier.create('made by the earlier one')
    const claims = await store?.tasks.claimMany?.({ after: '', leaseMs: 60_000, worker: 'new' }, 10)
    expect(claims?.map(({ id }) => id).toSorted()).toEqual(['kept', made, 'new 0', 'new 1', 'new 2', 'new 3'])
    for (const { id, fence } of claims ?? []) {
      expect(await store?.tasks.change(id, { fence }, { release: true, dueMs: 0 })).toBe(2)
      expect(await earlier.finishNext()).toBe(true)
      expect(await store?.tasks.inspect?.(id)).toMatchObject({ status: 'completed', outcome: '1' })
    }
    await earlier.close()
    await Promise.all(stores.map((each) => each.close()))
  })

  test('need nobody that may make tables once they are there', async () => {
    const schema = database.nextSchema()
    const first = postgres(database.url, { schema })
    await first.tasks.create(newTask('t'))
    await first.close()
    const role = `${schema}_worker`
    await client.query(`
      CREATE ROLE ${role};
      GRANT USAGE ON SCHEMA "${schema}" TO ${role};
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "${schema}" TO ${role};
      GRANT USAGE ON ALL SEQUENCES IN SCHEMA "${schema}" TO ${role}`)
    const pool = new pg.Pool({ connectionString: database.url, options: `-c role=${role}` })
    const store = postgres(pool, { schema })
    expect((await pool.query('SELECT current_user AS name')).rows).toEqual([{ name: role }])
    const held = await store.tasks.claim({ after: '', leaseMs: 60_000 })
    expect(held).toMatchObject({ id: 't' })
    expect(await store.tasks.append({ id: 't', fence: held?.fence ?? 0 }, '1')).toBe(true)
    expect(await store.once.claim('key', 'note', 60_000)).toMatchObject({ kind: 'yours' })
    expect(await store.mailbox.leave('box', 1, 'text', 60_000)).toBe(true)
    await store.close()
    await pool.end()
    await client.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`)
  })

  test('are made whatever isolation the database has by default', async () => {
    const schema = database.nextSchema()
    const pool = new pg.Pool({
      connectionString: database.url,
      options: '-c default_transaction_isolation=repeatable\\ read',
      max: 20,
    })
    const stores = Array.from({ length: 8 }, () => postgres(pool, { schema }))
    expect(await Promise.all(stores.map((store) => store.tasks.read('t')))).toEqual(stores.map(() => undefined))
    await Promise.all(stores.map((store) => store.close()))
    await pool.end()
  })

  test('of two schemas in one database, on one pool, have nothing to do with each other', async () => {
    const pool = new pg.Pool({ connectionString: database.url, max: 4 })
    const [one, other] = [database.nextSchema(), database.nextSchema()].map((schema) => postgres(pool, { schema }))
    if (one === undefined || other === undefined) return
    await one.tasks.create(newTask('t'))
    for (let i = 0; i < 5; i += 1) {
      expect(await other.tasks.read('t')).toBeUndefined()
      expect(await one.tasks.read('t')).toMatchObject({ id: 't' })
    }
    await Promise.all([one.close(), other.close()])
    await pool.end()
  })

  test('are refused in a database that cannot hold every text', async () => {
    const name = `${database.nextSchema()}_ascii`
    await client.query(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'`)
    const store = postgres(database.url.replace(/\/[^/?]+(?=\?|$)/, `/${name}`))
    await expect(store.tasks.read('t')).rejects.toMatchObject({
      code: 'STORE_SCHEMA',
      message: expect.stringMatching(/SQL_ASCII.*ENCODING 'UTF8'/),
    })
    await store.close()
    await client.query(`DROP DATABASE ${name} WITH (FORCE)`)
  })
})
