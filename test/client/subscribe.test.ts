// Subscriptions: acknowledged first, coalesced for the slow, and listened to again when they end.
import type { Rally } from 'mcp-rally'
import { rally } from 'mcp-rally'
import type { ServerChange, Client } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import type { Serving } from 'mcp-rally/node'
import { serve } from 'mcp-rally/node'
import { afterEach, describe, expect, test } from 'vitest'
import { event, events, json, rawConnection } from './raw-server.ts'
import { scripted } from './scripted.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

function changingApp(): Rally {
  const app = rally({ name: 'changing', version: '1', listTtlMs: 600_000 })
  app.tool('one', {}, () => '')
  app.prompt('one', {}, () => '')
  app.resource('a://one', { name: 'one' }, () => '')
  return app
}

const ways: readonly (readonly [string, (app: Rally) => Promise<Client>])[] = [
  ['memory', (app) => connect(app)],
  [
    'HTTP',
    async (app) => {
      const serving = await serve(app, { port: 0, handleSignals: false })
      closing.push(() => serving.close())
      return connect(serving.url)
    },
  ],
  ['app.fetch', (app) => connect('http://localhost/mcp', { fetch: (url, init) => app.fetch(new Request(url, init)) })],
]

async function next(changes: AsyncGenerator<ServerChange>): Promise<ServerChange | undefined> {
  const { value } = await changes.next()
  return value as ServerChange | undefined
}

const WISH = { tools: true, prompts: true, resources: true, uris: ['a://one'] }

describe.each(ways)('over %s', (_name, connectTo) => {
  test('changes are told after the acknowledgement, each kind, until the caller leaves', async () => {
    const app = changingApp()
    const client = await connectTo(app)
    const seen: ServerChange[] = []
    for await (const change of client.subscribe(WISH)) {
      seen.push(change)
      if (change.type === 'acknowledged') app.notify.resourceUpdated('a://one')
      if (change.type === 'updated') app.notify.toolsChanged()
      if (change.type === 'tools') app.notify.promptsChanged()
      if (change.type === 'prompts') app.notify.resourcesChanged()
      if (change.type === 'resources') break
    }
    expect(seen).toEqual([
      { type: 'acknowledged', accepted: WISH },
      { type: 'updated', uri: 'a://one' },
      { type: 'tools' },
      { type: 'prompts' },
      { type: 'resources' },
    ])
    await client.close()
  })

  test('what a server accepts beyond the wish is not kept', async () => {
    const { client } = await scripted(() => async ({ notify, cancelled }) => {
      const uris = ['a://one', ...Array.from({ length: 10_000 }, (_, n) => `b://${n}`)]
      notify('notifications/subscriptions/acknowledged', { notifications: { resourceSubscriptions: uris } })
      await cancelled
      return {}
    })
    const changes = client.subscribe({ uris: ['a://one', 'a://two'] })
    expect(await next(changes)).toEqual({ type: 'acknowledged', accepted: { uris: ['a://one'] } })
    await changes.return()
    await client.close()
  })

  test('a change drops the list that was kept', async () => {
    const app = changingApp()
    const client = await connectTo(app)
    expect(await client.listTools()).toHaveLength(1)
    const changes = client.subscribe({ tools: true })
    expect(await next(changes)).toEqual({ type: 'acknowledged', accepted: { tools: true } })
    app.tool('two', {}, () => '')
    expect(await next(changes)).toEqual({ type: 'tools' })
    expect(await client.listTools()).toHaveLength(2)
    await changes.return()
    await client.close()
  })

  test('a signal ends it, and so does the end of the client', async () => {
    const client = await connectTo(changingApp())
    const controller = new AbortController()
    const changes = client.subscribe({ tools: true }, { signal: controller.signal })
    await next(changes)
    const waiting = changes.next()
    controller.abort()
    expect(await waiting).toEqual({ done: true, value: undefined })
    const others = client.subscribe({ tools: true })
    await next(others)
    const rest = others.next()
    await client.close()
    expect(await rest).toEqual({ done: true, value: undefined })
    expect(await client.subscribe({ tools: true }).next()).toEqual({ done: true, value: undefined })
  })
})

