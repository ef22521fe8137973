// Calls that become tasks: they come to a plain result, whatever is asked in between.
import type { ClientOptions, FormAnswer, FormQuestion } from 'mcp-rally/client'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { asks, YES } from './scripted.ts'
import type { Instead } from './task-server.ts'
import { answerOf, asking, begun, completed, TASK_ID } from './task-server.ts'
import { textOf } from './wires.ts'

/** From now on time passes only as it is told to. */
const holdTime = (): void => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })

afterEach(() => void vi.useRealTimers())

/** Answers every question with its key. */
const byKey: ClientOptions = { onElicit: ({ key }) => answerOf(key) }

describe('a call that becomes a task', () => {
  test('goes as the extension has it in its example, message by message', async () => {
    const { server, client } = await begun(
      {},
      { onUpdate: (_responses, at) => at.become(completed('Hello, Luca!')) },
      { onElicit: () => answerOf('Luca') },
    )
    const call = client.callTool('hello_world', {})
    await server.asked('tasks/get')
    server.become(asking('name'))
    expect(await call).toEqual({
      resultType: 'complete',
      content: [{ type: 'text', text: 'Hello, Luca!' }],
      isError: false,
    })
    expect(server.requests.map(({ method }) => method)).toEqual([
      'tools/call',
      'subscriptions/listen',
      'tasks/get',
      'tasks/get',
      'tasks/update',
      'tasks/get',
    ])
    expect(server.sent('tools/call')).toEqual([{ name: 'hello_world', arguments: {} }])
    expect(server.sent('tasks/get')).toEqual([{ taskId: TASK_ID }, { taskId: TASK_ID }, { taskId: TASK_ID }])
    expect(server.sent('tasks/update')).toEqual([{ taskId: TASK_ID, inputResponses: { name: answerOf('Luca') } }])
    expect(server.sent('subscriptions/listen')).toEqual([{ notifications: { taskIds: [TASK_ID] } }])
  })

  test('is looked at without a pause where it was made with more to tell than it told', async () => {
    holdTime()
    const { server, client } = await begun({ ...completed('already'), pollIntervalMs: 60_000 })
    expect(textOf(await client.callTool('hello_world'))).toBe('already')
    expect(server.count('tasks/get')).toBe(1)
  })

  test('is answered in the rounds before it too', async () => {
    const { server, client } = await begun(
      completed('done'),
      { call: (_request, n) => (n === 0 ? asks(['sure'], 'state') : undefined) },
      { onElicit: () => YES },
    )
    expect(textOf(await client.callTool('hello_world'))).toBe('done')
    expect(server.sent('tools/call')[1]).toMatchObject({ inputResponses: { sure: YES }, requestState: 'state' })
  })

  test('may be called from a pending round', async () => {
    const { client } = await begun(completed('done'), {
      call: (_request, n) => (n === 0 ? asks(['sure'], 'state') : undefined),
    })
    const { value: round } = await client.rounds({ tool: 'hello_world' }).next()
    if (round?.kind !== 'asks') throw new Error('It asks nothing.')
    expect(await client.resume(round.pending, { sure: YES })).toMatchObject({ content: [{ text: 'done' }] })
  })

  test('and fails as the tool has it comes to a result that says so', async () => {
    const { client } = await begun(completed('It is broken.', { isError: true }))
    expect(await client.callTool('hello_world')).toMatchObject({ isError: true })
  })

  test('and fails as the protocol has it rejects with the error inside', async () => {
    const error = { code: -32050, message: 'API rate limit exceeded', data: { retry: 7 } }
    const { client } = await begun({ status: 'failed', error })
    await expect(client.callTool('hello_world')).rejects.toMatchObject({
      code: 'PROTOCOL',
      rpcCode: -32050,
      message: 'API rate limit exceeded',
      data: { retry: 7 },
    })
  })

  test('and is cancelled by somebody rejects with a code of its own', async () => {
    const { client } = await begun({ status: 'cancelled', statusMessage: 'Too expensive.' })
    await expect(client.callTool('hello_world')).rejects.toMatchObject({
      code: 'TASK_CANCELLED',
      message: `The task "${TASK_ID}" was cancelled: Too expensive.`,
      task: undefined,
    })
  })

  test('and is gone rejects with a code of its own', async () => {
    const unknown = { error: { code: -32602, message: 'Task has expired' } }
    const { client } = await begun({}, { instead: ({ method }) => (method === 'tasks/get' ? unknown : undefined) })
    await expect(client.callTool('hello_world')).rejects.toMatchObject({
      code: 'TASK_GONE',
      message: `The server has no task "${TASK_ID}" for this caller; it may have been deleted: Task has expired`,
      cause: { rpcCode: -32602 },
      task: undefined,
    })
  })

  test('has its result held against the schema of its tool', async () => {
    const { server, client } = await begun(completed('', { structuredContent: { count: 'many' } }))
    await client.listTools()
    await expect(client.callTool('counted')).rejects.toMatchObject({ code: 'RESULT_INVALID' })
    server.become(completed('', { structuredContent: { count: 7 } }))
    expect(await client.callTool('counted')).toMatchObject({ structuredContent: { count: 7 } })
  })
})

