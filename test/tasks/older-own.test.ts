// Whose tasks are whose in sessions, and that what is said of them there is said nowhere else.
import type { Rally } from 'mcp-rally'
import { MemoryStore, rally, send } from 'mcp-rally'
import { serve } from 'mcp-rally/node'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { gate } from '../../src/testing/manual-scheduler.ts'
import type { Wired } from '../legacy/raw.ts'
import { Events, RawSession } from '../legacy/raw.ts'
import { specValidator } from '../spec/validate.ts'
import { call } from '../wire/messages.ts'
import { WITH_TASKS } from './caller.ts'
import { olderTasksApp } from './older-app.mjs'

const RELATED = 'io.modelcontextprotocol/related-task'
const HI = { action: 'accept', content: { input: 'Hi' } }

let url: string
let close: () => Promise<void> = async () => {}
afterEach(() => close())

async function open(): Promise<void> {
  ;({ url, close } = await serve(olderTasksApp(), {
    port: 0,
    drainMs: 100,
    handleSignals: false,
    authenticate: (request) => ({ principal: request.header('authorization') ?? 'nobody' }),
  }))
}

const sessionOf = (user: string, revision: string): Promise<RawSession> =>
  RawSession.open((init) => fetch(url, init), { revision, headers: { authorization: user } })

async function begin(session: RawSession, name = 'echo'): Promise<string> {
  const { result } = await session.json('tools/call', { name, task: { ttl: 60_000 } })
  return (result as { task: { taskId: string } }).task.taskId
}

/** As it comes: at once, or on a stream that begins with the wait. */
async function resultOf(session: RawSession, taskId: string): Promise<Wired> {
  const response = await session.request('tasks/result', { taskId })
  if (response.headers.get('content-type') !== 'text/event-stream') return (await response.json()) as Wired
  return (await new Events(response).rest()).at(-1) ?? { jsonrpc: '2.0' }
}

interface Page {
  tasks: { taskId: string; status: string; createdAt: string }[]
  nextCursor?: string
}

async function list(session: RawSession, cursor?: string): Promise<Page> {
  const { result } = await session.json('tasks/list', { cursor })
  expect(specValidator('ListTasksResult', '2025-11-25')(result)).toEqual([])
  return result as unknown as Page
}

test('an instance that gets requests of older clients only works on what another one created', async () => {
  const store = new MemoryStore()
  const ran = gate()
  const instance = (concurrency: number): Rally => {
    const app = rally({
      name: 'a',
      version: '1',
      keys: ['a secret of the tests of older clients'],
      store,
      tasks: { concurrency },
    })
    app.tool('work', { task: 'always' }, (_args, io) => io.step('run', () => ran.open()))
    onTestFinished(() => app.interrupt())
    return app
  }
  await send(instance(0), call('work', {}, {}, WITH_TASKS))
  const other = instance(1)
  await RawSession.open((init) => other.fetch(new Request('http://127.0.0.1/mcp', init)), { revision: '2025-11-25' })
  await ran.promise
})

