// Results that a server says are fresh come from the cache; `meta` reaches the handler.
import { rally } from 'mcp-rally'
import { connect, type ClientOptions, type Client } from 'mcp-rally/client'
import { serve } from 'mcp-rally/node'
import { describe, expect, onTestFinished, test, vi } from 'vitest'

let reads = 0

function newApp() {
  reads = 0
  const app = rally({ name: 'cached', version: '1.0.0' })
  const read = (): string => `read ${(reads += 1)}`
  app.resource('app://private', { name: 'one', ttlMs: 60_000, cacheScope: 'private' }, read)
  app.resource('app://public', { name: 'one', ttlMs: 60_000, cacheScope: 'public' }, read)
  app.resource('app://short', { name: 'one', ttlMs: 30 }, read)
  app.resource('app://stale', { name: 'one' }, read)
  app.resource('app://asking', { name: 'one', ttlMs: 60_000 }, async (io) => {
    await io.confirm('sure', 'Sure?')
    return read()
  })
  app.tool('meta', {}, (_args, io) => JSON.stringify(io.meta['com.example/ticket'] ?? null))
  app.tool('asks', {}, async (_args, io) => {
    await io.confirm('sure', 'Sure?')
    return JSON.stringify(io.meta['com.example/ticket'] ?? null)
  })
  return app
}

const onElicit = () => ({ action: 'accept', content: { confirm: true } }) as const

async function open(server: Parameters<typeof connect>[0], options: ClientOptions = {}): Promise<Client> {
  const client = await connect(server, { onElicit, ...options })
  onTestFinished(() => client.close())
  return client
}

async function textOf(client: Client, uri: string, options = {}): Promise<string> {
  const { contents } = await client.readResource(uri, options)
  return String((contents[0] as { text?: string }).text)
}

describe('a resource that was read', () => {
  test('comes from the cache while it is fresh, and from the server with refresh', async () => {
    const client = await open(newApp())
    expect(await textOf(client, 'app://private')).toBe('read 1')
    expect(await textOf(client, 'app://private')).toBe('read 1')
    expect(await textOf(client, 'app://private', { refresh: true })).toBe('read 2')
    expect(await textOf(client, 'app://private')).toBe('read 2')
  })

  test('is read again when its time is over, or when it had none', async () => {
    const client = await open(newApp())
    expect(await textOf(client, 'app://stale')).toBe('read 1')
    expect(await textOf(client, 'app://stale')).toBe('read 2')
    expect(await textOf(client, 'app://short')).toBe('read 3')
    await vi.waitFor(async () => expect(await textOf(client, 'app://short')).toBe('read 4'))
  })

  test('is not kept if the user was asked', async () => {
    const client = await open(newApp())
    expect(await textOf(client, 'app://asking')).toBe('read 1')
    expect(await textOf(client, 'app://asking')).toBe('read 2')
  })

  test('is neither kept nor taken from the cache with meta', async () => {
    const client = await open(newApp())
    const meta = { 'com.example/ticket': 1 }
    expect(await textOf(client, 'app://private', { meta })).toBe('read 1')
    expect(await textOf(client, 'app://private')).toBe('read 2')
    expect(await textOf(client, 'app://private', { meta })).toBe('read 3')
  })

  test('cannot be changed through a result', async () => {
    const client = await open(newApp())
    const { contents } = await client.readResource('app://private')
    ;(contents as unknown[]).length = 0
    expect((await client.readResource('app://private')).contents).toHaveLength(1)
  })

  test('is dropped when the server says that it changed', async () => {
    const app = newApp()
    const serving = await serve(app, { port: 0, handleSignals: false })
    onTestFinished(() => serving.close())
    const client = await open(serving.url)
    const changes = client.subscribe({ uris: ['app://private'] })
    expect((await changes.next()).value).toMatchObject({ type: 'acknowledged' })
    expect(await textOf(client, 'app://private')).toBe('read 1')
    expect(await textOf(client, 'app://public')).toBe('read 2')
    app.notify.resourceUpdated('app://private')
    await changes.next()
    expect(await textOf(client, 'app://private')).toBe('read 3')
    expect(await textOf(client, 'app://public')).toBe('read 2')
    await changes.return()
  })

  test('is for the same caller only, unless it is public', async () => {
    const serving = await serve(newApp(), { port: 0, handleSignals: false })
    onTestFinished(() => serving.close())
    let user = 'ada'
    const client = await open(serving.url, { headers: () => ({ 'x-user': user }) })
    expect(await textOf(client, 'app://private')).toBe('read 1')
    expect(await textOf(client, 'app://public')).toBe('read 2')
    user = 'grace'
    expect(await textOf(client, 'app://private')).toBe('read 3')
    expect(await textOf(client, 'app://public')).toBe('read 2')
  })
})

test('a list that is private is for the same caller only', async () => {
  const app = newApp()
  const serving = await serve(app, {
    port: 0,
    handleSignals: false,
    authenticate: (request) => ({ principal: request.header('x-user') ?? 'nobody' }),
  })
  onTestFinished(() => serving.close())
  let user = 'ada'
  let lists = 0
  const client = await open(serving.url, {
    headers: () => ({ 'x-user': user }),
    fetch: async (url, init) => {
      if (init.body?.includes('"resources/list"') === true) lists += 1
      const response = await fetch(url, init)
      // As a server that lets its lists be kept.
      const text = (await response.text()).replace(/"ttlMs":\d+/, '"ttlMs":60000')
      return new Response(text, { status: response.status, headers: { 'content-type': 'application/json' } })
    },
  })
  await client.listResources()
  await client.listResources()
  expect(lists).toBe(1)
  user = 'grace'
  await client.listResources()
  expect(lists).toBe(2)
})

describe('meta', () => {
  test.each(['2026-07-28', '2025-11-25'])('reaches the handler, of %s', async (revision) => {
    const serving = await serve(newApp(), { port: 0, handleSignals: false })
    onTestFinished(() => serving.close())
    const client = await open(serving.url, { revision })
    // An older server gets the answers in messages of their own, without `_meta`.
    for (const tool of revision === '2026-07-28' ? ['meta', 'asks'] : ['meta']) {
      for (const onProgress of [{}, { onProgress: () => {} }]) {
        const { content } = await client.callTool(tool, {}, { meta: { 'com.example/ticket': { n: 7 } }, ...onProgress })
        expect(content).toEqual([{ type: 'text', text: '{"n":7}' }])
      }
      expect((await client.callTool(tool)).content).toEqual([{ type: 'text', text: 'null' }])
    }
  })

  test.each([
    { progressToken: 1 },
    { 'io.modelcontextprotocol/clientInfo': {} },
    { 'mcp.dev/x': 1 },
    { 'com.mcp-rally/idempotency-key': 'x' },
    { 'com.example/x': () => {} },
    'text',
  ])('%o is rejected', async (meta) => {
    const client = await open(newApp())
    await expect(client.callTool('meta', {}, { meta: meta as Record<string, unknown> })).rejects.toThrow(/meta/)
  })
})
