// Tasks on 2026-06-XX as the approved SEP-2322 has them, message by message, on each wire.
import { afterEach, describe, expect, test } from 'vitest'
import { request } from '../dialects/examples.ts'
import type { Message, Talk, Wire } from '../dialects/wires.ts'
import { wires } from '../dialects/wires.ts'
import { specValidator } from '../spec/validate.ts'
import { olderTasksApp } from './older-app.mjs'

const SESSION = { revision: '2026-06-XX', capabilities: { elicitation: { form: {}, url: {} } } }
const RELATED = 'io.modelcontextprotocol/related-task'

const DATE = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as string
const ID = expect.stringMatching(/^[0-9a-f]{64}$/) as string
const ECHO_INPUT = {
  method: 'elicitation/create',
  params: {
    mode: 'form',
    message: 'Please provide the input string to echo back',
    requestedSchema: { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] },
  },
}

const related = (taskId: string): object => ({ [RELATED]: { taskId } })
const standing = (taskId: unknown, status: string): object => ({
  taskId,
  status,
  createdAt: DATE,
  lastUpdatedAt: DATE,
  ttl: 60_000,
  pollInterval: 100,
})
const asking = (taskId: string, inputRequests: object): object => ({
  result_type: 'incomplete',
  resultType: 'input_required',
  inputRequests,
  _meta: related(taskId),
})
const done = (taskId: string, text: string): object => ({
  result_type: 'complete',
  resultType: 'complete',
  content: [{ type: 'text', text }],
  _meta: related(taskId),
})

let talk: Talk
afterEach(() => talk.close())

