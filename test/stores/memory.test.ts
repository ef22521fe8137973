import { MemoryStore } from 'mcp-rally'
import { mailboxContract } from '../mailbox/contract.ts'
import { onceStoreContract } from '../once/contract.ts'
import { taskStoreContract } from './contract.ts'

function open(): { store: MemoryStore; elapse: (ms: number) => void; close: () => Promise<void> } {
  let now = 1_000_000
  const store = new MemoryStore({ now: () => now })
  return { store, elapse: (ms) => void (now += ms), close: () => store.close() }
}

taskStoreContract('memory', () => {
  const { store, elapse, close } = open()
  return { tasks: store.tasks, another: store.tasks, elapse, close }
})

onceStoreContract('of a store in memory', () => {
  const { store, elapse, close } = open()
  return { store: store.once, another: store.once, elapse, close }
})

mailboxContract('of a store in memory', () => {
  const { store, elapse, close } = open()
  return { mailbox: store.mailbox, another: store.mailbox, elapse, close }
})
