// The PostgreSQL store against the contract of a store.
import { setTimeout as sleep } from 'node:timers/promises'
import { postgres } from 'mcp-rally/postgres'
import pg from 'pg'
import { afterAll, beforeAll } from 'vitest'
import type { Store } from '../../src/store/store.ts'
import { storeContract } from './contract.ts'
import { listening, useDatabase } from './database.ts'

const database = useDatabase()
let schema: string
let client: pg.Client
/** Two instances of a fleet. */
let one: Store
let other: Store

beforeAll(async () => {
  schema = database.nextSchema()
  client = new pg.Client(database.url)
  await client.connect()
  one = postgres(database.url, { schema })
  other = postgres(database.url, { schema })
  await Promise.all([listening(one), listening(other)])
}, 60_000)
afterAll(async () => {
  await Promise.all([one?.close(), other?.close()])
  await client?.end()
})

storeContract('PostgreSQL', async () => {
  const tables = ['tasks', 'journal_entries', 'once', 'letters'].map((table) => `"${schema}".${table}`)
  await client.query(`TRUNCATE ${tables.join(', ')}`)
  return { part: one, another: other, elapse: (ms) => sleep(ms) }
})
