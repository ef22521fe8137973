import { expect, test } from 'vitest'
import { BUGS } from './bugs.ts'
import { findViolation } from './command.ts'
import { makePlan, runHistory, shrink } from './history.ts'

/** `npm run model` runs many more. */
const HISTORIES = 120
/** Within so many histories the model must find each planted bug. */
const MOST_HISTORIES = 150
const SEED = 5_000

test('no history breaks an invariant', { timeout: 60_000 }, async () => {
  expect((await findViolation(1, HISTORIES))?.violations).toBeUndefined()
})

test.each(BUGS)('the model finds it when $name', { timeout: 60_000 }, async ({ breaks, plant }) => {
  const found = await findViolation(SEED, MOST_HISTORIES, { plant })
  expect(breaks).toContain(found?.violations[0]?.invariant)
})

test('a history is the same every time it runs', async () => {
  for (const seed of [3, 15, 92]) {
    const [one, other] = [await told(seed), await told(seed)]
    expect(one).toEqual(other)
    expect(one.length).toBeGreaterThan(5)
  }
})

test('a history that fails is shrunk to what it needs to fail', async () => {
  const [, losingEntries] = BUGS
  if (losingEntries === undefined) throw new Error('There is no such bug.')
  const { plant } = losingEntries
  const found = await findViolation(SEED, MOST_HISTORIES, { plant })
  if (found === undefined) throw new Error('The bug was not found.')
  const smallest = await shrink(found.plan, { plant })
  expect(smallest.flows).toHaveLength(1)
  expect(smallest.faults.length).toBeLessThan(3)
  const { violations } = await runHistory(smallest, { plant })
  expect(violations[0]?.invariant).toBe(found.violations[0]?.invariant)
})

/** What happens in a history. The ids of flows and tasks are random. */
async function told(seed: number): Promise<string[]> {
  const { story } = await runHistory(makePlan(seed), { isTold: true })
  return story.map((line) => line.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{64}/g, '(id)'))
}
