// Headers that a proxy may route by must agree with the body in sessions too, and what a request costs is bounded before its
// messages are looked at.
import { rally } from 'mcp-rally'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { KEYS } from './app.mjs'
import type { Ask } from './raw.ts'
import { hosts, RawSession } from './raw.ts'

const region = { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } } as const

function routedApp(): ReturnType<typeof rally> {
  const app = rally({ name: 'routed', version: '1', keys: KEYS, logger: { warn() {}, error() {} } })
  app.tool('deploy', { input: region }, ({ region: where }) => `Deployed to ${String(where)}`)
  app.tool('secret', { scopes: ['admin'] }, () => 'Secret')
  app.resource('data://one', { name: 'one' }, () => 'One')
  return app
}

describe.each(hosts)('$name', (host) => {
  let ask: Ask
  let close: () => Promise<void>
  let session: RawSession
  beforeEach(async () => {
    ;({ ask, close } = await host.open(routedApp()))
    session = await RawSession.open(ask, { revision: '2025-03-26' })
  })
  afterEach(() => close())

  test.each([
    ['resources/read', { uri: 'data://one', name: 'data://two' }, 'data://two', [400, -32020]],
    ['resources/read', { uri: 'data://one', name: 'data://two' }, 'data://one', 200],
    ['tools/call', { name: 'deploy', uri: 'secret' }, 'secret', [400, -32020]],
    ['tools/call', { name: 'deploy', uri: 'secret' }, 'deploy', 200],
    ['resources/subscribe', { uri: 'data://one', name: 'x' }, 'x', [400, -32020]],
    ['resources/subscribe', { uri: 'data://one', name: 'x' }, 'data://one', 200],
    ['tools/call', { uri: 'deploy' }, 'deploy', [400, -32020]],
    ['ping', { name: 'deploy' }, 'deploy', [400, -32020]],
  ])('Mcp-Name of %s with %j is compared with what is served: %s', async (method, params, name, expected) => {
    expect(await statusOf(session.request(method, params, { 'Mcp-Name': name }))).toEqual(expected)
  })

  test('Mcp-Param headers need not be sent, and must agree when they are', async () => {
    const deploy = (args: object, headers?: Record<string, string>): Promise<unknown> =>
      statusOf(session.call('deploy', args, headers))
    expect(await deploy({ region: 'eu' })).toBe(200)
    expect(await deploy({ region: 'eu' }, { 'Mcp-Param-Region': 'eu' })).toBe(200)
    expect(await deploy({ region: 'eu' }, { 'Mcp-Param-Region': 'us' })).toEqual([400, -32020])
    expect(await deploy({}, { 'Mcp-Param-Region': 'us' })).toEqual([400, -32020])
    const batch = [
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'deploy', arguments: { region: 'eu' } } },
    ]
    expect(await statusOf(session.post(batch, { 'Mcp-Param-Region': 'us' }))).toEqual([400, -32020])
    expect((await session.post(batch, { 'Mcp-Param-Region': 'eu' })).status).toBe(200)
  })

  test('the session comes first, then the size of a batch, then the scopes of its messages', async () => {
    const secret = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'secret' } }
    const stranger = new RawSession(ask, 'se1.unknown')
    expect(await statusOf(stranger.post([secret]))).toEqual([404, -32600])
    expect(await statusOf(stranger.post(secret))).toEqual([404, -32600])
    expect(await statusOf(session.post(Array.from({ length: 101 }, () => secret)))).toEqual([400, -32600])
    expect(await statusOf(session.post([secret]))).toEqual([403, -32600])
    expect(await statusOf(session.post(secret))).toEqual([403, -32600])
  })
})

/** With the code of the error, if there is one. */
async function statusOf(sent: Promise<Response>): Promise<unknown> {
  const response = await sent
  const { error } = (await response.json()) as { error?: { code: number } }
  return error === undefined ? response.status : [response.status, error.code]
}
