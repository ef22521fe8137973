import { rally, send } from 'mcp-rally'
import { expect, test } from 'vitest'
import { errorOf, request } from '../wire/messages.ts'

const app = rally({ name: 'handshake', version: '1.0.0' })

test('A client that begins with the handshake of an older revision is told which revisions are spoken', async () => {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'old', version: '1.0.0' } }
  for (const meta of [{}, { _meta: { progressToken: 1 } }]) {
    const message = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { ...params, ...meta } }
    expect(errorOf(await send(app, message))).toMatchObject({
      code: -32022,
      data: { supported: ['2026-07-28'], requested: '2025-11-25' },
    })
  }
})

test('A request that names its revision finds no method "initialize" there', async () => {
  expect(errorOf(await send(app, request('initialize')))).toMatchObject({ code: -32601 })
})
