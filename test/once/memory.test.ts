import { MemoryOnceStore } from 'mcp-rally'
import { onceStoreContract } from './contract.ts'

onceStoreContract('memory', () => {
  let now = 0
  const store = new MemoryOnceStore(() => now)
  return {
    part: store,
    another: store,
    elapse: (ms) => {
      now += ms
    },
  }
})
