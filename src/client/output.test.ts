import { describe, expect, test } from 'vitest'
import { compileOutputCheck } from './output.ts'

const check = (schema: object, value: unknown): string[] =>
  compileOutputCheck(schema as Record<string, unknown>, 'The output')(value)

const checkInSteps = (schema: object, value: unknown): string[] =>
  compileOutputCheck(schema as Record<string, unknown>, 'The output', null)(value)

/** Stops everything at once. */
const noTime = (): undefined => undefined

const refers = ($ref: string, more: object): object => ({ type: 'object', properties: { word: { $ref } }, ...more })

const many = <T>(count: number, make: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => make(n))

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

  test('is not checked by a schema whose references take long to follow: that counts as compiling', () => {
    expect(() => compileOutputCheck({ $ref: '#/missing' }, 'The output', noTime)).toThrow('takes longer than 2000 ms')
  })

  const EVIL = { type: 'string', pattern: '^(a+)+$' }

  test.each<[string, object]>([
    ['default', refers('#/default', { default: EVIL })],
    ['a const', refers('#/not/const', { not: { const: EVIL } })],
    ['an enum', refers('#/not/enum/0', { not: { enum: [EVIL] } })],
    ['examples', refers('#/examples/0', { examples: [EVIL] })],
    ['an example of OpenAPI', refers('#/example', { example: EVIL })],
    ['a list in a list of an unknown keyword', refers('#/x/0/0', { x: [[EVIL]] })],
    ['an encoded name', refers('#/%64efault', { default: EVIL })],
    ['a name that is encoded twice', refers('#/%2564efault', { default: EVIL, '%64efault': {} })],
    ['an anchor in a value', refers('#evil', { example: { ...EVIL, $anchor: 'evil' } })],
    ['an id in a value', refers('http://a/evil', { example: { ...EVIL, $id: 'http://a/evil' } })],
    [
      'a part of another schema',
      refers('b#/default', { $defs: { b: { $id: 'http://a/b', default: EVIL } }, $id: 'http://a/a' }),
    ],
  ])('is not checked by a schema that refers to %s: nobody has removed the patterns there', (_what, schema) => {
    expect(() => check(schema, { word: `${'a'.repeat(50)}!` })).toThrow('The output')
    expect(() => compileOutputCheck(schema as Record<string, unknown>, 'The output', null)).toThrow('The output')
  })

  test.each<[string, object]>([
    ['a property', { properties: { word: { $ref: '#/properties/default' }, default: EVIL } }],
    ['an anchor', refers('#name', { $defs: { a: { ...EVIL, $anchor: 'name' } } })],
    ['an id', refers('http://a/b', { $id: 'http://a/a', $defs: { a: { ...EVIL, $id: 'http://a/b' } } })],
    ['a member of a list', refers('#/$defs/a/allOf/0', { $defs: { a: { allOf: [EVIL] } } })],
  ])('may refer to %s, whose pattern is removed', (_what, schema) => {
    expect(check(schema, { word: `${'a'.repeat(50)}!` })).toEqual([])
    expect(check(schema, { word: 7 })).toEqual(['/word must be string'])
  })

  const named = (count: number, make: (n: number) => unknown): object =>
    Object.fromEntries(many(count, (n): [string, unknown] => [`p${n}`, make(n)]))

  test.each<[string, object, RegExp]>([
    [
      'takes for ever to compile',
      { dependentRequired: named(30, () => many(600, (n) => `q${n}`)) },
      /takes longer than 2000 ms to compile/,
    ],
    [
      'has references with very many keys',
      { $defs: named(1_900, (n) => ({ $id: `u:${n}` })), $ref: `#/${'a/'.repeat(60_000)}` },
      /refers to "#\/a\/a.*which is not a schema inside it/,
    ],
    ['is long', { title: 'x'.repeat(300_000) }, /has 300012 characters, and the limit is 262144/],
    ['is wide', { enum: many(30_000, (n) => n) }, /has more than 20000 properties and items/],
    [
      'is deep in a value',
      { default: JSON.parse('['.repeat(300) + ']'.repeat(300)) as unknown },
      /is nested past 256 levels/,
    ],
  ])('is not checked by a schema that %s, and that is known in time', (_what, schema, message) => {
    const began = performance.now()
    let thrown = ''
    try {
      check(schema, {})
    } catch (error) {
      thrown = (error as Error).message
    }
    expect(thrown).toMatch(message)
    expect(performance.now() - began).toBeLessThan(8_000)
    // What was cut off is no loss for the next one.
    expect(check({ type: 'object' }, 1)).toEqual(['must be object'])
  })

  describe('where no check can be stopped', () => {
    const list = { type: 'array', items: { $ref: '#/$defs/n' }, $defs: { n: { type: 'number' } } }
    const MAZE = Object.fromEntries(
      many(30, (n): [string, object] => {
        const next = { $ref: `#/$defs/d${n - 1}` }
        return [`d${n}`, n === 0 ? {} : { allOf: [next, next] }]
      }),
    )
    const tooMany = ['takes too many steps to check on this platform']

    test('is checked if that takes few steps', () => {
      expect(checkInSteps(list, [1, 2, 3])).toEqual([])
      expect(checkInSteps(list, [1, '2'])).toEqual(['/1 must be number'])
      expect(checkInSteps({ type: 'object' }, { a: 1 })).toEqual([])
    })

    test.each<[string, object, unknown]>([
      ['is a maze of references', { $defs: MAZE, $ref: '#/$defs/d29' }, {}],
      ['refers to itself', { properties: { a: { $ref: '#' } } }, { a: {} }],
      ['compares items with each other', { uniqueItems: true }, many(2_000, (n) => ({ n }))],
      ['has a large value to check', list, many(500_000, (n) => n)],
    ])('is refused if the schema %s', (_what, schema, value) => {
      expect(checkInSteps(schema, value)).toEqual(tooMany)
    })

    test('is not checked by a schema that is large', () => {
      expect(() => checkInSteps({ enum: many(1_001, (n) => n) }, 1)).toThrow('has more than 1000 properties and items')
      expect(() => checkInSteps({ title: 'x'.repeat(20_000) }, 1)).toThrow('and the limit is 16384')
    })
  })

  test.each([
    ['refers to the network', { $ref: 'https://evil.example/schema.json' }],
    ['is no schema', { type: 'nonsense' }],
    ['is of an unknown dialect', { $schema: 'https://evil.example/dialect' }],
  ])('cannot be checked where the schema %s', (_what, schema) => {
    expect(() => check(schema, {})).toThrow('The output')
  })
})
