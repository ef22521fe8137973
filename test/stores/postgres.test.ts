// The PostgreSQL store against the contracts of its parts.
import { setTimeout as sleep } from 'node:timers/promises'
import { postgres } from 'mcp-rally/postgres'
import pg from 'pg'
import { afterAll, beforeAll } from 'vitest'
import type { Store } from '../../src/store/store.ts'
import { mailboxContract } from '../mailbox/contract.ts'
import { onceStoreContract } from '../once/contract.ts'
import { taskStoreContract } from './contract.ts'
import { emptySchemas, listening, startDatabase, type EmptySchemas, type TestDatabase } from './database.ts'

let database: TestDatabase
let schemas: EmptySchemas
let schema: string
let client: pg.Client
/** Two instances of a fleet. */
let one: Store
let other: Store

beforeAll(async () => {
  database = await startDatabase()
  schemas = emptySchemas(database.url)
  schema = schemas.next()
  client = new pg.Client(database.url)
  await client.connect()
  one = postgres(database.url, { schema })
  other = postgres(database.url, { schema })
  await Promise.all([listening(one), listening(other)])
}, 60_000)
afterAll(async () => {
  await Promise.all([one?.close(), other?.close()])
  await schemas?.drop()
  await client?.end()
  await database?.stop()
})

/** Each test begins with nothing there. */
async function empty(): Promise<void> {
  const tables = ['tasks', 'journal_entries', 'once', 'letters'].map((table) => `"${schema}".${table}`)
  await client.query(`TRUNCATE ${tables.join(', ')}`)
}

const elapse = (ms: number): Promise<void> => sleep(ms)

taskStoreContract('PostgreSQL', async () => {
  await empty()
  return { tasks: one.tasks, another: other.tasks, elapse }
})

onceStoreContract('PostgreSQL', async () => {
  await empty()
  return { store: one.once, another: other.once, elapse }
})

mailboxContract('PostgreSQL', async () => {
  await empty()
  return { mailbox: one.mailbox, another: other.mailbox, elapse }
})
