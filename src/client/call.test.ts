import { expect, test } from 'vitest'
import type { ClientCall } from './call.ts'
import { paramsOf, targetOf, targetOfPending } from './call.ts'
import type { PendingCall } from './pending.ts'

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
