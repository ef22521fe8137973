// The client over HTTP, by Node's own client and by fetch: what it sends, what it takes, and what it does not take.
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { ClientOptions } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { serve } from 'mcp-rally/node'
import { rally } from 'mcp-rally'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import type { Answering, RawConnection } from './raw-server.ts'
import { event, events, json, rawConnection, RawServer } from './raw-server.ts'
import { asks, done, YES, yes } from './scripted.ts'
import { textOf } from './wires.ts'

const open = new Set<RawConnection>()
afterEach(async () => {
  for (const connection of open) await connection.close()
  open.clear()
})

const fine: Answering = ({ id }, response) => json(response, { id, result: done('ok') })

const plain =
  (status: number, headers: Record<string, string>, body = ''): Answering =>
  (_posted, response) =>
    void response.writeHead(status, headers).end(body)

const byNode: ClientOptions = {}
const byFetch: ClientOptions = { fetch: (url, init) => fetch(url, init) }

describe.each([
  ["Node's client", byNode],
  ['fetch', byFetch],
])('by %s', (_name, wire) => {
  async function connection(answering: Answering, options: ClientOptions = {}): Promise<RawConnection> {
    const made = await rawConnection(answering, { ...wire, ...options })
    open.add(made)
    return made
  }

  describe('a request', () => {
    test('repeats in its headers what proxies route by', async () => {
      const { client, server } = await connection(({ id, method }, response) =>
        json(response, {
          id,
          result: method === 'completion/complete' ? { completion: { values: [] } } : RESULTS[method],
        }),
      )
      await client.callTool('deploy')
      await client.getPrompt('caf\u00e9')
      await client.readResource('file:///a b')
      await client.listTools()
      await client.complete({ type: 'ref/prompt', name: 'a' }, { name: 'b', value: 'c' })
      expect(
        server.posted.map(({ headers }) => [
          headers['mcp-method'],
          headers['mcp-name'],
          headers['mcp-protocol-version'],
          headers['content-type'],
          headers.accept,
        ]),
      ).toEqual(
        [
          ['tools/call', 'deploy'],
          ['prompts/get', '=?base64?Y2Fmw6k=?='],
          ['resources/read', 'file:///a b'],
          ['tools/list', undefined],
          ['completion/complete', undefined],
        ].map(([method, name]) => [
          method,
          name,
          '2026-07-28',
          'application/json',
          'application/json, text/event-stream',
        ]),
      )
    })

    test('has the headers of the options, those of a function anew each time', async () => {
      const fixed = await connection(fine, { headers: { Authorization: 'Bearer one', 'X-Team': 'a' } })
      await fixed.client.callTool('deploy')
      expect(fixed.server.posted[0]?.headers).toMatchObject({ authorization: 'Bearer one', 'x-team': 'a' })
      let calls = 0
      const fresh = await connection(fine, { headers: async () => ({ Authorization: `Bearer ${(calls += 1)}` }) })
      await fresh.client.callTool('deploy')
      await fresh.client.callTool('deploy')
      expect(fresh.server.posted.map(({ headers }) => headers.authorization)).toEqual(['Bearer 2', 'Bearer 3'])
    })

    test('is not sent where its headers cannot be had', async () => {
      const mistake = new Error('no token')
      let fails = false
      const { client, server } = await connection(({ id }, response) => json(response, { id, result: done('ok') }), {
        headers: () => {
          if (fails) throw mistake
          return {}
        },
      })
      fails = true
      await expect(client.callTool('deploy')).rejects.toBe(mistake)
      expect(server.posted).toEqual([])
    })

    test('that is aborted is gone from the server too', async () => {
      const gone: Promise<unknown>[] = []
      const controller = new AbortController()
      const { client } = await connection((_posted, response) => {
        gone.push(once(response, 'close'))
        controller.abort('enough')
      })
      await expect(client.callTool('deploy', {}, { signal: controller.signal })).rejects.toMatchObject({
        code: 'ABORTED',
        cause: 'enough',
      })
      await Promise.all(gone)
    })

    test('that was aborted before is never sent', async () => {
      const { client, server } = await connection(({ id }, response) => json(response, { id, result: done('ok') }))
      await expect(client.callTool('deploy', {}, { signal: AbortSignal.abort() })).rejects.toMatchObject({
        code: 'ABORTED',
      })
      expect(server.posted).toEqual([])
    })
  })

  describe('a response is taken', () => {
    test.each<[string, (id: number, response: ServerResponse) => void]>([
      [
        'as JSON in small pieces',
        (id, response) => {
          response.writeHead(200, { 'Content-Type': 'application/json' })
          const bytes = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, result: done('\u00e9\u{1f600}') }))
          for (const byte of bytes) response.write(Buffer.from([byte]))
          response.end()
        },
      ],
      [
        'as an event',
        (id, response) => {
          events(response, event({ id, result: done('\u00e9\u{1f600}') }))
          response.end()
        },
      ],
      [
        'as an event in small pieces, among comments, notifications and other events',
        (id, response) => {
          const text = `\uFEFF: hello\r\rid: 1\r\nevent: message\r\ndata: {"jsonrpc":"2.0",\r\ndata: "method":"notifications/message","params":{"level":"info","data":1}}\r\n\r\nevent: ping\ndata: nonsense\n\n${event({ id, result: done('\u00e9\u{1f600}') })}`
          events(response)
          for (const byte of Buffer.from(text)) response.write(Buffer.from([byte]))
          response.end()
        },
      ],
    ])('%s', async (_how, answer) => {
      const onLog = vi.fn<() => void>()
      const { client } = await connection(({ id }, response) => answer(id, response), { onLog })
      expect(textOf(await client.callTool('deploy'))).toBe('\u00e9\u{1f600}')
      expect(onLog.mock.calls.length).toBeLessThanOrEqual(1)
    })

    test('at once, also from a stream that the server leaves open, and the connection is not', async () => {
      const gone: Promise<unknown>[] = []
      const { client } = await connection(({ id }, response) => {
        gone.push(once(response, 'close'))
        events(response, event({ id, result: done('ok') }))
      })
      expect(textOf(await client.callTool('deploy'))).toBe('ok')
      await Promise.all(gone)
    })

    test('with the error of the server, whatever the status and the id', async () => {
      const { client } = await connection((_posted, response) =>
        json(response, { id: null, error: { code: -32600, message: 'Not so.', data: { a: 1 } } }, 400),
      )
      await expect(client.callTool('deploy')).rejects.toMatchObject({
        rpcCode: -32600,
        message: 'Not so.',
        data: { a: 1 },
      })
    })
  })

  describe('a response is refused, and the client stays usable,', () => {
    test.each<[string, Answering, object]>([
      [
        'that is no JSON',
        plain(200, { 'Content-Type': 'application/json' }, '{'),
        { code: 'BAD_RESPONSE', message: expect.stringContaining('it is not JSON') },
      ],
      ['that is a page', plain(200, { 'Content-Type': 'text/html' }, '<html>'), { code: 'BAD_RESPONSE' }],
      [
        'that is a list',
        plain(200, {}, '[]'),
        { code: 'BAD_RESPONSE', message: expect.stringContaining('not a JSON-RPC 2.0 message') },
      ],
      [
        'to a request that was not made',
        ({ id }, response) => json(response, { id: id + 1, result: done('no') }),
        { code: 'BAD_RESPONSE', message: expect.stringContaining('its id is not the id of the request') },
      ],
      [
        'whose id is a text',
        ({ id }, response) => json(response, { id: String(id), result: done('no') }),
        { code: 'BAD_RESPONSE' },
      ],
      [
        'without a result',
        ({ id }, response) => json(response, { id }),
        { code: 'BAD_RESPONSE', message: expect.stringContaining('neither a result nor an error') },
      ],
      [
        'whose error is none',
        ({ id }, response) => json(response, { id, error: { message: 'a' } }),
        { code: 'BAD_RESPONSE' },
      ],
      [
        'that is empty',
        plain(202, {}),
        { code: 'BAD_RESPONSE', message: expect.stringContaining('HTTP 202 without a body') },
      ],
      [
        'that asks who is calling',
        plain(401, { 'WWW-Authenticate': 'Bearer realm="a"' }),
        { code: 'UNAUTHORIZED', status: 401, challenge: 'Bearer realm="a"' },
      ],
      [
        'that forbids it',
        (_posted, response) => json(response, { error: { code: -32600, message: 'Not you.' } }, 403),
        { code: 'UNAUTHORIZED', status: 403, message: expect.stringContaining('Not you.') },
      ],
      [
        'of nobody who is there',
        plain(404, { 'Content-Type': 'text/plain' }, 'Not found'),
        { code: 'HTTP_STATUS', status: 404 },
      ],
      [
        'that sends us elsewhere',
        plain(307, { Location: 'http://127.0.0.1:1/evil' }),
        {
          code: 'HTTP_STATUS',
          status: 307,
          message: expect.stringContaining('"http://127.0.0.1:1/evil"; redirects are not followed'),
        },
      ],
      ['of a broken server', plain(500, {}, 'oops'), { code: 'HTTP_STATUS', status: 500 }],
      [
        'that says how large it is',
        plain(200, { 'Content-Length': '20000' }, 'x'.repeat(20_000)),
        {
          code: 'RESPONSE_TOO_LARGE',
          message: expect.stringContaining('larger than 10000 bytes. To accept it, raise maxResponseBytes'),
        },
      ],
      [
        'that does not say how large it is',
        (_posted, response) => {
          response.writeHead(200, { 'Content-Type': 'application/json' })
          response.write('x'.repeat(9_000))
          response.end('x'.repeat(9_000))
        },
        { code: 'RESPONSE_TOO_LARGE' },
      ],
      [
        'whose event is too large',
        (_posted, response) => events(response, 'data: ', 'x'.repeat(20_000)),
        { code: 'RESPONSE_TOO_LARGE' },
      ],
      ['whose event is no JSON', (_posted, response) => events(response, 'data: {\n\n'), { code: 'BAD_RESPONSE' }],
      [
        'whose event is to another request',
        ({ id }, response) => events(response, event({ id: id + 7, result: {} })),
        { code: 'BAD_RESPONSE' },
      ],
      [
        'whose stream ends before it',
        (_posted, response) => {
          events(response, ': nothing\n\n')
          response.end()
        },
        {
          code: 'LOST',
          message:
            'The response was lost: the stream ended before the response. The request may or may not have taken effect.',
        },
      ],
      [
        'that breaks off',
        (_posted, response) => {
          response.writeHead(200, { 'Content-Length': '1000' })
          response.write('{', () => response.destroy())
        },
        { code: 'LOST' },
      ],
      ['that never begins', (_posted, response) => void response.destroy(), { code: 'LOST' }],
    ])('%s', async (_what, answering, expected) => {
      const { client } = await connection(
        (posted, response, n) =>
          n === 0 ? answering(posted, response, n) : json(response, { id: posted.id, result: done('still here') }),
        { maxResponseBytes: 10_000 },
      )
      await expect(client.callTool('deploy')).rejects.toMatchObject(expected)
      expect(textOf(await client.callTool('deploy'))).toBe('still here')
    })

    test('that drips for ever', async () => {
      const gone: Promise<unknown>[] = []
      const { client } = await connection(
        (_posted, response) => {
          events(response)
          const drip = setInterval(() => response.write(':'), 5)
          gone.push(once(response, 'close').then(() => clearInterval(drip)))
        },
        { timeoutMs: 100 },
      )
      await expect(client.callTool('deploy')).rejects.toMatchObject({ code: 'TIMEOUT' })
      await Promise.all(gone)
    })
  })

  test('a server that nobody can reach is told from one that was lost', async () => {
    const server = new RawServer(() => {})
    const url = await server.listen()
    await server.close()
    await expect(connect(url, wire)).rejects.toMatchObject({
      code: 'CONNECTION',
      message: expect.stringMatching(/^Cannot reach the server: .*ECONNREFUSED.*Nothing was sent\.$/),
    })
  })

  test('what is under way when the client is closed ends, and nothing begins any more', async () => {
    const { client, close } = await rawConnection((_posted, _response, n) => n === 0 && void client.close(), wire)
    await expect(client.callTool('deploy')).rejects.toMatchObject({ code: 'CLOSED' })
    await expect(client.callTool('deploy')).rejects.toMatchObject({ code: 'CLOSED' })
    await expect(client.listTools()).rejects.toMatchObject({ code: 'CLOSED' })
    await close()
  })
})

