// Our client against the official v2 server as it serves the 2025 era without sessions: every request meets a new instance.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { NodeIncomingMessageLike } from '@modelcontextprotocol/node'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, inputRequired, legacyStatelessFallback, McpServer } from '@modelcontextprotocol/server'
import type { Client, LogEntry, ProgressUpdate } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { textOf } from './wires.ts'

let instances = 0

function newServer(): McpServer {
  instances += 1
  const server = new McpServer({ name: 'stateless', version: '1.0.0' }, { capabilities: { logging: {} } })
  server.registerTool(
    'add',
    { inputSchema: z.object({ a: z.number(), b: z.number() }), outputSchema: z.object({ sum: z.number() }) },
    async ({ a, b }) => ({ content: [{ type: 'text', text: `${a + b}` }], structuredContent: { sum: a + b } }),
  )
  server.registerTool('work', {}, async ({ mcpReq }) => {
    const { progressToken = '' } = mcpReq._meta ?? {}
    const params = { progressToken, progress: 1, total: 2, message: 'half' }
    await mcpReq.notify({ method: 'notifications/progress', params })
    await mcpReq.log('warning', 'late')
    return { content: [{ type: 'text', text: 'Worked.' }] }
  })
  server.registerTool('deploy', {}, async () => {
    const requestedSchema = { type: 'object' as const, properties: { sure: { type: 'boolean' as const } } }
    return inputRequired({ inputRequests: { sure: inputRequired.elicit({ message: 'Sure?', requestedSchema }) } })
  })
  server.registerPrompt('brief', { argsSchema: z.object({ topic: z.string() }) }, async ({ topic }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `About ${topic}` } }],
  }))
  server.registerResource('plain', 'note://plain', {}, async ({ href: uri }) => ({
    contents: [{ uri, text: 'A note.' }],
  }))
  return server
}

/** Every request that came, by its verb, and the session that it named. */
const seen: [verb: string, session: string | undefined][] = []
const http = createServer(async (request, response) => {
  const { method = '', url, headers } = request
  seen.push([method, headers['mcp-session-id'] as string | undefined])
  await (url === '/both' ? both : olderOnly)(request as NodeIncomingMessageLike, response)
})
const both = toNodeHandler(createMcpHandler(newServer))
const olderOnly = toNodeHandler({ fetch: legacyStatelessFallback(newServer) })

let address: string
beforeAll(async () => {
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  address = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
})
afterAll(async () => {
  http.close()
  http.closeAllConnections()
  await once(http, 'close')
})

test('a server that serves both eras is spoken to in the newer one', async () => {
  const client = await connect(`${address}/both`)
  expect(client.revision).toBe('2026-07-28')
  await client.close()
})

describe.each([
  ['that serves both eras, in 2025-11-25', '/both', { revision: '2025-11-25' }],
  ['that serves both eras, in 2025-06-18', '/both', { revision: '2025-06-18' }],
  ['that serves the older one alone', '/older', {}],
])('a server %s', (_what, path, options) => {
  let client: Client
  const asked = vi.fn<() => { action: 'accept' }>(() => ({ action: 'accept' }))
  const logged: LogEntry[] = []
  beforeAll(async () => {
    seen.length = 0
    client = await connect(`${address}${path}`, { ...options, onElicit: asked, onLog: (entry) => logged.push(entry) })
  })

  test('is met in its own era, and says who it is', () => {
    expect(client.revision).toBe('revision' in options ? options.revision : '2025-11-25')
    expect(client.server).toMatchObject({ name: 'stateless', version: '1.0.0' })
  })

  test('has its tools called and listed, by an instance for each request', async () => {
    const before = instances
    expect((await client.listTools()).map(({ name }) => name)).toEqual(['add', 'work', 'deploy'])
    expect((await client.callTool('add', { a: 2, b: 3 })).structuredContent).toEqual({ sum: 5 })
    expect(instances).toBe(before + 2)
  })

  test('has prompts and resources', async () => {
    expect(await client.getPrompt('brief', { topic: 'moon' })).toMatchObject({
      messages: [{ content: { text: 'About moon' } }],
    })
    expect(await client.readResource('note://plain')).toMatchObject({ contents: [{ text: 'A note.' }] })
  })

  test('tells of its progress, and of what it logs, on the stream of the call', async () => {
    const progress: ProgressUpdate[] = []
    await client.callTool('work', {}, { onProgress: (each) => void progress.push(each) })
    expect(progress).toEqual([{ progress: 1, total: 2, message: 'half' }])
    expect(logged).toEqual([{ level: 'warning', data: 'late' }])
  })

  test('cannot ask, and its tool says so', async () => {
    const result = await client.callTool('deploy')
    expect(result.isError).toBe(true)
    expect(textOf(result)).toMatch(/cannot receive server-to-client requests/)
    expect(asked).not.toHaveBeenCalled()
  })

  test('has nothing to tell beside its calls, which is no reason to fail', async () => {
    const changes = client.subscribe({ tools: true })
    expect(await changes.next()).toMatchObject({ value: { type: 'acknowledged', accepted: {} } })
    await changes.return()
  })

  test('is left without a farewell, because there is no session to end', async () => {
    await client.close()
    expect(seen.map(([, session]) => session)).toEqual(seen.map(() => undefined))
    expect(seen.map(([verb]) => verb)).not.toContain('DELETE')
    expect(seen.filter(([verb]) => verb === 'GET')).toHaveLength(1)
  })
})
