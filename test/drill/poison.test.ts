// A short poison drill. `npm run drill` is the long one.
import { expect, test } from 'vitest'
import type { Poison } from './poisoning.ts'
import { runPoisonDrill } from './poisoning.ts'

test.each<Poison>(['exit', 'loop'])(
  'a task that ends its process (%s) fails after five losses, and no other task fails',
  { timeout: 120_000 },
  async (poison) => {
    const report = await runPoisonDrill({ poison, instances: 1, innocents: 20 })
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