test('a request goes over the connection of the one before', async () => {
  const { client, server, close } = await rawConnection(({ id }, response, n) => {
    if (n % 2 === 0) return json(response, { id, result: done('ok') })
    events(response, event({ id, result: done('ok') }))
    response.end()
  })
  for (let i = 0; i < 6; i += 1) await client.callTool('deploy')
  expect(server.connections).toBe(1)
  await close()
})

const RESULTS: Record<string, object> = {
  'tools/call': done('ok'),
  'prompts/get': { messages: [] },
  'resources/read': { contents: [] },
  'tools/list': { tools: [] },
}

const tool = (name: string, property: object): object => ({
  name,
  inputSchema: { type: 'object', properties: { region: property, count: { type: 'integer' } } },
})

describe('arguments that are repeated in headers', () => {
  const REGION = { type: 'string', 'x-mcp-header': 'Region' }
  const mismatch = { error: { code: -32020, message: 'Header mismatch' } }

  test('are sent once the tools are known, on every round, and not before', async () => {
    const { client, server, close } = await rawConnection(({ id, method, params }, response) => {
      if (method === 'tools/list') return json(response, { id, result: { tools: [tool('find', REGION)], ttlMs: 0 } })
      return json(response, { id, result: params['inputResponses'] === undefined ? asks(['a']) : done('ok') })
    }, yes)
    await client.callTool('find', { region: 'eu' })
    await client.listTools()
    await client.callTool('find', { region: 'eu', count: 3 })
    await client.callTool('find', { region: null })
    const calls = server.posted.filter(({ method }) => method === 'tools/call')
    expect(calls.map(({ headers }) => headers['mcp-param-region'])).toEqual([
      undefined,
      undefined,
      'eu',
      'eu',
      undefined,
      undefined,
    ])
    expect(server.posted.filter(({ method }) => method === 'tools/list')).toHaveLength(1)
    await close()
  })

  test('that the server misses are learned from its list, and the round is sent again, once', async () => {
    const { client, server, close } = await rawConnection(({ id, method, headers, params }, response) => {
      if (method === 'tools/list') return json(response, { id, result: { tools: [tool('find', REGION)], ttlMs: 0 } })
      if (headers['mcp-param-region'] === undefined) return json(response, { id, ...mismatch }, 400)
      return json(response, { id, result: params['inputResponses'] === undefined ? asks(['a'], 's') : done('ok') })
    }, yes)
    expect(textOf(await client.callTool('find', { region: 'eu' }))).toBe('ok')
    expect(server.posted.map(({ method }) => method)).toEqual(['tools/call', 'tools/list', 'tools/call', 'tools/call'])
    expect(server.posted.at(-1)?.params).toMatchObject({ inputResponses: { a: YES }, requestState: 's' })
    await close()
  })

  test('that the server goes on missing are its last word', async () => {
    const { client, server, close } = await rawConnection(({ id, method }, response) =>
      method === 'tools/list'
        ? json(response, { id, result: { tools: [] } })
        : json(response, { id, ...mismatch }, 400),
    )
    await expect(client.callTool('find')).rejects.toMatchObject({ rpcCode: -32020 })
    expect(server.posted.map(({ method }) => method)).toEqual(['tools/call', 'tools/list', 'tools/call'])
    await close()
  })

  test('make a tool unusable where they are declared wrongly, with a warning, and spare the others', async () => {
    const warn = vi.fn<(message: string, details?: object) => void>()
    const tools = [
      tool('good', REGION),
      tool('empty', { type: 'string', 'x-mcp-header': '' }),
      tool('float', { type: 'number', 'x-mcp-header': 'N' }),
      tool('space', { type: 'string', 'x-mcp-header': 'a b' }),
      { name: 'nested', inputSchema: { type: 'object', properties: { a: { anyOf: [REGION] } } } },
    ]
    const { client, server, close } = await rawConnection(
      ({ id }, response) => json(response, { id, result: { tools, ttlMs: 0 } }),
      { logger: { warn, error: warn } },
    )
    expect((await client.listTools()).map(({ name }) => name)).toEqual(['good'])
    expect(warn).toHaveBeenCalledTimes(4)
    expect(warn.mock.calls[0]?.[1]).toMatchObject({ problem: expect.stringContaining('The input of tool "empty"') })
    await expect(client.callTool('space', {})).rejects.toMatchObject({ code: 'TOOL_INVALID' })
    expect(server.posted).toHaveLength(1)
    await close()
  })

  test('satisfy a real server, which has others than the client remembers', async () => {
    const app = rally({ name: 'a', version: '1' })
    const region = z.string().meta({ 'x-mcp-header': 'Region' })
    app.tool('find', { input: z.object({ region }) }, ({ region: where }) => `Found in ${where}`)
    const serving = await serve(app, { port: 0, handleSignals: false })
    const client = await connect(serving.url)
    expect(textOf(await client.callTool('find', { region: 'Z\u00fcrich ' }))).toBe('Found in Z\u00fcrich ')
    await client.close()
    await serving.close()
  })

  test('may be nullable: null has no header, on both sides', async () => {
    const app = rally({ name: 'a', version: '1' })
    const region = z.string().nullable().meta({ 'x-mcp-header': 'Region' })
    app.tool('find', { input: z.object({ region }) }, ({ region: where }) => `Found in ${where}`)
    const serving = await serve(app, { port: 0, handleSignals: false })
    const client = await connect(serving.url)
    expect(await client.listTools()).toMatchObject([{ name: 'find' }])
    expect(textOf(await client.callTool('find', { region: 'eu' }))).toBe('Found in eu')
    expect(textOf(await client.callTool('find', { region: null }))).toBe('Found in null')
    await client.close()
    await serving.close()
  })
})
