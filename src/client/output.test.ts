import { describe, expect, test } from 'vitest'
import { compileOutputCheck } from './output.ts'

const check = (schema: object, value: unknown): string[] =>
  compileOutputCheck(schema as Record<string, unknown>, 'The output')(value)

describe('a structured result', () => {
  test('is held against the schema of its tool', () => {
    const schema = { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] }
    expect(check(schema, { sum: 3 })).toEqual([])
    expect(check(schema, { sum: '3' })).toEqual(['/sum must be number'])
    expect(check(schema, {})).toEqual(["must have required property 'sum'"])
  })

  test('may refer to parts of its schema, and to itself', () => {
    const schema = {
      $defs: { tree: { type: 'object', properties: { left: { $ref: '#/$defs/tree' }, value: { type: 'number' } } } },
      $ref: '#/$defs/tree',
    }
    expect(check(schema, { left: { left: { value: 1 } } })).toEqual([])
    expect(check(schema, { left: { left: { value: 'one' } } })).toEqual(['/left/left/value must be number'])
  })

  test('is never matched against a pattern of the server, which may take for ever', () => {
    const evil = { type: 'string', pattern: '^(a+)+$' }
    const text = `${'a'.repeat(50)}!`
    expect(check(evil, text)).toEqual([])
    expect(check({ properties: { pattern: evil } }, { pattern: text })).toEqual([])
    expect(check({ properties: { pattern: { type: 'number' } } }, { pattern: text })).toEqual([
      '/pattern must be number',
    ])
    expect(check({ propertyNames: evil }, { [text]: 1 })).toEqual([])
    const names = { patternProperties: { '^(a+)+$': { type: 'number' } }, additionalProperties: false }
    expect(check(names, { [text]: 1 })).toEqual([])
    expect(check({ allOf: [names], unevaluatedProperties: false }, { [text]: 1 })).toEqual([])
  })

  test('leaves the schema as it was', () => {
    const schema = { type: 'string', pattern: '^a' }
    check(schema, 'b')
    expect(schema).toEqual({ type: 'string', pattern: '^a' })
  })

  test('whose check would take for ever is cut off', () => {
    const $defs: Record<string, object> = { d0: { type: 'object' } }
    for (let i = 1; i <= 40; i += 1) {
      $defs[`d${i}`] = { allOf: [{ $ref: `#/$defs/d${i - 1}` }, { $ref: `#/$defs/d${i - 1}` }] }
    }
    expect(check({ $defs, $ref: '#/$defs/d40' }, {})).toEqual(['takes longer than 500 ms to check'])
    expect(check({ type: 'object' }, {})).toEqual([])
  })

  test.each([
    ['refers to the network', { $ref: 'https://evil.example/schema.json' }],
    ['is no schema', { type: 'nonsense' }],
    ['is of an unknown dialect', { $schema: 'https://evil.example/dialect' }],
  ])('cannot be checked where the schema %s', (_what, schema) => {
    expect(() => check(schema, {})).toThrow('The output')
  })
})
