// How a task stands.
import type { TaskStatus } from './store.ts'

/** Whether it has come to its end, from which nothing leads on. */
export function isEnd(status: TaskStatus): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled'
}
