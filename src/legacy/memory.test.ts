// What clients leave behind that stop answering: nothing, once their time is up.
import { expect, onTestFinished, test, vi } from 'vitest'
import { Cancel } from '../protocol/cancel.ts'
import { App } from '../server/app.ts'
import type { Tasks } from '../server/tasks.ts'
import { MemoryMailbox } from '../store/memory/mailbox.ts'
import { MemoryStore } from '../store/memory/store.ts'
import type { LegacyRequest } from '../server/legacy.ts'
import type { EventSink, Reply } from '../server/reply.ts'
import type { Bus } from '../server/subscriptions.ts'
import { TaskEngine } from '../tasks/engine.ts'
import { readTasksOptions } from '../tasks/engine.ts'
import { callerNamed } from '../../test/wire/messages.ts'
import { RawServer } from '../../test/legacy/raw-server.ts'
import { gate } from '../testing/manual-scheduler.ts'

const KEYS = ['a secret of the memory tests, long enough']
const quiet = { warn() {}, error() {} }

interface Held {
  app: App
  server: RawServer
}

function newServer(options: { askMs: number; keepMs: number }, bus?: Bus): Held {
  let server: RawServer | undefined
  const app = new App(
    { name: 'memory', version: '1', keys: KEYS, logger: quiet, ...(bus && { bus }) },
    {
      legacy: (host) => {
        server = new RawServer(host, options)
        return server
      },
    },
  )
  app.tool('ask', {}, async (_args, io) => {
    const ballast = 'x'.repeat(10_000)
    await io.step('ballast', () => ballast)
    return (await io.confirm('sure', 'Sure?')) ? ballast : 'No.'
  })
  app.resource('note://one', { name: 'one' }, () => 'One')
  if (server === undefined) throw new Error('There is no server.')
  return { app, server }
}

/** A client of which nothing is left but what the server holds. */
async function beginSession(server: RawServer, more: object = {}, principal?: string): Promise<LegacyRequest> {
  const headers: Record<string, string> = {}
  const request = {
    header: (name: string) => headers[name],
    caller: callerNamed(principal),
    takesEvents: true,
    peer: new Cancel(),
  }
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: { elicitation: {}, ...more },
    clientInfo: { name: 'memory', version: '1' },
  }
  const reply = await server.send({ jsonrpc: '2.0', id: 0, method: 'initialize', params }, request)
  headers['mcp-session-id'] = reply?.headers?.['Mcp-Session-Id'] ?? ''
  return request
}

const call = (id: number): object => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'ask' } })

/** Reads until the end of the events. */
function read({ events }: Reply): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    const sink: EventSink = {
      send: (event) => {
        text += event
      },
      isBehind: () => false,
      end: () => resolve(text),
    }
    events?.(sink)
  })
}

async function stopAnswering(server: RawServer, sessions: number): Promise<void> {
  const ends: Promise<string>[] = []
  for (let i = 0; i < sessions; i += 1) {
    const request = await beginSession(server)
    const reply = await server.send(call(1), request)
    if (reply?.events === undefined) throw new Error('No question was asked.')
    // Every other one has lost its stream beside.
    if (i % 2 === 0) ends.push(read(reply))
    else {
      reply.events({ send: () => {}, isBehind: () => false, end: () => {} })
      request.peer.cancel()
    }
  }
  for (const text of await Promise.all(ends)) expect(text).toContain('did not answer')
}

const collected = async (): Promise<number> => {
  for (let i = 0; i < 3; i += 1) {
    globalThis.gc?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return process.memoryUsage().heapUsed
}

test('1,000 sessions that stop answering leave nothing behind once their time is up', async () => {
  const { server } = newServer({ askMs: 300, keepMs: 100 })
  const nothing = { sessions: 0, streams: 0, asks: 0, waits: 0, connections: 0 }
  await stopAnswering(server, 20)
  await expect.poll(() => server.held, { timeout: 5_000 }).toEqual(nothing)
  const before = await collected()
  await stopAnswering(server, 1_000)
  await expect.poll(() => server.held, { timeout: 5_000 }).toEqual(nothing)
  expect((await collected()) - before).toBeLessThan(5 * 1024 * 1024)
})

/** Each of them is asked, reads the question to the end of its stream, and is not heard of again. */
async function neverComeBack(server: RawServer, calls: number): Promise<void> {
  for (let i = 0; i < calls; i += 1) {
    const request = await beginSession(server, { state: { scopes: ['request'] } })
    const reply = await server.send(call(1), request)
    if (reply?.events === undefined) throw new Error('No question was asked.')
    expect(await read(reply)).toContain('elicitation/create')
  }
}

test('1,000 calls that asked, and whose clients never come back, leave nothing behind', async () => {
  const { server } = newServer({ askMs: 60_000, keepMs: 100 })
  const nothing = { sessions: 0, streams: 0, asks: 0, waits: 0, connections: 0 }
  await neverComeBack(server, 20)
  const before = await collected()
  await neverComeBack(server, 1_000)
  await expect.poll(() => server.held, { timeout: 10_000 }).toEqual(nothing)
  await expect.poll(async () => (await collected()) - before, { timeout: 10_000 }).toBeLessThan(5 * 1024 * 1024)
})

test('By default a question is kept for a client that lost its stream, and no longer than that takes', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'] })
  try {
    const mailbox = vi.spyOn(MemoryMailbox.prototype, 'leave')
    const { server } = newServer({ askMs: 60_000, keepMs: 300_000 })
    await neverComeBack(server, 3)
    const own = mailbox.mock.contexts[0] as MemoryMailbox
    expect(own.size).toBe(3)
    await vi.advanceTimersByTimeAsync(15_000)
    expect(own.size).toBe(0)
    mailbox.mockRestore()
  } finally {
    vi.useRealTimers()
  }
})

