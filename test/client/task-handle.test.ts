// Tasks in their caller's own hands: looked at, answered, cancelled, left, and taken up by somebody else on another day.
import { rally } from 'mcp-rally'
import type { ClientOptions, FormAnswer, SavedTask, ClientTask, TaskState } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { serve } from 'mcp-rally/node'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { asks, done, YES } from './scripted.ts'
import type { TaskServerOptions, Told } from './task-server.ts'
import { answerOf, asking, completed, connected, TASK_ID, TaskServer } from './task-server.ts'
import { textOf } from './wires.ts'

afterEach(() => void vi.useRealTimers())

const byHand: ClientOptions = { can: ['elicitation.form'] }

/** A tool that was started and has become a task. */
async function started(told: Told = {}, options: TaskServerOptions = {}, of: ClientOptions = byHand) {
  const server = new TaskServer(told, options)
  const client = await connected(server, of)
  const begun = await client.startTool('hello_world', { secret: 'xyzzy' })
  if (begun.kind !== 'task') throw new Error('It became no task.')
  return { server, client, task: begun.task }
}

/** Through JSON, as a file would carry it. */
function carried(task: ClientTask): SavedTask {
  return JSON.parse(JSON.stringify(task)) as SavedTask
}

const finishing: TaskServerOptions = { onUpdate: (_responses, at) => at.become(completed('done')) }

describe('a tool that is started', () => {
  test('and done at once gives its result', async () => {
    const client = await connected(new TaskServer({}, { call: () => done('at once') }))
    const begun = await client.startTool('hello_world')
    expect(begun).toMatchObject({ kind: 'done', result: { content: [{ text: 'at once' }] } })
  })

  test('and becomes a task is not waited for, but its rounds before that are answered', async () => {
    const server = new TaskServer({}, { call: (_request, n) => (n === 0 ? asks(['sure'], 'state') : undefined) })
    const client = await connected(server, { onElicit: () => YES })
    const begun = await client.startTool('hello_world')
    expect(begun).toMatchObject({ kind: 'task', task: { id: TASK_ID } })
    expect(server.requests.map(({ method }) => method)).toEqual(['tools/call', 'tools/call'])
  })

  test('is not ended any more by the signal that it was started with', async () => {
    const server = new TaskServer()
    const client = await connected(server, byHand)
    const controller = new AbortController()
    const begun = await client.startTool('hello_world', {}, { signal: controller.signal })
    if (begun.kind !== 'task') throw new Error('It became no task.')
    controller.abort()
    const result = begun.task.result()
    await server.asked('tasks/get')
    server.become(completed('done'))
    expect(textOf(await result)).toBe('done')
    expect(server.count('tasks/cancel')).toBe(0)
  })
})

