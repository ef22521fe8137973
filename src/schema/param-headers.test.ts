import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { RallyError } from '../protocol/errors.ts'
import { jsonSchemaOf } from './standard.ts'
import { headersOf, paramHeaders } from './param-headers.ts'

const HEADER = 'x-mcp-header'

const object = (properties: object, more: object = {}): Record<string, unknown> => ({
  type: 'object',
  properties,
  ...more,
})
const under = (keyword: string, schema: object): Record<string, unknown> => object({}, { [keyword]: schema })
const region = { type: 'string', [HEADER]: 'Region' }

describe('the annotated properties of a schema', () => {
  test('are found at any depth of plain properties, their headers in lower case', () => {
    const schema = object({
      region,
      query: { type: 'string' },
      place: object({ deep: object({ count: { type: 'integer', [HEADER]: 'X-Count' } }) }),
      dry: { type: 'boolean', [HEADER]: 'dry_run' },
    })
    expect(paramHeaders(schema, 't')).toEqual([
      { header: 'mcp-param-region', path: ['region'] },
      { header: 'mcp-param-x-count', path: ['place', 'deep', 'count'] },
      { header: 'mcp-param-dry_run', path: ['dry'] },
    ])
  })

  test('may come from a schema library', () => {
    const schema = z.object({ region: z.string().meta({ [HEADER]: 'Region' }), n: z.int().meta({ [HEADER]: 'N' }) })
    expect(paramHeaders(jsonSchemaOf(schema, 'input'), 't').map(({ header }) => header)).toEqual([
      'mcp-param-region',
      'mcp-param-n',
    ])
  })

  test.each([
    ['a list of types', { type: ['string', 'null'] }],
    ['null first', { type: ['null', 'integer'] }],
    ['anyOf', { anyOf: [{ type: 'boolean' }, { type: 'null' }] }],
    ['oneOf', { oneOf: [{ type: 'null' }, { type: 'string' }] }],
  ])('may be nullable, by %s', (_how, property) => {
    const schema = object({ a: { ...property, [HEADER]: 'A' } })
    const headers = paramHeaders(schema, 't')
    expect(headers).toEqual([{ header: 'mcp-param-a', path: ['a'] }])
    expect(headersOf(headers, { a: null })).toEqual([])
  })

  test('are none in a schema without the keyword, also where it is only a name or a value', () => {
    expect(paramHeaders({ type: 'object' }, 't')).toEqual([])
    const named = object(
      { [HEADER]: { type: 'number', default: { [HEADER]: 1 } }, kind: { const: { [HEADER]: 'x' } } },
      {
        $defs: { [HEADER]: { type: 'array', items: { enum: [{ [HEADER]: 1 }] } } },
        patternProperties: { [HEADER]: true },
        dependentSchemas: { [HEADER]: { type: 'object' } },
        dependentRequired: { [HEADER]: ['kind'] },
        examples: [{ [HEADER]: 1 }],
      },
    )
    expect(paramHeaders(named, 't')).toEqual([])
  })

  test.each(["!#$%&'*+-.^_`|~", '09', 'azAZ', '0'])('may have any name of RFC 9110: %s', (name) => {
    const schema = object({ a: { type: 'string', [HEADER]: name } })
    expect(paramHeaders(schema, 't')).toEqual([{ header: `mcp-param-${name.toLowerCase()}`, path: ['a'] }])
  })
})