test('A resumed call leaves nothing behind but what waits in the mailbox', async () => {
  const { server } = newServer({ askMs: 60_000, keepMs: 100 })
  const request = await beginSession(server, { state: { scopes: ['request'] } })
  const reply = await server.send(call(1), request)
  const text = reply === undefined ? '' : await read(reply)
  const question = JSON.parse(/^data: (\{.*)$/m.exec(text)?.[1] ?? '') as { id: string; params: { _meta: object } }
  const result = { action: 'accept', content: { confirm: true }, _meta: question.params._meta }
  expect(await server.send({ jsonrpc: '2.0', id: question.id, result }, request)).toBeUndefined()
  expect(server.held).toEqual({ sessions: 0, streams: 0, asks: 0, waits: 0, connections: 0 })
})

test('A session of which nothing is to be remembered is not remembered', async () => {
  const { server } = newServer({ askMs: 1_000, keepMs: 1_000 })
  const request = await beginSession(server)
  for (const method of ['ping', 'tools/list', 'nothing/like/this']) {
    await server.send({ jsonrpc: '2.0', id: 1, method }, request)
  }
  expect(server.held).toMatchObject({ sessions: 0 })
  await server.send({ jsonrpc: '2.0', id: 1, method: 'resources/subscribe', params: { uri: 'note://one' } }, request)
  expect(server.held).toMatchObject({ sessions: 1 })
  await server.send({ jsonrpc: '2.0', id: 1, method: 'resources/unsubscribe', params: { uri: 'note://one' } }, request)
  expect(server.held).toMatchObject({ sessions: 0 })
  await server.send({ jsonrpc: '2.0', id: 1, method: 'logging/setLevel', params: { level: 'debug' } }, request)
  expect(server.held).toMatchObject({ sessions: 1 })
})

test('A session with subscriptions and without requests is forgotten after an hour', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'] })
  try {
    const { server } = newServer({ askMs: 60_000, keepMs: 60_000 })
    const subscribe = { jsonrpc: '2.0', id: 1, method: 'resources/subscribe', params: { uri: 'note://one' } }
    await server.send(subscribe, await beginSession(server))
    await vi.advanceTimersByTimeAsync(1_800_000)
    const later = await beginSession(server)
    await server.send(subscribe, later)
    await vi.advanceTimersByTimeAsync(1_900_000)
    expect(server.held).toMatchObject({ sessions: 1 })
    // A client that listens is not forgotten.
    const listening = await server.get(later)
    listening.events?.({ send: () => {}, isBehind: () => false, end: () => {} })
    await vi.advanceTimersByTimeAsync(7_200_000)
    expect(server.held).toMatchObject({ sessions: 1, streams: 1 })
    later.peer.cancel()
    await vi.advanceTimersByTimeAsync(3_800_000)
    expect(server.held).toMatchObject({ sessions: 0, streams: 0 })
    expect(vi.getTimerCount()).toBe(0)
  } finally {
    vi.useRealTimers()
  }
})

