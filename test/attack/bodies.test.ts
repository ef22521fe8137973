import { expect, test } from 'vitest'
import { call } from '../wire/messages.ts'
import type { Connection } from '../wire/socket.ts'
import { post } from '../wire/socket.ts'
import { expectMemoryBack, expectServed, head, Target } from './target.ts'

const MIB = 1024 * 1024
const LARGEST = 4 * MIB

test('bodies in chunks of one byte take little more memory than their bytes', async () => {
  const target = await Target.start()
  const connections = await target.connections(8)
  const bytes = 100_000
  const chunks = Buffer.from('1\r\n \r\n'.repeat(bytes))
  for (const connection of connections) connection.write(head({ 'Transfer-Encoding': 'chunked' }))
  for (const connection of connections) connection.write(chunks)
  await expectServed(target)
  await Promise.all(connections.map(sent))
  await expectServed(target)
  // They were about 400 bytes each.
  expect(await target.growth()).toBeLessThan(20)
  for (const { socket } of connections) socket.destroy()
  await expectServed(target)
  await expectMemoryBack(target)
})

test('a body in thousands of tiny chunks is refused soon, and one in small chunks is served', async () => {
  const target = await Target.start()
  const crumbs = await target.connect()
  crumbs.write(head({ 'Transfer-Encoding': 'chunked' }))
  crumbs.write('1\r\n \r\n'.repeat(6_000))
  const { status, headers } = await crumbs.next()
  expect([status, headers['connection']]).toEqual([413, 'close'])
  const small = await target.connect()
  small.write(head({ 'Transfer-Encoding': 'chunked', ...HEADERS, 'Mcp-Name': 'greet' }))
  const text = JSON.stringify(call('greet', { padding: ' '.repeat(100_000) }))
  for (let at = 0; at < text.length; at += 20) {
    const part = text.slice(at, at + 20)
    small.write(`${part.length.toString(16)}\r\n${part}\r\n`)
  }
  small.write('0\r\n\r\n')
  expect((await small.next()).status).toBe(200)
})

test('a declared length takes no memory before it is sent', async () => {
  const target = await Target.start()
  const connections = await target.connections(200)
  for (const connection of connections) connection.write(`${head({ 'Content-Length': String(LARGEST) })}{`)
  await expectServed(target)
  expect(await target.growth()).toBeLessThan(10)
})

test('many large bodies at once are refused with 503, the largest first, and a small one never is', async () => {
  const target = await Target.start()
  const connections = await target.connections(40)
  const part = Buffer.alloc(LARGEST - 1, ' ')
  for (const connection of connections) connection.write(head({ 'Content-Length': String(LARGEST) }))
  for (const connection of connections) connection.write(part)
  const refused = connections.map((connection) => connection.next())
  await expectServed(target)
  const { status, headers, body } = await Promise.any(refused)
  expect({ status, retryAfter: headers['retry-after'], connection: headers['connection'] }).toEqual({
    status: 503,
    retryAfter: '1',
    connection: 'close',
  })
  expect(JSON.parse(body)).toMatchObject({
    jsonrpc: '2.0',
    error: { code: -32603, message: expect.stringContaining('Try again in a second') },
  })
  expect(await target.growth()).toBeLessThan(40)
  for (const { socket } of connections) socket.destroy()
  await Promise.allSettled(refused)
  await expectServed(target)
  await expectMemoryBack(target)
})

test('bodies that grow when they are parsed cannot fill the heap while their calls wait', async () => {
  const target = await Target.start()
  const connections = await target.connections(12)
  // Each object takes about 20 times its three characters.
  const wide = JSON.stringify(call('wait', { objects: Array.from({ length: 1_200_000 }, () => ({})) }))
  const request = `${head({ 'Content-Length': String(wide.length), ...HEADERS })}${wide}`
  const statuses: number[] = []
  for (const connection of connections) {
    connection.next().then(
      ({ status }) => statuses.push(status),
      () => {},
    )
    connection.write(request)
  }
  await expect.poll(() => statuses.length, { timeout: 6_000 }).toBeGreaterThanOrEqual(8)
  expect(new Set(statuses)).toEqual(new Set([503]))
  await expectServed(target)
  for (const { socket } of connections) socket.destroy()
  await expectServed(target)
  await expectMemoryBack(target)
})

test('a body that was cut off leaves nothing behind', async () => {
  const target = await Target.start()
  for (let round = 0; round < 5; round += 1) {
    const connections = await target.connections(20)
    for (const connection of connections)
      connection.write(`${head({ 'Content-Length': '500000' })}${' '.repeat(100_000)}`)
    await Promise.all(connections.map(sent))
    for (const { socket } of connections) socket.destroy()
  }
  const connection = await target.connect()
  connection.write(post(call('greet', { padding: ' '.repeat(3 * MIB) })))
  expect((await connection.next()).status).toBe(200)
  await expectMemoryBack(target)
})

const HEADERS = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': 'wait' }

/** Resolves when the system has taken all that was written, or the connection was closed. */
async function sent({ socket, closed }: Connection): Promise<void> {
  if (socket.writableLength === 0) return
  await Promise.race([closed, new Promise<void>((resolve) => void socket.once('drain', resolve))])
}
