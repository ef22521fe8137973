import { expect, test, vi } from 'vitest'
import type { Reply } from '../server/reply.ts'
import type { BodyReading, LoadLimits, Served } from './load.ts'
import { Load, loadLimits } from './load.ts'

const MIB = 1024 * 1024

function reading(load: Load, received: number, limits: LoadLimits, refused: string[], name: string): BodyReading {
  load.bytes.take(received)
  const body: BodyReading = {
    limits,
    received,
    bodyDeadline: 0,
    bodyBefore: undefined,
    bodyAfter: undefined,
    refuseBody: ({ status }: Reply) => {
      load.bytes.release(received)
      refused.push(`${name} ${status}`)
    },
  }
  load.beginBody(body)
  return body
}

function served(): Served {
  return { servedBytes: undefined }
}

test('past the bytes of all bodies the largest that is being read is refused, and one of up to 16 KiB never', () => {
  const load = new Load()
  const limits = loadLimits({ maxBufferedBytes: 4 * MIB }, MIB)
  const refused: string[] = []
  reading(load, 2 * MIB, limits, refused, 'large')
  reading(load, MIB, limits, refused, 'middle')
  load.makeRoom(limits)
  expect(refused).toEqual([])
  reading(load, 1.5 * MIB, limits, refused, 'last')
  load.makeRoom(limits)
  expect(refused).toEqual(['large 503'])
  load.enter(served(), 4 * MIB)
  reading(load, 16 * 1024, limits, refused, 'small')
  load.makeRoom(limits)
  expect(refused).toEqual(['large 503', 'last 503', 'middle 503'])
})

test('a request counts from its body to its reply, and once', () => {
  const load = new Load()
  const limits = loadLimits({ maxInFlight: 2 }, MIB)
  const [first, second] = [served(), served()]
  load.enter(first, 100)
  expect(load.refusal(limits)).toBeUndefined()
  load.enter(second, 100)
  expect(load.refusal(limits)).toMatchObject({ status: 503, headers: { 'Retry-After': '1' } })
  load.leave(first)
  load.leave(first)
  expect(load.refusal(limits)).toBeUndefined()
  expect(load.bytes.used).toBe(100)
})

test('a body that has not ended in time is refused with 408, and its timer ends', () => {
  vi.useFakeTimers()
  try {
    const load = new Load()
    const limits = loadLimits({ bodyMs: 1_000 }, MIB)
    const refused: string[] = []
    load.endBody(reading(load, 10, limits, refused, 'ended'))
    reading(load, 10, limits, refused, 'slow')
    vi.advanceTimersByTime(900)
    expect(refused).toEqual([])
    vi.advanceTimersByTime(400)
    expect(refused).toEqual(['slow 408'])
    vi.advanceTimersByTime(60_000)
    expect(vi.getTimerCount()).toBe(0)
  } finally {
    vi.useRealTimers()
  }
})

test.each(['maxInFlight', 'maxLagMs', 'maxBufferedBytes', 'bodyMs'])('%s must be a number above 0', (name) => {
  expect(() => loadLimits({ [name]: 0 }, MIB)).toThrow(`\`${name}\` must be a number above 0, got 0.`)
  expect(() => loadLimits({ [name]: Number.NaN }, MIB)).toThrow(`\`${name}\` must be a number above 0, got`)
})
