import { connect } from 'node:net'
import { PassThrough } from 'node:stream'
import type { Bus, Rally } from 'mcp-rally'
import { fetchHandler } from '../../src/hosts/fetch.ts'
import { serve, stdio } from 'mcp-rally/node'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { JSONRPCMessage, RequestId } from '../../src/protocol/messages.ts'
import { META_SERVER_INFO, META_SUBSCRIPTION } from '../../src/protocol/revisions/2026-07-28.ts'
import type { WireRequest } from '../wire/messages.ts'
import { call, errorOf, request, resultOf } from '../wire/messages.ts'
import { ask, makeApp } from './messages.ts'
import type { Exchange, Wire } from './wires.ts'
import { hosts, httpHeaders, httpHosts, subscriptionOf } from './wires.ts'

const EVERYTHING = {
  toolsListChanged: true,
  promptsListChanged: true,
  resourcesListChanged: true,
  resourceSubscriptions: ['a://b'],
}

const hi = (): string => 'Hi'

/** A bus that can be waited for: until so many listen to it. */
class WatchedBus implements Bus {
  readonly #listeners = new Set<Parameters<Bus['subscribe']>[0]>()
  #changed: () => void = () => {}

  publish(change: Parameters<Bus['publish']>[0]): void {
    for (const listener of this.#listeners) listener(change)
  }

  subscribe(listener: Parameters<Bus['subscribe']>[0]): () => void {
    this.#listeners.add(listener)
    this.#changed()
    return () => {
      this.#listeners.delete(listener)
      this.#changed()
    }
  }

  get size(): number {
    return this.#listeners.size
  }

  async until(size: number): Promise<void> {
    while (this.size !== size) {
      await new Promise<void>((resolve) => {
        this.#changed = resolve
      })
    }
  }
}

function wholeApp(bus?: Bus): Rally {
  const { app } = makeApp(bus && { bus })
  app.tool('t', {}, hi).prompt('p', {}, hi)
  return app.resource('a://b', { name: 'b' }, hi)
}

function listening(notifications: object, id?: RequestId): WireRequest {
  const message = request('subscriptions/listen', { notifications })
  return id === undefined ? message : { ...message, id }
}

async function acknowledged(exchange: Exchange): Promise<JSONRPCMessage | undefined> {
  const message = await exchange.next()
  expect(message).toMatchObject({ method: 'notifications/subscriptions/acknowledged' })
  return message
}

async function nextMethod(exchange: Exchange): Promise<unknown> {
  const message = await exchange.next()
  return message !== undefined && 'method' in message ? message.method : message
}

describe.each(hosts)('subscriptions over $name', ({ isHttp, open }) => {
  const bus = new WatchedBus()
  const app = wholeApp(bus)
  let wire: Wire

  beforeAll(async () => {
    wire = await open(app)
  })
  afterAll(() => wire.close())

  /** Listens for the length of one test. */
  async function listen(notifications: object, id?: RequestId): Promise<Exchange> {
    const exchange = wire.open(listening(notifications, id))
    onTestFinished(() => exchange.cancel())
    await acknowledged(exchange)
    return exchange
  }

  test.each(['a text', 40_001])('are acknowledged first, and carry the id of their request: %j', async (id) => {
    const exchange = wire.open(listening(EVERYTHING, id))
    onTestFinished(() => exchange.cancel())
    expect(await acknowledged(exchange)).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/subscriptions/acknowledged',
      params: { _meta: { [META_SUBSCRIPTION]: id }, notifications: EVERYTHING },
    })
    expect(exchange.contentType).toBe(isHttp ? 'text/event-stream' : null)
    app.notify.resourceUpdated('a://b')
    expect(await exchange.next()).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/resources/updated',
      params: { _meta: { [META_SUBSCRIPTION]: id }, uri: 'a://b' },
    })
  })

  test('bring each kind of change that was asked for, and no other', async () => {
    const all = await listen(EVERYTHING)
    const few = await listen({ promptsListChanged: true, resourceSubscriptions: ['a://c'] })
    app.notify.toolsChanged()
    app.notify.promptsChanged()
    app.notify.resourcesChanged()
    app.notify.resourceUpdated('a://b')
    app.notify.resourceUpdated('a://c')
    expect([await nextMethod(all), await nextMethod(all), await nextMethod(all), await nextMethod(all)]).toEqual([
      'notifications/tools/list_changed',
      'notifications/prompts/list_changed',
      'notifications/resources/list_changed',
      'notifications/resources/updated',
    ])
    expect([await nextMethod(few), await few.next()]).toEqual([
      'notifications/prompts/list_changed',
      expect.objectContaining({ params: expect.objectContaining({ uri: 'a://c' }) }),
    ])
  })

  test('tell once of what is registered together, after it is there', async () => {
    const exchange = await listen(EVERYTHING)
    const names = ['one', 'two', 'three']
    for (const name of names) app.tool(name, {}, hi)
    app.prompt('one', {}, hi)
    expect(await nextMethod(exchange)).toBe('notifications/tools/list_changed')
    const { tools } = resultOf(await ask(wire, request('tools/list'))) as { tools: { name: string }[] }
    expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(names))
    expect(await nextMethod(exchange)).toBe('notifications/prompts/list_changed')
    app.notify.resourcesChanged()
    expect(await nextMethod(exchange)).toBe('notifications/resources/list_changed')
  })

  test('go on beside other requests of the same client', async () => {
    const one = await listen({ toolsListChanged: true })
    const other = await listen({ toolsListChanged: true })
    expect(resultOf(await ask(wire, call('t')))['content']).toEqual([{ type: 'text', text: 'Hi' }])
    app.notify.toolsChanged()
    const [first, second] = [await one.next(), await other.next()]
    const ids = [first, second].map((message) => message && 'method' in message && subscriptionOf(message))
    expect(new Set(ids).size).toBe(2)
  })

  test('are forgotten when the client ends them, and the bus with the last one', async () => {
    await bus.until(0)
    const [one, other] = [await listen(EVERYTHING), await listen(EVERYTHING)]
    await bus.until(1)
    one.cancel()
    expect(await one.next()).toBeUndefined()
    app.notify.toolsChanged()
    expect(await nextMethod(other)).toBe('notifications/tools/list_changed')
    other.cancel()
    await bus.until(0)
  })

  test.each([
    ['none', undefined],
    ['no object', 'tools'],
    ['of the wrong type', { toolsListChanged: 'yes' }],
    ['with URIs that are no texts', { resourceSubscriptions: [1] }],
    ['with too many URIs', { resourceSubscriptions: Array.from({ length: 1_001 }, (_, i) => `a://${i}`) }],
  ])('with a filter that is %s are refused', async (_what, notifications) => {
    const {
      response,
      status,
      notifications: before,
    } = await wire.open(request('subscriptions/listen', { notifications })).answer()
    expect(errorOf(response).code).toBe(-32602)
    expect(before).toEqual([])
    expect(status).toBe(isHttp ? 200 : undefined)
  })
})