describe('a task in hand', () => {
  test('tells how it stands', async () => {
    const { server, task } = await started()
    server.become({ status: 'working', statusMessage: 'Half way.', ttlMs: null, pollIntervalMs: 7 })
    expect(await task.status()).toEqual({
      id: TASK_ID,
      status: 'working',
      message: 'Half way.',
      createdAt: '2026-07-28T10:30:00Z',
      updatedAt: '2026-07-28T10:30:01.000Z',
      ttlMs: null,
      pollIntervalMs: 7,
    })
    server.become(asking('name'))
    expect(await task.status()).toMatchObject({
      status: 'input_required',
      questions: [{ kind: 'form', key: 'name', message: 'Your name?' }],
    })
    server.become({ status: 'failed', error: { code: -32050, message: 'No.' } })
    expect(await task.status()).toMatchObject({ status: 'failed', error: { rpcCode: -32050, message: 'No.' } })
  })

  test('cuts what the server says of it', async () => {
    const { task } = await started({ statusMessage: 'x'.repeat(100_000) })
    expect((await task.status()).message).toHaveLength(8_192)
  })

  test('is answered by hand, what does not fit being refused before it is sent', async () => {
    const { server, task } = await started(asking('name', 'town'))
    await expect(task.answer({ name: { action: 'accept', content: {} } })).rejects.toMatchObject({
      code: 'ANSWER_INVALID',
      message: 'The answer to "name" does not match its question: name is required.',
    })
    await expect(task.answer({ other: answerOf('x') })).rejects.toThrow('This round has no question "other"')
    expect(server.count('tasks/update')).toBe(0)
    await task.answer({ name: answerOf('Ada') })
    await task.answer({ town: { action: 'decline' } })
    await expect(task.answer({ name: answerOf('Eve') })).rejects.toMatchObject({
      code: 'ANSWER_INVALID',
      message: 'The question "name" is already answered, or is being answered.',
    })
    expect(server.sent('tasks/update')).toEqual([
      { taskId: TASK_ID, inputResponses: { name: answerOf('Ada') } },
      { taskId: TASK_ID, inputResponses: { town: { action: 'decline' } } },
    ])
  })

  test('whose answer was refused may be answered again', async () => {
    const refusals = [{ error: { code: -32000, message: 'Not now.' } }]
    const { server, task } = await started(asking('name'), {
      instead: ({ method }) => (method === 'tasks/update' ? refusals.shift() : undefined),
    })
    await expect(task.answer({ name: answerOf('Ada') })).rejects.toMatchObject({ rpcCode: -32000 })
    await task.answer({ name: answerOf('Ada') })
    expect(server.count('tasks/update')).toBe(2)
  })

  test('that was answered by hand is not asked again by the answerers', async () => {
    const onElicit = vi.fn<() => FormAnswer>(() => answerOf('Eve'))
    const { server, task } = await started(asking('name'), {}, { onElicit })
    await task.answer({ name: answerOf('Ada') })
    const result = task.result()
    await server.asked('tasks/get', 3)
    server.become(completed('done'))
    expect(textOf(await result)).toBe('done')
    expect(onElicit).not.toHaveBeenCalled()
  })

  test('is answered by the answerers while it is waited for', async () => {
    const { task } = await started(asking('name'), finishing, { onElicit: () => answerOf('Ada') })
    expect(textOf(await task.result())).toBe('done')
  })

  test('is cancelled, if the server likes', async () => {
    const { server, task } = await started({}, { onCancel: (at) => at.become({ status: 'cancelled' }) })
    await task.cancel()
    expect(server.sent('tasks/cancel')).toEqual([{ taskId: TASK_ID }])
    expect(await task.status()).toMatchObject({ status: 'cancelled' })
    await expect(task.result()).rejects.toMatchObject({ code: 'TASK_CANCELLED' })
  })

  test('whose cancellation is lost is cancelled again', async () => {
    const losses = ['lost', 'unavailable', 'lost', 'lost'] as const
    let lost = 0
    const { server, task } = await started(
      {},
      { instead: ({ method }) => (method === 'tasks/cancel' ? losses[lost++] : undefined) },
    )
    await task.cancel()
    expect(server.count('tasks/cancel')).toBe(5)
  })

  test('that nobody knows is told so, whatever is asked of it', async () => {
    const unknown = { error: { code: -32602, message: 'Task not found' } }
    const { task } = await started({}, { instead: ({ method }) => (method.startsWith('tasks/') ? unknown : undefined) })
    const gone = { code: 'TASK_GONE', task: undefined }
    await expect(task.status()).rejects.toMatchObject(gone)
    await expect(task.cancel()).rejects.toMatchObject(gone)
    await expect(task.answer({ name: answerOf('x') })).rejects.toMatchObject(gone)
    await expect(task.result()).rejects.toMatchObject(gone)
    await expect(task.updates().next()).rejects.toMatchObject(gone)
  })

  test('is left to the server by a signal that ends the waiting', async () => {
    const { server, task } = await started()
    const controller = new AbortController()
    const result = task.result({ signal: controller.signal })
    await server.asked('tasks/get')
    controller.abort()
    await expect(result).rejects.toMatchObject({ code: 'ABORTED', task: { taskId: TASK_ID } })
    server.become(completed('all the same'))
    expect(textOf(await task.result())).toBe('all the same')
    expect(server.count('tasks/cancel')).toBe(0)
  })

  test('has its questions asked once by two who wait for it', async () => {
    const onElicit = vi.fn<() => FormAnswer>(() => answerOf('Ada'))
    const { task } = await started(asking('name'), finishing, { onElicit })
    const [one, other] = await Promise.all([task.result(), task.result()])
    expect([textOf(one), textOf(other)]).toEqual(['done', 'done'])
    expect(onElicit).toHaveBeenCalledOnce()
  })

  test('asks nothing of the server any more once its end is known', async () => {
    const { server, task } = await started(completed('done'))
    expect(textOf(await task.result())).toBe('done')
    const asked = server.requests.length
    expect(textOf(await task.result())).toBe('done')
    const states: TaskState[] = []
    for await (const state of task) states.push(state)
    expect(states).toMatchObject([{ status: 'completed' }])
    expect(server.requests).toHaveLength(asked)
  })
})

