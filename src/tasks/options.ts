// The options of tasks, with their defaults. What is wrong with them is an error when the app is built.
import { RallyError } from '../protocol/errors.ts'
import type { TasksOptions } from '../server/tasks.ts'

/** No timer waits longer. */
const LONGEST_LEASE_MS = 2_147_483_647

export function readTasksOptions(options: TasksOptions): Required<TasksOptions> {
  const { ttlMs = 86_400_000, pollMs = 1_000, leaseMs = 15_000 } = options
  const { concurrency = 32, maxJournalBytes = 1_048_576 } = options
  for (const [name, value] of Object.entries({ ...(ttlMs !== null && { ttlMs }), pollMs, leaseMs, maxJournalBytes })) {
    if (!Number.isSafeInteger(value) || value < 1) {
      throw new RallyError('OPTION_INVALID', `tasks.${name} is ${value}; it must be a whole number above 0.`)
    }
  }
  if (leaseMs > LONGEST_LEASE_MS) {
    throw new RallyError('OPTION_INVALID', `tasks.leaseMs is ${leaseMs}; it must be at most ${LONGEST_LEASE_MS}.`)
  }
  if (!Number.isSafeInteger(concurrency) || concurrency < 0) {
    throw new RallyError('OPTION_INVALID', `tasks.concurrency is ${concurrency}; it must be a whole number, 0 or more.`)
  }
  return { ttlMs, pollMs, leaseMs, concurrency, maxJournalBytes }
}
