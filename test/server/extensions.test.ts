// Extensions: each side sees what the other declares, and methods of an app's own are served like those of the protocol.
import { EventEmitter, once } from 'node:events'
import { PassThrough } from 'node:stream'
import type { Authenticate, MethodContext, Rally } from 'mcp-rally'
import { ProtocolError, rally, send, ToolError } from 'mcp-rally'
import type { Client, ClientOptions } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { serve, stdio } from 'mcp-rally/node'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { errorOf, request, resultOf } from '../wire/messages.ts'

const EXTENSION = 'com.example/rates'
const PASSWORD = 'hunter2'

interface Logged {
  readonly message: string
  readonly details: unknown
}

function newApp(logged: Logged[] = []): Rally {
  const log = (message: string, details?: unknown): void => void logged.push({ message, details })
  return rally({
    name: 'rates',
    version: '1.0.0',
    extensions: { [EXTENSION]: { currencies: ['EUR'] } },
    showErrors: false,
    logger: { warn: log, error: log },
  })
    .tool('who', {}, (_args, io) => JSON.stringify(io.client.extensions))
    .method('com.example/rate', { params: z.object({ currency: z.string().length(3) }) }, ({ currency }, context) => ({
      currency,
      rate: 1.25,
      seen: seenBy(context),
      // Names that the protocol uses in its own results.
      ttlMs: 7,
    }))
    .method('com.example/scoped', { scopes: ['rates:write'] }, () => ({ ok: true }))
    .method('com.example/hidden', { visible: ({ caller }) => caller?.principal === 'alice' }, () => ({ ok: true }))
    .method('com.example/broken', {}, () => {
      throw new Error(`password=${PASSWORD}`)
    })
    .method('com.example/refused', {}, () => {
      throw new ToolError('The market is closed.')
    })
    .method('com.example/own-code', {}, () => {
      throw new ProtocolError(-32_099, 'Closed.', { until: 9 })
    })
    .method('com.example/slow', { timeoutMs: 20 }, () => new Promise(() => {}))
    .method('com.example/waits', {}, async (_params, { signal }) => {
      events.emit('waiting')
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      events.emit('aborted')
      return {}
    })
    .method('com.example/no-object', {}, () => 7 as unknown as Record<string, unknown>)
}

const events = new EventEmitter()

function seenBy({ caller, client, meta }: MethodContext): object {
  return { principal: caller?.principal, client: client.name, extensions: client.extensions, trace: meta['x/trace'] }
}

const authenticate: Authenticate = (http) => {
  const [user = '', ...scopes] = (http.header('authorization') ?? '').split(' ').slice(1)
  return user === '' ? undefined : { principal: user, scopes }
}

describe.each(['2026-07-28', '2025-11-25', '2025-06-18'])('over HTTP, in %s', (revision) => {
  const logged: Logged[] = []
  const clients: Client[] = []
  let url = ''
  let close: () => Promise<void>
  beforeAll(async () => {
    ;({ url, close } = await serve(newApp(logged), { port: 0, authenticate, handleSignals: false }))
  })
  afterAll(async () => {
    for (const client of clients) await client.close()
    await close()
  })

  async function as(user: string, options: ClientOptions = {}): Promise<Client> {
    const client = await connect(url, { headers: { authorization: `Bearer ${user}` }, revision, ...options })
    clients.push(client)
    return client
  }

  test('a method sees its caller and its client, and each side sees the extensions of the other', async () => {
    const client = await as('alice', { name: 'shop', extensions: { [EXTENSION]: { digits: 2 } } })
    expect(client.server.capabilities.extensions).toMatchObject({ [EXTENSION]: { currencies: ['EUR'] } })
    const result = await client.request('com.example/rate', { currency: 'EUR' })
    expect(result).toMatchObject({ currency: 'EUR', rate: 1.25, ttlMs: 7 })
    expect(result['seen']).toMatchObject({
      principal: 'alice',
      client: 'shop',
      extensions: { [EXTENSION]: { digits: 2 } },
    })
    const { content } = await client.callTool('who')
    expect(JSON.parse((content as { text: string }[])[0]?.text ?? '')).toMatchObject({ [EXTENSION]: { digits: 2 } })
  })

  test('wrong params are -32602, and the message says what to correct', async () => {
    const calling = (await as('alice')).request('com.example/rate', { currency: 'EURO' })
    await expect(calling).rejects.toMatchObject({ rpcCode: -32_602, message: expect.stringContaining('currency') })
  })

  test('a caller without the scopes is refused with a challenge, and one with them is served', async () => {
    await expect((await as('bob')).request('com.example/scoped')).rejects.toMatchObject({ status: 403 })
    expect(await (await as('bob rates:write')).request('com.example/scoped')).toMatchObject({ ok: true })
  })

  test('a hidden method does not exist for others', async () => {
    expect(await (await as('alice')).request('com.example/hidden')).toMatchObject({ ok: true })
    const [hidden, unknown] = await Promise.all(
      ['com.example/hidden', 'com.example/absent'].map(async (method) =>
        (await as('bob')).request(method).catch((error: unknown) => error),
      ),
    )
    expect(hidden).toMatchObject({ rpcCode: -32_601, message: 'Method not found: com.example/hidden' })
    expect(unknown).toMatchObject({ rpcCode: -32_601, message: 'Method not found: com.example/absent' })
  })

  test('what another system wrote reaches the log and not the client; a ToolError and a ProtocolError do', async () => {
    const client = await as('alice')
    const failure = await client.request('com.example/broken').catch((error: unknown) => error)
    expect(failure).toMatchObject({ rpcCode: -32_603 })
    expect(JSON.stringify(failure, Object.getOwnPropertyNames(failure))).not.toContain(PASSWORD)
    expect(logged.map(({ details }) => String((details as { error?: unknown }).error))).toContain(
      `Error: password=${PASSWORD}`,
    )
    await expect(client.request('com.example/refused')).rejects.toMatchObject({ message: 'The market is closed.' })
    await expect(client.request('com.example/own-code')).rejects.toMatchObject({ rpcCode: -32_099, data: { until: 9 } })
  })

  test.each(['com.example/slow', 'com.example/no-object'])('%s fails, and the log says why', async (method) => {
    await expect((await as('alice')).request(method)).rejects.toMatchObject({ rpcCode: -32_603 })
    expect(logged.at(-1)?.message).toBe(`Serving ${method} failed.`)
  })

  test('a client that gives up aborts the signal of the method', async () => {
    const waiting = once(events, 'waiting')
    const aborted = once(events, 'aborted')
    const abort = new AbortController()
    const calling = (await as('alice')).request('com.example/waits', {}, { signal: abort.signal })
    const outcome = calling.catch((error: unknown) => error)
    await waiting
    abort.abort()
    expect(await outcome).toMatchObject({ code: 'ABORTED' })
    await aborted
  })
})

