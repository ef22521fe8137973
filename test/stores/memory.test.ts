import { MemoryTasks } from '../../src/tasks/memory-tasks.ts'
import { taskStoreContract } from './contract.ts'

taskStoreContract('memory', () => {
  let now = 1_000_000
  const tasks = new MemoryTasks(() => now)
  return {
    tasks,
    another: tasks,
    elapse: (ms) => {
      now += ms
    },
  }
})
