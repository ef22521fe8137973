import { expect, test } from 'vitest'
import { call, request } from '../wire/messages.ts'
import type { Connection } from '../wire/socket.ts'
import { post } from '../wire/socket.ts'
import { expectMemoryBack, expectServed, head, Target } from './target.ts'

const MIB = 1024 * 1024

/** Writes a piece every 50 ms until the other side has ended the connection. */
async function trickle(connection: Connection, piece: string): Promise<void> {
  const timer = setInterval(() => connection.write(piece), 50)
  await connection.closed
  clearInterval(timer)
}

test('a body that trickles in is cut off with 408 and says why, and others are served meanwhile', async () => {
  const target = await Target.start({ bodyMs: 600 })
  const connections = await target.connections(50)
  const [one] = connections
  for (const each of connections) each.write(head({ 'Content-Length': '100000' }))
  const trickling = connections.map((each) => trickle(each, ' '))
  await expectServed(target)
  const { status, headers, body } = (await one?.next()) ?? { status: 0, headers: {}, body: '' }
  expect([status, headers['connection']]).toEqual([408, 'close'])
  expect(JSON.parse(body)).toMatchObject({
    error: { code: -32600, message: expect.stringContaining('within 600 ms (`bodyMs`). Send the request again') },
  })
  await Promise.all(trickling)
  await expectServed(target)
})

test('headers that trickle in are cut off with 408', async () => {
  const target = await Target.start({ headersMs: 600 })
  const connections = await target.connections(50)
  for (const each of connections) each.write('POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: ')
  const silent = await target.connections(50)
  const [one] = connections
  const trickling = connections.map((each) => trickle(each, 'a'))
  await expectServed(target)
  expect((await one?.next())?.status).toBe(408)
  await Promise.all(trickling)
  await Promise.all(silent.map(({ closed }) => closed))
  await expectServed(target)
})

test('a client that reads nothing of its response is disconnected, and the response is forgotten', async () => {
  const target = await Target.start({ writeStallMs: 800 })
  // Together their responses are larger than the heap.
  const connections = await target.connections(30)
  for (const { socket } of connections) socket.pause()
  for (const each of connections) each.write(post(call('large', { bytes: 12 * MIB })))
  await expectServed(target)
  await expect.poll(() => target.open(), { timeout: 10_000 }).toBe(0)
  await expectMemoryBack(target)
  await expectServed(target)
})

test('a client that reads slowly gets all of its response', async () => {
  const target = await Target.start({ writeStallMs: 3_000 })
  const { socket } = await target.connect()
  let received = 0
  socket.on('data', ({ length }: Buffer) => {
    received += length
    socket.pause()
    setTimeout(() => socket.resume(), 10)
  })
  socket.write(post(call('large', { bytes: 12 * MIB })))
  await expect.poll(() => received, { timeout: 20_000 }).toBeGreaterThan(12 * MIB)
})

test('a client that reads nothing of its stream of events is disconnected, also while comments are written', async () => {
  const target = await Target.start({ writeStallMs: 800, keepAliveMs: 100 })
  const connections = await target.connections(10)
  for (const { socket } of connections) socket.pause()
  const report = call('report', { bytes: 200_000 }, {}, { 'io.modelcontextprotocol/logLevel': 'info' })
  for (const each of connections) each.write(post(report))
  await expectServed(target)
  await expect.poll(() => target.open(), { timeout: 10_000 }).toBe(0)
  await expectMemoryBack(target)
})

test('a stream of events on which nothing happens stays open', async () => {
  const target = await Target.start({ writeStallMs: 200, bodyMs: 200, headersMs: 200, keepAliveMs: 100 })
  const connection = await target.connect()
  let comments = 0
  connection.socket.on('data', (chunk: Buffer) => (comments += chunk.toString().split(':\n\n').length - 1))
  connection.write(post(request('subscriptions/listen', { notifications: { toolsListChanged: true } })))
  await expect.poll(() => comments, { timeout: 8_000 }).toBeGreaterThan(20)
})
