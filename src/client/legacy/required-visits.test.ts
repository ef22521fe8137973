import { expect, test, vi } from 'vitest'
import { ProtocolError } from '../../protocol/errors.ts'
import type { VisitActions } from './required-visits.ts'
import { RequiredVisits } from './required-visits.ts'

const refusal = (...ids: string[]): ProtocolError =>
  new ProtocolError(-32042, 'Not yet', {
    elicitations: ids.map((elicitationId) => ({
      mode: 'url',
      elicitationId,
      url: 'https://pages.example/',
      message: 'Go.',
    })),
  })

function sending(action: (key: string) => string = () => 'accept') {
  const ask = vi.fn<VisitActions['ask']>(async (pages) =>
    Object.fromEntries(pages.map(({ key }) => [key, { action: action(key) }])),
  )
  const pause = vi.fn<VisitActions['pause']>(async () => {})
  const asked = (): string[][] => ask.mock.calls.map(([pages]) => pages.map(({ key }) => key))
  return { ask, pause, asked }
}

test('a call may be made again once the user has agreed to go to every page', async () => {
  const { asked, ...given } = sending()
  expect(await new RequiredVisits(given).allow(refusal('a', 'b'))).toBe(true)
  expect(asked()).toEqual([['a', 'b']])
})

test('it may not where they have not, and they are asked again about those alone', async () => {
  let isWilling = false
  const { asked, ...given } = sending((key) => (key === 'a' || isWilling ? 'accept' : 'decline'))
  const visits = new RequiredVisits(given)
  expect(await visits.allow(refusal('a', 'b'))).toBe(false)
  isWilling = true
  expect(await visits.allow(refusal('a', 'b'))).toBe(true)
  expect(asked()).toEqual([['a', 'b'], ['b']])
})

test('where they have agreed before, there is a pause, each longer than the last, and an end to them', async () => {
  const { asked, ...given } = sending()
  const visits = new RequiredVisits(given)
  const allowed: boolean[] = []
  for (let i = 0; i < 7; i += 1) allowed.push(await visits.allow(refusal('a')))
  expect(allowed).toEqual([true, true, true, true, true, true, false])
  expect(given.pause.mock.calls).toEqual([1_000, 2_000, 4_000, 8_000, 16_000].map((ms) => [ms, new Set(['a'])]))
  expect(asked()).toEqual([['a']])
})

test('nobody is asked more than three times', async () => {
  const { asked, ...given } = sending()
  const visits = new RequiredVisits(given)
  const allowed: boolean[] = []
  for (const id of ['a', 'b', 'c', 'd']) allowed.push(await visits.allow(refusal(id)))
  expect(allowed).toEqual([true, true, true, false])
  expect(asked()).toEqual([['a'], ['b'], ['c']])
})

test.each([
  ['another error', new ProtocolError(-32602, 'No', refusal('a').data)],
  ['a failure', new Error('No')],
  ['no page', refusal()],
  ['no data', new ProtocolError(-32042, 'Not yet')],
])('%s allows nothing', async (_what, error) => {
  const { asked, ...given } = sending()
  expect(await new RequiredVisits(given).allow(error)).toBe(false)
  expect(asked()).toEqual([])
  expect(given.pause).not.toHaveBeenCalled()
})
