// Giving up on connecting.
import { getEventListeners, once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { ClientOptions } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { afterEach, describe, expect, test } from 'vitest'
import { Child } from '../interop/child.ts'
import { testApp } from './app.mjs'
import type { Script } from './legacy-raw.ts'
import { closeAll, initialized, olderConnection, olderServer, text } from './legacy-raw.ts'
import { json } from './raw-server.ts'
import { textOf } from './wires.ts'

afterEach(closeAll)

const GIVING_UP = fileURLToPath(new URL('./giving-up.mjs', import.meta.url))
const REASON = new Error('It takes too long.')
const silent = (): void => {}
const QUIET: ClientOptions = { logger: { warn: silent, error: silent } }
const gaveUp = { code: 'ABORTED', cause: REASON }

test('whoever has given up before does not even begin', async () => {
  const { url, server } = await olderServer({})
  await expect(connect(url, { ...QUIET, signal: AbortSignal.abort(REASON) })).rejects.toMatchObject(gaveUp)
  expect(server.seen).toEqual([])
})

const wires: [string, ClientOptions][] = [
  ['HTTP', {}],
  ['fetch', { fetch: (url, init) => fetch(url, init) }],
]

describe.each(wires)('over %s', (_name, options) => {
  test.each<[what: string, at: string, script: Script]>([
    ['who it is', 'server/discover', { 'server/discover': silent }],
    ['what it is called in an older revision', 'initialize', { initialize: silent }],
    ['whether it has been introduced to', 'notifications/initialized', { 'notifications/initialized': silent }],
    ['whether it has something to tell', 'GET', { GET: silent }],
  ])('a server that does not say %s is given up on', async (_what, at, script) => {
    const { url, server } = await olderServer(script)
    const controller = new AbortController()
    const connecting = connect(url, { ...QUIET, ...options, signal: controller.signal })
    connecting.catch(() => {})
    await server.waitFor(at)
    controller.abort(REASON)
    await expect(connecting).rejects.toMatchObject(gaveUp)
    expect(getEventListeners(controller.signal, 'abort')).toEqual([])
  })

  test('a session that had begun is ended', async () => {
    const { url, server } = await olderServer({ GET: silent })
    const controller = new AbortController()
    const connecting = connect(url, { ...QUIET, ...options, signal: controller.signal })
    connecting.catch(() => {})
    await server.waitFor('GET')
    controller.abort(REASON)
    await expect(connecting).rejects.toMatchObject(gaveUp)
    const [farewell] = await server.waitFor('DELETE')
    expect(farewell?.headers).toMatchObject({ 'mcp-session-id': 's1' })
  })
})

test('nothing is asked of a server that turns out to be older when nobody waits any more', async () => {
  const controller = new AbortController()
  const { url, server } = await olderServer({
    'server/discover': (response) => {
      controller.abort(REASON)
      response.writeHead(400).end()
    },
  })
  await expect(connect(url, { ...QUIET, signal: controller.signal })).rejects.toMatchObject(gaveUp)
  // Another one that has been through it all came after anything that the first might have sent.
  const other = await connect(url.replace('127.0.0.1', 'localhost'), { ...QUIET, revision: '2025-11-25' })
  await other.close()
  expect(server.of('initialize')).toHaveLength(1)
})

test('a process that was started is ended', async () => {
  // Tells of itself by a connection, which lasts as long as it does.
  const listener = createServer()
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo
  const program = `require('node:net').connect(${port}, '127.0.0.1'); process.stdin.resume()`
  const controller = new AbortController()
  const connecting = connect({ command: process.execPath, args: ['-e', program] }, { signal: controller.signal })
  connecting.catch(() => {})
  const [socket] = (await once(listener, 'connection')) as [Socket]
  socket.on('error', () => {})
  const gone = once(socket.resume(), 'close')
  controller.abort(REASON)
  await expect(connecting).rejects.toMatchObject(gaveUp)
  await gone
  listener.close()
})

test('nothing is left that keeps a program from ending', async () => {
  const child = new Child(process.execPath, [GIVING_UP])
  expect(await child.ended).toEqual({ code: 0, signal: null })
  expect(child.printed.text).toBe('ABORTED\n')
})

test('a client that there is does not end with the signal, nor is the signal held on to', async () => {
  const controller = new AbortController()
  const { signal } = controller
  const older = await olderConnection(
    {
      initialize: initialized(),
      'tools/call': (response, { message }) => json(response, { id: message.id, result: text('Done.') }),
    },
    { signal },
  )
  const modern = await connect(testApp(), { signal })
  expect(getEventListeners(signal, 'abort')).toEqual([])
  controller.abort(REASON)
  expect(textOf(await older.client.callTool('go'))).toBe('Done.')
  expect((await modern.listTools()).length).toBeGreaterThan(0)
  await modern.close()
})
