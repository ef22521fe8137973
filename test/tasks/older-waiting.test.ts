// Who waits for the result of a task in a session of 2025-11-25, and is asked what the task asks meanwhile.
import type { Rally } from 'mcp-rally'
import { MemoryStore } from 'mcp-rally'
import { serve } from 'mcp-rally/node'
import { afterEach, expect, test } from 'vitest'
import { gate } from '../dialects/gate.ts'
import type { Wired } from '../legacy/raw.ts'
import { Events, RawSession } from '../legacy/raw.ts'
import { olderProblems } from '../legacy/spec.ts'
import { olderTasksApp } from './older-app.mjs'

const RELATED = 'io.modelcontextprotocol/related-task'
const HI = { action: 'accept', content: { input: 'Hi' } }

let app: Rally
let url: string
let close: () => Promise<void> = async () => {}
afterEach(() => close())

async function open(served: Rally = olderTasksApp()): Promise<RawSession> {
  app = served
  ;({ url, close } = await serve(app, { port: 0, drainMs: 100, handleSignals: false }))
  return anotherSession()
}

const anotherSession = (capabilities?: object): Promise<RawSession> =>
  RawSession.open((init) => fetch(url, init), capabilities && { capabilities })

async function begin(session: RawSession, name: string): Promise<string> {
  const created = await session.json('tools/call', { name, task: { ttl: 60_000 } })
  expect(olderProblems(created, 'tools/call as a task')).toEqual([])
  return (created.result as { task: { taskId: string } }).task.taskId
}

async function waitFor(session: RawSession, taskId: string): Promise<Events> {
  return new Events(await session.request('tasks/result', { taskId }))
}

test('a question goes out on the stream of who waits, as one of the task, and its answer goes into the task', async () => {
  const session = await open()
  const taskId = await begin(session, 'echo')
  const events = await waitFor(session, taskId)
  const question = await events.message()
  expect(question).toMatchObject({ method: 'elicitation/create', params: { _meta: { [RELATED]: { taskId } } } })
  expect(olderProblems(question ?? {})).toEqual([])
  expect((await session.answer(question, HI)).status).toBe(202)
  const rest = await events.rest()
  const result = rest.at(-1) ?? {}
  expect(result).toMatchObject({ result: { content: [{ text: 'Echo: Hi' }], _meta: { [RELATED]: { taskId } } } })
  expect(olderProblems(result, 'tasks/result')).toEqual([])
  // An answer that comes twice is nobody's.
  expect((await session.answer(question, HI)).status).toBe(400)
})

test('two who wait are both asked, the question is withdrawn from the one who was slower, and both get the result', async () => {
  const session = await open()
  const taskId = await begin(session, 'echo')
  const other = await anotherSession()
  const [first, second] = [await waitFor(session, taskId), await waitFor(other, taskId)]
  const [fast, slow] = [await first.message(), await second.message()]
  expect(fast?.id).not.toBe(slow?.id)
  // Nobody answers for another session.
  expect((await other.answer(fast, HI)).status).toBe(400)
  await session.answer(fast, HI)
  const messages = await second.rest()
  const withdrawn = messages.find(({ method }) => method === 'notifications/cancelled')
  expect(withdrawn?.params).toMatchObject({ requestId: slow?.id })
  for (const result of [messages.at(-1), (await first.rest()).at(-1)]) {
    expect(result).toMatchObject({ result: { content: [{ text: 'Echo: Hi' }] } })
  }
})

test('a client that cannot answer is told so, and the task waits for one that can', async () => {
  const session = await open()
  const taskId = await begin(session, 'echo')
  const events = await waitFor(session, taskId)
  const question = await events.message()
  await session.post({ jsonrpc: '2.0', id: question?.id, error: { code: -32603, message: 'The user is out.' } })
  expect((await events.rest()).at(-1)).toMatchObject({
    error: { code: -32603, message: 'The client could not answer the question "echo_input": The user is out.' },
  })
  expect(await session.json('tasks/get', { taskId })).toMatchObject({ result: { status: 'input_required' } })
  const again = await waitFor(session, taskId)
  await session.answer(await again.message(), HI)
  expect((await again.rest()).at(-1)).toMatchObject({ result: { content: [{ text: 'Echo: Hi' }] } })
})

test('a session is not asked what its client did not declare, and another one may answer', async () => {
  const session = await open()
  const taskId = await begin(session, 'echo')
  const mute = await waitFor(await anotherSession({ roots: {} }), taskId)
  expect(await mute.rest()).toMatchObject([
    {
      error: {
        code: -32603,
        message: expect.stringMatching(/"echo_input"\), and the app that sent it cannot ask its user/),
      },
    },
  ])
  const events = await waitFor(session, taskId)
  await session.answer(await events.message(), HI)
  expect((await events.rest()).at(-1)).toMatchObject({ result: { content: [{ text: 'Echo: Hi' }] } })
})