describe.each(wires)('2026-06-XX over $name', (wire) => {
  const { open, say, begin, answer, until } = speaker(wire)

  test('the echo of the SEP goes as it is written there, message by message', async () => {
    await open()
    const created = await talk.say(request(1, { name: 'echo', task: { ttl: 60_000 } }))
    expect(created).toEqual({ jsonrpc: '2.0', id: 1, result: { task: standing(ID, 'working') } })
    expect(specValidator('CreateTaskResult', '2025-11-25')(created['result'])).toEqual([])
    const { taskId } = (created['result'] as { task: { taskId: string } }).task

    const waiting = await until(taskId, 'input_required')
    expect(waiting).toEqual(standing(taskId, 'input_required'))
    expect(specValidator('GetTaskResult', '2025-11-25')(waiting)).toEqual([])

    const asked = await talk.say(request(3, { taskId }, {}, 'tasks/result'))
    expect(asked).toEqual({ jsonrpc: '2.0', id: 3, result: asking(taskId, { echo_input: ECHO_INPUT }) })

    const inputResponses = { echo_input: { action: 'accept', content: { input: 'Hello World!' } } }
    const given = request(4, { inputResponses, _meta: related(taskId) }, {}, 'tasks/input_response')
    expect(await talk.say(given)).toEqual({ jsonrpc: '2.0', id: 4, result: { _meta: related(taskId) } })

    expect(await until(taskId, 'completed')).toEqual(standing(taskId, 'completed'))

    const result = await talk.say(request(6, { taskId }, {}, 'tasks/result'))
    expect(result).toEqual({ jsonrpc: '2.0', id: 6, result: done(taskId, 'Echo: Hello World!') })
    expect(specValidator('CallToolResult', '2025-11-25')(result['result'])).toEqual([])
  })

  test('an unexpected answer is acknowledged, and the question comes again under a key of its own', async () => {
    await open()
    const taskId = await begin('echo')
    await until(taskId, 'input_required')
    const unexpected = { not_requested_parameter: 'Information the server did not request.' }
    expect(await answer(taskId, { echo_input: { action: 'accept', content: unexpected } })).toEqual({
      _meta: related(taskId),
    })
    const again = await say('tasks/result', { taskId })
    expect(again).toMatchObject({ result_type: 'incomplete', resultType: 'input_required' })
    expect(Object.keys(again['inputRequests'] as object)).toEqual(['echo_input~2'])
    expect(await say('tasks/get', { taskId })).toEqual(standing(taskId, 'input_required'))

    // The question that it was asked first is not there any more.
    await answer(taskId, { echo_input: { action: 'accept', content: { input: 'too late' } } })
    expect(await say('tasks/get', { taskId })).toMatchObject({ status: 'input_required' })
    await answer(taskId, { 'echo_input~2': { action: 'accept', content: { input: 'as asked' } } })
    expect(await say('tasks/result', { taskId })).toEqual(done(taskId, 'Echo: as asked'))
  })

  test('who asks for the result of a task that works gets it when there is one', async () => {
    await open()
    const taskId = await begin('echo')
    expect(await say('tasks/result', { taskId })).toEqual(asking(taskId, { echo_input: ECHO_INPUT }))
    await answer(taskId, { echo_input: { action: 'accept', content: { input: 'soon' } } })
    expect(await say('tasks/result', { taskId })).toEqual(done(taskId, 'Echo: soon'))
  })

  test('a task is made in the middle of a call, after the rounds that it took before', async () => {
    await open()
    const vm = { name: 'provision', arguments: { name: 'a' }, task: { ttl: 60_000 } }
    const asked = await say('tools/call', vm)
    expect(asked).toMatchObject({ result_type: 'incomplete', inputRequests: { cost: {} } })
    const inputResponses = { cost: { action: 'accept', content: { confirm: true } } }
    const created = await say('tools/call', { ...vm, inputResponses, requestState: asked['requestState'] })
    expect(created).toEqual({ task: standing(ID, 'working') })
    const { taskId } = created['task'] as { taskId: string }
    expect(await say('tasks/result', { taskId })).toMatchObject({ inputRequests: { region: {} } })
    await answer(taskId, { region: { action: 'accept', content: { region: 'north' } } })
    expect(await say('tasks/result', { taskId })).toEqual(done(taskId, 'vm a in north, in the background'))
  })

  test('a call that comes to its end before it would be a task has a plain result', async () => {
    await open()
    const vm = { name: 'provision', arguments: { name: 'a' }, task: {} }
    const asked = await say('tools/call', vm)
    const inputResponses = { cost: { action: 'accept', content: { confirm: false } } }
    expect(await say('tools/call', { ...vm, inputResponses, requestState: asked['requestState'] })).toEqual({
      result_type: 'complete',
      resultType: 'complete',
      content: [{ type: 'text', text: 'Left as it was.' }],
    })
  })

  test('a call that does not ask for a task goes on in rounds to its end', async () => {
    await open()
    const vm = { name: 'provision', arguments: { name: 'a' } }
    let round = await say('tools/call', vm)
    for (const inputResponses of [
      { cost: { action: 'accept', content: { confirm: true } } },
      { region: { action: 'accept', content: { region: 'south' } } },
    ]) {
      round = await say('tools/call', { ...vm, inputResponses, requestState: round['requestState'] })
    }
    expect(round).toMatchObject({ content: [{ text: 'vm a in south, while you waited' }] })
  })

  test('a page to visit has the same id as long as it is asked for', async () => {
    await open()
    const taskId = await begin('page')
    const asked = await say('tasks/result', { taskId })
    const elicitationId = expect.stringMatching(/^[\da-f-]{36}$/) as string
    expect(asked['inputRequests']).toEqual({
      page: {
        method: 'elicitation/create',
        params: { mode: 'url', message: 'Please sign in.', url: 'https://pages.example/', elicitationId },
      },
    })
    expect(await say('tasks/result', { taskId })).toEqual(asked)
    await answer(taskId, { page: { action: 'accept' } })
    expect(await say('tasks/result', { taskId })).toEqual(done(taskId, 'Signed in.'))
  })

  test('a task is cancelled once, and has no result then', async () => {
    await open()
    const taskId = await begin('echo')
    const cancelled = await say('tasks/cancel', { taskId })
    expect(cancelled).toEqual(standing(taskId, 'cancelled'))
    expect(specValidator('CancelTaskResult', '2025-11-25')(cancelled)).toEqual([])
    const refusal = { code: -32602, message: expect.stringMatching(/already ended with status "cancelled"/) as string }
    expect(await say('tasks/cancel', { taskId })).toEqual(refusal)
    expect(await say('tasks/result', { taskId })).toMatchObject({ code: -32602 })
    expect(await say('tasks/get', { taskId })).toEqual(standing(taskId, 'cancelled'))
  })

  test('a cancellation ends the request of who waits for the result', async () => {
    await open()
    const taskId = await begin('forever')
    const waiting = say('tasks/result', { taskId })
    await until(taskId, 'working')
    await say('tasks/cancel', { taskId })
    expect(await waiting).toMatchObject({ code: -32602, message: 'The task was cancelled, so it has no result.' })
  })

  test('what went wrong is told as the call would have told it, and such a task has failed', async () => {
    await open()
    const wrong = await begin('wrong')
    expect(await say('tasks/result', { taskId: wrong })).toEqual({ ...done(wrong, 'The disk is full.'), isError: true })
    expect(await say('tasks/get', { taskId: wrong })).toEqual(standing(wrong, 'failed'))
    expect(await say('tasks/cancel', { taskId: wrong })).toMatchObject({ code: -32602 })
    const refused = await begin('refuses')
    expect(await say('tasks/result', { taskId: refused })).toEqual({
      code: -32050,
      message: 'Not on a Sunday.',
      data: { day: 'Sunday' },
    })
    const trip = await begin('trip')
    const missing = await say('tasks/result', { taskId: trip })
    expect(missing).toMatchObject({ isError: true, _meta: related(trip) })
    expect(await say('tasks/get', { taskId: trip })).toMatchObject({ status: 'failed' })
  })

  test.each([
    ['a tool that is never a task', { name: 'never', task: {} }, -32601, /never runs as a task/],
    ['a tool that is always one, without', { name: 'always' }, -32601, /only as a task/],
    ['a tool that goes on as a task only, without', { name: 'insists' }, -32601, /only as a task/],
    ['a task that is no object', { name: 'echo', task: 'yes' }, -32602, /task must be an object/],
    ['a list as a task', { name: 'echo', task: [] }, -32602, /task must be an object/],
    ['no time', { name: 'echo', task: { ttl: 0 } }, -32602, /whole number of milliseconds above 0/],
    ['half a millisecond', { name: 'echo', task: { ttl: 1.5 } }, -32602, /whole number of milliseconds above 0/],
    ['a time in words', { name: 'echo', task: { ttl: 'long' } }, -32602, /whole number of milliseconds above 0/],
  ])('a call with %s is refused', async (_what, params, code, message) => {
    await open()
    expect(await say('tools/call', params)).toEqual({ code, message: expect.stringMatching(message) as string })
  })

  test('tools that are tasks, or never, are what they are to those who ask for it', async () => {
    await open()
    const always = await begin('always')
    expect(await say('tasks/result', { taskId: always })).toEqual(done(always, 'Always.'))
    expect(await say('tools/call', { name: 'never' })).toMatchObject({ content: [{ text: 'Never.' }] })
    const insists = await begin('insists')
    expect(await say('tasks/result', { taskId: insists })).toEqual(done(insists, 'Went on.'))
    expect(await say('tools/call', { name: 'adds' })).toMatchObject({ structuredContent: { sum: 3 } })
    const adds = await begin('adds')
    expect(await say('tasks/result', { taskId: adds })).toMatchObject({ structuredContent: { sum: 3 } })
  })

  test.each([
    ['tasks/get', {}],
    ['tasks/get', { taskId: 7 }],
    ['tasks/get', { taskId: ['none'] }],
    ['tasks/result', { taskId: 'none' }],
    ['tasks/cancel', { taskId: 'none' }],
    ['tasks/input_response', { inputResponses: {} }],
    ['tasks/input_response', { inputResponses: {}, _meta: { [RELATED]: { taskId: 7 } } }],
    ['tasks/input_response', { inputResponses: {}, _meta: { [RELATED]: { taskId: 'none' } } }],
    ['tasks/input_response', { taskId: 'none' }],
    ['tasks/input_response', { taskId: 'none', inputResponses: [] }],
    ['tasks/input_response', { taskId: 'none', inputResponses: { a: 'yes' } }],
  ])('%s of %j is refused as invalid', async (method, params) => {
    await open()
    expect(await say(method, params)).toMatchObject({ code: -32602 })
  })

  test('tasks are kept no longer than asked for, and no longer than the app keeps them', async () => {
    await open({ tasks: { ttlMs: 1_000_000 } })
    for (const [task, ttl] of [
      [{ ttl: 5_000 }, 5_000],
      [{ ttl: 2_000_000 }, 1_000_000],
      [{ ttl: null }, 1_000_000],
      [{}, 1_000_000],
    ] as const) {
      expect(await say('tools/call', { name: 'adds', task })).toMatchObject({ task: { ttl } })
    }
    await talk.close()
    await open({ tasks: { ttlMs: null } })
    for (const [task, ttl] of [
      [{ ttl: 5_000 }, 5_000],
      [{ ttl: Number.MAX_SAFE_INTEGER }, 3_153_600_000_000],
      [{}, null],
    ] as const) {
      expect(await say('tools/call', { name: 'adds', task })).toMatchObject({ task: { ttl } })
    }
  })

  test('says what it has to do with tasks, and in no other way', async () => {
    await open()
    expect(talk.initialized).toMatchObject({
      result: { capabilities: { tasks: { cancel: {}, requests: { tools: { call: {} } } } } },
    })
    expect(specValidator('InitializeResult', '2025-11-25')(talk.initialized['result'])).toEqual([])
    const listed = await say('tools/list', {})
    expect(specValidator('ListToolsResult', '2025-11-25')(listed)).toEqual([])
    const supports = (listed['tools'] as { name: string; execution: object }[]).map(({ name, execution }) => [
      name,
      execution,
    ])
    expect(Object.fromEntries(supports)).toMatchObject({
      always: { taskSupport: 'required' },
      echo: { taskSupport: 'optional' },
      provision: { taskSupport: 'optional' },
      never: { taskSupport: 'forbidden' },
    })
    // Nobody in particular has tasks of their own.
    expect(await say('tasks/list', {})).toMatchObject({ code: -32601 })
    expect(await say('tasks/update', { taskId: 'none', inputResponses: {} })).toMatchObject({ code: -32601 })
  })

  test.each(['2025-06-18', '2025-03-26', '2024-11-05'])('%s has no tasks', async (revision) => {
    await open({}, { ...SESSION, revision })
    expect(JSON.stringify(talk.initialized)).not.toContain('"tasks"')
    expect(JSON.stringify(await say('tools/list', {}))).not.toContain('taskSupport')
    expect(await say('tasks/get', { taskId: 'none' })).toMatchObject({ code: -32601 })
    // What asks for a task without there being any is as if it did not ask.
    expect(await say('tools/call', { name: 'never', task: {} })).toMatchObject({ content: [{ text: 'Never.' }] })
    for (const name of ['always', 'insists']) {
      const { isError, content } = await say('tools/call', { name, task: {} })
      expect(isError).toBe(true)
      expect(content).toMatchObject([
        { text: expect.stringMatching(/^This request runs in the background, as a task, and the app/) },
      ])
    }
  })
})

