import { sqlite } from 'mcp-rally/sqlite'
import { test } from 'vitest'
import { storeContract } from './contract.ts'
import { Folder } from './folder.ts'
import { likeTheModel } from './model.ts'

/** Two stores on one file, as two processes have them, with one clock. */
storeContract('SQLite', () => {
  let now = 1_000_000
  const folder = new Folder()
  // The contract cannot tell `normal` from `full`, which is slower.
  const options = { now: () => now, pollMs: 5, synchronous: 'normal' } as const
  const [store, other] = [sqlite(folder.file(), options), sqlite(folder.file(), options)]
  return {
    part: store,
    another: other,
    elapse: (ms) => void (now += ms),
    close: async () => {
      await Promise.all([store.close(), other.close()])
      folder.remove()
    },
  }
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
