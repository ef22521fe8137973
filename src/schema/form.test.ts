import { readFileSync } from 'node:fs'
import { Validator } from '@cfworker/json-schema'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import * as fc from 'fast-check'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { EXAMPLES, specValidator } from '../../test/spec/validate.ts'
import { RallyError } from '../protocol/errors.ts'
import type { FormSchema } from '../protocol/messages.ts'
import { toForm } from './form.ts'
import { checkForm } from './form-answer.ts'
import { anyForm } from '../../test/spec/forms.ts'
import { jsonSchemaOf, type Schema } from './standard.ts'

const WHERE = 'tool "deploy", question "confirm"'

/** The properties of the form, once the official schema has accepted the form. */
function fieldsOf(schema: Schema): FormSchema['properties'] {
  const form = toForm(jsonSchemaOf(schema, 'input'), WHERE)
  expect(wireProblems(form)).toEqual([])
  return form.properties
}

function refusal(schema: Readonly<Record<string, unknown>>): string {
  try {
    toForm(schema, WHERE)
  } catch (error) {
    if (error instanceof RallyError && error.code === 'FORM_INVALID') return error.message
    throw error
  }
  return 'was accepted'
}

const refusalOf = (schema: Schema): string => refusal(jsonSchemaOf(schema, 'input'))
const ofProperty = (property: unknown): string => refusal({ type: 'object', properties: { it: property } })
const fieldOf = (property: unknown): unknown => fieldsOf({ type: 'object', properties: { it: property } })['it']

describe('a schema of zod, arktype or valibot becomes the same form', () => {
  const zod = z.object({
    text: z.string().min(2).max(9),
    email: z.email(),
    url: z.url(),
    ratio: z.number().min(0).max(1),
    count: z.int().min(3),
    yes: z.boolean(),
    color: z.enum(['green', 'red']),
    fixed: z.literal('x'),
    tags: z.array(z.enum(['a', 'b'])).min(1),
    note: z.string().optional(),
  })
  const arktype = type({
    text: '2 <= string <= 9',
    email: 'string.email',
    url: 'string.url',
    ratio: '0 <= number <= 1',
    count: 'number.integer > 2',
    yes: 'boolean',
    color: "'green' | 'red'",
    fixed: "'x'",
    tags: "('a' | 'b')[] >= 1",
    'note?': 'string',
  })
  const valibot = toStandardJsonSchema(
    v.object({
      text: v.pipe(v.string(), v.minLength(2), v.maxLength(9)),
      email: v.pipe(v.string(), v.email()),
      url: v.pipe(v.string(), v.url()),
      ratio: v.pipe(v.number(), v.minValue(0), v.maxValue(1)),
      count: v.pipe(v.number(), v.integer(), v.minValue(3)),
      yes: v.boolean(),
      color: v.picklist(['green', 'red']),
      fixed: v.literal('x'),
      tags: v.pipe(v.array(v.picklist(['a', 'b'])), v.minLength(1)),
      note: v.optional(v.string()),
    }),
  )

  test.each([
    { library: 'zod', schema: zod },
    { library: 'arktype', schema: arktype },
    { library: 'valibot', schema: valibot },
  ])('$library', ({ schema }) => {
    const form = toForm(jsonSchemaOf(schema, 'input'), WHERE)
    expect(wireProblems(form)).toEqual([])
    expect(form.required?.toSorted()).toEqual(
      ['text', 'email', 'url', 'ratio', 'count', 'yes', 'color', 'fixed', 'tags'].toSorted(),
    )
    expect(form.properties).toEqual({
      text: { type: 'string', minLength: 2, maxLength: 9 },
      email: { type: 'string', format: 'email' },
      url: { type: 'string', format: 'uri' },
      ratio: { type: 'number', minimum: 0, maximum: 1 },
      count: { type: 'integer', minimum: 3 },
      yes: { type: 'boolean' },
      color: { type: 'string', enum: ['green', 'red'] },
      fixed: { type: 'string', enum: ['x'] },
      tags: { type: 'array', minItems: 1, items: { type: 'string', enum: ['a', 'b'] } },
      note: { type: 'string' },
    })
  })
})