describe('on other hosts', () => {
  test('in memory and through fetch', async () => {
    const message = request('com.example/rate', { currency: 'EUR' }, { 'x/trace': 'abc' })
    expect(resultOf(await send(newApp(), message))).toMatchObject({
      resultType: 'complete',
      rate: 1.25,
      seen: { trace: 'abc' },
    })
    const app = newApp()
    const fetched: NonNullable<ClientOptions['fetch']> = (address, { body, ...init }) =>
      app.fetch(new Request(address, { ...init, ...(body !== undefined && { body }) }))
    const client = await connect('http://127.0.0.1/mcp', { fetch: fetched })
    expect(await client.request('com.example/rate', { currency: 'EUR' })).toMatchObject({ rate: 1.25 })
    await client.close()
  })

  test('over stdio', async () => {
    const input = new PassThrough()
    const output = new PassThrough()
    const over = stdio(newApp(), { input, output, caller: { principal: 'dave' } })
    const answered = new Promise<string>(
      (resolve) => void output.once('data', (chunk: Buffer) => resolve(String(chunk))),
    )
    input.write(`${JSON.stringify(request('com.example/rate', { currency: 'EUR' }))}\n`)
    expect(resultOf(JSON.parse(await answered) as object)).toMatchObject({ seen: { principal: 'dave' } })
    input.end()
    await over
  })

  test('params are bounded in depth', async () => {
    let deep: object = {}
    for (let level = 0; level < 200; level += 1) deep = { deep }
    const { code } = errorOf(await send(newApp(), request('com.example/rate', { currency: deep })))
    expect(code).toBe(-32_602)
  })
})

describe('a wrong use', () => {
  test.each([
    'tools/mine',
    'skills/list',
    'notifications/mine',
    'plain',
    'com.example/',
    'a b/c',
    '',
    7 as unknown as string,
  ])('app.method(%j) throws METHOD_INVALID', (name) => {
    const app = newApp()
    expect(() => app.method(name, {}, () => ({}))).toThrow(expect.objectContaining({ code: 'METHOD_INVALID' }))
  })

  test.each([
    { what: 'a string', params: z.string() },
    { what: 'a list', params: z.array(z.string()) },
    { what: 'a number, in plain JSON Schema', params: { type: ['number', 'null'] } },
  ])('params that are $what throw SCHEMA_INVALID, because no call could succeed', ({ params }) => {
    const message = 'The params of method com.example/x must be an object schema, because params have names.'
    expect(() => newApp().method('com.example/x', { params }, () => ({}))).toThrow(
      expect.objectContaining({ code: 'SCHEMA_INVALID', message }),
    )
  })

  test.each([
    { what: 'a date, which JSON Schema lacks', params: z.object({ at: z.coerce.date() }) },
    { what: 'one of two objects', params: z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]) },
    { what: 'an object or null', params: { type: ['object', 'null'] } },
  ])('params may have $what', ({ params }) => {
    expect(() => newApp().method('com.example/x', { params }, () => ({}))).not.toThrow()
  })

  test('a second method of the same name throws NAME_TAKEN', () => {
    const app = newApp()
    expect(() => app.method('com.example/rate', {}, () => ({}))).toThrow(
      expect.objectContaining({ code: 'NAME_TAKEN' }),
    )
  })

  test.each([
    [{ plain: {} }, /"plain" must be a prefix and a name/],
    [{ 'com.example/a': 7 }, /the settings of "com.example\/a" must be an object, got 7/],
    [{ 'com.example/a': { f: () => 1 } }, /the settings must be JSON/],
    [[], /must be an object of settings/],
  ])('extensions %j are refused on both sides', async (extensions, message) => {
    const wrong = extensions as unknown as Record<string, Record<string, never>>
    const code = 'OPTION_INVALID'
    expect(() => rally({ name: 'a', version: '1', extensions: wrong })).toThrow(expect.objectContaining({ code }))
    await expect(connect(newApp(), { extensions: wrong })).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    })
  })

  test.each([
    ['tools/call', {}],
    ['com.example/a', { _meta: {} }],
    ['x"y/z', {}],
  ])('client.request(%j, %j) is refused before anything is sent', async (method, params) => {
    const client = await connect(newApp())
    await expect(client.request(method, params)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    await client.close()
  })
})

test('a time limit that is longer than a timer can wait does not end a method at once', async () => {
  const app = newApp().method('com.example/long', { timeoutMs: 30 * 86_400_000 }, async () => {
    await new Promise((resolve) => void setTimeout(resolve, 20))
    return { ok: true }
  })
  expect(resultOf(await send(app, request('com.example/long', {})))).toMatchObject({ ok: true })
})