describe('a schema that clients would drop is an error at once', () => {
  test.each(['', ' ', 'a b', 'a:b', 'a/b', 'a(b)', 'a\r\nb', 'a\nb', 'a\0', 'caf\u00e9', 7, null, true, [['a']]])(
    'where the name is no field name: %j',
    (name) => {
      const schema = object({ place: object({ a: { type: 'string', [HEADER]: name } }) })
      expect(() => paramHeaders(schema, 'find')).toThrow(RallyError)
      expect(() => paramHeaders(schema, 'find')).toThrow('The input of tool "find": x-mcp-header at place.a must be')
    },
  )

  test.each([
    ['number', { type: 'number' }],
    ['object', { type: 'object' }],
    ['array', { type: 'array' }],
    ['null', { type: 'null' }],
    ['several', { type: ['string', 'integer'] }],
    ['several and null', { type: ['string', 'integer', 'null'] }],
    ['a nullable number', { type: ['number', 'null'] }],
    ['null twice', { type: ['null', 'null'] }],
    ['a nullable number by choice', { anyOf: [{ type: 'number' }, { type: 'null' }] }],
    ['none', {}],
    ['a choice', { anyOf: [{ type: 'string' }] }],
  ])('where the type is %s', (_type, property) => {
    const schema = object({ a: { ...property, [HEADER]: 'A' } })
    expect(() => paramHeaders(schema, 'find')).toThrow('at a needs the type string, integer or boolean')
  })

  test('where two names differ in case only', () => {
    const schema = object({ region, place: object({ other: { type: 'string', [HEADER]: 'REGION' } }) })
    expect(() => paramHeaders(schema, 'find')).toThrow('x-mcp-header repeats a name')
  })

  test.each([
    ['the root', { type: 'object', [HEADER]: 'Root' }],
    ['items', object({ list: { type: 'array', items: region } })],
    ['prefixItems', object({ list: { type: 'array', prefixItems: [region] } })],
    ['contains', object({ list: { type: 'array', contains: region } })],
    ['objects in a list', object({ list: { type: 'array', items: object({ region }) } })],
    ['anyOf', object({ a: { anyOf: [region, { type: 'null' }] } })],
    ['oneOf', object({}, { oneOf: [object({ region })] })],
    ['allOf', object({}, { allOf: [object({ region })] })],
    ['not', under('not', object({ region }))],
    ['if', under('if', object({ region }))],
    ['then', under('then', object({ region }))],
    ['else', under('else', object({ region }))],
    ['a definition', object({ a: { $ref: '#/$defs/a' } }, { $defs: { a: region } })],
    ['additionalProperties', object({}, { additionalProperties: region })],
    ['patternProperties', object({}, { patternProperties: { '^a': region } })],
    ['dependentSchemas', object({}, { dependentSchemas: { a: object({ region }) } })],
    ['propertyNames', object({}, { propertyNames: region })],
  ])('where it is in %s, which plain properties do not reach', (_where, schema) => {
    expect(() => paramHeaders(schema, 'find')).toThrow(
      'The input of tool "find": x-mcp-header is in a place that no path of properties reaches.',
    )
  })
})

describe('the headers of a call', () => {
  const params = [
    { header: 'mcp-param-region', path: ['region'] },
    { header: 'mcp-param-count', path: ['place', 'count'] },
  ]

  test.each<[string, Record<string, unknown>, string[]]>([
    ['texts', { region: 'us-west1' }, ['mcp-param-region', 'us-west1']],
    ['texts that a header cannot carry', { region: ' a' }, ['mcp-param-region', '=?base64?IGE=?=']],
    ['whole numbers', { place: { count: -7 } }, ['mcp-param-count', '-7']],
    ['large numbers, written out', { place: { count: 1e21 } }, ['mcp-param-count', '1000000000000000000000']],
    ['switches', { region: false, place: { count: true } }, ['mcp-param-region', 'false', 'mcp-param-count', 'true']],
    ['nothing where the argument is absent', {}, []],
    ['nothing where the argument is null', { region: null, place: null }, []],
    ['nothing where the argument is no primitive', { region: ['a'], place: { count: {} } }, []],
    ['nothing that is only inherited', { place: 'text' }, []],
  ])('are %s', (_what, args, headers) => {
    expect(headersOf(params, args)).toEqual(headers)
  })
})

test('a schema nested too deeply to be looked through is an error, and no overflow', () => {
  let schema: Record<string, unknown> = { type: 'string' }
  for (let i = 0; i < 100_000; i += 1) schema = { type: 'object', properties: { a: schema } }
  expect(() => paramHeaders(schema, 'deep')).toThrow(
    'The input of tool "deep": the schema is nested past 256 levels. Make it flatter.',
  )
})

test('a tool has at most 100 of them, with names that fit a header', () => {
  const many = (count: number): Record<string, unknown> =>
    object(
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`p${n}`, { type: 'string', [HEADER]: `h${n}` }])),
    )
  expect(paramHeaders(many(100), 'find')).toHaveLength(100)
  expect(() => paramHeaders(many(101), 'find')).toThrow('x-mcp-header is on more than 100 properties')
  const long = object({ ['a'.repeat(10_000)]: { type: 'string', [HEADER]: 'h'.repeat(129) } })
  expect(() => paramHeaders(long, 'find')).toThrow(
    /must be a name of at most 128 letters, digits and hyphens, got "h+"/,
  )
  try {
    paramHeaders(long, 'find')
  } catch (error) {
    expect((error as Error).message.length).toBeLessThan(600)
  }
})
