// Lost responses: what is repeated, how often, and what is not, because it may have happened.
import { once } from 'node:events'
import { createServer, request as httpRequest } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Rally, RallyOptions } from 'mcp-rally'
import { MemoryOnceStore, MemoryStore, rally } from 'mcp-rally'
import type { Client, PendingCall } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { serve } from 'mcp-rally/node'
import { afterAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Received } from './scripted.ts'
import { textOf } from './wires.ts'

/** What becomes of a request on its way. */
type Fate = 'through' | 'lost before' | 'lost after' | 'cut short' | 'swallowed' | 'swallowed after' | 502 | 503 | 504

/** Stands between client and server, and loses what it is told to. */
class BadProxy {
  /** What becomes of the next requests of a method; those without a fate go through. */
  readonly fates: Fate[] = []
  readonly seen: Received[] = []
  readonly #server: Server
  readonly #to: string

  constructor(to: string) {
    this.#to = to
    this.#server = createServer((request, response) => void this.#serve(request, response))
  }

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/mcp`
  }

  async close(): Promise<void> {
    this.#server.close()
    this.#server.closeAllConnections()
    await once(this.#server, 'close')
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await read(request)
    const message = JSON.parse(body) as Received
    this.seen.push(message)
    const fate = message.method === 'server/discover' ? 'through' : (this.fates.shift() ?? 'through')
    if (fate === 'lost before') return void response.destroy()
    if (fate === 'swallowed') return
    if (typeof fate === 'number') return void response.writeHead(fate).end('<html>')
    const from = await forward(this.#to, request, body)
    if (fate === 'through') {
      response.writeHead(200, { 'Content-Type': from.headers['content-type'] })
      response.flushHeaders()
      return void from.pipe(response)
    }
    const answer = await read(from)
    if (fate === 'lost after') return void response.destroy()
    if (fate === 'swallowed after') return
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': answer.length })
    response.write(answer.slice(0, 10), () => response.destroy())
  }
}

async function read(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of message) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

async function forward(to: string, from: IncomingMessage, body: string): Promise<IncomingMessage> {
  const { host: _host, ...headers } = from.headers
  const out = httpRequest(to, { method: 'POST', headers, agent: false })
  out.end(body)
  const [answer] = (await once(out, 'response')) as [IncomingMessage]
  return answer
}

const closing: (() => Promise<void>)[] = []
afterAll(async () => {
  await Promise.all(closing.map((close) => close()))
})

/** A client whose way to its server is a bad one. */
class Connection {
  readonly client: Client
  readonly proxy: BadProxy
  readonly url: string
  readonly served: Served

  private constructor(client: Client, proxy: BadProxy, url: string, served: Served) {
    this.client = client
    this.proxy = proxy
    this.url = url
    this.served = served
  }

  static async open({ caller, timeoutMs = 60_000, ...options }: Opening = {}): Promise<Connection> {
    const served: Served = { count: 0, keys: [] }
    const authenticate = caller === undefined ? {} : { authenticate: () => ({ principal: caller }) }
    const app = countingApp(served, options)
    const serving = await serve(app, { port: 0, handleSignals: false, ...authenticate })
    const proxy = new BadProxy(serving.url)
    const sure = { action: 'accept', content: { sure: true } } as const
    const client = await connect(await proxy.listen(), { onElicit: () => sure, timeoutMs })
    closing.push(async () => {
      await client.close()
      await proxy.close()
      await serving.close()
    })
    return new Connection(client, proxy, serving.url, served)
  }

  get calls(): Received[] {
    return this.proxy.seen.filter(({ method }) => method === 'tools/call')
  }
}

interface Opening extends Pick<RallyOptions, 'keys' | 'once' | 'store'> {
  /** The principal of every request. */
  readonly caller?: string
  readonly timeoutMs?: number
}

const KEYS = ['a secret of the client tests, long enough']

interface Served {
  count: number
  /** Idempotency keys of the step that was done. */
  keys: string[]
}

function countingApp(served: Served, options: Opening): Rally {
  const logger = { warn() {}, error() {} }
  const app = rally({ name: 'counting', version: '1', logger, ...options })
  const count = (): string => `call ${(served.count += 1)}`
  app.tool('plain', {}, count)
  app.tool('reading', { annotations: { readOnlyHint: true } }, count)
  app.tool('setting', { annotations: { idempotentHint: true } }, count)
  app.tool('lasting', { asks: { sure: z.object({ sure: z.boolean() }) } }, async (_args, io) => {
    await io.ask('sure', 'Sure?')
    return io.step('ship', ({ idempotencyKey }) => {
      served.keys.push(idempotencyKey)
      return count()
    })
  })
  app.tool('stepping', {}, (_args, io) =>
    io.step('ship', ({ idempotencyKey }) => {
      served.keys.push(idempotencyKey)
      return count()
    }),
  )
  app.tool('slow', {}, async (_args, io) => {
    io.progress(1)
    await new Promise((resolve) => void setTimeout(resolve, 1_500))
    return count()
  })
  if (options.store !== undefined) app.tool('lengthy', { task: 'always' }, count)
  app.prompt('asked', { arguments: z.object({ a: z.string() }), complete: { a: ['one'] } }, ({ a }) => a)
  return app
}

const keyIn = ({ params }: Received): unknown =>
  (params['_meta'] as Record<string, unknown>)['com.mcp-rally/idempotency-key']

describe.concurrent.each<Fate>(['lost before', 'lost after', 'cut short', 503])(
  'a response that is lost (%s)',
  (fate) => {
    test('of a call is not asked for again where the server does not know repeats, and the error says so', async () => {
      const connection = await Connection.open()
      const { client, proxy } = connection
      proxy.fates.push(fate)
      await expect(client.callTool('plain')).rejects.toMatchObject({
        code: 'LOST',
        message: expect.stringContaining('may or may not have taken effect'),
        pending: undefined,
      })
      expect(connection.calls).toHaveLength(1)
      const hasHappened = fate === 'lost after' || fate === 'cut short'
      expect(textOf(await client.callTool('plain'))).toBe(`call ${hasHappened ? 2 : 1}`)
    })

    test('of a round that carried a state is, and the step it led to has the same key', async () => {
      const connection = await Connection.open()
      connection.proxy.fates.push('through', fate)
      expect(textOf(await connection.client.callTool('lasting'))).toMatch(/^call [12]$/)
      expect(new Set(connection.served.keys).size).toBe(1)
      const [, second, third, ...rest] = connection.calls
      expect(third?.params).toEqual(second?.params)
      expect(third?.id).not.toBe(second?.id)
      expect(rest).toEqual([])
    })
  },
)

describe.concurrent('a response that is lost', () => {
  test.each(['reading', 'setting'])('of a tool that is known to do no harm is asked for again: %s', async (name) => {
    const { client, proxy } = await Connection.open()
    proxy.fates.push('lost after')
    await expect(client.callTool(name)).rejects.toMatchObject({ code: 'LOST' })
    await client.listTools()
    proxy.fates.push('lost after', 503)
    expect(textOf(await client.callTool(name))).toBe('call 3')
  })

  test('of a lookup is asked for again', async () => {
    const { client, proxy } = await Connection.open()
    proxy.fates.push('lost after')
    expect(await client.listTools()).toHaveLength(6)
    proxy.fates.push('lost before', 504)
    expect(await client.listPrompts()).toHaveLength(1)
    proxy.fates.push(502)
    const ref = { type: 'ref/prompt', name: 'asked' } as const
    expect(await client.complete(ref, { name: 'a', value: '' })).toMatchObject({ values: ['one'] })
  })

  test('is tried for 3 times at most, and a call that had begun can be gone on with', async () => {
    const connection = await Connection.open()
    const { client, proxy } = connection
    proxy.fates.push('through', 'lost before', 'lost before', 'lost before')
    const lost: unknown = await client.callTool('lasting').catch((error: unknown) => error)
    expect(lost).toMatchObject({ code: 'LOST', pending: { method: 'tools/call', params: { name: 'lasting' } } })
    expect(connection.calls).toHaveLength(4)
    const { pending } = lost as { pending: PendingCall }
    expect(await client.resume(pending)).toMatchObject({ content: [{ text: 'call 1' }] })
  })
})

describe.concurrent.each<Fate>(['lost before', 'lost after', 'cut short', 503])(
  'the first round of a call, whose response is lost (%s),',
  (fate) => {
    const hasRun = fate === 'lost after' || fate === 'cut short'

    test('is repeated under its key where the server knows repeats, and its step has the same key', async () => {
      const connection = await Connection.open({ keys: KEYS })
      connection.proxy.fates.push(fate, fate)
      expect(textOf(await connection.client.callTool('stepping'))).toMatch(/^call [123]$/)
      expect(connection.served.keys).toHaveLength(hasRun ? 3 : 1)
      expect(new Set(connection.served.keys).size).toBe(1)
      expect(connection.calls).toHaveLength(3)
      expect(new Set(connection.calls.map(keyIn)).size).toBe(1)
      // Another call is another flow.
      await connection.client.callTool('stepping')
      expect(new Set(connection.served.keys).size).toBe(2)
      expect(new Set(connection.calls.map(keyIn)).size).toBe(2)
    })

    test('is answered from its record where there is one, and nothing runs twice', async () => {
      const connection = await Connection.open({ keys: KEYS, once: new MemoryOnceStore(), caller: 'ada' })
      for (const tool of ['plain', 'stepping']) {
        connection.proxy.fates.push(fate, fate)
        expect(textOf(await connection.client.callTool(tool))).toBe(`call ${tool === 'plain' ? 1 : 2}`)
      }
      connection.proxy.fates.push(fate)
      expect(textOf(await connection.client.callTool('lasting'))).toBe('call 3')
      expect(connection.served.count).toBe(3)
    })

    test('has no record without a caller', async () => {
      const connection = await Connection.open({ keys: KEYS, once: new MemoryOnceStore() })
      connection.proxy.fates.push(fate)
      expect(textOf(await connection.client.callTool('stepping'))).toBe(`call ${hasRun ? 2 : 1}`)
      expect(new Set(connection.served.keys).size).toBe(1)
    })
  },
)

test('a call that becomes a task is the same task when it is repeated', async () => {
  const store = new MemoryStore()
  const connection = await Connection.open({ keys: KEYS, store, caller: 'ada' })
  connection.proxy.fates.push('lost after', 'lost after')
  expect(textOf(await connection.client.callTool('lengthy'))).toBe('call 1')
  expect(connection.calls).toHaveLength(3)
  expect(connection.served.count).toBe(1)
})

describe.concurrent('a request that is swallowed without a sign', () => {
  test.each(['swallowed', 'swallowed after'] as const)('is sent again in time: %s', async (fate) => {
    const connection = await Connection.open({
      keys: KEYS,
      once: new MemoryOnceStore(),
      caller: 'ada',
      timeoutMs: 2_200,
    })
    connection.proxy.fates.push('through', fate)
    const began = performance.now()
    // A list, the first round of a call, and one with a state.
    expect(await connection.client.listTools()).toHaveLength(6)
    expect(textOf(await connection.client.callTool('plain'))).toBe('call 1')
    expect(performance.now() - began).toBeLessThan(2_000)
    connection.proxy.fates.push('through', fate)
    expect(textOf(await connection.client.callTool('lasting'))).toBe('call 2')
    expect(connection.served.count).toBe(2)
    expect(connection.calls).toHaveLength(5)
  })

  test.each([
    ['as JSON, while the second attempt waits for the record of the first', false, 2],
    ['as a stream that has begun, so that there is no second attempt', true, 1],
  ])('is told from one whose response takes long: %s', async (_how, isStream, attempts) => {
    const connection = await Connection.open({
      keys: KEYS,
      once: new MemoryOnceStore(),
      caller: 'ada',
      timeoutMs: 2_400,
    })
    const { client } = connection
    const onProgress = isStream ? { onProgress: () => {} } : {}
    expect(textOf(await client.callTool('slow', {}, onProgress))).toBe('call 1')
    expect(connection.calls).toHaveLength(attempts)
    expect(connection.served.count).toBe(1)
  })

  test('is not sent again where the server has no record of it and may still work on it', async () => {
    const connection = await Connection.open({ keys: KEYS, timeoutMs: 2_200 })
    connection.proxy.fates.push('swallowed after')
    await expect(connection.client.callTool('plain')).rejects.toMatchObject({ code: 'TIMEOUT' })
    expect(connection.calls).toHaveLength(1)
  })
})

test('what was never sent is sent again, whatever it is', async () => {
  const { url } = await Connection.open()
  let isDown = true
  const client = await connect(url, {
    fetch: (address, init) => {
      if (init.headers['Mcp-Method'] !== 'tools/call' || !isDown) return fetch(address, init)
      isDown = false
      const refused = Object.assign(new Error('connect ECONNREFUSED'), { syscall: 'connect' })
      return Promise.reject(new TypeError('fetch failed', { cause: refused }))
    },
  })
  expect(textOf(await client.callTool('plain'))).toBe('call 1')
  await client.close()
})
