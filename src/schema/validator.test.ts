import * as fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { RallyError } from '../protocol/errors.ts'
import { compileJsonSchema } from './validator.ts'

const WHERE = 'The input of tool "deploy"'

function refusal(schema: Record<string, unknown>): string {
  try {
    compileJsonSchema(schema, WHERE)
  } catch (error) {
    if (error instanceof RallyError && error.code === 'SCHEMA_INVALID') return error.message
    throw error
  }
  return 'was accepted'
}

function nested(levels: number): Record<string, unknown> {
  let schema: Record<string, unknown> = { type: 'string' }
  for (let level = 1; level < levels; level++) schema = { type: 'object', properties: { a: schema } }
  return schema
}

function named(type: string): Record<string, unknown> {
  return {
    $id: 'https://example.com/same',
    properties: { a: { $ref: 'tag' } },
    $defs: { tag: { $id: 'tag', type } },
  }
}

const deploy = {
  type: 'object',
  properties: {
    env: { type: 'string', minLength: 2, format: 'email' },
    color: { enum: ['red', 'green'] },
    tags: { type: 'array', items: { $ref: '#/$defs/tag' } },
  },
  required: ['env'],
  additionalProperties: false,
  $defs: { tag: { type: 'string' } },
}

const tree = {
  type: 'object',
  properties: { children: { type: 'array', items: { $ref: '#' } } },
  additionalProperties: false,
}

const engines = [
  { engine: 'where code may be generated', forbidden: false },
  { engine: 'where code generation is forbidden', forbidden: true },
]

describe.each(engines)('compileJsonSchema, $engine', ({ forbidden }) => {
  beforeEach(() => {
    if (!forbidden) return
    vi.stubGlobal('Function', function Forbidden() {
      throw new EvalError('Code generation from strings disallowed for this context')
    })
  })
  afterEach(() => {
    vi.unstubAllGlobals()
  })

  test.each([
    { value: { env: 'prod' } },
    { value: { env: 'prod', color: 'red', tags: ['a'] } },
    // Formats are for people; a validator that went by them would refuse what the author accepts.
    { value: { env: 'no email' } },
  ])('accepts $value', ({ value }) => {
    expect(compileJsonSchema(deploy, WHERE)(value)).toEqual([])
  })

  test.each([
    { value: { env: 1 }, place: '/env ' },
    { value: {}, place: /"?'?env'?"?$/ },
    { value: { env: 'x' }, place: '/env ' },
    { value: { env: 'prod', color: 'blue' }, place: '/color ' },
    { value: { env: 'prod', tags: ['a', 2] }, place: '/tags/1 ' },
    { value: { env: 'prod', extra: 1 }, place: 'extra' },
    { value: 'text', place: 'object' },
    { value: null, place: 'object' },
    { value: undefined, place: '' },
  ])('says what is wrong with $value', ({ value, place }) => {
    const problems = compileJsonSchema(deploy, WHERE)(value)
    expect(problems).not.toEqual([])
    expect(problems.join('\n')).toMatch(place)
  })

  test('takes draft-07 where the schema says so', () => {
    const tuple = { type: 'array', items: [{ type: 'string' }], additionalItems: false }
    const validate = compileJsonSchema({ $schema: 'http://json-schema.org/draft-07/schema#', ...tuple }, WHERE)
    expect(validate(['a'])).toEqual([])
    expect(validate(['a', 'b'])).not.toEqual([])
  })

  test('takes draft 2020-12 otherwise', () => {
    const tuple = { type: 'array', prefixItems: [{ type: 'string' }], items: false }
    const $schema = 'https://json-schema.org/draft/2020-12/schema'
    for (const schema of [tuple, { $schema, ...tuple }]) {
      expect(compileJsonSchema(schema, WHERE)(['a'])).toEqual([])
      expect(compileJsonSchema(schema, WHERE)(['a', 'b'])).not.toEqual([])
    }
  })

  test.each([
    'https://example.com/address.json',
    'http://127.0.0.1:1/schema',
    'other.json',
    '#/$defs/missing',
    '#nowhere',
    'https://json-schema.org/draft/2020-12/schema',
  ])('refuses a reference to %s, and fetches nothing', ($ref) => {
    const fetch = vi.fn<typeof globalThis.fetch>()
    vi.stubGlobal('fetch', fetch)
    expect(refusal({ type: 'object', properties: { a: { $ref } } })).toContain(`can't resolve reference ${$ref}`)
    expect(fetch).not.toHaveBeenCalled()
  })

  test('finds references by name inside the schema', () => {
    const schema = {
      $id: 'https://example.com/root',
      properties: { a: { $ref: 'https://example.com/tag' }, b: { $ref: '#tag' } },
      $defs: { tag: { $id: '/tag', type: 'string' }, anchored: { $anchor: 'tag', type: 'string' } },
    }
    expect(compileJsonSchema(schema, WHERE)({ a: 'x', b: 'y' })).toEqual([])
    expect(compileJsonSchema(schema, WHERE)({ a: 1 })).not.toEqual([])
    expect(compileJsonSchema(schema, WHERE)({ b: 1 })).not.toEqual([])
  })

  test('follows a schema that refers to itself', () => {
    const validate = compileJsonSchema(tree, WHERE)
    expect(validate({ children: [{ children: [] }] })).toEqual([])
    expect(validate({ children: [{ children: [1] }] })).not.toEqual([])
  })

  test('never throws, however deep the value', () => {
    let value = {}
    for (let level = 0; level < 100_000; level++) value = { children: [value] }
    expect(compileJsonSchema(tree, WHERE)(value)).toEqual(['is nested too deeply to be checked'])
    expect(compileJsonSchema({ $ref: '#' }, WHERE)({})).toEqual(['is nested too deeply to be checked'])
  })

  test('never throws, whatever the value', () => {
    const validate = compileJsonSchema(deploy, WHERE)
    fc.assert(
      fc.property(fc.anything({ withBigInt: true, withNullPrototype: true }), (value) => {
        expect(() => validate(value)).not.toThrow()
      }),
    )
  })

  test('does not take an inherited property for one of the value', () => {
    const validate = compileJsonSchema({ type: 'object', required: ['constructor'] }, WHERE)
    expect(validate({})).not.toEqual([])
    expect(validate({ constructor: 1 })).toEqual([])
  })

  test('keeps what was compiled when the author changes the schema later', () => {
    const schema = { type: 'object', properties: { a: { enum: ['x'] } } }
    const validate = compileJsonSchema(schema, WHERE)
    schema.properties.a.enum.push('y')
    expect(validate({ a: 'y' })).not.toEqual([])
    expect(Object.getOwnPropertyNames(schema)).toEqual(['type', 'properties'])
  })

  test('keeps the names of two schemas apart', () => {
    expect(compileJsonSchema(named('string'), WHERE)({ a: 'x' })).toEqual([])
    expect(compileJsonSchema(named('number'), WHERE)({ a: 'x' })).not.toEqual([])
    expect(refusal({ properties: { a: { $ref: 'https://example.com/tag' } } })).toContain("can't resolve")
  })

  test('cuts a hostile property name short', () => {
    const [problem] = compileJsonSchema({ additionalProperties: false }, WHERE)({ ['x'.repeat(100_000)]: 1 })
    expect(problem?.length).toBeLessThan(400)
  })
})

