// Telling servers that the roots have changed.
import type { ClientOptions } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { afterEach, expect, test } from 'vitest'
import { closeAll, olderConnection, text } from './legacy-raw.ts'
import { json, RawServer } from './raw-server.ts'
import { textOf } from './wires.ts'

afterEach(closeAll)

const CHANGED = 'notifications/roots/list_changed'
const listing: ClientOptions = { onRoots: () => [{ uri: 'file:///a' }] }

test('an older server is told that it will be, and then each time that it is', async () => {
  const { client, server } = await olderConnection({}, listing)
  const [introduced] = server.of('initialize')
  expect(introduced?.message.params).toMatchObject({ capabilities: { roots: { listChanged: true } } })
  expect(server.of(CHANGED)).toEqual([])
  await client.rootsChanged()
  await client.rootsChanged()
  expect(server.of(CHANGED)).toHaveLength(2)
  expect(server.of(CHANGED)[0]).toMatchObject({
    message: { jsonrpc: '2.0', method: CHANGED },
    headers: { 'mcp-session-id': 's1', 'mcp-protocol-version': '2025-11-25' },
  })
})

test('a server of 2026-07-28 is told neither', async () => {
  const server = new RawServer(({ id, params }, response) =>
    json(response, { id, result: { resultType: 'complete', ...text(JSON.stringify(params?.['_meta'])) } }),
  )
  const client = await connect(await server.listen(), listing)
  await client.rootsChanged()
  expect(JSON.parse(textOf(await client.callTool('look')) ?? '')).toMatchObject({
    'io.modelcontextprotocol/clientCapabilities': { roots: {} },
  })
  expect(server.posted.map(({ method }) => method)).toEqual(['tools/call'])
  await client.close()
  await server.close()
})

test('a session that is gone takes what it knew with it', async () => {
  const { client, server } = await olderConnection(
    { [CHANGED]: (response) => void response.writeHead(404).end() },
    listing,
  )
  await client.rootsChanged()
  expect(server.of(CHANGED)).toHaveLength(1)
  // The next one begins with the next request, and there is nothing to be told before.
  await client.rootsChanged()
  expect(server.of(CHANGED)).toHaveLength(1)
})

test('a server that does not take it is told of', async () => {
  const { client } = await olderConnection({ [CHANGED]: (response) => void response.writeHead(400).end() }, listing)
  await expect(client.rootsChanged()).rejects.toMatchObject({ code: 'HTTP_STATUS', status: 400 })
})

test('a client without roots, or without a server, says so', async () => {
  const { client } = await olderConnection({})
  await expect(client.rootsChanged()).rejects.toMatchObject({
    code: 'OPTION_INVALID',
    message: 'rootsChanged(): this client does not declare roots. Pass onRoots to connect().',
  })
  const closed = await olderConnection({}, listing)
  await closed.client.close()
  await expect(closed.client.rootsChanged()).rejects.toMatchObject({ code: 'CLOSED' })
})
