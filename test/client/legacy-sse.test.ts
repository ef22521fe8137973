// The transport of 2024-11-05, by which a client reaches servers that take no POST at their address.
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { ClientOptions } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { afterEach, describe, expect, test } from 'vitest'
import { listenSse } from './legacy-server.mjs'
import { textOf } from './wires.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (let close = closing.pop(); close !== undefined; close = closing.pop()) await close()
})

interface Posted {
  readonly id?: number
  readonly method?: string
}

interface SseServer {
  readonly url: string
  readonly posted: Posted[]
  /** The headers of every request. */
  readonly heads: IncomingMessage['headers'][]
  /** Of each stream that was opened. */
  readonly streams: ServerResponse[]
}

interface Script {
  /** The data of the first event. Default: `/post`. */
  readonly endpoint?: (url: string) => string
  /** The answer to a request that is not `initialize`. */
  readonly answer?: (message: Posted, server: SseServer, post: ServerResponse) => void
}

const RESULT = { content: [{ type: 'text', text: 'Done.' }] }
const INITIALIZED = {
  protocolVersion: '2024-11-05',
  capabilities: { tools: {} },
  serverInfo: { name: 'old', version: '1' },
}

function say(server: SseServer, more: object): void {
  server.streams.at(-1)?.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...more })}\n\n`)
}

async function sseServer({ endpoint = () => '/post', answer }: Script = {}): Promise<SseServer> {
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<unknown> => {
    server.heads.push(request.headers)
    if (request.method === 'GET' && request.url === '/sse') {
      server.streams.push(response)
      response.writeHead(200, { 'Content-Type': 'text/event-stream' })
      return response.write(`event: endpoint\ndata: ${endpoint(server.url)}\n\n`)
    }
    if (request.url !== '/post') return response.writeHead(404).end('Cannot POST /sse')
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const message = JSON.parse(Buffer.concat(chunks).toString()) as Posted
    server.posted.push(message)
    const { id, method } = message
    if (answer !== undefined && id !== undefined && method !== 'initialize') return answer(message, server, response)
    response.writeHead(202).end('Accepted')
    if (id !== undefined) say(server, { id, result: method === 'initialize' ? INITIALIZED : RESULT })
    return undefined
  }
  const http = createServer((request, response) => void serve(request, response))
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  const { port } = http.address() as AddressInfo
  const server: SseServer = { url: `http://127.0.0.1:${port}/sse`, posted: [], heads: [], streams: [] }
  closing.push(async () => {
    http.close()
    http.closeAllConnections()
    await once(http, 'close')
  })
  return server
}

async function open(url: string, options: ClientOptions = {}): ReturnType<typeof connect> {
  const client = await connect(url, { logger: { warn: () => {}, error: () => {} }, ...options })
  closing.push(() => client.close())
  return client
}

test.each<[by: string, options: ClientOptions]>([
  ["Node's HTTP client", {}],
  ['fetch', { fetch: (url, init) => fetch(url, init) }],
])('is used after a POST was refused, with the headers of the user, by %s', async (_by, options) => {
  const server = await sseServer()
  const client = await open(server.url, { ...options, headers: { Authorization: 'Bearer t' } })
  expect(client.revision).toBe('2024-11-05')
  expect(client.server.name).toBe('old')
  expect(textOf(await client.callTool('go'))).toBe('Done.')
  expect(server.streams).toHaveLength(1)
  expect(server.heads.every(({ authorization }) => authorization === 'Bearer t')).toBe(true)
})

test('is used with the revision that the user names', async () => {
  const { url } = await sseServer()
  expect((await open(url, { revision: '2024-11-05' })).revision).toBe('2024-11-05')
})

describe('an address to post to', () => {
  test.each([
    ['of another origin', () => 'http://127.0.0.1:1/post'],
    ['of another scheme', (url: string) => url.replace('http:', 'https:')],
    ['that is none', () => 'http://['],
  ])('%s is refused, and nothing is posted', async (_what, endpoint) => {
    const server = await sseServer({ endpoint })
    await expect(open(server.url)).rejects.toMatchObject({ code: 'HTTP_STATUS', status: 404 })
    expect(server.posted).toEqual([])
  })

  test('may be a whole URL', async () => {
    const { url } = await sseServer({ endpoint: (address) => address.replace('/sse', '/post') })
    expect(textOf(await (await open(url)).callTool('go'))).toBe('Done.')
  })
})

test('a stream that ends fails its calls, and the next call begins a new session', async () => {
  let ends = 1
  const server = await sseServer({
    answer: ({ id }, { streams }, post) => {
      post.writeHead(202).end('Accepted')
      ends -= 1
      if (ends >= 0) streams.at(-1)?.end()
      else say(server, { id, result: RESULT })
    },
  })
  const client = await open(server.url)
  await expect(client.callTool('go')).rejects.toMatchObject({ code: 'LOST' })
  expect(textOf(await client.callTool('go'))).toBe('Done.')
  expect(server.streams).toHaveLength(2)
  expect(server.posted.filter(({ method }) => method === 'initialize')).toHaveLength(2)
})

test('a POST that is refused fails its call alone', async () => {
  const server = await sseServer({
    answer: ({ id }, _server, post) => {
      if (server.posted.filter(({ method }) => method === 'tools/call').length === 1) {
        return post.writeHead(413).end('Too large')
      }
      post.writeHead(202).end('Accepted')
      say(server, { id, result: RESULT })
    },
  })
  const client = await open(server.url)
  await expect(client.callTool('go')).rejects.toMatchObject({ code: 'HTTP_STATUS', status: 413 })
  expect(textOf(await client.callTool('go'))).toBe('Done.')
})

test('a call that is aborted tells the server', async () => {
  const abort = new AbortController()
  const server = await sseServer({
    answer: (_message, _server, post) => {
      post.writeHead(202).end('Accepted')
      abort.abort()
    },
  })
  const client = await open(server.url)
  await expect(client.callTool('go', {}, { signal: abort.signal })).rejects.toThrow(/abort/i)
  await expect.poll(() => server.posted.some(({ method }) => method === 'notifications/cancelled')).toBe(true)
})

test('a server that has neither is described by how it answered the POST', async () => {
  const http = createServer((_request, response) => response.writeHead(404).end('nothing here'))
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  closing.push(async () => http.close())
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/sse`
  await expect(open(url)).rejects.toMatchObject({ code: 'HTTP_STATUS', status: 404 })
})

test('a session ends with its client', async () => {
  const { url, sessions, close } = await listenSse()
  const client = await connect(url)
  expect(sessions.size).toBe(1)
  await client.close()
  await expect.poll(() => sessions.size).toBe(0)
  await close()
})
