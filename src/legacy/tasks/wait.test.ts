// Who waits for the result of a task holds a place and nothing else, and gives it up whatever comes of it.
import { afterEach, expect, test, vi } from 'vitest'
import { Cancel } from '../../protocol/cancel.ts'
import type { LegacyOptions, LegacyRequest } from '../../server/legacy.ts'
import type { Reply } from '../../server/reply.ts'
import { App } from '../../server/app.ts'
import { readTasksOptions, TaskEngine } from '../../tasks/engine.ts'
import { MemoryStore } from '../../store/memory/store.ts'
import type { TaskStore } from '../../store/tasks.ts'
import { RawServer } from '../../../test/legacy/raw-server.ts'

const KEYS = ['a secret of the tests of waiting, long enough']
const NOTHING = { sessions: 0, streams: 0, asks: 0, waits: 0, connections: 0 }

interface Setting {
  app: App
  server: RawServer
  tasks: TaskStore
  /** What the log has. */
  logged: unknown[]
  /** Who listens to the store. */
  watchers: () => number
}

afterEach(() => vi.useRealTimers())

function newSetting(options: LegacyOptions = {}, now?: () => number): Setting {
  const { tasks } = new MemoryStore(now && { now })
  let watchers = 0
  const watch = tasks.watch.bind(tasks)
  tasks.watch = (listener) => {
    const unwatch = watch(listener)
    watchers += 1
    return () => {
      watchers -= 1
      unwatch()
    }
  }
  const logged: unknown[] = []
  const logger = { warn() {}, error: (message: string, details?: object) => void logged.push({ message, ...details }) }
  let server: RawServer | undefined
  const app = new App(
    { name: 'waiting', version: '1', keys: KEYS, logger },
    {
      tasks: (host) => new TaskEngine(host, tasks, readTasksOptions({})),
      legacy: (host) => (server = new RawServer(host, options)),
    },
  )
  app.tool('ask', { task: 'always' }, async (_args, io) => ((await io.confirm('sure', 'Sure?')) ? 'Yes.' : 'No.'))
  app.tool('work', { task: 'always' }, (_args, io) =>
    io.step(
      'work',
      ({ signal }) => new Promise<string>((resolve) => signal.addEventListener('abort', () => resolve(''))),
    ),
  )
  if (server === undefined) throw new Error('There is no server.')
  return { app, server, tasks, logged, watchers: () => watchers }
}

class Client {
  readonly #server: RawServer
  readonly #headers: Record<string, string> = {}
  #id = 0

  constructor(server: RawServer) {
    this.#server = server
  }

  static async begin(server: RawServer): Promise<Client> {
    const client = new Client(server)
    const clientInfo = { name: 'waiting', version: '1' }
    const params = { protocolVersion: '2025-11-25', capabilities: { elicitation: {} }, clientInfo }
    const reply = await client.send('initialize', params)
    client.#headers['mcp-session-id'] = reply?.headers?.['Mcp-Session-Id'] ?? ''
    return client
  }

  send(method: string, params: object, peer = new Cancel(), takesEvents = true): Promise<Reply | undefined> {
    this.#id += 1
    const header: LegacyRequest['header'] = (name) => this.#headers[name]
    const request = { header, caller: undefined, takesEvents, peer }
    return this.#server.send({ jsonrpc: '2.0', id: this.#id, method, params }, request)
  }

  answer(id: string, result: object): Promise<Reply | undefined> {
    const header: LegacyRequest['header'] = (name) => this.#headers[name]
    const request = { header, caller: undefined, takesEvents: true, peer: new Cancel() }
    return this.#server.send({ jsonrpc: '2.0', id, result }, request)
  }

  async task(name: string, ttl = 60_000): Promise<string> {
    const reply = await this.send('tools/call', { name, task: { ttl } })
    return (JSON.parse(reply?.text ?? '') as { result: { task: { taskId: string } } }).result.task.taskId
  }
}

