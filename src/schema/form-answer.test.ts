import { Ajv2020 } from 'ajv/dist/2020.js'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyForm, answerTo } from '../../test/spec/forms.ts'
import { checkForm, pickForm } from './form-answer.ts'
import type { FormSchema, PrimitiveSchemaDefinition } from '../protocol/messages.ts'

const form: FormSchema = {
  type: 'object',
  properties: {
    env: { type: 'string', minLength: 2, maxLength: 4 },
    count: { type: 'integer', minimum: 1, maximum: 3 },
    ratio: { type: 'number' },
    dry: { type: 'boolean' },
    color: { type: 'string', enum: ['red', 'green'] },
    fruit: { type: 'string', oneOf: [{ const: 'a', title: 'Apple' }] },
    tags: { type: 'array', items: { type: 'string', enum: ['x', 'y', 'z'] }, minItems: 1, maxItems: 2 },
    sizes: { type: 'array', items: { anyOf: [{ const: 's', title: 'Small' }] } },
    mail: { type: 'string', format: 'email' },
    link: { type: 'string', format: 'uri' },
    day: { type: 'string', format: 'date' },
    when: { type: 'string', format: 'date-time' },
  },
  required: ['env'],
}

function formOf(it: PrimitiveSchemaDefinition): FormSchema {
  return { type: 'object', properties: { it }, required: ['it'] }
}

describe('checkForm', () => {
  test('accepts an answer that fits', () => {
    const content = {
      env: 'prod',
      count: 2,
      ratio: 0.5,
      dry: false,
      color: 'red',
      fruit: 'a',
      tags: ['x', 'z'],
      sizes: [],
      mail: 'ada@example.com',
      link: 'https://example.com/?q=1',
      day: '2024-02-29',
      when: '2026-07-28T12:00:00.5+02:00',
    }
    expect(checkForm(form, content)).toEqual([])
  })

  test.each([
    { content: {}, problem: 'env is required' },
    { content: { env: undefined }, problem: 'env is required' },
    { content: { env: 7 }, problem: 'env must be a string' },
    { content: { env: null }, problem: 'env must be a string' },
    { content: { env: 'x' }, problem: 'env must have at least 2 characters' },
    { content: { env: 'xxxxx' }, problem: 'env must have at most 4 characters' },
    { content: { env: 'ok', count: '2' }, problem: 'count must be a number' },
    { content: { env: 'ok', count: 1.5 }, problem: 'count must be a whole number' },
    { content: { env: 'ok', count: 0 }, problem: 'count must be at least 1' },
    { content: { env: 'ok', count: 4 }, problem: 'count must be at most 3' },
    { content: { env: 'ok', ratio: Number.NaN }, problem: 'ratio must be a number' },
    { content: { env: 'ok', dry: 'true' }, problem: 'dry must be true or false' },
    { content: { env: 'ok', color: 'blue' }, problem: 'color must be one of red, green' },
    { content: { env: 'ok', fruit: 'Apple' }, problem: 'fruit must be one of a' },
    { content: { env: 'ok', tags: 'x' }, problem: 'tags must be a list' },
    { content: { env: 'ok', tags: [] }, problem: 'tags must have at least 1 chosen' },
    { content: { env: 'ok', tags: ['x', 'y', 'z'] }, problem: 'tags must have at most 2 chosen' },
    { content: { env: 'ok', tags: ['w'] }, problem: 'tags may only contain x, y, z' },
    { content: { env: 'ok', sizes: [1] }, problem: 'sizes may only contain s' },
    { content: { env: 'ok', mail: 'ada' }, problem: 'mail must be an email address' },
    { content: { env: 'ok', link: '/path' }, problem: 'link must be a full URI, such as https://example.com/' },
    { content: { env: 'ok', day: '2023-02-29' }, problem: 'day must be a date, such as 2026-07-28' },
    { content: null, problem: 'the answer must be an object' },
    { content: ['ok'], problem: 'the answer must be an object' },
    { content: 'ok', problem: 'the answer must be an object' },
  ])('says "$problem"', ({ content, problem }) => {
    expect(checkForm(form, content)).toEqual([problem])
  })

  test('counts characters as people do, by code point', () => {
    expect(checkForm(formOf({ type: 'string', maxLength: 2 }), { it: '😀😀' })).toEqual([])
    expect(checkForm(formOf({ type: 'string', minLength: 3 }), { it: '😀😀' })).toHaveLength(1)
  })

  test('lets extra properties pass', () => {
    expect(checkForm(form, { env: 'ok', extra: { deep: [] } })).toEqual([])
  })

  test('reads no inherited property', () => {
    const inherited = Object.create({ it: 'x' })
    expect(checkForm(formOf({ type: 'string' }), inherited)).toEqual(['it is required'])
    const text: PrimitiveSchemaDefinition = { type: 'string' }
    const names: FormSchema = { type: 'object', properties: { constructor: text }, required: ['constructor'] }
    expect(checkForm(names, {})).toEqual(['constructor is required'])
    expect(checkForm(names, JSON.parse('{"__proto__":{"constructor":"x"}}'))).toEqual(['constructor is required'])
  })

  test('stops after ten problems', () => {
    const names = Array.from({ length: 100 }, (_, index) => `p${index}`)
    const wide: FormSchema = {
      type: 'object',
      properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
      required: names,
    }
    expect(checkForm(wide, {})).toHaveLength(10)
  })

  test('agrees with a JSON Schema validator', () => {
    // All errors, because in its other mode ajv overlooks a missing property whose name is empty.
    const ajv = new Ajv2020({ strict: false, ownProperties: true, allErrors: true })
    const pairs = anyForm.chain((schema) => fc.tuple(fc.constant(schema), answerTo(schema)))
    fc.assert(
      fc.property(pairs, ([schema, content]) => {
        const expected = ajv.validate({ ...schema }, content)
        expect({ schema, content, fits: checkForm(schema, content).length === 0 }).toEqual({
          schema,
          content,
          fits: expected,
        })
      }),
      { numRuns: 1000 },
    )
  })

  test('never throws, whatever the answer', () => {
    fc.assert(
      fc.property(anyForm, fc.anything({ withNullPrototype: true, withSparseArray: true }), (schema, content) => {
        expect(() => checkForm(schema, content)).not.toThrow()
        expect(() => pickForm(schema, content)).not.toThrow()
      }),
    )
  })
})

describe('pickForm', () => {
  test("keeps the form's own properties and nothing else", () => {
    const content: unknown = JSON.parse('{"env":"ok","extra":1,"__proto__":{"dry":true},"constructor":1,"count":2}')
    expect(pickForm(form, content)).toEqual({ env: 'ok', count: 2 })
    expect(Object.keys(pickForm(form, content))).toEqual(['env', 'count'])
  })

  test('gives a fresh plain object', () => {
    const content = { env: 'ok' }
    const picked = pickForm(form, content)
    expect(picked).not.toBe(content)
    expect(Object.getPrototypeOf(picked)).toBe(Object.prototype)
  })

  test.each([null, 'text', [1], undefined])('gives an empty object for %o', (content) => {
    expect(pickForm(form, content)).toEqual({})
  })
})
