// Ten thousand calls and tasks of two people, all mixed, in two revisions and on two instances: no handler sees another's caller.
import { expect, test } from 'vitest'
import { runCrowd } from '../demo/callers.ts'

const COUNT = 10_000

test('no call of ten thousand sees another caller', { timeout: 600_000 }, async () => {
  const began = performance.now()
  const { mixUps, booked, submitted, tasks, questions } = await runCrowd(COUNT)
  const seconds = (performance.now() - began) / 1_000
  console.log(
    `${COUNT} calls, ${tasks} of them reports, ${questions} questions, in ${seconds.toFixed(1)} s; mix-ups: ${mixUps.length}`,
  )
  expect(mixUps).toEqual([])
  expect(booked).toEqual(submitted)
})
