import { MemoryStore } from 'mcp-rally'
import { storeContract } from './contract.ts'

storeContract('memory', () => {
  let now = 1_000_000
  const store = new MemoryStore({ now: () => now })
  return { part: store, another: store, elapse: (ms) => void (now += ms), close: () => store.close() }
})
