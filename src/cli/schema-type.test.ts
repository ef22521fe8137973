import { expect, test } from 'vitest'
import { docOf, TypeFile } from './schema-type.ts'

/** The type on one line, and the declarations beside it. */
function written(schema: Record<string, unknown>): string {
  const file = new TypeFile()
  const type = file.typeOf(schema, 'x', '')
  return [type, ...file.declarations.toReversed()].map((text) => text.replaceAll(/\s+/g, ' ')).join(' ; ')
}

const of = (name: string, $ref = `#/$defs/${name}`) => ({ $ref })

test.each([
  [{}, 'unknown'],
  [{ type: 'string' }, 'string'],
  [{ type: 'integer', minimum: 1 }, 'number'],
  [{ type: ['string', 'null'] }, 'string | null'],
  [{ type: 'string', nullable: true }, 'string | null'],
  [{ const: -1 }, '-1'],
  [{ const: { a: [1, null] } }, '{ a: [1, null] }'],
  [{ enum: ['a', 'b"c', 3, true, null] }, String.raw`"a" | "b\"c" | 3 | true | null`],
  [{ type: 'string', enum: ['a'] }, '"a"'],
  [{ enum: [] }, 'never'],
  [{ enum: Array.from({ length: 600 }, (_, index) => `v${index}`) }, 'string'],
  [{ anyOf: [{ type: 'string' }, { type: 'number' }] }, 'string | number'],
  [{ oneOf: [{ type: 'string' }, {}] }, 'unknown'],
  [{ not: { type: 'string' } }, 'unknown'],
  [{ type: 'array' }, 'unknown[]'],
  [{ type: 'array', items: { type: ['string', 'number'] } }, '(string | number)[]'],
  [{ type: 'array', items: { const: -1 } }, '-1[]'],
  [{ type: 'array', items: false }, '[]'],
  [{ prefixItems: [{ type: 'string' }, { type: 'number' }], items: false, minItems: 1 }, '[string, number?]'],
  [{ type: 'array', items: [{ type: 'string' }], additionalItems: { type: 'number' } }, '[string?, ...number[]]'],
  [{ type: 'object' }, '{ [key: string]: unknown }'],
  [{ type: 'object', additionalProperties: false }, '{ [key: string]: never }'],
  [{ additionalProperties: { type: 'number' } }, '{ [key: string]: number }'],
  [{ patternProperties: { '^a': { type: 'number' } }, type: 'object' }, '{ [key: string]: unknown }'],
  [
    { patternProperties: { '^a': { type: 'number' } }, type: 'object', additionalProperties: false },
    '{ [key: string]: number }',
  ],
  [
    { properties: { a: { type: 'string' }, 'b-c': {} }, required: ['a', 'd'] },
    '{ a: string "b-c"?: unknown d: unknown }',
  ],
  [
    { properties: { a: { type: 'string' } }, additionalProperties: { type: 'number' } },
    '{ a?: string [key: string]: unknown }',
  ],
  [
    { properties: { a: { type: 'string', description: 'The a.', deprecated: true } } },
    '{ /** * The a. * @deprecated */ a?: string }',
  ],
  [
    { type: 'object', properties: { a: {} }, anyOf: [{ required: ['a'] }, { required: ['b'] }] },
    '({ a: unknown } | { b: unknown }) & { a?: unknown }',
  ],
  [{ properties: { a: of('A') }, $defs: { A: { type: 'string' } } }, '{ a?: XA } ; type XA = string'],
  [{ properties: { a: { $ref: 'https://example.com/a.json' } } }, '{ a?: unknown }'],
  [{ properties: { a: of('gone') } }, '{ a?: unknown }'],
  [{ properties: { again: { $ref: '#' } } }, '{ again?: X } ; type X = { again?: X }'],
])('%j is %s', (schema, text) => {
  expect(written(schema)).toBe(text)
})

test('a reference that leads only to itself is unknown, and one through an object or an array is a type of its own', () => {
  const $defs = {
    self: of('self'),
    a: { anyOf: [of('b'), { type: 'string' }] },
    b: { anyOf: [of('a'), { type: 'number' }] },
    list: { type: 'array', items: of('list') },
  }
  expect(written({ properties: { x: of('self') }, $defs })).toBe('{ x?: XSelf } ; type XSelf = unknown')
  expect(written({ properties: { x: of('a') }, $defs })).toBe('{ x?: XA } ; type XA = unknown')
  expect(written({ properties: { x: of('list') }, $defs })).toBe('{ x?: XList } ; type XList = XList[]')
})

test('names that are alike stay apart', () => {
  const $defs = { 'a-b': { type: 'string' }, 'a b': { type: 'number' }, 'a_b 2': { type: 'null' } }
  const properties = { x: of('a-b'), y: of('a b'), z: of('a_b 2') }
  expect(written({ properties, $defs })).toBe(
    '{ x?: XAB y?: XAB_2 z?: XAB2 } ; type XAB = string ; type XAB_2 = number ; type XAB2 = null',
  )
})

test('a schema that stands for endlessly many types ends', () => {
  const doubled = Object.fromEntries(
    Array.from({ length: 40 }, (_, index) => [`d${index}`, { anyOf: [of(`d${index + 1}`), of(`d${index + 1}`)] }]),
  )
  expect(written({ properties: { x: of('d0') }, $defs: doubled })).toContain('type XD0 = unknown')
  const chain = Object.fromEntries(
    Array.from({ length: 30_000 }, (_, index) => [`d${index}`, { properties: { next: of(`d${index + 1}`) } }]),
  )
  const file = new TypeFile()
  file.typeOf({ properties: { x: of('d0') }, $defs: chain }, 'x', '')
  expect(file.declarations.length).toBeLessThanOrEqual(20_000)
  let deep: Record<string, unknown> = {}
  for (let level = 0; level < 5_000; level += 1) deep = { type: 'array', items: deep }
  expect(written(deep)).toBe(`unknown${'[]'.repeat(31)}`)
})

test('no text can leave its comment, or give the compiler an order', () => {
  const doc = docOf(['a *\u001B[0m/ evil(); /*\n@ts-ignore\u2028b\u202E'], '')
  expect(doc).toBe(String.raw`/**
 * a *\/ evil(); /*
 * @ ts-ignore\u{2028}b\u{202e}
 */
`)
  expect(docOf(['x'.repeat(5_000)], '').length).toBeLessThan(2_100)
})
