import { sqlite } from 'mcp-rally/sqlite'
import { test } from 'vitest'
import type { Store } from '../../src/store/store.ts'
import { mailboxContract } from '../mailbox/contract.ts'
import { onceStoreContract } from '../once/contract.ts'
import { taskStoreContract } from './contract.ts'
import { Folder } from './folder.ts'
import { likeTheModel } from './model.ts'

interface TwoStores {
  store: Store
  other: Store
  elapse: (ms: number) => void
  close: () => Promise<void>
}

/** Two stores on one file, as two processes have them, and one clock. */
function openTwo(): TwoStores {
  let now = 1_000_000
  const folder = new Folder()
  // As safe as the contract can tell, and faster.
  const options = { now: () => now, pollMs: 5, synchronous: 'normal' } as const
  const [store, other] = [sqlite(folder.file(), options), sqlite(folder.file(), options)]
  return {
    store,
    other,
    elapse: (ms) => void (now += ms),
    close: async () => {
      await Promise.all([store.close(), other.close()])
      folder.remove()
    },
  }
}

taskStoreContract('SQLite', () => {
  const { store, other, elapse, close } = openTwo()
  return { tasks: store.tasks, another: other.tasks, elapse, close }
})

onceStoreContract('SQLite', () => {
  const { store, other, elapse, close } = openTwo()
  return { store: store.once, another: other.once, elapse, close }
})

mailboxContract('SQLite', () => {
  const { store, other, elapse, close } = openTwo()
  return { mailbox: store.mailbox, another: other.mailbox, elapse, close }
})

test('whatever is asked of two stores on one file, they answer as the store in memory does', async () => {
  await likeTheModel((now) => {
    const folder = new Folder()
    const options = { now, synchronous: 'normal' } as const
    const stores = [sqlite(folder.file(), options), sqlite(folder.file(), options)]
    return {
      handles: stores.map(({ tasks }) => tasks),
      close: async () => {
        await Promise.all(stores.map((store) => store.close()))
        folder.remove()
      },
    }
  }, 30)
}, 60_000)

test('whatever is asked of a store in memory of SQLite, it answers as the store in memory does', async () => {
  await likeTheModel((now) => {
    const store = sqlite(':memory:', { now })
    return { handles: [store.tasks], close: () => store.close() }
  }, 150)
}, 60_000)