describe.each(hosts)('the end of subscriptions over $name', ({ open }) => {
  test('is a result when the server goes down, at once for those that come later', async () => {
    const app = wholeApp()
    const wire = await open(app)
    onTestFinished(() => wire.close())
    const message = listening(EVERYTHING)
    const before = wire.open(message)
    await acknowledged(before)
    app.drain()
    const { response, notifications } = await before.answer()
    expect(resultOf(response)).toEqual({
      resultType: 'complete',
      _meta: { [META_SUBSCRIPTION]: message.id, [META_SERVER_INFO]: { name: 'whole', version: '1.0.0' } },
    })
    expect(notifications).toEqual([])
    expect(await before.next()).toBeUndefined()
    const after = await wire.open(listening(EVERYTHING)).answer()
    expect(after.notifications.map(({ method }) => method)).toEqual(['notifications/subscriptions/acknowledged'])
    expect(resultOf(after.response)).toMatchObject({ resultType: 'complete' })
  })

  test('comes when the connection goes, and leaves nothing behind', async () => {
    const bus = new WatchedBus()
    const wire = await open(wholeApp(bus))
    const exchange = wire.open(listening(EVERYTHING))
    await acknowledged(exchange)
    await bus.until(1)
    exchange.cancel()
    await wire.close()
    await bus.until(0)
  })
})

test('a filter is acknowledged as far as there is something to hear of', async () => {
  const { app } = makeApp()
  const wire = await (hosts[0] as (typeof hosts)[0]).open(app)
  const exchange = wire.open(listening(EVERYTHING))
  expect(await acknowledged(exchange)).toMatchObject({ params: { notifications: { toolsListChanged: true } } })
  app.notify.promptsChanged()
  app.notify.resourceUpdated('a://b')
  app.notify.toolsChanged()
  expect(await nextMethod(exchange)).toBe('notifications/tools/list_changed')
})

test('instances that share a bus tell the clients of each other, except of what only one has registered', async () => {
  const bus = new WatchedBus()
  const [here, there] = [wholeApp(bus), wholeApp(bus)]
  const [memory] = hosts
  const [near, far] = await Promise.all([memory?.open(here), memory?.open(there)])
  const [one, other] = [near, far].map((wire) => wire?.open(listening(EVERYTHING)) as Exchange) as [Exchange, Exchange]
  await acknowledged(one)
  await acknowledged(other)
  here.notify.promptsChanged()
  expect([await nextMethod(one), await nextMethod(other)]).toEqual([
    'notifications/prompts/list_changed',
    'notifications/prompts/list_changed',
  ])
  there.tool('new', {}, hi)
  expect(await nextMethod(other)).toBe('notifications/tools/list_changed')
  there.notify.resourcesChanged()
  expect(await nextMethod(one)).toBe('notifications/resources/list_changed')
})

