import { describe, expect, test } from 'vitest'
import { INVALID_PARAMS } from '../protocol/errors.ts'
import { specValidator } from '../../test/spec/validate.ts'
import type { Completion, CompletionSource } from './completion.ts'
import { complete as completed, prepareCompleters, readReference } from './completion.ts'

const META = { 'io.modelcontextprotocol/serverInfo': { name: 's', version: '1' } }

const NOBODY = {
  caller: undefined,
  client: { name: undefined, version: undefined, revision: '2026-07-28', capabilities: {}, extensions: {} },
  meta: {},
}

/** Completes the variable `a` of the one prompt there is, `p`. */
async function complete(how: CompletionSource | undefined, params: object = {}): Promise<Completion> {
  const completers = prepareCompleters(how && { a: how }, ['a', 'b'], 'Prompt "p"')
  const target = { arguments: ['a', 'b'], completers, scopes: undefined, visible: undefined }
  const given = { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: '' }, ...params }
  const completion = await completed(readReference(given.ref).prompt === 'p' ? target : undefined, given, NOBODY)
  const result = { resultType: 'complete', completion, _meta: META }
  expect(specValidator('CompleteResult')(result)).toEqual([])
  return completion
}

const typed = (value: string): object => ({ argument: { name: 'a', value } })

describe('a list', () => {
  const LIST = ['Oslo', 'oxford', 'Rome']

  test.each([
    ['', ['Oslo', 'oxford', 'Rome']],
    ['o', ['Oslo', 'oxford']],
    ['OX', ['oxford']],
    ['Rome', ['Rome']],
    ['slo', []],
    ['.', []],
  ])('gives what begins as the user did, in either case: %j', async (value, values) => {
    expect(await complete(LIST, typed(value))).toEqual({ values, total: values.length, hasMore: false })
  })
})

describe('a function', () => {
  test('gets what the user typed and has filled in', async () => {
    const context = { arguments: { b: 'x' } }
    const { values } = await complete((value, given) => [`${value} ${given.arguments['b']}`], {
      ...typed('o'),
      context,
    })
    expect(values).toEqual(['o x'])
  })

  test.each([
    ['none', undefined],
    ['null', null],
    ['an empty one', {}],
  ])('gets no arguments where the context is %s', async (_what, context) => {
    const { values } = await complete((_value, given) => [JSON.stringify(given.arguments)], { context })
    expect(values).toEqual(['{}'])
  })

  test('may be asynchronous, and may say how many there are', async () => {
    expect(await complete(async () => ['a'])).toEqual({ values: ['a'], total: 1, hasMore: false })
    expect(await complete(() => ({ values: ['a'], total: 7, hasMore: true }))).toEqual({
      values: ['a'],
      total: 7,
      hasMore: true,
    })
    expect(await complete(() => ({ values: ['a'] }))).toEqual({ values: ['a'], hasMore: false })
  })

  test('that throws fails the request with that error', async () => {
    await expect(complete(() => Promise.reject(new Error('no database')))).rejects.toThrow('no database')
  })
})

describe('more than a hundred values', () => {
  const many = Array.from({ length: 250 }, (_, i) => `v${i}`)

  test.each([
    ['a list', many, 250],
    ['a function that gives a list', () => many, 250],
    ['a function that gives values alone', () => ({ values: many }), undefined],
    ['a function that counts', () => ({ values: many, total: 1_000, hasMore: false }), 1_000],
  ] satisfies [string, CompletionSource, number | undefined][])(
    'are cut, and the client is told so: %s',
    async (_, how, total) => {
      const completion = await complete(how)
      expect(completion.values).toEqual(many.slice(0, 100))
      expect([completion.total, completion.hasMore]).toEqual([total, true])
    },
  )

  test('are not said to be where there are exactly a hundred', async () => {
    expect((await complete(many.slice(0, 100))).hasMore).toBe(false)
  })
})

test('an argument that is there and suggests nothing has no values', async () => {
  expect(await complete(undefined)).toEqual({ values: [], total: 0, hasMore: false })
  expect(await complete(['x'], { argument: { name: 'b', value: '' } })).toMatchObject({ values: [] })
})

test.each([
  ['an unknown prompt', { ref: { type: 'ref/prompt', name: 'q' } }],
  ['an unknown template', { ref: { type: 'ref/resource', uri: 'a://{b}' } }],
  ['no reference', { ref: undefined }],
  ['a reference of no kind', { ref: { name: 'p' } }],
  ['a reference of an unknown kind', { ref: { type: 'ref/tool', name: 'p' } }],
  ['a reference without a name', { ref: { type: 'ref/prompt', uri: 'p' } }],
  ['a reference that is a text', { ref: 'p' }],
  ['no argument', { argument: undefined }],
  ['an argument without a value', { argument: { name: 'a' } }],
  ['a value that is no text', { argument: { name: 'a', value: 1 } }],
  ['an unknown argument', { argument: { name: 'c', value: '' } }],
  ['an inherited argument', { argument: { name: 'constructor', value: '' } }],
  ['a context that is a text', { context: 'x' }],
  ['arguments in the context that are no texts', { context: { arguments: { b: 1 } } }],
  ['arguments in the context that are a list', { context: { arguments: ['b'] } }],
])('%s is an invalid param', async (_what, params) => {
  await expect(complete(['x'], params)).rejects.toMatchObject({ rpcCode: INVALID_PARAMS })
})