/** A server with a tool "long" that is a task until `end` is called. `followed` counts the tasks that are followed. */
function serverOfTasks(): { server: RawServer; followed: () => number; end: () => void } {
  const followed = new Set<object>()
  const ended = gate()
  let server: RawServer | undefined
  const app = new App(
    { name: 'memory', version: '1', keys: KEYS, logger: quiet },
    {
      legacy: (host) => (server = new RawServer(host, { askMs: 60_000, keepMs: 60_000 })),
      tasks: (host) => {
        const engine = new TaskEngine(host, new MemoryStore().tasks, readTasksOptions({}))
        const follow: Tasks['follow'] = engine.follow.bind(engine)
        engine.follow = (taskId, onTask, onGone) => {
          const stop = follow(taskId, onTask, onGone)
          followed.add(stop)
          return () => {
            followed.delete(stop)
            stop()
          }
        }
        return engine
      },
    },
  )
  app.tool('long', { task: 'always' }, (_args, io) => io.step('work', () => ended.promise))
  if (server === undefined) throw new Error('There is no server.')
  return { server, followed: () => followed.size, end: ended.open }
}

const callLong = (id: number): object => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name: 'long', task: {}, _meta: { progressToken: id } },
})

test('A session is remembered for the progress of its tasks until they end', async () => {
  const { server, followed, end } = serverOfTasks()
  const request = await beginSession(server)
  for (let id = 1; id <= 40; id += 1) await server.send(callLong(id), request)
  expect([server.held.sessions, followed()]).toEqual([1, 32])
  end()
  await expect.poll(() => [server.held.sessions, followed()]).toEqual([0, 0])
})

test('A session that nobody uses is forgotten after an hour, and its tasks are followed no longer', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'] })
  try {
    const { server, followed } = serverOfTasks()
    await server.send(callLong(1), await beginSession(server))
    expect([server.held.sessions, followed()]).toEqual([1, 1])
    await vi.advanceTimersByTimeAsync(3_700_000)
    expect([server.held.sessions, followed()]).toEqual([0, 0])
  } finally {
    vi.useRealTimers()
  }
})

test('A connection that closes follows its tasks no longer', async () => {
  const { server, followed } = serverOfTasks()
  const connection = await server.connect({ caller: undefined, send: () => {}, notify: () => true })
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'a', version: '1' } }
  connection.receive(server.resolve({ jsonrpc: '2.0', id: 0, method: 'initialize', params }))
  connection.receive(server.resolve(callLong(1)))
  await expect.poll(followed).toBe(1)
  connection.close()
  expect(followed()).toBe(0)
})

test('The URIs that a session subscribes to have a limit in bytes, and those of a principal another', async () => {
  const { server } = newServer({ askMs: 60_000, keepMs: 60_000 })
  const subscribe = async (request: LegacyRequest, from: number, count: number): Promise<string> => {
    let text = ''
    for (let i = from; i < from + count; i += 1) {
      const params = { uri: `note://${i}/${'x'.repeat(8_000)}` }
      text = (await server.send({ jsonrpc: '2.0', id: 1, method: 'resources/subscribe', params }, request))?.text ?? ''
    }
    return text
  }
  const ofAnn = async (): Promise<LegacyRequest> => beginSession(server, {}, 'ann')
  const first = await ofAnn()
  expect(await subscribe(first, 0, 32)).toContain('"result":{}')
  expect(await subscribe(first, 32, 1)).toContain('may use 262144 bytes (limits.maxSubscriptionBytes)')
  for (let i = 1; i < 32; i += 1) expect(await subscribe(await ofAnn(), 0, 32)).toContain('"result":{}')
  expect(await subscribe(await ofAnn(), 0, 32)).toContain(
    'Too many bytes of URIs: one caller may use 8388608 of 33554432 (limits.maxSubscribedBytes, limits.share), and this one would use more. Close what it does not need, or try again later.',
  )
  expect(await subscribe(await beginSession(server, {}, 'bob'), 0, 1)).toContain('"result":{}')
})

test('10,000 sessions are remembered at most, and those that do nothing are forgotten first', async () => {
  const { server } = newServer({ askMs: 60_000, keepMs: 60_000 })
  const busy = await beginSession(server)
  const reply = await server.send(call(1), busy)
  if (reply === undefined) throw new Error('No question was asked.')
  const asked = read(reply)
  const level = { jsonrpc: '2.0', id: 1, method: 'logging/setLevel', params: { level: 'debug' } }
  for (let i = 0; i < 10_050; i += 1) await server.send(level, await beginSession(server))
  expect(server.held).toMatchObject({ sessions: 10_000, asks: 1 })
  server.interrupt()
  expect(await asked).toContain('the server shut down before this call was done')
})

