import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqlite } from 'mcp-rally/sqlite'
import type { Store } from '../../src/tasks/store.ts'
import { mailboxContract } from '../mailbox/contract.ts'
import { onceStoreContract } from '../once/contract.ts'
import { taskStoreContract } from './contract.ts'

/** Two stores on one file, as two processes have them, and one clock. */
async function openTwo(): Promise<{
  store: Store
  other: Store
  elapse: (ms: number) => void
  close: () => Promise<void>
}> {
  let now = 1_000_000
  const folder = await mkdtemp(join(tmpdir(), 'rally-sqlite-'))
  const options = { now: () => now, pollMs: 5 }
  const [store, other] = [sqlite(join(folder, 'store.db'), options), sqlite(join(folder, 'store.db'), options)]
  return {
    store,
    other,
    elapse: (ms) => void (now += ms),
    close: async () => {
      await Promise.all([store.close(), other.close()])
      await rm(folder, { recursive: true })
    },
  }
}

taskStoreContract('SQLite', async () => {
  const { store, other, elapse, close } = await openTwo()
  return { tasks: store.tasks, another: other.tasks, elapse, close }
})

onceStoreContract('SQLite', async () => {
  const { store, other, elapse, close } = await openTwo()
  return { store: store.once, another: other.once, elapse, close }
})

mailboxContract('SQLite', async () => {
  const { store, other, elapse, close } = await openTwo()
  return { mailbox: store.mailbox, another: other.mailbox, elapse, close }
})
