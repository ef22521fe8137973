import { setTimeout as after } from 'node:timers/promises'
import { rally } from 'mcp-rally'
import type { ServeOptions, Serving } from 'mcp-rally/node'
import { serve } from 'mcp-rally/node'
import { expect, onTestFinished, test, vi } from 'vitest'
import { call, request } from '../../test/wire/messages.ts'
import { Connection, post } from '../../test/wire/socket.ts'
import { KeepAlive } from './events.ts'
import { load } from './load.ts'

const EMPTY = 'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n'

async function served(options: ServeOptions = {}): Promise<Serving> {
  const app = rally({ name: 'greeter', version: '1', logger: { warn() {}, error() {} } })
  app.tool('greet', {}, () => 'Hello!').tool('wait', {}, () => new Promise<string>(() => {}))
  app.tool('slow', {}, () => after(300, 'Slow.'))
  const serving = await serve(app, { port: 0, drainMs: 0, handleSignals: false, ...options })
  onTestFinished(() => serving.close())
  return serving
}

async function expectServed({ port }: Serving): Promise<void> {
  const connection = await Connection.open(port)
  connection.write(post(call('greet')))
  expect((await connection.next()).body).toContain('Hello!')
}

const slowly = async (): Promise<{ principal: string }> => {
  await after(200)
  return { principal: 'ann' }
}

test('a connection on which more than 100 responses wait for their turn is closed', async () => {
  const serving = await served()
  const connection = await Connection.open(serving.port)
  connection.write(post(call('wait')).repeat(101))
  await expect(Promise.race([connection.closed, after(200, 'open')])).resolves.toBe('open')
  connection.write(post(call('wait')))
  await connection.closed
  await expectServed(serving)
})

test('100 requests that were sent at once are answered in their order', async () => {
  const serving = await served()
  const connection = await Connection.open(serving.port)
  for (let round = 0; round < 12; round += 1) {
    connection.write(Array.from({ length: 100 }, (_, id) => post({ ...call('greet'), id })).join(''))
    for (let id = 0; id < 100; id += 1) expect(JSON.parse((await connection.next()).body)).toMatchObject({ id })
  }
})

test('all connections together let 1,000 responses wait, and again when they are gone', async () => {
  const serving = await served({ maxInFlight: 100_000 })
  const open = (): Promise<number> =>
    new Promise((resolve) => serving.server.getConnections((_error, count) => resolve(count)))
  for (let round = 0; round < 2; round += 1) {
    const connections = await Promise.all(Array.from({ length: 11 }, () => Connection.open(serving.port)))
    let closed = 0
    for (const each of connections) {
      void each.closed.then(() => (closed += 1))
      each.write(post(call('wait')).repeat(96))
    }
    await expect.poll(() => closed).toBe(1)
    for (const { socket } of connections) socket.destroy()
    await expect.poll(open).toBe(0)
  }
  await expectServed(serving)
})

test('many requests that wait for their caller to be identified, and a client that leaves, do not end the process', async () => {
  const serving = await served({ authenticate: slowly })
  const connection = await Connection.open(serving.port)
  connection.socket.end(EMPTY.repeat(20_000))
  await connection.closed
  await after(300)
  await expectServed(serving)
})

test('past `maxInFlight` requests that wait for `authenticate`, further ones get a 503', async () => {
  const serving = await served({ authenticate: slowly, maxInFlight: 3 })
  const connections = await Promise.all(Array.from({ length: 5 }, () => Connection.open(serving.port)))
  for (const each of connections) each.write(post(call('greet')))
  const statuses = await Promise.all(connections.map(async (each) => (await each.next()).status))
  expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 200, 200, 503, 503])
  await expectServed(serving)
})

test('bodies behind a call that waits are given back as soon as the client has left', async () => {
  const { port } = await served()
  // Other tests of this process may have left requests that wait.
  const before = load.bytes.used
  const connection = await Connection.open(port)
  connection.write(post(call('wait')) + EMPTY.replace('Length: 0', 'Length: 20000') + 'x'.repeat(16_000))
  await expect.poll(() => load.bytes.used).toBeGreaterThan(before + 16_000)
  connection.socket.destroy()
  await expect.poll(() => load.bytes.used).toBeLessThanOrEqual(before)
})

test('an event stream behind a call that waits gets no comments once the client has left', async () => {
  const [added, deleted] = [vi.spyOn(KeepAlive.prototype, 'add'), vi.spyOn(KeepAlive.prototype, 'delete')]
  onTestFinished(() => void vi.restoreAllMocks())
  const { port } = await served()
  const connection = await Connection.open(port)
  const listen = request('subscriptions/listen', { notifications: { toolsListChanged: true } })
  connection.write(post(call('wait')) + post(listen))
  await expect.poll(() => added.mock.calls.length).toBe(1)
  connection.socket.destroy()
  await expect.poll(() => deleted.mock.calls).toContainEqual(added.mock.calls[0])
})

test('no early refusal overtakes the response to an earlier request, if the author has set a timeout', async () => {
  const serving = await served({ maxInFlight: 1 })
  serving.server.setTimeout(60_000)
  const connection = await Connection.open(serving.port)
  connection.write(post(call('greet')))
  await connection.next()
  connection.write(post(call('slow')))
  await after(50)
  connection.write(post(call('greet')))
  expect([(await connection.next()).status, (await connection.next()).status]).toEqual([200, 503])
})

test.each([
  { when: 'the server is overloaded', options: { maxInFlight: 1 }, origin: '' },
  {
    when: 'the page is of another origin',
    options: { allowedOrigins: ['https://a.example'] },
    origin: 'https://a.example',
  },
])('a request that another listener has answered is left alone when $when', async ({ options, origin }) => {
  const serving = await served(options)
  serving.server.prependListener('request', ({ url }, response) => {
    if (url === '/metrics') response.end('mine')
  })
  const busy = await Connection.open(serving.port)
  busy.write(post(call('wait')))
  await after(50)
  const connection = await Connection.open(serving.port)
  connection.write(`GET /metrics HTTP/1.1\r\nHost: localhost\r\n${origin && `Origin: ${origin}\r\n`}\r\n`)
  expect(await connection.next()).toMatchObject({ status: 200, body: 'mine' })
})
