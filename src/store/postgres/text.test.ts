import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { asName, fromText, toName, toSpan, toText } from './text.ts'

describe('a text', () => {
  const units = fc.array(fc.oneof(fc.constantFrom(0, 0xe000, 0x30, 0xd800, 0xdc00), fc.nat(0xffff)))
  const texts = units.map((codes) => String.fromCharCode(...codes))

  test('comes back unchanged, and is written so that a column can hold it', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const written = toText('text', text)
        expect(fromText(written)).toBe(text)
        expect(written.isWellFormed() && !written.includes('\0')).toBe(true)
      }),
    )
  })

  test('comes back unchanged when parts of it were put together as they were written', () => {
    fc.assert(
      fc.property(texts, texts, (one, other) => {
        expect(fromText(`${toText('one', one)},${toText('other', other)}`)).toBe(`${one},${other}`)
      }),
    )
  })

  test('that is JSON is written as it is', () => {
    fc.assert(
      fc.property(fc.json(), (json) => {
        fc.pre(!json.includes('\ue000'))
        expect(toText('json', json)).toBe(json)
      }),
    )
  })

  test('that is too long is refused, with what it is and how long it may be', () => {
    expect(() => toText('outcome', 'x'.repeat(64 * 1024 * 1024 + 1))).toThrow(
      /outcome must be at most 67108864 characters, got 67108865/,
    )
  })
})

describe('a name', () => {
  test.each([
    { what: '1 024 letters', name: 'x'.repeat(1024), fits: true },
    { what: '1 025 letters', name: 'x'.repeat(1025), fits: false },
    { what: '512 letters of two bytes', name: '\u00e4'.repeat(512), fits: true },
    { what: '513 letters of two bytes', name: '\u00e4'.repeat(513), fits: false },
    { what: 'a few NULs, which take more room', name: '\0'.repeat(200), fits: false },
  ])('of $what fits: $fits', ({ name, fits }) => {
    expect(asName(name) !== undefined).toBe(fits)
    if (!fits) expect(() => toName('owner', name)).toThrow(/the owner must be at most 1024 bytes/)
  })
})

test.each([
  { ms: 0, span: 0 },
  { ms: 0.2, span: 1 },
  { ms: 1000, span: 1000 },
  { ms: Number.MAX_VALUE, span: 1e15 },
  { ms: Infinity, span: 1e15 },
])('a span of $ms ms is $span whole ones', ({ ms, span }) => {
  expect(toSpan(ms)).toBe(span)
})
