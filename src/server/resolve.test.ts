import { describe, expect, test } from 'vitest'
import { rally } from 'mcp-rally'

describe('the scopes that a message needs', () => {
  const app = rally({ name: 'scoped', version: '1', logger: { warn() {}, error() {} } })
  app.tool('drop', { scopes: ['tool'] }, () => 'Dropped.')
  app.tool('list', {}, () => 'Listed.')
  app.prompt('open', {}, () => 'Open.')
  app.prompt('secret', { scopes: ['prompt'] }, () => 'Secret.')
  app.resource('config://app', { name: 'config', scopes: ['resource'] }, () => '{}')
  app.resourceTemplate('users://{id}', { name: 'user', scopes: ['template'] }, ({ id }) => id)

  test.each<[string, string, object, string[] | undefined]>([
    ['a tool', 'tools/call', { name: 'drop' }, ['tool']],
    ['a tool without any', 'tools/call', { name: 'list' }, undefined],
    ['a tool that is not there', 'tools/call', { name: 'gone' }, undefined],
    ['a prompt', 'prompts/get', { name: 'secret' }, ['prompt']],
    ['a resource', 'resources/read', { uri: 'config://app' }, ['resource']],
    ['a resource of a template', 'resources/read', { uri: 'users://7' }, ['template']],
    ['a completion for a prompt', 'completion/complete', { ref: { type: 'ref/prompt', name: 'secret' } }, ['prompt']],
    [
      'a completion for a template',
      'completion/complete',
      { ref: { type: 'ref/resource', uri: 'users://{id}' } },
      ['template'],
    ],
    [
      'a completion for a fixed resource',
      'completion/complete',
      { ref: { type: 'ref/resource', uri: 'config://app' } },
      ['resource'],
    ],
    [
      'a reference with a name and a URI, which names nothing',
      'completion/complete',
      { ref: { type: 'ref/resource', uri: 'users://{id}', name: 'open' } },
      undefined,
    ],
    ['an older subscription', 'resources/subscribe', { uri: 'users://7' }, ['template']],
    [
      'a subscription to several resources',
      'subscriptions/listen',
      { notifications: { resourceSubscriptions: ['config://app', 'users://7', 'users://8', 'other://x', 7] } },
      ['resource', 'template'],
    ],
    ['a subscription to lists', 'subscriptions/listen', { notifications: { toolsListChanged: true } }, undefined],
    ['a completion for nothing', 'completion/complete', { ref: 7 }, undefined],
    ['a list', 'tools/list', {}, undefined],
  ])('are those of %s', (_what, method, params, scopes) => {
    expect(app.resolve({ jsonrpc: '2.0', id: 1, method, params }).scopes).toEqual(scopes)
  })

  test.each([undefined, null, 7, [], {}, { params: 7 }])('are none where it is no message: %j', (message) => {
    expect(app.resolve(message).scopes).toBeUndefined()
  })
})

describe('the kind of a message', () => {
  const app = rally({ name: 'kinds', version: '1', logger: { warn() {}, error() {} } })

  test.each<[string, unknown, string, unknown]>([
    ['a request', { jsonrpc: '2.0', id: 1, method: 'tools/list' }, 'request', 1],
    ['a notification', { jsonrpc: '2.0', method: 'notifications/cancelled' }, 'notification', undefined],
    ['a request of another version', { jsonrpc: '1.0', id: 'a', method: 'tools/list' }, 'invalid', 'a'],
    ['a request with a broken id', { jsonrpc: '2.0', id: null, method: 'tools/list' }, 'invalid', undefined],
    ['params that are a list', { jsonrpc: '2.0', id: 1, method: 'tools/list', params: [] }, 'invalid', 1],
    ['a response', { jsonrpc: '2.0', id: 1, result: {} }, 'invalid', 1],
    ['a batch', [{ jsonrpc: '2.0', id: 1, method: 'tools/list' }], 'invalid', undefined],
    ['a text', 'tools/list', 'invalid', undefined],
  ])('of %s', (_what, message, kind, id) => {
    expect(app.resolve(message)).toMatchObject({ kind, id })
  })
})