/** Reads the events of a reply, until one holds this text. */
function read(reply: Reply | undefined, text: string): Promise<string> {
  return new Promise((resolve) => {
    let all = ''
    const send = (event: string): void => {
      all += event
      if (all.includes(text)) resolve(all)
    }
    reply?.events?.({ send, isBehind: () => false, end: () => resolve(all) })
  })
}

test('a client that takes no events and goes away is waited for by nobody', async () => {
  const { server, watchers } = newSetting()
  const client = await Client.begin(server)
  const taskId = await client.task('work')
  const before = watchers()
  const peers = Array.from({ length: 50 }, () => new Cancel())
  const replies = peers.map((peer) => client.send('tasks/result', { taskId }, peer, false))
  await vi.waitFor(() => expect(server.held).toMatchObject({ waits: 50, sessions: 1 }))
  expect(watchers()).toBe(before + 1)
  for (const peer of peers) peer.cancel()
  expect(await Promise.all(replies)).toEqual(peers.map(() => undefined))
  expect(server.held).toEqual(NOTHING)
  expect(watchers()).toBe(before)
})

test('a client that has left its stream may come back for a while, and then nothing of it is held', async () => {
  const { server, watchers } = newSetting({ keepMs: 50 })
  const client = await Client.begin(server)
  const taskId = await client.task('ask')
  const before = watchers()
  const peer = new Cancel()
  const reply = await client.send('tasks/result', { taskId }, peer)
  await read(reply, 'Sure?')
  peer.cancel()
  expect(server.held).toMatchObject({ waits: 1, asks: 1, streams: 1 })
  await vi.waitFor(() => expect(server.held).toEqual(NOTHING), { timeout: 10_000 })
  expect(watchers()).toBe(before)
})

test('a client that has left before its stream began is not taken for a reader', async () => {
  const { server } = newSetting({ keepMs: 50 })
  const client = await Client.begin(server)
  const peer = new Cancel()
  const reply = await client.send('tasks/result', { taskId: await client.task('work') }, peer)
  peer.cancel()
  void read(reply, 'never')
  await vi.waitFor(() => expect(server.held).toEqual(NOTHING), { timeout: 10_000 })
})

test('a connection that ends leaves nothing waiting', async () => {
  const { app, server, watchers } = newSetting()
  app.work()
  const said: Record<string, unknown>[] = []
  const hear = (text: string): void => void said.push(JSON.parse(text) as Record<string, unknown>)
  const connection = await server.connect({
    caller: undefined,
    send: hear,
    notify: (text) => {
      hear(text)
      return true
    },
  })
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: { elicitation: {} },
    clientInfo: { name: 'a', version: '1' },
  }
  connection.receive(server.resolve({ jsonrpc: '2.0', id: 0, method: 'initialize', params }))
  connection.receive(server.resolve({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'ask', task: {} } }))
  await vi.waitFor(() => expect(said).toHaveLength(2))
  const before = watchers()
  const created = said.find(({ id }) => id === 1) as { result: { task: { taskId: string } } }
  const { taskId } = created.result.task
  connection.receive(server.resolve({ jsonrpc: '2.0', id: 2, method: 'tasks/result', params: { taskId } }))
  await vi.waitFor(() => expect(said.at(-1)).toMatchObject({ method: 'elicitation/create' }))
  expect(server.held).toMatchObject({ waits: 1, asks: 1 })
  connection.close()
  await vi.waitFor(() => expect(server.held).toEqual(NOTHING))
  expect(watchers()).toBe(before)
})

test('a wait has an end, which says what to do', async () => {
  const { server } = newSetting({ callMs: 100, keepMs: 50 })
  const client = await Client.begin(server)
  const reply = await client.send('tasks/result', { taskId: await client.task('ask') })
  const text = await read(reply, '"error"')
  expect(text).toContain('The task has no result after 100 ms. It goes on: request its result again.')
  // The question is withdrawn before that.
  expect(text.indexOf('notifications/cancelled')).toBeLessThan(text.indexOf('"error"'))
  await vi.waitFor(() => expect(server.held).toEqual(NOTHING), { timeout: 10_000 })
})