describe.each(['2025-11-25', '2026-06-XX'])('in a session of %s', (revision) => {
  test('everybody has tasks of their own, and those of others are not there', async () => {
    await open()
    const [ada, bob] = [await sessionOf('ada', revision), await sessionOf('bob', revision)]
    expect(ada.initialized.result?.['capabilities']).toMatchObject({ tasks: { list: {} } })
    const taskId = await begin(ada)
    const own = await begin(bob)
    expect((await list(bob)).tasks).toMatchObject([{ taskId: own, ttl: 60_000, pollInterval: 100 }])
    const inputResponses = { echo_input: HI }
    for (const [method, params] of [
      ['tasks/get', { taskId }],
      ['tasks/result', { taskId }],
      ['tasks/cancel', { taskId }],
      ...(revision === '2026-06-XX'
        ? [['tasks/input_response', { inputResponses, _meta: { [RELATED]: { taskId } } }] as const]
        : []),
    ] as const) {
      const { error } = await bob.json(method, params)
      expect(error).toEqual({
        code: -32602,
        message: 'Task not found: it does not exist, has expired, or belongs to another caller.',
      })
    }
    await expect.poll(() => ada.json('tasks/get', { taskId })).toMatchObject({ result: { status: 'input_required' } })
    // Another session of the same user is as good.
    const again = await sessionOf('ada', revision)
    expect((await list(again)).tasks).toMatchObject([{ taskId, status: 'input_required' }])
    expect(await again.json('tasks/cancel', { taskId })).toMatchObject({ result: { status: 'cancelled' } })
  })

  test('a long list comes in pages, the oldest task first, each task once', async () => {
    await open()
    const session = await sessionOf('ada', revision)
    const made: string[] = []
    for (let i = 0; i < 105; i += 1) made.push(await begin(session, i === 100 ? 'wrong' : 'adds'))
    for (const taskId of made) await resultOf(session, taskId)
    const first = await list(session)
    expect(first.tasks).toHaveLength(100)
    const second = await list(session, first.nextCursor)
    expect(second).not.toHaveProperty('nextCursor')
    const listed = [...first.tasks, ...second.tasks]
    expect(new Set(listed.map(({ taskId }) => taskId))).toEqual(new Set(made))
    const ages = listed.map(({ createdAt }) => createdAt)
    expect(ages).toEqual(ages.toSorted())
    expect(listed.find(({ taskId }) => taskId === made[100])).toMatchObject({ status: 'failed' })
    // The place that a cursor names is a place in everybody's own list.
    const bob = await sessionOf('bob', revision)
    expect(await list(bob, first.nextCursor)).toEqual({ tasks: [] })
  })

  test.each(['', 'x', 'W10', 'bnVsbA', 'x'.repeat(2_000), 7, {}, Buffer.from('[1e999,"a"]').toString('base64url')])(
    'a list does not go on from %j',
    async (cursor) => {
      await open()
      const session = await sessionOf('ada', revision)
      expect(await session.json('tasks/list', { cursor })).toMatchObject({ error: { code: -32602 } })
    },
  )

  test('a task is told to clients of 2026-07-28 in their own words alone', async () => {
    await open()
    const session = await sessionOf('ada', revision)
    const taskId = await begin(session, 'wrong')
    await resultOf(session, taskId)
    const told = await modern('tasks/get', { taskId })
    expect(told.result).toMatchObject({ status: 'completed', result: { isError: true }, ttlMs: 60_000 })
    expect(JSON.stringify(told)).not.toContain('related-task')
    expect(JSON.stringify(await modern('tools/list', {}))).not.toContain('taskSupport')
    for (const method of ['tasks/result', 'tasks/list', 'tasks/input_response']) {
      expect(await modern(method, { taskId })).toMatchObject({ error: { code: -32601 } })
    }
  })
})

test('what 2025-11-25 does not have, it does not have', async () => {
  await open()
  const session = await sessionOf('ada', '2025-11-25')
  const params = { inputResponses: {}, _meta: { [RELATED]: { taskId: await begin(session) } } }
  expect(await session.json('tasks/input_response', params)).toMatchObject({ error: { code: -32601 } })
})

test('without a store there are no tasks, and whoever asks for one is served as if they had not', async () => {
  const plain = rally({ name: 'plain', version: '1.0.0' })
  plain.tool('never', { task: 'never' }, () => 'Never.')
  plain.tool('ever', {}, async (_args, io) => ((await io.detach()) ? 'A task.' : 'Inline.'))
  ;({ url, close } = await serve(plain, { port: 0, drainMs: 100, handleSignals: false }))
  const session = await sessionOf('ada', '2025-11-25')
  expect(JSON.stringify(session.initialized)).not.toContain('"tasks"')
  expect(JSON.stringify(await session.json('tools/list', {}))).not.toContain('taskSupport')
  expect(await session.json('tasks/get', { taskId: 'none' })).toMatchObject({ error: { code: -32601 } })
  for (const [name, text] of [
    ['never', 'Never.'],
    ['ever', 'Inline.'],
  ]) {
    const called = await session.json('tools/call', { name, task: {} })
    expect(called.result).toEqual({ content: [{ type: 'text', text }] })
  }
})

async function modern(method: string, params: { taskId?: string }): Promise<Wired> {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } },
  }
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': method,
      ...(params.taskId && { 'Mcp-Name': params.taskId }),
      authorization: 'ada',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }),
  })
  return (await response.json()) as Wired
}
