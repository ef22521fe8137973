import { runInNewContext } from 'node:vm'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { RallyError } from './errors.ts'
import { toJsonText, isTame } from './json.ts'

class Point {
  x = 1
}

function nested(levels: number): unknown {
  let value: unknown = 1
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { value }
  return value
}

function refusal(value: unknown): string {
  try {
    toJsonText(value, 'step "plan"')
  } catch (error) {
    if (error instanceof RallyError && error.code === 'NOT_JSON') return error.message
    throw error
  }
  return 'was accepted'
}

describe('toJsonText', () => {
  test('gives every JSON value back as it was', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 8 }), (value) => {
        expect(JSON.parse(toJsonText(value, 'here'))).toEqual(withoutNegativeZero(value))
      }),
    )
  })

  test('never loses anything: what it accepts comes back equal', () => {
    const anything = fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withSparseArray: true,
      withTypedArray: true,
      withNullPrototype: true,
      withBoxedValues: true,
    })
    fc.assert(
      fc.property(anything, (value) => {
        if (refusal(value) !== 'was accepted') return
        // `toEqual` lets a dropped `undefined` property and a null prototype pass, which is what JSON may do.
        expect(JSON.parse(toJsonText(value, 'here'))).toEqual(withoutNegativeZero(value))
      }),
      { numRuns: 2000 },
    )
  })

  test.each([
    { value: { items: [0, 1, 2, { when: new Date(0) }] }, path: '$.items[3].when', hint: 'toISOString()' },
    { value: new Map([[1, 2]]), path: '$ is', hint: 'Object.fromEntries' },
    { value: { tags: new Set() }, path: '$.tags', hint: '[...set]' },
    { value: { size: 1n }, path: '$.size', hint: 'Use a string' },
    { value: { run: () => 1 }, path: '$.run', hint: 'is a function' },
    { value: [Symbol('s')], path: '$[0]', hint: 'is a symbol' },
    { value: { at: new Point() }, path: '$.at', hint: 'instance of Point' },
    { value: { when: Promise.resolve() }, path: '$.when', hint: 'Await it' },
    { value: { failure: new TypeError('no') }, path: '$.failure', hint: 'Use its message' },
    { value: { ratio: Number.NaN }, path: '$.ratio', hint: 'is NaN' },
    { value: -Infinity, path: '$ is -Infinity', hint: 'Use null' },
    { value: [undefined], path: '$[0]', hint: 'Use null' },
    // oxlint-disable-next-line no-sparse-arrays
    { value: [1, , 3], path: '$[1]', hint: 'is undefined' },
    { value: undefined, path: '$ is undefined', hint: 'leave it out' },
    { value: { bytes: new Uint8Array(2) }, path: '$.bytes', hint: 'base64' },
    { value: { bytes: Buffer.from('x') }, path: '$.bytes', hint: '(Buffer)' },
    { value: { 'a b': { deep: new Point() } }, path: '$["a b"].deep', hint: 'Point' },
  ])('refuses $path, naming the place and what to do', ({ value, path, hint }) => {
    expect(refusal(value)).toContain('step "plan": $')
    expect(refusal(value)).toContain(path)
    expect(refusal(value)).toContain(hint)
  })

  test('drops a property that is undefined', () => {
    expect(toJsonText({ a: undefined, b: 1 }, 'here')).toBe('{"b":1}')
  })

  test('takes plain objects of another realm and objects without a prototype', () => {
    expect(toJsonText(runInNewContext('({ a: [{ b: 1 }] })'), 'here')).toBe('{"a":[{"b":1}]}')
    expect(toJsonText(Object.assign(Object.create(null), { a: 1 }), 'here')).toBe('{"a":1}')
  })

  test('knows a Date of another realm', () => {
    expect(refusal(runInNewContext('new Date(0)'))).toContain('toISOString()')
  })

  test('takes 256 levels and no more', () => {
    expect(refusal(nested(256))).toBe('was accepted')
    expect(refusal(nested(257))).toContain('nested past 256 levels')
  })

  test('refuses a cycle with a message of sensible length', () => {
    const cycle: Record<string, unknown> = {}
    cycle['self'] = { back: [cycle] }
    expect(refusal(cycle)).toContain('refers back to itself')
    expect(refusal(cycle).length).toBeLessThan(500)
  })
})

describe('isTame', () => {
  test.each(['{"a":1e999}', '[[-1e999]]'])('says no to %s, a number that is none here', (text) => {
    expect(isTame(JSON.parse(text), 10)).toBe(false)
  })

  test.each([
    { value: 'text', depth: 0 },
    { value: null, depth: 0 },
    { value: {}, depth: 1 },
    { value: [[]], depth: 2 },
    { value: { a: 1, b: { c: [1] } }, depth: 3 },
  ])('counts $value as $depth deep', ({ value, depth }) => {
    expect(isTame(value, depth)).toBe(true)
    expect(isTame(value, depth - 1)).toBe(depth === 0)
  })

  test('survives a depth that no recursion would', () => {
    const hostile: unknown = JSON.parse(`${'['.repeat(5_000)}${']'.repeat(5_000)}`)
    expect(isTame(hostile, 64)).toBe(false)
    expect(isTame(nested(1_000_000), 1_000_000)).toBe(true)
  })

  test('ends on a cycle', () => {
    const cycle: unknown[] = []
    cycle.push(cycle, cycle)
    expect(isTame(cycle, 1000)).toBe(false)
  })

  test('agrees with a recursive count', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), fc.nat(8), (value, max) => {
        expect(isTame(value, max)).toBe(depthOf(value) <= max)
      }),
    )
  })
})

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(depthOf))
}

function withoutNegativeZero(value: unknown): unknown {
  if (Object.is(value, -0)) return 0
  if (Array.isArray(value)) return value.map(withoutNegativeZero)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, withoutNegativeZero(child)]))
}