describe('the questions of a task', () => {
  test('are asked once each, however often they are seen, and answered once each', async () => {
    const onElicit = vi.fn<(question: FormQuestion) => FormAnswer>(({ key }) => answerOf(key))
    const { server, client } = await begun(asking('one'), {}, { onElicit })
    const call = client.callTool('hello_world')
    await server.asked('tasks/update')
    // Not taken note of yet, as far as can be seen.
    await server.asked('tasks/get', 4)
    server.become(asking('one', 'two'))
    await server.asked('tasks/update', 2)
    server.become(completed('done'))
    expect(textOf(await call)).toBe('done')
    expect(onElicit.mock.calls.map(([{ key }]) => key)).toEqual(['one', 'two'])
    expect(server.sent('tasks/update').map(({ inputResponses }) => inputResponses)).toEqual([
      { one: answerOf('one') },
      { two: answerOf('two') },
    ])
  })

  test('that come together are asked together, and each answer is sent when it is there', async () => {
    const answers = new Map<string, (answer: FormAnswer) => void>()
    const { server, client } = await begun(
      asking('slow', 'quick', 'quicker'),
      {
        onUpdate: (responses, at) => {
          if ('quick' in responses) at.become(asking('slow'))
          if ('slow' in responses) at.become(completed('done'))
        },
      },
      { onElicit: ({ key }) => new Promise((resolve) => void answers.set(key, resolve)) },
    )
    const call = client.callTool('hello_world')
    await vi.waitFor(() => expect([...answers.keys()]).toEqual(['slow', 'quick', 'quicker']))
    answers.get('quick')?.(answerOf('q'))
    answers.get('quicker')?.({ action: 'decline' })
    await server.asked('tasks/update')
    answers.get('slow')?.(answerOf('s'))
    expect(textOf(await call)).toBe('done')
    const sent = server.sent('tasks/update').map(({ inputResponses }) => inputResponses)
    expect(Object.assign({}, ...sent)).toEqual({
      quick: answerOf('q'),
      quicker: { action: 'decline' },
      slow: answerOf('s'),
    })
    expect(sent.at(-1)).toEqual({ slow: answerOf('s') })
  })

  test('are answered by the answerer of their kind, who is told what was called', async () => {
    const page = { mode: 'url', elicitationId: '1', message: 'Sign in.', url: 'https://example.com/' }
    const inputRequests = {
      page: { method: 'elicitation/create', params: page },
      folders: { method: 'roots/list' },
      model: { method: 'sampling/createMessage', params: { messages: [], maxTokens: 10 } },
    }
    const said = { role: 'assistant', model: 'mine', content: { type: 'text', text: 'Hm.' } } as const
    const onSample = vi.fn<() => typeof said>(() => said)
    const { server, client } = await begun(
      { status: 'input_required', inputRequests },
      { onUpdate: (_responses, at) => at.become(completed('done')) },
      { onVisit: () => ({ action: 'accept' }), onRoots: () => [{ uri: 'file:///a' }], onSample },
    )
    await client.callTool('hello_world', { a: 1 })
    expect(Object.assign({}, ...server.sent('tasks/update').map(({ inputResponses }) => inputResponses))).toEqual({
      page: { action: 'accept' },
      folders: { roots: [{ uri: 'file:///a' }] },
      model: said,
    })
    expect(onSample.mock.calls[0]).toMatchObject([
      { key: 'model' },
      { server: { name: 'tasks' }, call: { tool: 'hello_world', arguments: { a: 1 } } },
    ])
  })

  test('are answered with what fits them, or the call ends there and the task goes on', async () => {
    const { server, client } = await begun(asking('name'), {}, { onElicit: () => ({ action: 'accept', content: {} }) })
    await expect(client.callTool('hello_world')).rejects.toMatchObject({
      code: 'ANSWER_INVALID',
      message: 'The answer to "name" does not match its question: name is required.',
      task: { taskId: TASK_ID, tool: 'hello_world' },
    })
    expect(server.count('tasks/update') + server.count('tasks/cancel')).toBe(0)
  })

  test('that nobody answers end the call before anybody is asked in vain, with what to take up', async () => {
    const onElicit = vi.fn<() => FormAnswer>(() => answerOf('x'))
    const told = asking('name')
    const inputRequests = { ...(told['inputRequests'] as object), folders: { method: 'roots/list' } }
    const { client } = await begun({ ...told, inputRequests }, {}, { onElicit })
    await expect(client.callTool('hello_world')).rejects.toMatchObject({
      code: 'NO_ANSWERER',
      task: { version: 1, revision: '2026-07-28', taskId: TASK_ID, tool: 'hello_world', pollIntervalMs: 1 },
    })
    expect(onElicit).not.toHaveBeenCalled()
  })

  test('whose answerer throws end the call with its error', async () => {
    const error = new Error('The user has left.')
    const { client } = await begun(asking('name'), {}, { onElicit: () => Promise.reject(error) })
    await expect(client.callTool('hello_world')).rejects.toBe(error)
  })

  test('that are not asked any more are not waited for, and the answerer is told', async () => {
    const signals: AbortSignal[] = []
    const { server, client } = await begun(
      asking('name'),
      {},
      {
        onElicit: (_question, { signal }) => {
          signals.push(signal)
          return new Promise(() => {})
        },
      },
    )
    const call = client.callTool('hello_world')
    await vi.waitFor(() => expect(signals).toHaveLength(1))
    expect(signals[0]?.aborted).toBe(false)
    server.become({ status: 'working' })
    await vi.waitFor(() => expect(signals[0]?.aborted).toBe(true))
    server.become(asking('other'))
    await vi.waitFor(() => expect(signals).toHaveLength(2))
    server.become(completed('without them'))
    expect(textOf(await call)).toBe('without them')
    expect(signals[1]?.aborted).toBe(true)
    expect(server.count('tasks/update')).toBe(0)
  })

  test('that come in more rounds than the client takes end the call', async () => {
    let asked = 1
    const { client } = await begun(
      asking('a0'),
      { onUpdate: (_responses, at) => at.become(asking(`a${asked++}`)) },
      { ...byKey, maxRounds: 2 },
    )
    await expect(client.callTool('hello_world')).rejects.toMatchObject({
      code: 'TOO_MANY_ROUNDS',
      message:
        'The task has asked in 3 rounds, and maxRounds is 2. It keeps running on the server. To allow more rounds, raise maxRounds in connect().',
      task: { taskId: TASK_ID },
    })
  })

  test('are no reason to fail where the task has come to its end in the meantime', async () => {
    const { server, client } = await begun(
      asking('name'),
      {
        instead: ({ method }, at): Instead => {
          if (method !== 'tasks/update') return undefined
          at.become(completed('by somebody else'))
          return { error: { code: -32602, message: 'The task is over.' } }
        },
      },
      byKey,
    )
    expect(textOf(await client.callTool('hello_world'))).toBe('by somebody else')
    expect(server.count('tasks/update')).toBe(1)
  })

  test('whose answers the server refuses end the call with what it said', async () => {
    const refusal = { error: { code: -32602, message: 'Not like that.' } }
    const { client } = await begun(
      asking('name'),
      { instead: ({ method }) => (method === 'tasks/update' ? refusal : undefined) },
      byKey,
    )
    await expect(client.callTool('hello_world')).rejects.toMatchObject({ rpcCode: -32602, message: 'Not like that.' })
  })
})
