import type { Rally, ReadReturn } from 'mcp-rally'
import { describe, expect, test } from 'vitest'
import { META_SERVER_INFO } from '../../src/protocol/revisions/2026-07-28.ts'
import { errorOf, request, resultOf } from '../wire/messages.ts'
import { makeApp, read, responseOf } from './messages.ts'

const URI = 'test://thing'
const BYTES = Uint8Array.of(0, 255, 10)

const hi = (): string => 'Hi'

function giving(given: unknown, options: object = {}): Rally {
  const { app } = makeApp()
  return app.resource(URI, { name: 'thing', ...options }, () => given as ReadReturn)
}

const contentsOf = async (given: unknown, options?: object): Promise<unknown> =>
  resultOf(await responseOf(giving(given, options), read(URI)))['contents']

describe('what a resource may give', () => {
  test('a text, with the URI of the request and the type of the resource', async () => {
    expect(resultOf(await responseOf(giving('Hi', { mimeType: 'text/plain' }), read(URI)))).toEqual({
      resultType: 'complete',
      contents: [{ uri: URI, mimeType: 'text/plain', text: 'Hi' }],
      ttlMs: 0,
      cacheScope: 'public',
      _meta: { [META_SERVER_INFO]: { name: 'whole', version: '1.0.0' } },
    })
    expect(await contentsOf('')).toEqual([{ uri: URI, text: '' }])
  })

  test.each([
    ['bytes', BYTES, [{ uri: URI, blob: 'AP8K' }]],
    ['a Buffer', Buffer.from(BYTES), [{ uri: URI, blob: 'AP8K' }]],
    ['a view into a larger buffer', new Uint8Array(BYTES.buffer, 1, 1), [{ uri: URI, blob: '/w==' }]],
    ['a text in an object', { text: 'Hi' }, [{ uri: URI, text: 'Hi' }]],
    [
      'a blob in an object',
      { blob: 'AP8K', mimeType: 'image/png' },
      [{ uri: URI, blob: 'AP8K', mimeType: 'image/png' }],
    ],
    [
      'a list',
      [{ text: 'a' }, { uri: 'test://b', blob: '' }],
      [
        { uri: URI, text: 'a' },
        { uri: 'test://b', blob: '' },
      ],
    ],
    ['an empty list', [], []],
    [
      'a whole result',
      { contents: [{ text: 'a', _meta: { 'x.y/z': 1 } }] },
      [{ uri: URI, text: 'a', _meta: { 'x.y/z': 1 } }],
    ],
  ])('%s', async (_what, given, contents) => {
    expect(await contentsOf(given)).toEqual(contents)
  })

  test('contents with a type of their own keep it', async () => {
    expect(await contentsOf({ text: '{}', mimeType: 'application/json' }, { mimeType: 'text/plain' })).toEqual([
      { uri: URI, mimeType: 'application/json', text: '{}' },
    ])
  })

  test('a whole result has a _meta of its own, beside who the server is', async () => {
    const result = resultOf(await responseOf(giving({ contents: [], _meta: { 'x.y/z': 1 } }), read(URI)))
    expect(result['_meta']).toEqual({ 'x.y/z': 1, [META_SERVER_INFO]: { name: 'whole', version: '1.0.0' } })
  })

  test.each([[undefined], [null]])('%s says that there is no such resource, and the error names it', async (given) => {
    expect(errorOf(await responseOf(giving(given), read(URI)))).toEqual({
      code: -32602,
      message: `Resource not found: ${URI}`,
      data: { uri: URI },
    })
  })

  test.each([
    ['a number', 7],
    ['an object without contents', { mimeType: 'text/plain' }],
    ['a list with something else in it', [{ text: 'a' }, 'b']],
    ['contents that are no list', { contents: { text: 'a' } }],
  ])('%s is an error that says what to return', async (_what, given) => {
    expect(errorOf(await responseOf(giving(given), read(URI)))).toEqual({
      code: -32603,
      message:
        'The resource returned no contents. Return a text, bytes, { text } or { blob }, a list of these, or { contents }.',
    })
  })

  test.each([
    ['a negative ttlMs', { contents: [], ttlMs: -1 }, '`ttlMs` must be a whole number of 0 or more, got -1'],
    ['a broken ttlMs', { contents: [], ttlMs: NaN }, '`ttlMs` must be a whole number of 0 or more, got NaN'],
    ['an unknown cacheScope', { contents: [], cacheScope: '"},{' }, "`cacheScope` must be 'public' or 'private'"],
  ])('%s is an error and never goes out', async (_what, given, said) => {
    expect(errorOf(await responseOf(giving(given), read(URI)))).toMatchObject({
      code: -32603,
      message: expect.stringContaining(said),
    })
  })
})