describe.each(httpHosts)('over $name', ({ open }) => {
  test('a client that takes no events is told to, and nothing is opened', async () => {
    const bus = new WatchedBus()
    const wire = await open(wholeApp(bus))
    const exchange = wire.open(listening(EVERYTHING), { Accept: 'application/json' })
    const { response, status } = await exchange.answer()
    expect(errorOf(response)).toEqual({
      code: -32600,
      message: 'Invalid request: this needs a stream, so accept text/event-stream',
    })
    expect([status, exchange.contentType]).toEqual([400, 'application/json'])
    await bus.until(0)
    await wire.close()
  })

  test('a quiet stream gets a comment now and then', async () => {
    const app = wholeApp()
    const wire = await open(app, { keepAliveMs: 5 })
    const exchange = wire.open(listening(EVERYTHING))
    await acknowledged(exchange)
    while (exchange.comments < 3) await exchange.changed()
    app.notify.toolsChanged()
    expect(await nextMethod(exchange)).toBe('notifications/tools/list_changed')
    exchange.cancel()
    await wire.close()
  })
})

test('a server that closes ends its streams and waits for nobody', async () => {
  const app = wholeApp()
  const { url, close } = await serve(app, { port: 0 })
  const message = listening(EVERYTHING)
  const response = await fetch(url, { method: 'POST', headers: httpHeaders(message), body: JSON.stringify(message) })
  const text = response.text()
  await close()
  expect((await text).trimEnd().split('\n\n')).toEqual([
    expect.stringContaining('notifications/subscriptions/acknowledged'),
    expect.stringContaining(`"id":${message.id},"result":`),
  ])
})

describe('a reader that is too far behind is let go, and the server goes on', () => {
  /** Long enough to fill any buffer soon. */
  const LONG_URI = `a://${'x'.repeat(8_000)}`
  const message = listening({ resourceSubscriptions: [LONG_URI] })

  /** Fills the stream, and returns once the server has ended it. */
  async function fill(app: Rally, bus: WatchedBus): Promise<void> {
    await bus.until(1)
    while (bus.size > 0) {
      app.notify.resourceUpdated(LONG_URI)
      await new Promise(setImmediate)
    }
  }

  test('Node HTTP, also where comments are due before the rest is read', async () => {
    const bus = new WatchedBus()
    const app = wholeApp(bus)
    const { url, port, close } = await serve(app, { port: 0, keepAliveMs: 1 })
    const body = JSON.stringify(message)
    const headers = { ...httpHeaders(message), Host: 'localhost', 'Content-Length': String(body.length) }
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
    const socket = connect(port, '127.0.0.1')
    socket.pause()
    socket.write(`POST /mcp HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`)
    await fill(app, bus)
    // Ended, and not read yet: a comment on it now would be written after its end. Another stream shows when it was due.
    const other = listening(EVERYTHING)
    const response = await fetch(url, { method: 'POST', headers: httpHeaders(other), body: JSON.stringify(other) })
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    for (let text = ''; !text.includes(':\n\n:\n\n:\n\n'); text += (await reader?.read())?.value ?? '');
    const chunks: Buffer[] = []
    const closed = new Promise((resolve) => socket.on('close', resolve))
    socket.on('data', (chunk: Buffer) => chunks.push(chunk)).resume()
    await reader?.cancel()
    await close()
    await closed
    expect(Buffer.concat(chunks).toString('utf8')).toContain(`"id":${message.id},"result":{"resultType":"complete"`)
  })

  test('app.fetch', async () => {
    const bus = new WatchedBus()
    const app = wholeApp(bus)
    const init = { method: 'POST', headers: httpHeaders(message), body: JSON.stringify(message) }
    const response = await fetchHandler(app)(new Request('http://localhost/mcp', init))
    await fill(app, bus)
    const text = await response.text()
    const events = text.trimEnd().split('\n\n')
    // What waits for a reader is bounded: a mebibyte, and the event that goes past it.
    expect(text.length).toBeGreaterThan(1024 * 1024)
    expect(text.length).toBeLessThan(1024 * 1024 + 20_000)
    expect(events.at(-1)).toContain(`"id":${message.id},"result":{"resultType":"complete"`)
  })

  test('stdio', async () => {
    const bus = new WatchedBus()
    const app = wholeApp(bus)
    const input = new PassThrough()
    const output = new PassThrough()
    const over = stdio(app, { input, output })
    input.write(`${JSON.stringify(message)}\n`)
    await fill(app, bus)
    const lines: string[] = []
    output.setEncoding('utf8')
    let rest = ''
    output.on('data', (text: string) => {
      const parts = (rest + text).split('\n')
      rest = parts.pop() ?? ''
      lines.push(...parts)
    })
    input.end()
    await over
    await new Promise((resolve) => {
      output.on('end', resolve)
      output.end()
    })
    expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ id: message.id, result: { resultType: 'complete' } })
  })
})