test('a task that outlives its ttl ends the wait for it', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  let time = Date.now()
  const { server } = newSetting({}, () => time)
  const client = await Client.begin(server)
  const taskId = await client.task('work', 1_000)
  const reply = client.send('tasks/result', { taskId }, undefined, false)
  await vi.waitFor(() => expect(server.held).toMatchObject({ waits: 1 }))
  time += 2_000
  await vi.advanceTimersByTimeAsync(6_000)
  expect(JSON.parse((await reply)?.text ?? '')).toMatchObject({
    error: { code: -32602, message: 'Task not found: its ttl has expired.' },
  })
  expect(server.held).toMatchObject({ waits: 0 })
})

test('no more than a thousand wait on an instance, a quarter of them in one session, and the error says to poll', async () => {
  const { server } = newSetting()
  const clients = await Promise.all(Array.from({ length: 5 }, () => Client.begin(server)))
  const taskId = await clients[0]?.task('work')
  const peer = new Cancel()
  const peers: Cancel[] = []
  const replies: Promise<Reply | undefined>[] = []
  for (let i = 0; i < 1_000; i += 1) {
    const each = new Cancel()
    peers.push(each)
    const reply = clients[i % 4]?.send('tasks/result', { taskId }, each, false)
    if (reply !== undefined) replies.push(reply)
  }
  await vi.waitFor(() => expect(server.held).toMatchObject({ waits: 1_000 }), { timeout: 10_000 })
  const refused = await clients[0]?.send('tasks/result', { taskId }, peer, false)
  const used = 'one caller may use 250 of 1000 (limits.maxTaskWaits, limits.share), and this one would use more'
  const advice = 'Close what it does not need, or try again later. Poll tasks/get instead.'
  expect(JSON.parse(refused?.text ?? '')).toMatchObject({
    error: {
      code: -32603,
      message: `Too many requests that wait for results of tasks: ${used}. ${advice}`,
    },
  })
  // Another session has room all the same: one of those that have the most makes it.
  const later = clients[4]?.send('tasks/result', { taskId }, peer, false)
  expect(JSON.parse((await Promise.race(replies))?.text ?? '')).toMatchObject({
    error: { message: 'Too many requests wait for results of tasks (limits.maxTaskWaits). Poll tasks/get instead.' },
  })
  expect(server.held).toMatchObject({ waits: 1_000 })
  peer.cancel()
  await later
  for (const each of peers) each.cancel()
  await Promise.all(replies)
  expect(server.held).toEqual(NOTHING)
})

const fails = (): Promise<never> => Promise.reject(new Error('The disk is full.'))

test('an answer that the store cannot take ends the wait, and the log has the reason', async () => {
  const { server, tasks, logged } = newSetting({ keepMs: 50 })
  const client = await Client.begin(server)
  const taskId = await client.task('ask')
  const reply = await client.send('tasks/result', { taskId })
  const parts: string[] = []
  reply?.events?.({ send: (event) => void parts.push(event), isBehind: () => false, end: () => parts.push('end') })
  await vi.waitFor(() => expect(parts.join('')).toContain('Sure?'))
  tasks.change = fails
  tasks.changeAndClaim = fails
  const [, id = ''] = /"id":"(ask-[\w-]+)"/.exec(parts.join('')) ?? []
  await client.answer(id, { action: 'accept', content: { confirm: true } })
  await vi.waitFor(() => expect(parts.at(-1)).toBe('end'))
  const why = "The server's store is not available. Try again in a second."
  expect(parts.at(-2)).toContain(`"error":{"code":-32603,"message":"${why}","data":{"retryAfterMs":1000}}`)
  expect(logged).toMatchObject([{ error: { message: 'The disk is full.' } }])
  await vi.waitFor(() => expect(server.held).toEqual(NOTHING), { timeout: 10_000 })
})
