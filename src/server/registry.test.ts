import { describe, expect, test } from 'vitest'
import { rally } from 'mcp-rally'

describe('the scopes that a message needs', () => {
  const app = rally({ name: 'scoped', version: '1', logger: { warn() {}, error() {} } })
  app.tool('drop', { scopes: ['tool'] }, () => 'Dropped.')
  app.tool('list', {}, () => 'Listed.')
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
    ['a completion for nothing', 'completion/complete', { ref: 7 }, undefined],
    ['a list', 'tools/list', {}, undefined],
  ])('are those of %s', (_what, method, params, scopes) => {
    expect(app.requiredScopes({ jsonrpc: '2.0', id: 1, method, params })).toEqual(scopes)
  })

  test.each([undefined, null, 7, [], {}, { params: 7 }])('are none where it is no message: %j', (message) => {
    expect(app.requiredScopes(message)).toBeUndefined()
  })
})