test('whoever takes no events cannot be asked, and is told so; a result is had all the same', async () => {
  const session = await open()
  const json = { Accept: 'application/json' }
  const taskId = await begin(session, 'echo')
  const refused = (await (await session.request('tasks/result', { taskId }, json)).json()) as Wired
  expect(refused.error).toEqual({ code: -32603, message: expect.stringMatching(/accept text\/event-stream/) as string })
  const adds = await begin(session, 'adds')
  const had = (await (await session.request('tasks/result', { taskId: adds }, json)).json()) as Wired
  expect(had.result).toMatchObject({ structuredContent: { sum: 3 } })
})

test('what is no answer at all is asked again, as another question of the task', async () => {
  const session = await open()
  const taskId = await begin(session, 'echo')
  const events = await waitFor(session, taskId)
  const question = await events.message()
  await session.post({ jsonrpc: '2.0', id: question?.id, result: 'Hi' })
  let again = await events.message()
  while (again?.method !== 'elicitation/create') again = await events.message()
  expect(again.id).not.toBe(question?.id)
  await session.answer(again, HI)
  expect((await events.rest()).at(-1)).toMatchObject({ result: { content: [{ text: 'Echo: Hi' }] } })
})

test('who waits hears how the task stands, and how it goes on', async () => {
  const served = olderTasksApp()
  const [begun, told, go] = [gate(), gate(), gate()]
  served.tool('reports', { task: 'optional' }, (_args, io) =>
    io.step('work', async ({ progress }) => {
      await begun.opened
      progress(1, 2, 'Half of it is done.')
      told.open()
      await go.opened
      return 'All of it is done.'
    }),
  )
  const session = await open(served)
  const taskId = await begin(session, 'reports')
  const events = await waitFor(session, taskId)
  expect(await session.json('tasks/get', { taskId })).toMatchObject({ result: { status: 'working' } })
  begun.open()
  const status = await events.message()
  expect(status).toMatchObject({
    method: 'notifications/tasks/status',
    params: { taskId, status: 'working', statusMessage: 'Half of it is done.', ttl: 60_000, pollInterval: 100 },
  })
  expect(olderProblems(status ?? {})).toEqual([])
  await told.opened
  go.open()
  expect((await events.rest()).at(-1)).toMatchObject({ result: { content: [{ text: 'All of it is done.' }] } })
})

test('a client that lost the stream goes on with it, and has the result from there', async () => {
  const session = await open()
  const taskId = await begin(session, 'echo')
  const lost = await waitFor(session, taskId)
  const question = await lost.message()
  await lost.lose()
  await session.answer(question, HI)
  const found = new Events(await session.get({ 'Last-Event-ID': lost.lastId }))
  expect((await found.rest()).at(-1)).toMatchObject({ result: { content: [{ text: 'Echo: Hi' }] } })
})

test('a server that goes down says so to who waits at once, and keeps the task', async () => {
  const session = await open()
  const taskId = await begin(session, 'echo')
  const events = await waitFor(session, taskId)
  await events.message()
  app.drain()
  const goingDown = {
    code: -32603,
    message: 'The server is shutting down. The task goes on: request its result again.',
  }
  expect((await events.rest()).at(-1)).toMatchObject({ error: goingDown })
  const late = await waitFor(session, taskId)
  expect((await late.rest()).at(-1)).toMatchObject({ error: goingDown })
  expect(await session.json('tasks/get', { taskId })).toMatchObject({ result: { status: 'input_required' } })
})

test('a task outlives its server: the session goes on with it at another one of the same store', async () => {
  const store = new MemoryStore()
  const session = await open(olderTasksApp({ store }))
  const taskId = await begin(session, 'echo')
  await close()
  const other = await serve(olderTasksApp({ store }), { port: 0, drainMs: 100, handleSignals: false })
  close = other.close
  const elsewhere = session.at((init) => fetch(other.url, init))
  const events = await waitFor(elsewhere, taskId)
  await elsewhere.answer(await events.message(), HI)
  expect((await events.rest()).at(-1)).toMatchObject({ result: { content: [{ text: 'Echo: Hi' }] } })
})

test('the id of a request that waits is in use', async () => {
  const session = await open()
  const taskId = await begin(session, 'echo')
  const message = { jsonrpc: '2.0', id: 'twice', method: 'tasks/result', params: { taskId } }
  const events = new Events(await session.post(message))
  await events.message()
  expect(await (await session.post(message)).json()).toMatchObject({ error: { code: -32600 } })
  await session.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'twice' } })
  expect(await events.rest()).toMatchObject([{ method: 'notifications/cancelled' }])
})