describe('reading', () => {
  const app = giving('Hi')

  test.each([
    ['unknown', read('test://nothing'), 'Resource not found: test://nothing', { uri: 'test://nothing' }],
    ['no URI', read('constructor'), 'Resource not found: constructor', { uri: 'constructor' }],
    ['missing', request('resources/read'), 'uri must be a string', undefined],
    ['no string', request('resources/read', { uri: [URI] }), 'uri must be a string', undefined],
    [
      'too long',
      read(`test://${'x'.repeat(8186)}`),
      'uri must be at most 8192 bytes long (limits.maxUriBytes)',
      undefined,
    ],
  ])('a URI that is %s is an invalid param', async (_why, message, said, data) => {
    expect(errorOf(await responseOf(app, message))).toEqual({ code: -32602, message: said, ...(data && { data }) })
  })
})

describe('a resource as it is listed', () => {
  test('has all that its options say of it, and a template its template', async () => {
    const { app } = makeApp()
    const shared = {
      title: 'A thing',
      description: 'Something',
      mimeType: 'text/plain',
      icons: [{ src: 'https://example.com/i.png', sizes: ['any'] }],
      annotations: {
        audience: ['user' as const, 'assistant' as const],
        priority: 1,
        lastModified: '2026-07-28T00:00:00Z',
      },
      _meta: { 'x.y/z': 1 },
    }
    app.resource(URI, { name: 'thing', size: 2, version: '1', ttlMs: 5, ...shared }, () => 'Hi')
    app.resourceTemplate('test://{id}', { name: 'things', ...shared }, () => 'Hi')
    expect(resultOf(await responseOf(app, request('resources/list')))['resources']).toEqual([
      { uri: URI, name: 'thing', size: 2, ...shared },
    ])
    expect(resultOf(await responseOf(app, request('resources/templates/list')))['resourceTemplates']).toEqual([
      { uriTemplate: 'test://{id}', name: 'things', ...shared },
    ])
  })
})

describe('registering a resource', () => {
  const { app } = makeApp()
  const named = { name: 'x' }

  test.each([
    ['has no URI', () => app.resource('not a uri', named, hi), '"not a uri" is not a URI'],
    [
      'has no name',
      () => app.resource('a://b', { name: '' }, hi),
      'Resource a://b: `name` must be a string that is not empty.',
    ],
    ['has no options', () => app.resource('a://b', undefined as never, hi), 'Resource a://b: `name` must be a string'],
    [
      'has no reader',
      () => app.resource('a://b', named, undefined as never),
      'Resource a://b: the reader must be a function',
    ],
    [
      'has a broken ttlMs',
      () => app.resource('a://b', { ...named, ttlMs: 0.5 }, hi),
      '`ttlMs` must be a whole number of 0 or more, got 0.5',
    ],
    [
      'has an unknown cacheScope',
      () => app.resource('a://b', { ...named, cacheScope: 'shared' as never }, hi),
      "`cacheScope` must be 'public' or 'private'",
    ],
    ['is a template without a variable', () => app.resourceTemplate('a://b', named, hi), 'it has no variable'],
    [
      'is a template without a reader',
      () => app.resourceTemplate('a://{b}', named, undefined as never),
      'the handler must be a function',
    ],
    [
      'completes a variable that it does not have',
      () => app.resourceTemplate('a://{b}', { ...named, complete: { c: [] } }, hi),
      'Resource template a://{b}: `complete` names "c", which does not exist. It has: b.',
    ],
  ])('is an error at once where it %s', (_why, register, said) => {
    expect(register).toThrow(said)
  })

  test('is an error where the URI or the template is taken', () => {
    app.resource('a://twice', named, hi).resourceTemplate('a://{twice}', named, hi)
    expect(() => app.resource('a://twice', named, hi)).toThrow('The resource "a://twice" is registered already')
    expect(() => app.resourceTemplate('a://{twice}', named, hi)).toThrow(
      'The resource template "a://{twice}" is registered already',
    )
  })
})
