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
