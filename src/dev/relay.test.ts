import { expect, test } from 'vitest'
import { Relay } from './relay.ts'

const call = (id: number): string => JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call' })
const reply = (id: number): string => JSON.stringify({ jsonrpc: '2.0', id, result: {} })
const HELLO = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize' })
const READY = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })

function setUp() {
  const client: string[] = []
  const relay = new Relay((line) => client.push(line))
  const start = (): string[] => {
    const server: string[] = []
    relay.started({ send: (line) => server.push(line) })
    return server
  }
  return { client, relay, start }
}

test('lines that arrive during a restart reach the next process', () => {
  const { client, relay, start } = setUp()
  relay.fromClient(call(1))
  expect(start()).toEqual([call(1)])
  relay.fromServer(reply(1))
  relay.stopped('restarting')
  relay.fromClient(call(2))
  expect(start()).toEqual([call(2)])
  expect(client).toEqual([reply(1)])
})

test('a request that the old process did not answer gets an error, and is not sent again', () => {
  const { client, relay, start } = setUp()
  start()
  relay.fromClient(call(1))
  relay.stopped('restarting')
  expect(start()).toEqual([])
  expect(client.map((line) => JSON.parse(line) as unknown)).toEqual([
    { jsonrpc: '2.0', id: 1, error: { code: -32603, message: expect.stringContaining('restarted') } },
  ])
})

test('after a crash requests are answered at once, those that waited too', () => {
  const { client, relay, start } = setUp()
  relay.fromClient(call(1))
  relay.stopped('crashed')
  relay.fromClient(call(2))
  relay.fromClient(READY)
  const failed = client.map((line) => JSON.parse(line) as { id: number; error: { message: string } })
  expect(failed.map(({ id, error }) => [id, error.message.includes('does not run')])).toEqual([
    [1, true],
    [2, true],
  ])
  expect(start()).toEqual([])
})

test('the handshake of a 2025-era client is repeated to the next process, and its response is dropped', () => {
  const { client, relay, start } = setUp()
  const first = start()
  relay.fromClient(HELLO)
  relay.fromServer(reply(0))
  relay.fromClient(READY)
  expect(first).toEqual([HELLO, READY])
  relay.stopped('restarting')
  relay.fromClient(call(1))
  const second = start()
  expect(second).toEqual([HELLO])
  relay.fromServer(reply(0))
  expect(second).toEqual([HELLO, READY, call(1)])
  relay.fromServer(reply(1))
  expect(client).toEqual([reply(0), reply(1)])
})

test('lines that are not messages pass through', () => {
  const { client, relay, start } = setUp()
  start()
  for (const line of ['Listening on http://127.0.0.1:3000/mcp', '{ not JSON', '[]']) relay.fromServer(line)
  expect(client).toEqual(['Listening on http://127.0.0.1:3000/mcp', '{ not JSON', '[]'])
})