test('A connection is forgotten when it closes, and so is what it waits for', async () => {
  const { server } = newServer({ askMs: 60_000, keepMs: 60_000 })
  const said: string[] = []
  const wire = { caller: undefined, send: (text: string) => void said.push(text), notify: () => true }
  const connection = await server.connect(wire)
  const params = {
    protocolVersion: '2025-06-18',
    capabilities: { elicitation: {} },
    clientInfo: { name: 'a', version: '1' },
  }
  connection.receive(server.resolve({ jsonrpc: '2.0', id: 0, method: 'initialize', params }))
  connection.receive(server.resolve(call(1)))
  await expect.poll(() => said.length).toBe(2)
  expect(server.held).toMatchObject({ asks: 1, connections: 1 })
  connection.close()
  expect(server.held).toMatchObject({ asks: 0, waits: 0, connections: 0 })
})

test('A call has a bounded number of others beside it in its session', async () => {
  const { server } = newServer({ askMs: 60_000, keepMs: 60_000 })
  const request = await beginSession(server)
  const first = await Promise.all(Array.from({ length: 256 }, (_, id) => server.send(call(id), request)))
  expect(first.every((reply) => reply?.events !== undefined)).toBe(true)
  expect((await server.send(call(256), request))?.text).toContain('The session already runs 256 calls')
  server.interrupt()
})

test('A client that has left before it could be asked is not waited for', async () => {
  const { server } = newServer({ askMs: 60_000, keepMs: 60_000 })
  const request = await beginSession(server)
  request.peer.cancel()
  const reply = await server.send(call(1), request)
  expect(reply?.text).toContain('there is no event stream to the client')
  expect(server.held).toMatchObject({ sessions: 0, streams: 0, asks: 0 })
})

test('The bus is listened to as long as there is somebody to tell', async () => {
  let listeners = 0
  const bus: Bus = {
    publish: () => {},
    subscribe: () => {
      listeners += 1
      return () => {
        listeners -= 1
      }
    },
  }
  const { server } = newServer({ askMs: 60_000, keepMs: 60_000 }, bus)
  const connection = await server.connect({ caller: undefined, send: () => {}, notify: () => true })
  expect(listeners).toBe(1)
  const ended = read(await server.get(await beginSession(server)))
  connection.close()
  expect(listeners).toBe(1)
  server.drain()
  await ended
  expect(listeners).toBe(0)
  expect(server.held).toEqual({ sessions: 0, streams: 0, asks: 0, waits: 0, connections: 0 })
})

test('what came with a call that asks counts until the call has ended, after its client has left too', async () => {
  const { server } = newServer({ askMs: 60_000, keepMs: 100 })
  const counted: string[] = []
  const hold = (): undefined => void counted.push('held')
  const release = (): void => void counted.push('released')
  const request = { ...(await beginSession(server)), hold, release }
  const reply = await server.send(call(1), request)
  reply?.events?.({ send: () => {}, isBehind: () => false, end: () => {} })
  request.peer.cancel()
  expect([counted, server.held]).toEqual([['held'], expect.objectContaining({ streams: 1, asks: 1 })])
  await expect.poll(() => server.held, { timeout: 5_000 }).toMatchObject({ streams: 0, asks: 0 })
  await expect.poll(() => counted).toEqual(['held', 'released'])
})

test('a call that asks fails with the reason if there is no room for what it keeps', async () => {
  const { server } = newServer({ askMs: 60_000, keepMs: 100 })
  const request = { ...(await beginSession(server)), hold: () => 'There is no room.' }
  const reply = await server.send(call(1), request)
  expect(reply?.text).toContain('The question \\"sure\\" cannot be sent. There is no room.')
})

test('an answer that is acknowledged while its call still runs counts until the call has ended', async () => {
  const { app, server } = newServer({ askMs: 60_000, keepMs: 60_000 })
  const running = gate()
  const over = gate()
  app.tool('run', {}, async (_args, io) => {
    await io.confirm('sure', 'Sure?')
    running.open()
    await over.promise
    return 'Done.'
  })
  const session = await beginSession(server, { state: { scopes: ['request'] } })
  const reply = await server.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'run' } }, session)
  const [, data = ''] = /^data: (\{.*)$/m.exec(reply === undefined ? '' : await read(reply)) ?? []
  const { id, params } = JSON.parse(data) as { id: string; params: { _meta: object } }
  const result = { action: 'accept', content: { confirm: true }, _meta: params._meta }
  const counted: string[] = []
  const hold = (): undefined => void counted.push('held')
  const release = (): void => void counted.push('released')
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const acknowledged = server.send({ jsonrpc: '2.0', id, result }, { ...session, hold, release })
  await running.promise
  expect(counted).toEqual([])
  await vi.advanceTimersByTimeAsync(5_000)
  expect([await acknowledged, counted]).toEqual([undefined, ['held']])
  over.open()
  vi.useRealTimers()
  await expect.poll(() => counted).toEqual(['held', 'released'])
})
