// The PostgreSQL store against the contracts of its parts.
import { setTimeout as sleep } from 'node:timers/promises'
import { postgres } from 'mcp-rally/postgres'
import { afterAll, beforeAll } from 'vitest'
import { mailboxContract } from '../mailbox/contract.ts'
import { onceStoreContract } from '../once/contract.ts'
import type { Store } from '../../src/tasks/store.ts'
import { taskStoreContract } from './contract.ts'
import { emptySchemas, listening, startDatabase, type EmptySchemas, type TestDatabase } from './database.ts'

let database: TestDatabase
let schemas: EmptySchemas
beforeAll(async () => {
  database = await startDatabase()
  schemas = emptySchemas(database.url)
}, 60_000)
afterAll(async () => {
  await schemas?.drop()
  await database?.stop()
})

/** Two instances of a fleet, on tables of their own. */
function open(): Pair {
  const schema = schemas.next()
  const one = postgres(database.url, { schema })
  const other = postgres(database.url, { schema })
  return {
    one,
    other,
    elapse: (ms) => sleep(ms),
    close: async () => {
      await Promise.all([one.close(), other.close()])
    },
  }
}

interface Pair {
  one: Store
  other: Store
  elapse: (ms: number) => Promise<void>
  close: () => Promise<void>
}

taskStoreContract('PostgreSQL', async () => {
  const { one, other, ...rest } = open()
  await Promise.all([listening(one), listening(other)])
  return { tasks: one.tasks, another: other.tasks, ...rest }
})

onceStoreContract('PostgreSQL', () => {
  const { one, other, ...rest } = open()
  return { store: one.once, another: other.once, ...rest }
})

mailboxContract('PostgreSQL', () => {
  const { one, other, ...rest } = open()
  return { mailbox: one.mailbox, another: other.mailbox, ...rest }
})