describe('the updates of a task', () => {
  test('begin with how it stands now, also long after it was made', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const { server, task } = await started({ pollIntervalMs: 300_000 })
    await vi.advanceTimersByTimeAsync(60_000)
    server.become({ status: 'working', statusMessage: 'Half way.' })
    const updates = task.updates()
    expect((await updates.next()).value).toMatchObject({ message: 'Half way.' })
    await updates.return()
  })

  test('are how it stands and then each change, to its end', async () => {
    const { server, task } = await started({}, finishing)
    const seen: string[] = []
    for await (const state of task) {
      seen.push(`${state.status} ${state.message ?? ''}`.trim())
      if (seen.length === 1) server.become({ status: 'working', statusMessage: 'Half way.' })
      if (seen.length === 2) server.become(asking('name'))
      if (seen.length === 3) server.become(asking('name', 'town'))
      if (seen.length === 4) await task.answer({ name: answerOf('Ada') })
    }
    expect(seen).toEqual(['working', 'working Half way.', 'input_required', 'input_required', 'completed'])
    expect(await task.result()).toMatchObject({ content: [{ text: 'done' }] })
  })

  test('come as the server tells of them, without asking', async () => {
    const { server, task } = await started({ pollIntervalMs: 300_000 }, { tells: true })
    const updates = task.updates()
    expect((await updates.next()).value).toMatchObject({ status: 'working' })
    const second = updates.next()
    await server.listened()
    server.become({ status: 'working', statusMessage: 'Half way.' })
    expect((await second).value).toMatchObject({ message: 'Half way.' })
    // Only the last matters to somebody who did not look.
    for (let n = 0; n < 100; n += 1) server.become({ status: 'working', statusMessage: `${n}` })
    expect((await updates.next()).value).toMatchObject({ message: '99' })
    await updates.return()
    await server.unlistened()
    expect(server.count('tasks/get')).toBe(0)
  })

  test('end with the signal, and with the client', async () => {
    const { task, client } = await started()
    const controller = new AbortController()
    const updates = task.updates({ signal: controller.signal })
    await updates.next()
    const next = updates.next()
    controller.abort()
    await expect(next).rejects.toMatchObject({ code: 'ABORTED', task: { taskId: TASK_ID } })
    const others = task.updates()
    await others.next()
    const another = others.next()
    another.catch(() => {})
    await client.close()
    await expect(another).rejects.toMatchObject({ code: 'CLOSED' })
  })
})

describe('a task that is put away', () => {
  test('is plain JSON, and holds nothing of what it was called with', async () => {
    const { task } = await started()
    const saved = carried(task)
    expect(saved).toEqual({
      version: 1,
      revision: '2026-07-28',
      taskId: TASK_ID,
      tool: 'hello_world',
      pollIntervalMs: 1,
    })
  })

  test.each([
    { what: 'what was saved', saved: (task: ClientTask): SavedTask | string => carried(task) },
    { what: 'its id alone', saved: (task: ClientTask): SavedTask | string => task.id },
  ])('is taken up by another client from $what', async ({ saved }) => {
    const { server, client, task } = await started(asking('name'), finishing)
    const given = saved(task)
    await client.close()
    const calls: unknown[] = []
    const other = await connected(server, {
      onElicit: (_question, { call }) => {
        calls.push(call)
        return answerOf('Ada')
      },
    })
    expect(textOf(await other.task(given).result())).toBe('done')
    expect(calls).toEqual([typeof given === 'string' ? undefined : { tool: 'hello_world' }])
  })

  test('and fails on the way gives what to take up', async () => {
    const { server, task } = await started(asking('name'), finishing)
    const failure: { task?: SavedTask } = await task.result().then(
      () => ({}),
      (error: { task?: SavedTask }) => error,
    )
    expect(failure).toMatchObject({ code: 'NO_ANSWERER', task: carried(task) })
    const other = await connected(server, { onElicit: () => answerOf('Ada') })
    expect(textOf(await other.task(failure.task ?? '').result())).toBe('done')
  })

  test.each<[string, unknown, string]>([
    ['nothing', null, 'it must be an id or an object'],
    ['no id', '', 'its id must be a string'],
    ['an id without end', 'x'.repeat(3_000), 'its id must be a string of 1 to 2048 bytes'],
    ['an id of few characters and many bytes', '\u20ac'.repeat(700), 'its id must be a string of 1 to 2048 bytes'],
    ['another format', { version: 2 }, 'its version must be 1, got 2'],
    [
      'another revision',
      { version: 1, revision: '2020-01-01' },
      'its revision must be one of 2026-07-28, 2025-11-25, 2026-06-XX, 2026-02-03-draft, got "2020-01-01"',
    ],
    ['a number for an id', { version: 1, revision: '2026-07-28', taskId: 7 }, 'its id must be a string'],
    ['no tool', { version: 1, revision: '2026-07-28', taskId: 'a', tool: 7 }, 'its tool must be a string'],
    ['half a pause', { version: 1, revision: '2026-07-28', taskId: 'a', pollIntervalMs: 0.5 }, 'pollIntervalMs'],
  ])('is refused where it is damaged: %s', async (_what, saved, says) => {
    const client = await connected(new TaskServer())
    expect(() => client.task(saved as SavedTask)).toThrow(
      expect.objectContaining({ code: 'TASK_INVALID', message: expect.stringContaining(says) }),
    )
  })
})