interface Speaker {
  open: (options?: Parameters<typeof olderTasksApp>[0], session?: typeof SESSION) => Promise<void>
  /** The result of a request, or its error. */
  say: (method: string, params: object) => Promise<Message>
  /** A task of this tool. */
  begin: (name: string) => Promise<string>
  answer: (taskId: string, inputResponses: object) => Promise<Message>
  /** Looks until the task stands so. */
  until: (taskId: string, status: string) => Promise<Message>
}

function speaker(wire: Wire): Speaker {
  let id = 100
  const say: Speaker['say'] = async (method, params) => {
    id += 1
    const { result, error } = await talk.say(request(id, params, {}, method))
    return (result ?? error) as Message
  }
  return {
    say,
    open: async (options, session = SESSION) => {
      talk = await wire.open(olderTasksApp(options), session)
    },
    begin: async (name) => {
      const { task } = await say('tools/call', { name, task: { ttl: 60_000 } })
      return (task as { taskId: string }).taskId
    },
    answer: (taskId, inputResponses) => say('tasks/input_response', { inputResponses, _meta: related(taskId) }),
    until: async (taskId, status) => {
      let task: Message = {}
      await expect
        .poll(async () => (task = await say('tasks/get', { taskId })), { timeout: 10_000 })
        .toMatchObject({ status })
      return task
    },
  }
}
