import { expect, test } from 'vitest'
import { Journal } from '../flow/journal.ts'
import { readHistory, TaskHistory } from './history.ts'

const STEPS = 250
const STARTED_AT = 1_000_000

test('steps that the history has no room for are counted once, however often the task is claimed', () => {
  let now = STARTED_AT
  const entries: string[] = []
  const first = new TaskHistory(
    undefined,
    () => now,
    () => undefined,
  )
  first.claimed('one', undefined)
  for (let i = 0; i < STEPS; i += 1) {
    const end = first.step({ key: `s[${i}]`, attempt: 1, flow: {} as never })
    now += 10
    end({ outcome: 'completed' })
    entries.push(`"s","s[${i}]",${now - STARTED_AT},${i}`)
  }
  first.released('released')
  let stored = first.write()
  const journal = Journal.read(`[${entries.join(',')}]`)
  for (let claim = 1; claim <= 3; claim += 1) {
    const { rows } = readHistory(stored)
    const history = new TaskHistory(
      stored,
      () => now,
      () => undefined,
    )
    // Also after a worker that was lost, whose entries the journal may tell of.
    history.claimed('other', claim === 3 ? 'unknown' : undefined)
    history.addEntries(journal, STARTED_AT)
    // The claim that is begun, and at the last claim the one that was lost.
    expect(history.rows.length - rows.length).toBe(claim === 3 ? 2 : 1)
    history.step({ key: `later[${claim}]`, attempt: 1, flow: {} as never })({ outcome: 'completed' })
    history.released('released')
    stored = history.write()
  }
  const { rows, dropped } = readHistory(stored)
  expect(rows.filter(({ type }) => type === 'step').length + dropped).toBeLessThan(STEPS + 10)
  expect(rows.map(({ at }) => at)).toEqual(rows.map(({ at }) => at).toSorted((a, b) => a - b))
})