describe('what a form keeps', () => {
  test('titles, descriptions and defaults', () => {
    const schema = z.object({
      env: z.string().default('dev').meta({ title: 'Environment', description: 'Where to' }),
      dry: z.boolean().default(true),
      count: z.number().default(1.5),
      color: z.enum(['red', 'green']).default('red'),
      tags: z.array(z.enum(['a', 'b'])).default(['b']),
    })
    expect(fieldsOf(schema)).toEqual({
      env: { type: 'string', title: 'Environment', description: 'Where to', default: 'dev' },
      dry: { type: 'boolean', default: true },
      count: { type: 'number', default: 1.5 },
      color: { type: 'string', enum: ['red', 'green'], default: 'red' },
      tags: { type: 'array', items: { type: 'string', enum: ['a', 'b'] }, default: ['b'] },
    })
  })

  test('the order of the properties', () => {
    const names = ['zeta', 'alpha', 'mid']
    const schema = z.object(Object.fromEntries(names.map((name) => [name, z.string()])))
    expect(Object.keys(fieldsOf(schema))).toEqual(names)
  })

  test('names that objects inherit', () => {
    expect(fieldsOf(z.object({ constructor: z.string(), toString: z.boolean() }))).toMatchObject({
      constructor: { type: 'string' },
    })
  })

  test('an empty form, which asks for consent alone', () => {
    expect(toForm(jsonSchemaOf(z.object({}), 'input'), WHERE)).toEqual({ type: 'object', properties: {} })
  })
})

describe('what only narrows a property is left out', () => {
  test.each([
    { it: z.string().regex(/^a/), field: { type: 'string' } },
    { it: z.string().startsWith('a').endsWith('z'), field: { type: 'string' } },
    { it: z.uuid(), field: { type: 'string' } },
    { it: z.number().gt(0).lt(1), field: { type: 'number' } },
    { it: z.number().multipleOf(0.5), field: { type: 'number' } },
    { it: z.int(), field: { type: 'integer' } },
    { it: z.union([z.email(), z.literal('')]), field: { type: 'string' } },
    { it: z.union([z.int(), z.number().gt(9)]), field: { type: 'number' } },
    { it: type('string.ip'), field: { type: 'string', description: 'an IP address' } },
  ])('$field', ({ it, field }) => {
    expect(fieldOf(jsonSchemaOf(it, 'input'))).toEqual(field)
  })

  test('also at the root', () => {
    const { required: _, ...form } = toForm(jsonSchemaOf(z.strictObject({ a: z.string() }), 'input'), WHERE)
    expect(form).toEqual({ type: 'object', properties: { a: { type: 'string' } } })
  })

  test.each([
    { it: { type: 'string', default: 1 } },
    { it: { type: 'string', format: 'time' } },
    { it: { type: 'string', minLength: -1, maxLength: 1.5 } },
    { it: { type: 'string', title: 7, description: null } },
    { it: { type: 'string', anyOf: [{ pattern: '^a' }, { pattern: '^b' }] } },
    { it: { type: 'string', allOf: [{ pattern: '^a' }, { type: 'string', pattern: 'z$' }] } },
    { it: { type: 'string', contentEncoding: 'base64', $comment: 'x', examples: ['y'] } },
  ])('$it is plain text', ({ it }) => {
    expect(fieldOf(it)).toEqual({ type: 'string' })
  })

  test('a default that is not among the options', () => {
    expect(fieldOf({ enum: ['a'], default: 'b' })).toEqual({ type: 'string', enum: ['a'] })
    expect(fieldOf({ type: 'integer', default: 1.5 })).toEqual({ type: 'integer' })
  })
})

describe('exclusive bounds on integers become inclusive ones', () => {
  test.each([
    { it: { exclusiveMinimum: 0, exclusiveMaximum: 10 }, bounds: { minimum: 1, maximum: 9 } },
    { it: { exclusiveMinimum: 0.5, exclusiveMaximum: 9.5 }, bounds: { minimum: 1, maximum: 9 } },
    { it: { minimum: 5, exclusiveMinimum: 2, maximum: 6, exclusiveMaximum: 9 }, bounds: { minimum: 5, maximum: 6 } },
    { it: { minimum: -9007199254740991, maximum: 9007199254740991 }, bounds: {} },
  ])('$it', ({ it, bounds }) => {
    expect(fieldOf({ type: 'integer', ...it })).toEqual({ type: 'integer', ...bounds })
  })
})

