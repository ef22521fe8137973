// The extension on the wire: who may ask for what, headers over HTTP, the example of the specification, and hostile params.
import type { Rally } from 'mcp-rally'
import { rally, send } from 'mcp-rally'
import { serve } from 'mcp-rally/node'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { META_CAPABILITIES, TASKS_EXTENSION } from '../../src/protocol/revisions/2026-07-28.ts'
import type { WireRequest } from '../wire/messages.ts'
import { accept, errorOf, headersOf, request, resultOf } from '../wire/messages.ts'
import { Caller, task, WITH_TASKS } from './caller.ts'
import { opened } from './office.ts'
import { checkMessage } from './spec.ts'

const METHODS = ['tasks/get', 'tasks/update', 'tasks/cancel']
const UNKNOWN = 'x'.repeat(43)
const NOT_FOUND = {
  code: -32602,
  message: 'Task not found: it does not exist, has expired, or belongs to another caller.',
}

function hello(app: Rally): void {
  app.tool('hello_world', { task: 'always', asks: { name: z.object({ name: z.string() }) } }, async (_args, io) => {
    const { name } = await io.ask('name', 'Please enter your name.')
    return `Hello, ${name}!`
  })
}

async function waiting(): Promise<ReturnType<typeof opened> & { id: string }> {
  const all = opened(hello)
  const id = await all.caller.begin('hello_world')
  await all.caller.asked(id, 'name')
  return { ...all, id }
}

async function served(): Promise<{
  id: string
  post: (message: WireRequest, headers?: object) => Promise<Response>
}> {
  const { instance, id } = await waiting()
  const { url, close } = await serve(instance.app, { port: 0, handleSignals: false })
  onTestFinished(close)
  const post = (message: WireRequest, headers: object = {}): Promise<Response> =>
    fetch(url, { method: 'POST', headers: { ...headersOf(message), ...headers }, body: JSON.stringify(message) })
  return { id, post }
}

