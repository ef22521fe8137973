import { describe, expect, test } from 'vitest'
import type { ClientCall } from './call.ts'
import { paramsOf, readPending, targetOf, targetOfPending } from './call.ts'
import { ClientError } from './errors.ts'
import type { PendingCall } from './saved.ts'

const calls: [string, ClientCall, Pick<PendingCall, 'method' | 'params'>][] = [
  [
    'a tool',
    { tool: 'a', arguments: { b: [1, null] } },
    { method: 'tools/call', params: { name: 'a', arguments: { b: [1, null] } } },
  ],
  ['a tool without arguments', { tool: 'a' }, { method: 'tools/call', params: { name: 'a' } }],
  [
    'a prompt',
    { prompt: 'a', arguments: { b: 'c' } },
    { method: 'prompts/get', params: { name: 'a', arguments: { b: 'c' } } },
  ],
  ['a prompt without arguments', { prompt: 'a' }, { method: 'prompts/get', params: { name: 'a' } }],
  ['a resource', { resource: 'a://"b"' }, { method: 'resources/read', params: { uri: 'a://"b"' } }],
]

test.each(calls)('a call of %s has its method and params', (_what, call, { method, params }) => {
  const target = targetOf(call)
  expect(target).toMatchObject({ call, method })
  expect(paramsOf(target)).toEqual(params)
})

test.each(calls)('a pending round of %s is the same call again', (_what, call, pending) => {
  expect(targetOfPending({ ...pending, version: 1, revision: '2026-07-28' } as PendingCall)).toEqual(targetOf(call))
})

test('the arguments of a call are those it was begun with', () => {
  const args = { list: [1] }
  const target = targetOf({ tool: 'a', arguments: args })
  args.list.push(2)
  expect(paramsOf(target)).toEqual({ name: 'a', arguments: { list: [1] } })
})

const pending = {
  version: 1,
  revision: '2026-07-28',
  method: 'tools/call',
  params: { name: 'deploy', arguments: { env: 'prod' } },
  inputRequests: { sure: { method: 'roots/list' } },
  requestState: 'opaque',
}

describe('a pending round', () => {
  test.each<[string, object]>([
    ['of a tool', pending],
    ['of a tool without arguments', { ...pending, params: { name: 'deploy' } }],
    ['of a prompt', { ...pending, method: 'prompts/get' }],
    ['of a resource', { ...pending, method: 'resources/read', params: { uri: 'a://b' } }],
    ['with questions alone', { ...pending, requestState: undefined }],
    ['with a state alone', { ...pending, inputRequests: undefined }],
  ])('%s is taken up as it is', (_what, given) => {
    expect(readPending(given)).toBe(given)
  })

  const nested = (depth: number): object => (depth === 0 ? {} : { a: nested(depth - 1) })

  test.each<[string, unknown, string | RegExp]>([
    ['its text', JSON.stringify(pending), 'Pass the result of JSON.parse'],
    ['null', null, 'it must be an object, got null'],
    ['of another version', { ...pending, version: 2 }, 'its version must be 1, got 2'],
    [
      'of another revision',
      { ...pending, revision: '2031-01-01' },
      /its revision must be one of 2026.*, got "2031-01-01"/,
    ],
    [
      'of another method',
      { ...pending, method: 'tools/list' },
      'its method must be tools/call, prompts/get or resources/read, got "tools/list"',
    ],
    ['without params', { ...pending, params: undefined }, 'its params must be an object'],
    ['without a name', { ...pending, params: {} }, 'its params.name must be a string'],
    ['without a uri', { ...pending, method: 'resources/read' }, 'its params.uri must be a string'],
    [
      'with arguments in a list',
      { ...pending, params: { name: 'a', arguments: [] } },
      'its params.arguments must be an object',
    ],
    ['with a state that is no text', { ...pending, requestState: 7 }, 'its requestState must be a string'],
    ['with questions in a list', { ...pending, inputRequests: [] }, 'its inputRequests must be an object'],
    ['with nothing to go on from', { ...pending, inputRequests: undefined, requestState: undefined }, 'neither'],
    ['nested without end', { ...pending, inputRequests: { a: nested(200) } }, 'it is nested more than 100 levels deep'],
  ])('that is %s is refused', (_what, given, why) => {
    expect(() => readPending(given)).toThrow(ClientError)
    expect(() => readPending(given)).toThrow('Cannot resume the pending call: ')
    expect(() => readPending(given)).toThrow(why)
  })
})