describe('a choice of strings, however spelt', () => {
  const titled = [
    { const: 'a', title: 'Apple' },
    { const: 'b', title: 'b' },
  ]

  test.each([
    { name: 'a constant', it: { const: 'a', title: 'Fruit' }, field: { title: 'Fruit', enum: ['a'] } },
    { name: 'an enum without a type', it: { enum: ['a', 'b', 'a'] }, field: { enum: ['a', 'b'] } },
    { name: 'a union of constants', it: { anyOf: [{ const: 'a' }, { const: 'b' }] }, field: { enum: ['a', 'b'] } },
    { name: 'titled constants', it: { anyOf: [titled[0], { const: 'b' }] }, field: { oneOf: titled } },
    { name: 'the form of the wire', it: { type: 'string', oneOf: titled }, field: { oneOf: titled } },
    { name: 'enumNames', it: { type: 'string', enum: ['a', 'b'], enumNames: ['Apple'] }, field: { oneOf: titled } },
    { name: 'enums and constants', it: { anyOf: [{ enum: ['a'] }, { const: 'b' }] }, field: { enum: ['a', 'b'] } },
  ])('$name', ({ it, field }) => {
    expect(fieldOf(it)).toEqual({ type: 'string', ...field })
  })

  test('titled in zod', () => {
    const fruit = z.union([z.literal('a').meta({ title: 'Apple' }), z.literal('b')])
    expect(fieldsOf(z.object({ one: fruit, many: z.array(fruit).max(1) }))).toEqual({
      one: { type: 'string', oneOf: titled },
      many: { type: 'array', maxItems: 1, items: { anyOf: titled } },
    })
  })
})

describe('references and combinations of one are followed', () => {
  test('of zod, with what stands beside them', () => {
    const severity = z.enum(['low', 'high']).meta({ id: 'Severity', title: 'Severity' })
    const schema = z.object({ now: severity, later: severity.describe('Next week'), all: z.array(severity) })
    expect(fieldsOf(schema)).toMatchObject({
      now: { type: 'string', enum: ['low', 'high'], title: 'Severity' },
      later: { enum: ['low', 'high'], description: 'Next week' },
      all: { items: { enum: ['low', 'high'] } },
    })
  })

  test('by hand', () => {
    const schema = {
      $ref: '#/$defs/Root',
      $defs: {
        Root: { type: 'object', properties: { it: { allOf: [{ $ref: '#/$defs/a~1b%20c' }], title: 'It' } } },
        'a/b c': { type: 'string', title: 'Other', minLength: 1 },
      },
    }
    expect(fieldsOf(schema)).toEqual({ it: { type: 'string', title: 'It', minLength: 1 } })
  })

  test.each([
    { $ref: 'https://example.com/schema.json' },
    { $ref: '#/$defs/Missing' },
    { $ref: '#anchor' },
    { $ref: '#/constructor' },
  ])('and one that leads nowhere is named: %o', (it) => {
    expect(ofProperty(it)).toContain(`property "it" refers to "${it.$ref}"`)
  })

  test('and one that leads in a circle is refused', () => {
    expect(ofProperty({ $ref: '#/properties/it' })).toContain('refers back to itself')
    expect(ofProperty({ anyOf: [{ $ref: '#/properties/it' }, { type: 'string' }] })).toContain('union inside a union')
  })
})