/** Nested so many levels deep. */
function deep(levels: number): unknown {
  return JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`)
}

test('the example of the specification goes as it says, message by message', async () => {
  const { caller } = opened(hello)
  const created = resultOf(await caller.call('hello_world'))
  expect(created).toEqual({
    resultType: 'task',
    taskId: expect.stringMatching(/^[0-9a-f]{64}$/),
    status: 'working',
    createdAt: expect.any(String),
    lastUpdatedAt: expect.any(String),
    ttlMs: 86_400_000,
    pollIntervalMs: 1_000,
    _meta: expect.any(Object),
  })
  const id = String(created['taskId'])
  await caller.asked(id, 'name')
  const waits = await caller.get(id)
  expect(waits).toMatchObject({
    resultType: 'complete',
    taskId: id,
    status: 'input_required',
    inputRequests: {
      name: {
        method: 'elicitation/create',
        params: {
          mode: 'form',
          message: 'Please enter your name.',
          requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
        },
      },
    },
  })
  // Looking again changes nothing.
  expect(await caller.get(id)).toEqual(waits)
  const answer = { name: accept({ name: 'Luca' }) }
  expect(resultOf(await caller.send(task('tasks/update', id, { inputResponses: answer })))).toEqual({
    resultType: 'complete',
    _meta: expect.any(Object),
  })
  const done = await caller.ended(id)
  expect(done).toMatchObject({ status: 'completed', result: { content: [{ type: 'text', text: 'Hello, Luca!' }] } })
  expect(done).not.toHaveProperty('inputRequests')
  expect(resultOf(await caller.send(task('tasks/cancel', id)))).toEqual({
    resultType: 'complete',
    _meta: expect.any(Object),
  })
})

describe('who may ask', () => {
  test.each(METHODS)('%s needs the extension, also for a task that is not there', async (method) => {
    const { caller, id } = await waiting()
    for (const taskId of [id, UNKNOWN]) {
      const response = await caller.send(request(method, { taskId, inputResponses: {} }))
      expect(errorOf(response)).toMatchObject({
        code: -32021,
        data: { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } },
      })
    }
  })

  test.each(METHODS)(
    '%s of another principal, or of nobody, fails exactly as for an id that never was',
    async (method) => {
      const { office, instance } = opened(hello)
      const ada = new Caller(office, instance.app, 'ada')
      const id = await ada.begin('hello_world')
      await ada.asked(id, 'name')
      const inputResponses = { name: accept({ name: 'Eve' }) }
      for (const other of [new Caller(office, instance.app, 'eve'), new Caller(office, instance.app)]) {
        const theirs = errorOf(await other.send(task(method, id, { inputResponses })))
        expect(theirs).toEqual(NOT_FOUND)
        expect(errorOf(await other.send(task(method, UNKNOWN, { inputResponses })))).toEqual(theirs)
        expect(errorOf(await other.send(task(method, 'short', { inputResponses })))).toEqual(theirs)
      }
      await ada.asked(id, 'name')
    },
  )

  test('a task of nobody is not one of whoever is called the same as nothing', async () => {
    const { office, instance } = opened(hello)
    const id = await new Caller(office, instance.app).begin('hello_world')
    const nameless = { caller: { principal: '', scopes: [], claims: {} } }
    const reply = await instance.app.dispatch(task('tasks/get', id), nameless)
    expect(errorOf(JSON.parse(reply?.text ?? '{}') as object)).toEqual(NOT_FOUND)
  })

  test.each(['tasks/list', 'tasks/result', 'tasks/', 'tasks/get/', 'tasks/__proto__', 'tasks/constructor'])(
    '%s is no method',
    async (method) => {
      const { caller } = opened(hello)
      expect(errorOf(await caller.send(task(method, UNKNOWN)))).toMatchObject({ code: -32601 })
    },
  )

  test('without a store there are no such methods', async () => {
    const app = rally({ name: 'plain', version: '1.0.0' })
    for (const method of METHODS) {
      expect(errorOf(await send(app, task(method, UNKNOWN)))).toMatchObject({ code: -32601 })
    }
  })
})

describe('over HTTP', () => {
  test.each(METHODS)('%s names its task in Mcp-Name', async (method) => {
    const { id, post } = await served()
    const response = await post(task(method, id, { inputResponses: {} }), { 'Mcp-Name': id })
    expect(response.status).toBe(200)
    const body = (await response.json()) as object
    checkMessage(body, method)
    expect(resultOf(body)).toMatchObject({ resultType: 'complete' })
  })

  test.each(METHODS)(
    '%s is refused with 400 and -32020 where Mcp-Name is missing or names another task',
    async (method) => {
      const { id, post } = await served()
      for (const headers of [{}, { 'Mcp-Name': UNKNOWN }, { 'Mcp-Name': '' }]) {
        const response = await post(task(method, id, { inputResponses: {} }), headers)
        expect(response.status).toBe(400)
        expect(errorOf((await response.json()) as object)).toMatchObject({ code: -32020 })
      }
    },
  )

  test('a missing extension is 400, a task that is not there 200, an unknown method 404', async () => {
    const { id, post } = await served()
    const missing = await post(request('tasks/get', { taskId: id }), { 'Mcp-Name': id })
    const unknown = await post(task('tasks/get', UNKNOWN), { 'Mcp-Name': UNKNOWN })
    const method = await post(task('tasks/list', id))
    expect([missing.status, unknown.status, method.status]).toEqual([400, 200, 404])
  })
})

describe('hostile params', () => {
  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['a number', 1],
    ['a list', [UNKNOWN]],
    ['an object', { toString: 1 }],
    ['an empty text', ''],
    ['a text with a NUL', `${'x'.repeat(42)}\0`],
    ['a long text', 'x'.repeat(1_000_000)],
    ['what every object has', '__proto__'],
    ['half a pair', `${'x'.repeat(42)}\ud800`],
  ])('an id that is %s is -32602, and the store is not asked', async (_what, id) => {
    const { caller, instance } = opened(hello, { tasks: { concurrency: 0 } })
    const asked: string[] = []
    instance.view.before = (operation) => void asked.push(operation)
    for (const method of METHODS) {
      expect(errorOf(await caller.send(task(method, id, { inputResponses: {} })))).toMatchObject({ code: -32602 })
    }
    expect(asked).toEqual([])
  })

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['a list', []],
    ['a text', 'yes'],
    ['an answer that is none', { name: 'Luca' }],
    ['a list for an answer', { name: [] }],
    ['an answer that is too deep', { name: deep(101) }],
    ['too many answers', Object.fromEntries(Array.from({ length: 1_001 }, (_, i) => [`k${i}`, {}]))],
  ])('answers that are %s are -32602, and the task waits on', async (_what, inputResponses) => {
    const { caller, id } = await waiting()
    expect(errorOf(await caller.send(task('tasks/update', id, { inputResponses })))).toMatchObject({ code: -32602 })
    await caller.asked(id, 'name')
  })

  test('a thousand answers to nothing, and such to what every object has, change nothing', async () => {
    const { office, caller, id } = await waiting()
    const before = await office.tasks.read(id)
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`k${i}`, accept({ name: 'x' })]))
    await caller.update(id, many)
    await caller.update(id, JSON.parse('{"__proto__":{"action":"accept"},"constructor":{},"toString":{},"name":null}'))
    expect(await office.tasks.read(id)).toEqual(before)
    await caller.update(id, { name: accept({ name: 'Luca' }) })
    expect(await caller.said(id)).toBe('Hello, Luca!')
  })

  test('such that come with the call itself are answers to nothing too', async () => {
    const { caller } = opened(hello)
    const inputResponses: unknown = JSON.parse(
      '{"__proto__":{"action":"accept","name":{"action":"accept","content":{"name":"Eve"}}},"constructor":{}}',
    )
    const id = await caller.begin('hello_world', {}, { inputResponses })
    await caller.asked(id, 'name')
    await caller.update(id, { name: accept({ name: 'Luca' }) })
    expect(await caller.said(id)).toBe('Hello, Luca!')
  })

  test('an extension that is declared as no object is none', async () => {
    const { caller, id } = await waiting()
    for (const extension of [true, null, 'yes']) {
      const capabilities = { [META_CAPABILITIES]: { extensions: { [TASKS_EXTENSION]: extension } } }
      expect(errorOf(await caller.send(request('tasks/get', { taskId: id }, capabilities)))).toMatchObject({
        code: -32021,
      })
    }
    const settings = { [META_CAPABILITIES]: { extensions: { [TASKS_EXTENSION]: { future: [1] } } } }
    expect(resultOf(await caller.send(request('tasks/get', { taskId: id }, settings)))).toMatchObject({ taskId: id })
  })

  test('no two tasks have the same id, though their calls are the same', async () => {
    const { caller } = opened(hello, { tasks: { concurrency: 0 } })
    const ids = await Promise.all(Array.from({ length: 50 }, () => caller.begin('hello_world')))
    expect(new Set(ids).size).toBe(50)
  })

  test('a task is told the same, whatever the request for it says beside', async () => {
    const { caller, id } = await waiting()
    const plain = await caller.get(id)
    const odd = request(
      'tasks/get',
      { taskId: id, cursor: 'x', inputResponses: 5 },
      { ...WITH_TASKS, progressToken: 1 },
    )
    expect(resultOf(await caller.send(odd))).toEqual(plain)
  })
})
