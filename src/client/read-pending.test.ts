import { describe, expect, test } from 'vitest'
import { ClientError } from './errors.ts'
import { readPending } from './read-pending.ts'

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

  test.each<[string, unknown, string]>([
    ['its text', JSON.stringify(pending), 'give what JSON.parse makes of its text'],
    ['null', null, 'it is no object'],
    ['of another version', { ...pending, version: 2 }, 'its version is 2, and this client reads 1'],
    [
      'of another revision',
      { ...pending, revision: '2031-01-01' },
      'its revision is "2031-01-01", and this client speaks 2026',
    ],
    ['of another method', { ...pending, method: 'tools/list' }, 'its method is none that takes several rounds'],
    ['without params', { ...pending, params: undefined }, 'its params are no object'],
    ['without a name', { ...pending, params: {} }, 'its params have no name'],
    ['without a uri', { ...pending, method: 'resources/read' }, 'its params have no uri'],
    ['with arguments in a list', { ...pending, params: { name: 'a', arguments: [] } }, 'its arguments are no object'],
    ['with a state that is no text', { ...pending, requestState: 7 }, 'its requestState is no text'],
    ['with questions in a list', { ...pending, inputRequests: [] }, 'its inputRequests are no object'],
    ['with nothing to go on from', { ...pending, inputRequests: undefined, requestState: undefined }, 'neither'],
    ['nested without end', { ...pending, inputRequests: { a: nested(200) } }, 'it is nested too deeply'],
  ])('that is %s is refused', (_what, given, why) => {
    expect(() => readPending(given)).toThrow(ClientError)
    expect(() => readPending(given)).toThrow('The pending round cannot be taken up: ')
    expect(() => readPending(given)).toThrow(why)
  })
})
