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

function served(limits: LoadLimits, principal?: string): Served {
  return { limits, caller: principal === undefined ? undefined : { principal }, servedBytes: undefined, holds: 0 }
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
  load.enter(served(limits), 4 * MIB)
  reading(load, 16 * 1024, limits, refused, 'small')
  load.makeRoom(limits)
  expect(refused).toEqual(['large 503', 'last 503', 'middle 503'])
})

test('a request counts from its body to its reply, and once', () => {
  const load = new Load()
  const limits = loadLimits({ maxInFlight: 2 }, MIB)
  const [first, second] = [served(limits), served(limits)]
  load.enter(first, 100)
  expect(load.refusal(limits)).toBeUndefined()
  load.enter(second, 100)
  expect(load.refusal(limits)).toMatchObject({ status: 503, headers: { 'Retry-After': '1' } })
  load.leave(first)
  load.leave(first)
  expect(load.refusal(limits)).toBeUndefined()
  expect(load.bytes.used).toBe(100)
})

test('a request that waits keeps its bytes, and counts as served no more', () => {
  const load = new Load()
  const limits = loadLimits({ maxInFlight: 1, maxBufferedBytes: 800 }, 100)
  const request = served(limits, 'ann')
  load.enter(request, 60)
  expect(load.hold(request)).toBeUndefined()
  expect(load.refusal(limits)).toBeUndefined()
  expect(load.keep(request, 40)).toBeUndefined()
  // Two parts of it wait. Its reply has been sent.
  expect(load.hold(request)).toBeUndefined()
  load.leave(request)
  load.release(request)
  expect([load.bytes.used, limits.held.used]).toEqual([100, 100])
  expect(load.keep(request, 1)).toContain('one caller may use 100 of 400')
  load.release(request)
  expect([load.bytes.used, limits.held.used]).toEqual([0, 0])
})

test('requests that wait may keep half of the bytes, and those of one principal a quarter of that', () => {
  const load = new Load()
  const limits = loadLimits({ maxBufferedBytes: 800 }, 100)
  const hold = (principal: string | undefined, bytes: number): string | undefined => {
    const request = served(limits, principal)
    load.enter(request, bytes)
    const why = load.hold(request)
    load.leave(request)
    return why
  }
  expect(hold('ann', 100)).toBeUndefined()
  expect(hold('ann', 1)).toBe(
    'Too many bytes of requests that wait: one caller may use 100 of 400, which is half of `maxBufferedBytes`. Send less with each, or have fewer wait.',
  )
  expect(hold(undefined, 300)).toBeUndefined()
  expect(hold('bob', 1)).toBe(
    'Too many bytes of requests that wait: all 400 are in use, which is half of `maxBufferedBytes`. Try again later.',
  )
  expect(load.bytes.used).toBe(400)
})

test('one principal may use half of what is served, and callers without one all of it', () => {
  const load = new Load()
  const limits = loadLimits({ maxInFlight: 4, maxBufferedBytes: 1_000 }, 100)
  const requests = [served(limits, 'ann'), served(limits, 'ann'), served(limits), served(limits)]
  for (const request of requests.slice(0, 3)) load.enter(request, 100)
  expect(load.refusalOf('ann', 100, limits)).toMatchObject({
    status: 503,
    headers: { 'Retry-After': '1' },
    text: expect.stringContaining('one caller may use half of 4 requests at a time (`maxInFlight`)'),
  })
  expect(load.refusalOf('bob', 100, limits)).toBeUndefined()
  for (const request of requests) load.leave(request)
  expect(load.refusalOf('ann', 100, limits)).toBeUndefined()
  load.enter(served(limits, 'ann'), 450)
  expect(load.refusalOf('ann', 51, limits)).toMatchObject({
    status: 503,
    text: expect.stringContaining('may take half of 1000 bytes (`maxBufferedBytes`)'),
  })
  expect(load.refusalOf('bob', 500, limits)).toBeUndefined()
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