describe('a subscription', () => {
  test('says what of the wish the server can do', async () => {
    const app = rally({ name: 'tools only', version: '1' })
    app.tool('one', {}, () => '')
    const client = await connect(app)
    const changes = client.subscribe(WISH)
    expect(await next(changes)).toEqual({ type: 'acknowledged', accepted: { tools: true } })
    await changes.return()
    await client.close()
  })

  test('gives a slow consumer one of each change, however often it happened', async () => {
    const app = changingApp()
    const client = await connect(app)
    const changes = client.subscribe(WISH)
    await next(changes)
    for (let i = 0; i < 500; i += 1) {
      app.notify.toolsChanged()
      app.notify.resourceUpdated('a://one')
    }
    expect(await next(changes)).toEqual({ type: 'tools' })
    expect(await next(changes)).toEqual({ type: 'updated', uri: 'a://one' })
    app.notify.toolsChanged()
    expect(await next(changes)).toEqual({ type: 'tools' })
    await changes.return()
    await client.close()
  })

  test('holds no more than it can of a flood, and says so', async () => {
    const { client } = await scripted(({ id }) => ({ notify, cancelled }) => {
      const told = { _meta: { 'io.modelcontextprotocol/subscriptionId': id } }
      notify('notifications/subscriptions/acknowledged', { ...told, notifications: {} })
      for (let i = 0; i < 5_000; i += 1) notify('notifications/resources/updated', { ...told, uri: `a://${i}` })
      return cancelled.then(() => ({}))
    })
    const types: (string | undefined)[] = []
    for await (const { type } of client.subscribe({})) {
      types.push(type)
      if (type === 'missed') break
    }
    expect(types.filter((type) => type === 'updated')).toHaveLength(999)
    await client.close()
  })

  test('that is refused fails, in the words of the server', async () => {
    const { client } = await scripted(() => ({ error: { code: -32601, message: 'Method not found' } }))
    await expect(client.subscribe({ tools: true }).next()).rejects.toMatchObject({ rpcCode: -32601 })
  })

  test('that is never acknowledged fails when the time is over, after a few tries', async () => {
    const { client, requests } = await scripted(
      () =>
        ({ cancelled }) =>
          cancelled.then(() => ({})),
      { timeoutMs: 30 },
    )
    await expect(client.subscribe({ tools: true }).next()).rejects.toMatchObject({
      code: 'TIMEOUT',
      message: 'subscriptions/listen: the server did not acknowledge the subscription within 30 ms (timeoutMs).',
    })
    expect(requests).toHaveLength(3)
  })

  test('for what is no list of URIs is an error', async () => {
    const { client } = await scripted(() => ({}))
    await expect(client.subscribe({ uris: [7 as never] }).next()).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })

  test('that the server ends is listened to again, and the lists are not relied on any more', async () => {
    let instance = changingApp()
    const client = await connect({ dispatch: (message, context) => instance.dispatch(message, context) })
    await client.listTools()
    const changes = client.subscribe({ tools: true })
    await next(changes)
    const going = instance
    instance = changingApp()
    instance.tool('new', {}, () => '')
    going.drain()
    expect(await next(changes)).toEqual({ type: 'reconnected', accepted: { tools: true } })
    expect(await client.listTools()).toHaveLength(2)
    instance.notify.toolsChanged()
    expect(await next(changes)).toEqual({ type: 'tools' })
    await changes.return()
    await client.close()
  })

  test('whose connection is lost is listened to again', async () => {
    const { client, close } = await rawConnection(({ id }, response, n) => {
      const acknowledged = event({
        method: 'notifications/subscriptions/acknowledged',
        params: { notifications: { tools: true }, _meta: { 'io.modelcontextprotocol/subscriptionId': id } },
      })
      if (n === 1) return json(response, {}, 503)
      events(response, ': hello\n\n')
      if (n === 0) return void response.write(acknowledged, () => response.destroy())
      response.write(acknowledged)
      response.write(event({ method: 'notifications/tools/list_changed' }))
    })
    const seen: string[] = []
    for await (const { type } of client.subscribe({ tools: true })) {
      seen.push(type)
      if (type === 'tools') break
    }
    expect(seen).toEqual(['acknowledged', 'reconnected', 'tools'])
    await close()
  })

  test('that the server refuses later fails then, also for a consumer that does not look at once', async () => {
    const { client } = await scripted(({ id }, n) => ({ notify }) => {
      if (n > 0) return { error: { code: -32603, message: 'No more.' } }
      const _meta = { 'io.modelcontextprotocol/subscriptionId': id }
      notify('notifications/subscriptions/acknowledged', { _meta, notifications: {} })
      return {}
    })
    const changes = client.subscribe({ tools: true })
    expect(await next(changes)).toMatchObject({ type: 'acknowledged' })
    await expect(changes.next()).rejects.toMatchObject({ rpcCode: -32603, message: 'No more.' })
    expect(await changes.next()).toEqual({ done: true, value: undefined })
  })

  test('goes on at the server that replaces one that drains', async () => {
    const first = await serve(changingApp(), { port: 0, handleSignals: false })
    const app = changingApp()
    const second = await serve(app, { port: 0, handleSignals: false })
    let current: Serving = first
    const client = await connect(first.url, { fetch: (_url, init) => fetch(current.url, init) })
    const changes = client.subscribe({ uris: ['a://one'] })
    await next(changes)
    current = second
    await first.close()
    expect(await next(changes)).toEqual({ type: 'reconnected', accepted: { uris: ['a://one'] } })
    app.notify.resourceUpdated('a://one')
    expect(await next(changes)).toEqual({ type: 'updated', uri: 'a://one' })
    await changes.return()
    await client.close()
    await second.close()
  })
})