describe('rounds in the caller`s own hands', () => {
  test('show the task, and going on waits for its end', async () => {
    const server = new TaskServer(asking('name'), {
      ...finishing,
      call: (_request, n) => (n === 0 ? asks(['sure'], 'state') : undefined),
    })
    const client = await connected(server, byHand)
    const kinds: string[] = []
    for await (const round of client.rounds({ tool: 'hello_world' })) {
      kinds.push(round.kind)
      if (round.kind === 'asks') round.answer({ sure: YES })
      if (round.kind === 'task') await round.task.answer({ name: answerOf('Ada') })
      if (round.kind === 'done') expect(textOf(round.result)).toBe('done')
    }
    expect(kinds).toEqual(['asks', 'task', 'done'])
  })

  test('leave the task to the server when they are left', async () => {
    const server = new TaskServer()
    const client = await connected(server, byHand)
    let task: ClientTask | undefined
    for await (const round of client.rounds({ tool: 'hello_world' })) {
      if (round.kind === 'task') ({ task } = round)
      break
    }
    server.become(completed('done'))
    expect(textOf((await task?.result()) ?? { content: [] })).toBe('done')
    expect(server.count('tasks/cancel')).toBe(0)
  })

  test('end the task with the signal that ends the call', async () => {
    const server = new TaskServer()
    const client = await connected(server, byHand)
    const controller = new AbortController()
    const rounds = client.rounds({ tool: 'hello_world' }, { signal: controller.signal })
    expect((await rounds.next()).value).toMatchObject({ kind: 'task' })
    const end = rounds.next()
    await server.asked('tasks/get')
    controller.abort()
    await expect(end).rejects.toMatchObject({ code: 'ABORTED' })
    await server.asked('tasks/cancel')
  })
})

describe('over HTTP', () => {
  test('the id of the task is in a header of every request that is about it, and changes are told', async () => {
    const server = new TaskServer({ pollIntervalMs: 300_000 }, { ...finishing, tells: true })
    const client = await connect(await server.listen(), { onElicit: () => answerOf('Ada') })
    onTestFinished(() => client.close())
    const call = client.callTool('hello_world')
    await server.listened()
    server.become(asking('name'))
    expect(textOf(await call)).toBe('done')
    const task = client.task(TASK_ID)
    await task.status()
    await task.cancel()
    const named = server.requests.map(({ headers }) => [headers?.['mcp-method'], headers?.['mcp-name']])
    expect(named).toEqual([
      ['tools/call', 'hello_world'],
      ['subscriptions/listen', undefined],
      ['tasks/update', TASK_ID],
      ['tasks/get', TASK_ID],
      ['tasks/cancel', TASK_ID],
    ])
  })

  test('a server that is replaced is waited for', async () => {
    const down = ['unavailable', 'lost', 'unavailable', 'unavailable', 'lost'] as const
    let lost = 0
    const server = new TaskServer(completed('there again'), {
      instead: ({ method }) => (method === 'tasks/get' ? down[lost++] : undefined),
    })
    const client = await connect(await server.listen())
    onTestFinished(() => client.close())
    expect(textOf(await client.callTool('hello_world'))).toBe('there again')
    expect(server.count('tasks/get')).toBe(6)
  })

  test('a lost stream is no loss', async () => {
    const server = new TaskServer(
      {},
      { instead: ({ method }) => (method === 'subscriptions/listen' ? 'unavailable' : undefined) },
    )
    const client = await connect(await server.listen())
    onTestFinished(() => client.close())
    const call = client.callTool('hello_world')
    await server.asked('tasks/get', 2)
    server.become(completed('done'))
    expect(textOf(await call)).toBe('done')
  })
})

test('older servers have no tasks: a tool that is started there gives its result', async () => {
  const app = rally({ name: 'older', version: '1' })
  app.tool('hello', {}, () => 'Hello.')
  const serving = await serve(app, { port: 0, handleSignals: false })
  onTestFinished(() => serving.close())
  const client = await connect(serving.url, { revision: '2025-11-25' })
  onTestFinished(() => client.close())
  expect(await client.startTool('hello')).toMatchObject({ kind: 'done', result: { content: [{ text: 'Hello.' }] } })
  expect(() => client.task(TASK_ID)).toThrow(
    expect.objectContaining({
      code: 'NO_TASKS',
      message: 'The server uses revision 2025-11-25, and has no tasks for this client.',
    }),
  )
})
