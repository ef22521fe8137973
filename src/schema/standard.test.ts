import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import * as mini from 'zod/mini'
import { z as v3 } from 'zod/v3'
import { RallyError } from '../protocol/errors.ts'
import { checkStandard, isStandard, jsonSchemaOf, type Schema } from './standard.ts'

const valibot = v.object({ env: v.string(), items: v.array(v.object({ name: v.string() })) })

const libraries = [
  { name: 'zod', schema: z.object({ env: z.string(), items: z.array(z.object({ name: z.string() })) }) },
  { name: 'arktype', schema: type({ env: 'string', items: type({ name: 'string' }).array() }) },
  { name: 'valibot', schema: toStandardJsonSchema(valibot) },
  {
    name: 'zod/mini, as JSON Schema',
    schema: mini.toJSONSchema(
      mini.object({ env: mini.string(), items: mini.array(mini.object({ name: mini.string() })) }),
    ),
  },
]

describe.each(libraries)('a schema of $name', ({ schema }) => {
  test('is a Standard Schema', () => {
    expect(isStandard(schema)).toBe(true)
  })

  test('gives its JSON Schema', () => {
    const json = jsonSchemaOf(schema, 'input')
    expect(json).toMatchObject({ type: 'object', properties: { env: { type: 'string' } } })
    expect(isStandard(json)).toBe(false)
  })

  test('gives the value when it fits', () => {
    const value = { env: 'prod', items: [{ name: 'x' }] }
    expect(checkStandard(schema, value)).toEqual({ value })
  })

  test('says what is wrong, and where, once', () => {
    const checked = checkStandard(schema, { env: 1, items: [{ name: 'x' }, { name: 2 }] })
    expect(checked).toMatchObject({
      issues: [expect.stringMatching(/^env:? /), expect.stringMatching(/^items\[1\]\.name:? /)],
    })
    expect(JSON.stringify((checked as { issues: string[] }).issues).match(/env/g)).toHaveLength(1)
    expect(checked).toMatchObject({ paths: ['env', 'items[1].name'] })
  })
})

test('an issue reads as its path and its message', () => {
  expect(checkStandard(z.object({ env: z.string() }), { env: 1 })).toEqual({
    issues: ['env: Invalid input: expected string, received number'],
    paths: ['env'],
  })
  expect(checkStandard(z.string(), 1)).toMatchObject({ issues: ['Invalid input: expected string, received number'] })
})

test('a long list of issues is cut short', () => {
  const checked = checkStandard(
    z.array(z.string()),
    Array.from({ length: 50 }, () => 1),
  )
  expect(checked).toMatchObject({ issues: expect.toSatisfy((issues: string[]) => issues.length === 11) })
  expect(checked).toMatchObject({ issues: expect.arrayContaining(['and 40 more']) })
})

test('only a schema that is asynchronous itself gives a promise', async () => {
  const later = z.object({ env: z.string().refine(async (env) => env === 'prod', 'must be prod') })
  const checked = checkStandard(later, { env: 'dev' })
  expect(checked).toBeInstanceOf(Promise)
  expect(await checked).toMatchObject({ issues: ['env: must be prod'] })
  expect(await checkStandard(later, { env: 'prod' })).toEqual({ value: { env: 'prod' } })
})

test('the output of a transform is what comes back', () => {
  expect(checkStandard(z.object({ n: z.string().transform(Number) }), { n: '7' })).toEqual({ value: { n: 7 } })
})

test('input and output differ where a default fills in', () => {
  const schema = z.object({ dry: z.boolean().default(true) })
  expect(jsonSchemaOf(schema, 'input')).not.toHaveProperty('required')
  expect(jsonSchemaOf(schema, 'output')).toMatchObject({ required: ['dry'] })
})

test('a plain JSON Schema is its own', () => {
  const schema = { type: 'object', properties: { env: { type: 'string' } } }
  expect(isStandard(schema)).toBe(false)
  expect(jsonSchemaOf(schema, 'input')).toBe(schema)
})

test.each(['that refers back to itself', 'that is nested thousands of levels deep'])(
  'a JSON Schema %s is refused',
  (what) => {
    let deep: Record<string, unknown> = { type: 'string' }
    if (what.includes('itself')) deep['default'] = deep
    else for (let depth = 0; depth < 20_000; depth += 1) deep = { format: [deep] }
    const schema = { type: 'object', properties: { name: deep } } as const
    expect(() => jsonSchemaOf(schema, 'input', 'Tool "t"')).toThrow(
      'Tool "t": a JSON Schema must be nested at most 200 levels deep, and have no infinite numbers. Make it flatter.',
    )
  },
)

test('what z.toJSONSchema made works too', () => {
  const schema: unknown = z.toJSONSchema(z.object({ env: z.string() }))
  expect(isStandard(schema) && jsonSchemaOf(schema, 'input')).toMatchObject({ properties: { env: { type: 'string' } } })
})

test.each([undefined, null, 1, 'text', [], {}, () => 1, { '~standard': null }, { '~standard': 1 }])(
  '%o is no Standard Schema',
  (value) => {
    expect(isStandard(value)).toBe(false)
  },
)

describe('a schema without JSON Schema', () => {
  test('of valibot is told how to wrap it', () => {
    expect(refusal(valibot)).toMatchObject({
      code: 'SCHEMA_INVALID',
      message: expect.stringContaining('toStandardJsonSchema'),
    })
  })

  const { jsonSchema: _, ...standard } = z.string()['~standard']
  const old = { major: 4, minor: 1, patch: 13 }
  const effect = Object.assign(() => {}, { [Symbol.for('effect/Schema')]: {} })

  test.each([
    { what: 'of zod 3', schema: v3.object({}), says: /of zod 3, .* Update zod to 4\.2 or later/ },
    {
      what: 'of zod 4.1',
      schema: { '~standard': standard, _zod: { version: old } },
      says: /of zod 4\.1\.13, .* Update zod to 4\.2 or later, or pass z\.toJSONSchema/,
    },
    { what: 'of zod/mini', schema: mini.object({}), says: /of zod\/mini .* Pass z\.toJSONSchema\(schema\)/ },
    { what: 'of effect', schema: effect, says: /of effect .*toStandardJSONSchemaV1.*JSONSchema\.make/ },
    {
      what: 'of an unknown library',
      schema: { '~standard': { ...standard, vendor: 'superlib' } },
      says: /of superlib .* Use a version of superlib that implements Standard JSON Schema/,
    },
    { what: 'that is a function', schema: () => 1, says: /must be a Standard Schema.*got a function\.$/ },
    { what: 'that is a text', schema: 'string', says: /must be a Standard Schema.*got a string\.$/ },
  ])('$what is refused with the advice for it', ({ schema, says }) => {
    const error = refusal(schema as never)
    expect(error).toBeInstanceOf(RallyError)
    expect(error).toMatchObject({ code: 'SCHEMA_INVALID', message: expect.stringMatching(says) })
  })

  test('because a type has none names the reason and keeps the cause', () => {
    const error = refusal(z.object({ when: z.date() }))
    expect(error).toMatchObject({ code: 'SCHEMA_INVALID', cause: expect.any(Error) })
    expect(error).toMatchObject({ message: expect.stringMatching(/^tool "deploy": zod cannot .*\(Date/) })
  })
})

function refusal(schema: Schema): unknown {
  try {
    return jsonSchemaOf(schema, 'input', 'tool "deploy"')
  } catch (error) {
    return error
  }
}
