import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonical, digest } from './canonical.ts'

describe('canonical', () => {
  // Section 3.2.2 and 3.2.3 of RFC 8785, and the numbers of its appendix B.
  it.each([
    [
      String.raw`{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`,
      String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
    ],
    [
      String.raw`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`,
      `{"\\r":"Carriage Return","1":"One","\u0080":"Control","ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign","😀":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}`,
    ],
    [
      '[0, 5e-324, 1.7976931348623157e308, 9007199254740992, 295147905179352830000, 1e21, 9.999999999999997e22, 1e-7]',
      '[0,5e-324,1.7976931348623157e+308,9007199254740992,295147905179352830000,1e+21,9.999999999999997e+22,1e-7]',
    ],
    ['{"10":1,"9":2,"1":3}', '{"1":3,"10":1,"9":2}'],
    ['{"b":{},"a":[[],{"d":1,"c":[{}]}]}', '{"a":[[],{"c":[{}],"d":1}],"b":{}}'],
    ['"\\ud800"', '"\\ud800"'],
  ])('writes %s as RFC 8785 does', (given, expected) => {
    expect(canonical(JSON.parse(given))).toBe(expected)
  })

  it('tells negative zero from zero, as a handler can', () => {
    expect(canonical(JSON.parse('{"a":[-0,0,-0.0,-0e5]}'))).toBe('{"a":[-0,0,-0,-0]}')
  })

  it('gives one text to values that differ in the order of their keys only', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = canonical(value)
        expect(canonical(reversed(value))).toBe(text)
        expect(canonical(JSON.parse(text))).toBe(text)
        // Written by JSON.stringify, -0 is 0.
        expect(JSON.parse(JSON.stringify(JSON.parse(text)))).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
  })

  it('treats __proto__ as a key like any other', () => {
    expect(canonical(JSON.parse('{"b":1,"__proto__":{"a":2}}'))).toBe('{"__proto__":{"a":2},"b":1}')
    expect(canonical({})).toBe('{}')
  })

  it('leaves undefined properties out, as JSON.stringify does', () => {
    expect(canonical({ b: undefined, a: 1, c: undefined })).toBe('{"a":1}')
  })

  it.each([[Number.NaN], [JSON.parse('1e999')], [undefined], [[undefined]], [1n], [Symbol('s')], [() => 1]])(
    'refuses %s, which JSON can not say',
    (value) => {
      expect(() => canonical(value)).toThrow(expect.objectContaining({ code: 'NOT_JSON' }))
    },
  )

  it.each([
    ['arrays', '[', ']'],
    ['objects', '{"a":', '}'],
  ])('takes 128 levels of %s and no more', (_kind, open, close) => {
    const nested = (levels: number): unknown => JSON.parse(`${open.repeat(levels)}1${close.repeat(levels)}`)
    expect(canonical(nested(128))).toHaveLength(128 * (open.length + close.length) + 1)
    expect(() => canonical(nested(129))).toThrow(expect.objectContaining({ code: 'TOO_DEEP' }))
    expect(() => canonical(nested(5_000))).toThrow(expect.objectContaining({ code: 'TOO_DEEP' }))
  })
})

describe('digest', () => {
  it('is the head of a base64url SHA-256', () => {
    expect(digest('{}')).toBe('RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o'.slice(0, 22))
  })
})

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed)
  if (typeof value !== 'object' || value === null) return value
  const pairs = Object.entries(value).toReversed()
  return Object.fromEntries(pairs.map(([key, inner]) => [key, reversed(inner)]))
}