describe('what a form can not have is refused, by the name of the property and with what to do', () => {
  test.each([
    { name: 'an object', it: z.object({ street: z.string() }), why: 'a form is flat' },
    { name: 'a record', it: z.record(z.string(), z.string()), why: 'a form is flat' },
    { name: 'a list of text', it: z.array(z.string()), why: 'Make its items an enum' },
    { name: 'a list of objects', it: z.array(z.object({})), why: 'Make its items an enum' },
    { name: 'a tuple', it: z.tuple([z.string(), z.number()]), why: 'is a tuple' },
    { name: 'a union', it: z.union([z.string(), z.number()]), why: 'is string or number' },
    { name: 'a nullable text', it: z.string().nullable(), why: 'Make it optional' },
    { name: 'null', it: z.null(), why: 'Make it optional' },
    { name: 'anything', it: z.any(), why: 'has no type' },
    { name: 'a number to choose', it: z.literal([1, 2]), why: 'Use strings and convert' },
    { name: 'a union of numbers', it: z.union([z.literal(1), z.literal(2)]), why: 'Use strings and convert' },
    { name: 'a fixed boolean', it: z.literal(true), why: 'Make it a boolean and check it in the handler' },
    { name: 'an intersection', it: z.intersection(z.enum(['a', 'b']), z.enum(['b', 'c'])), why: 'allOf' },
    { name: 'a nullable enum', it: z.enum(['a']).nullable(), why: 'Make it optional' },
  ])('$name', ({ it, why }) => {
    const message = refusalOf(z.object({ fine: z.string(), it }))
    expect(message).toContain(`${WHERE}: property "it" `)
    expect(message).toContain(why)
  })

  test.each([
    { it: true, why: 'has no schema' },
    { it: { type: ['string', 'null'] }, why: 'Make it optional' },
    { it: { type: ['string', 'number'] }, why: 'is string or number' },
    { it: { enum: [] }, why: 'nothing to choose from' },
    { it: { enum: ['a', null] }, why: 'Make it optional' },
    { it: { anyOf: [{ anyOf: [{ const: 'a' }, { const: 'b' }] }, { const: 'c' }] }, why: 'Write it as one' },
    { it: { properties: {} }, why: 'a form is flat' },
    { it: { type: 'strnig' }, why: 'has no type' },
    { it: { type: [] }, why: 'has no type' },
  ])('$it', ({ it, why }) => {
    expect(ofProperty(it)).toContain(why)
  })

  test.each([
    { name: 'text', schema: z.string(), why: 'must be an object' },
    { name: 'a list', schema: z.array(z.string()), why: 'must be an object' },
    { name: 'a record', schema: z.record(z.string(), z.string()), why: 'Name the properties' },
    { name: 'a union', schema: z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]), why: 'is a union' },
    { name: 'an intersection', schema: { allOf: [{ type: 'object' }, { properties: {} }] }, why: 'allOf' },
  ])('at the root: $name', ({ schema, why }) => {
    expect(refusalOf(schema)).toContain(`${WHERE}: the form `)
    expect(refusalOf(schema)).toContain(why)
  })

  test('the name __proto__', () => {
    expect(refusal(JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"}}}'))).toContain('Rename it')
  })

  test('a required property that is not described', () => {
    expect(refusal({ type: 'object', properties: {}, required: ['toString'] })).toContain(
      'property "toString" is required',
    )
  })

  test('more than 100 properties', () => {
    expect(refusalOf(wide(100))).toBe('was accepted')
    expect(refusalOf(wide(101))).toContain('has 101 properties, but at most 100 are allowed')
  })
})

function wide(count: number): Schema {
  return z.object(Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, z.string()])))
}

describe('a form of the wire', () => {
  test.each(['elicit-single-field', 'elicit-multiple-fields'])('goes through unchanged: %s', (name) => {
    const text = readFileSync(new URL(`ElicitRequestFormParams/${name}.json`, EXAMPLES), 'utf8')
    const { requestedSchema } = JSON.parse(text)
    expect(toForm(requestedSchema, WHERE)).toEqual(requestedSchema)
  })

  test('goes through unchanged, whatever it is', () => {
    fc.assert(
      fc.property(anyForm, (form) => {
        expect(wireProblems(form)).toEqual([])
        expect(toForm({ ...form }, WHERE)).toEqual(form)
      }),
    )
  })
})

test('whatever the schema, there is a form of the wire or a clear refusal', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom('a', 'b', 'title'), anySchema), (properties) => {
      const schema = { type: 'object', properties }
      const problems = refusal(schema) === 'was accepted' ? wireProblems(toForm(schema, WHERE)) : []
      expect(problems).toEqual([])
    }),
    { numRuns: 2000 },
  )
})

