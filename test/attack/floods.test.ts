import { describe, expect, test } from 'vitest'
import { initializeMessage } from '../legacy/raw.ts'
import { call, request } from '../wire/messages.ts'
import { post } from '../wire/socket.ts'
import { expectMemoryBack, expectServed, Target } from './target.ts'

test('connections past the limit are closed, and when others have left there is room again', async () => {
  const target = await Target.start({ maxConnections: 50 })
  const connections = await target.connections(200)
  let closed = 0
  for (const each of connections) void each.closed.then(() => (closed += 1))
  await expect.poll(() => closed).toBe(150)
  for (const { socket } of connections) socket.destroy()
  await expect.poll(() => expectServed(target).then(() => 'served', String)).toBe('served')
})

test('connections that say nothing make room for others', async () => {
  const target = await Target.start({ maxConnections: 50 })
  await target.connections(50)
  await expect.poll(() => expectServed(target).then(() => 'served', String), { timeout: 5_000 }).toBe('served')
})

describe('past maxInFlight', () => {
  test('a request is refused at once with 503, and streams that wait do not count', async () => {
    const target = await Target.start({ maxInFlight: 20 })
    const listeners = await target.connections(30)
    for (const each of listeners) {
      each.write(post(request('subscriptions/listen', { notifications: { toolsListChanged: true } })))
    }
    await Promise.all(listeners.map(({ socket }) => new Promise((resolve) => void socket.once('data', resolve))))
    await expectServed(target)
    const connections = await target.connections(100)
    const statuses: number[] = []
    for (const each of connections) {
      each.write(post(call('wait')))
      each.next().then(
        ({ status }) => statuses.push(status),
        () => {},
      )
    }
    await expect.poll(() => statuses.length).toBe(80)
    expect(new Set(statuses)).toEqual(new Set([503]))
    for (const { socket } of connections) socket.destroy()
    await expect.poll(() => expectServed(target).then(() => 'served', String)).toBe('served')
    await expectMemoryBack(target)
  })

  test('clients of every revision get the same: when to come back, and why', async () => {
    const target = await Target.start({ maxInFlight: 1 })
    const older = await target.connect()
    older.write(post(initializeMessage(), { headers: OLDER }))
    const { headers: begun } = await older.next()
    const busy = await target.connect()
    busy.write(post(call('wait')))
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
    const ask = async (): Promise<unknown[]> => {
      older.write(post(list, { headers: { ...OLDER, 'Mcp-Session-Id': begun['mcp-session-id'] } }))
      const modern = await target.connect()
      modern.write(post(call('greet')))
      return Promise.all(
        [older, modern].map(async (connection) => {
          const { status, headers, body } = await connection.next()
          return { status, retryAfter: headers['retry-after'], body: JSON.parse(body) as unknown }
        }),
      )
    }
    const message = expect.stringMatching(
      /^The server is overloaded: 1 requests .*`maxInFlight`.* Try again in a second\.$/,
    )
    const data = { retryAfterMs: 1_000, unprocessed: true }
    const refused = { status: 503, retryAfter: '1', body: { jsonrpc: '2.0', error: { code: -32603, message, data } } }
    await expect.poll(ask).toEqual([refused, refused])
    // The connections are as good as before.
    busy.socket.destroy()
    await expect.poll(ask).toMatchObject([{ status: 200 }, { status: 200 }])
  })
})

test('a flood of calls that compute is refused past maxLagMs, and what is served is served in time', async () => {
  const target = await Target.start({ maxLagMs: 200 })
  const connections = await target.connections(200)
  const began = performance.now()
  const served: number[] = []
  const statuses = await Promise.all(
    connections.map(async (each) => {
      each.write(post(call('compute', { ms: 20 })))
      const { status } = await each.next()
      if (status === 200) served.push(performance.now() - began)
      return status
    }),
  )
  // All of them would take 4 s.
  expect(new Set(statuses)).toEqual(new Set([200, 503]))
  expect(served.length).toBeGreaterThanOrEqual(10)
  await expectServed(target)
})

/** What an older client sends beside its session, and nothing that came later. */
const OLDER = {
  'MCP-Protocol-Version': undefined,
  'Mcp-Method': undefined,
  'Mcp-Name': undefined,
}
