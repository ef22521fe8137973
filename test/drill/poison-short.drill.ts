// A short poison drill. `npm run drill -- poison` is the long one, with every kind of poison, several instances and PostgreSQL.
import { expect, test } from 'vitest'
import { runPoisonDrill } from './poisoning.ts'

test(
  'a task that ends its process fails after five losses, and no other task fails',
  { timeout: 120_000 },
  async () => {
    const report = await runPoisonDrill({ poison: 'exit', instances: 1, innocents: 20 })
    expect(report.innocents.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 'completed'))
    expect(report.poison).toMatchObject({
      status: 'failed',
      message: 'The task failed: 5 workers were lost while they ran it.',
    })
    expect(report.losses).toEqual([1, 2, 3, 4, 5])
    expect(report.givenUp).toHaveLength(1)
    expect(report.restarts).toBe(5)
  },
)