/** Well-formed keywords with any values: mostly nonsense, of the kind that trips a reader of schemas. */
const { anySchema } = fc.letrec((tie) => ({
  value: fc.oneof(
    fc.constantFrom(
      'string',
      'number',
      'integer',
      'boolean',
      'array',
      'object',
      'null',
      '#/properties/a',
      '#',
      1,
      true,
    ),
    fc.array(tie('anySchema'), { maxLength: 3 }),
    fc.array(fc.constantFrom('a', 'b', 1, null), { maxLength: 3 }),
    tie('anySchema'),
  ),
  anySchema: fc.dictionary(
    fc.constantFrom('type', 'enum', 'const', 'anyOf', 'oneOf', 'allOf', 'items', '$ref', 'properties'),
    tie('value'),
    { maxKeys: 3 },
  ),
}))

test('a form never refuses what the schema accepts', () => {
  let accepted = 0
  fc.assert(
    fc.property(likelySchema, fc.constantFrom(...VALUES), (it, value) => {
      const schema = { type: 'object' as const, properties: { it } }
      const isAccepted = new Validator(structuredClone(schema), '2020-12').validate({ it: value }).valid
      if (!isAccepted || refusal(schema) !== 'was accepted') return
      accepted += 1
      expect(checkForm(toForm(schema, WHERE), { it: value })).toEqual([])
    }),
    { numRuns: 20_000 },
  )
  expect(accepted).toBeGreaterThan(1000)
})

const VALUES = ['', 'a', 'b', 'abc', 0, 1, -1, 2.5, 9, true, false, ['a'], ['a', 'b'], []]

const KEYWORD_VALUES = {
  minLength: fc.nat(2),
  maxLength: fc.nat(3),
  pattern: fc.constantFrom('^a', 'b'),
  minimum: fc.integer({ min: -1, max: 2 }),
  exclusiveMinimum: fc.constantFrom(-1, 0, 0.5, 2),
  maximum: fc.integer({ min: 0, max: 9 }),
  exclusiveMaximum: fc.constantFrom(1, 2.5, 9),
  multipleOf: fc.constantFrom(0.5, 3),
  enum: fc.uniqueArray(fc.constantFrom('a', 'b', 'abc'), { minLength: 1 }),
  const: fc.constantFrom('a', 'b'),
  minItems: fc.nat(2),
  maxItems: fc.nat(2),
  uniqueItems: fc.boolean(),
}

const likelyMember = fewOf(KEYWORD_VALUES)
const members = fc.array(likelyMember, { minLength: 1, maxLength: 3 })
const likelySchema = fewOf({ ...KEYWORD_VALUES, anyOf: members, oneOf: members, allOf: members, items: likelyMember })

/** A type and few keywords beside it, or hardly any value would fit. */
function fewOf(keywords: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Record<string, unknown>> {
  const types = fc.constantFrom('string', 'number', 'integer', 'boolean', 'array')
  return fc
    .subarray(Object.entries(keywords), { maxLength: 3 })
    .chain((few) => fc.record({ type: types, ...Object.fromEntries(few) }))
}

const requestProblems = specValidator('ElicitRequestFormParams')

/** The published schema leaves objects open, so the names of the keywords are checked here. */
function wireProblems(form: FormSchema): string[] {
  const unknown = Object.values(form.properties).flatMap((field) =>
    Object.keys(field).filter((keyword) => !KEYWORDS[field.type].includes(keyword)),
  )
  return [...requestProblems({ message: 'Well?', requestedSchema: form }), ...unknown]
}

const LABELS = ['type', 'title', 'description', 'default']
const KEYWORDS = {
  string: [...LABELS, 'minLength', 'maxLength', 'format', 'enum', 'oneOf', 'enumNames'],
  number: [...LABELS, 'minimum', 'maximum'],
  integer: [...LABELS, 'minimum', 'maximum'],
  boolean: LABELS,
  array: [...LABELS, 'items', 'minItems', 'maxItems'],
}