test('problems read well', () => {
  const validate = compileJsonSchema(deploy, WHERE)
  expect(validate({ env: 1 })).toEqual(['/env must be string'])
  expect(validate({})).toEqual(["must have required property 'env'"])
  expect(validate({ env: 'prod', extra: 1 })).toEqual(['must NOT have additional properties: "extra"'])
  expect(validate({ env: 'prod', color: 'blue' })).toEqual([
    '/color must be equal to one of the allowed values: ["red","green"]',
  ])
})

describe('a schema is refused', () => {
  test.each([
    { name: 'of another draft', schema: { $schema: 'http://json-schema.org/draft-04/schema#' }, why: 'draft-07' },
    {
      name: 'with a broken "$schema"',
      schema: { $schema: 7 },
      why: '"$schema" must be draft 2020-12 or draft-07, got 7',
    },
    { name: 'with an unknown type', schema: { type: 'strnig' }, why: 'type must be equal to one of' },
    { name: 'with a malformed keyword', schema: { minLength: 'two' }, why: 'minLength must be integer' },
    { name: 'with a broken pattern', schema: { pattern: '(' }, why: 'Invalid regular expression' },
    { name: 'that is asynchronous', schema: { $async: true, type: 'string' }, why: 'Remove it' },
    { name: 'past 64 levels', schema: nested(65), why: 'nested past 64 levels' },
    {
      name: 'of more than 2000 parts',
      schema: { allOf: Array.from({ length: 2000 }, () => ({})) },
      why: 'more than 2000',
    },
  ])('$name', ({ schema, why }) => {
    expect(refusal(schema)).toContain(WHERE)
    expect(refusal(schema)).toContain(why)
  })

  test('but not at 64 levels, nor of 2000 parts', () => {
    expect(refusal(nested(64))).toBe('was accepted')
    expect(refusal({ allOf: Array.from({ length: 1999 }, () => ({})) })).toBe('was accepted')
  })

  test('an error of the validator itself is not shown to the caller', () => {
    const [problem] = compileJsonSchema({ const: {} }, WHERE)({ toString: 0 })
    expect(problem).toBe('cannot be checked')
  })

  test('but not for data or property names that look like schemas', () => {
    const properties = Object.fromEntries(
      ['enum', 'properties', '$async', '$ref'].map((name) => [name, { type: 'string' }]),
    )
    const schema = {
      properties,
      enum: Array.from({ length: 3000 }, () => ({ a: { b: {} } })),
      default: { $async: true },
    }
    expect(refusal(schema)).toBe('was accepted')
  })
})
