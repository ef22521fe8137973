import { postgres } from 'mcp-rally/postgres'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newTask } from './contract.ts'
import { emptySchemas, startDatabase, type EmptySchemas, type TestDatabase } from './database.ts'

let database: TestDatabase
let schemas: EmptySchemas
let client: pg.Client
beforeAll(async () => {
  database = await startDatabase()
  schemas = emptySchemas(database.url)
  client = new pg.Client(database.url)
  await client.connect()
}, 60_000)
afterAll(async () => {
  await schemas?.drop()
  await client?.end()
  await database?.stop()
})

describe('the tables of the PostgreSQL store', () => {
  test('are made once when 20 instances start at once', async () => {
    const schema = schemas.next()
    const stores = Array.from({ length: 20 }, () => postgres(database.url, { schema, connections: 2 }))
    await Promise.all(stores.map((store, i) => store.tasks.create(newTask(`task ${i}`))))
    expect(await stores[0]?.tasks.list('ada', 100)).toHaveLength(20)
    const { rows } = await client.query(`SELECT version FROM "${schema}".version`)
    expect(rows).toEqual([{ version: 1 }])
    await Promise.all(stores.map((store) => store.close()))
  })
})
