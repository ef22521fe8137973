// Where the patience with a task ends: its caller's, that of the clock, and that with servers that say what cannot be.
import { connect } from 'mcp-rally/client'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Told } from './task-server.ts'
import { answerOf, asking, begun, completed, connected, TASK_ID, TaskServer } from './task-server.ts'
import { textOf } from './wires.ts'

/** From now on time passes only as it is told to. */
const holdTime = (): void => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })

afterEach(() => void vi.useRealTimers())

const capabilitiesIn = (params: Record<string, unknown>): unknown =>
  (params['_meta'] as Record<string, object>)['io.modelcontextprotocol/clientCapabilities']

const madeRight = (): object => ({ resultType: 'task', ...new TaskServer().detailed(), status: 'completed' })

describe('a caller who aborts', () => {
  test('has the task cancelled', async () => {
    const { server, client } = await begun({})
    const controller = new AbortController()
    const call = client.callTool('hello_world', {}, { signal: controller.signal })
    await server.asked('tasks/get')
    controller.abort()
    await expect(call).rejects.toMatchObject({ code: 'ABORTED' })
    await server.asked('tasks/cancel')
    expect(server.sent('tasks/cancel')).toEqual([{ taskId: TASK_ID }])
  })

  test('while somebody thinks has the task cancelled, and the answerer is told', async () => {
    const controller = new AbortController()
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
    const call = client.callTool('hello_world', {}, { signal: controller.signal })
    await vi.waitFor(() => expect(signals).toHaveLength(1))
    controller.abort()
    await expect(call).rejects.toMatchObject({ code: 'ABORTED' })
    await server.asked('tasks/cancel')
    expect(signals[0]?.aborted).toBe(true)
  })

  test('and closes the client at once still has it cancelled', async () => {
    const { server, client } = await begun({})
    const controller = new AbortController()
    const call = client.callTool('hello_world', {}, { signal: controller.signal })
    call.catch(() => {})
    await server.asked('tasks/get')
    controller.abort()
    await client.close()
    expect(server.count('tasks/cancel')).toBe(1)
    await expect(call).rejects.toMatchObject({ code: 'ABORTED' })
  })

  test('is not kept waiting by a server that does not answer', async () => {
    const warn = vi.fn<(message: string) => void>()
    const { server, client } = await begun(
      {},
      {
        instead: ({ method }) => (method === 'tasks/cancel' ? { error: { code: -32000, message: 'No.' } } : undefined),
      },
      { logger: { warn, error: () => {} } },
    )
    const controller = new AbortController()
    const call = client.callTool('hello_world', {}, { signal: controller.signal })
    await server.asked('tasks/get')
    controller.abort()
    await expect(call).rejects.toMatchObject({ code: 'ABORTED' })
    await vi.waitFor(() => expect(warn.mock.lastCall?.[0]).toBe('A task could not be cancelled and may still run.'))
  })

  test('only closes the client leaves the task to the server', async () => {
    const { server, client } = await begun({})
    const call = client.callTool('hello_world')
    call.catch(() => {})
    await server.asked('tasks/get')
    await client.close()
    await expect(call).rejects.toMatchObject({ code: 'CLOSED', task: { taskId: TASK_ID } })
    expect(server.count('tasks/cancel')).toBe(0)
  })
})

describe('the time of a task', () => {
  test('is its own, and what is left can be taken up', async () => {
    holdTime()
    const { client } = await begun({ pollIntervalMs: 5_000 }, {}, { timeoutMs: 1_000, taskMs: 60_000 })
    const call = client.callTool('hello_world')
    call.catch(() => {})
    await vi.advanceTimersByTimeAsync(60_000)
    await expect(call).rejects.toMatchObject({
      code: 'TIMEOUT',
      message: `The task "${TASK_ID}" did not finish within 60000 ms (taskMs). It keeps running on the server: pass error.task to client.task() to continue.`,
      task: { taskId: TASK_ID },
    })
  })

  test('is not used up by a user who thinks', async () => {
    holdTime()
    const HOURS = 8 * 3_600_000
    const { client } = await begun(
      { ...asking('name'), pollIntervalMs: 300_000 },
      { onUpdate: (_responses, at) => at.become(completed('done')) },
      {
        taskMs: 600_000,
        onElicit: () => new Promise((resolve) => void setTimeout(() => resolve(answerOf('late')), HOURS)),
      },
    )
    const call = client.callTool('hello_world')
    await vi.advanceTimersByTimeAsync(HOURS + 600_000)
    expect(textOf(await call)).toBe('done')
  })

  test('must be a number above 0', async () => {
    const server = new TaskServer()
    await expect(connected(server, { taskMs: 0 })).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })
})

describe('tasks are declared', () => {
  test('on whatever has to do with them, and on nothing else', async () => {
    const { server, client } = await begun(completed('done'))
    await client.callTool('hello_world')
    await client.listTools()
    for (const { method, params } of server.requests) {
      const extensions = method === 'tools/list' ? {} : { extensions: { 'io.modelcontextprotocol/tasks': {} } }
      expect({ method, can: capabilitiesIn(params) }).toEqual({ method, can: extensions })
    }
  })

  test('not with tasks: false, and then a task is no answer', async () => {
    const capabilities: unknown[] = []
    const made = { resultType: 'task', taskId: TASK_ID, status: 'working', createdAt: 'now', lastUpdatedAt: 'now' }
    const client = await connect(
      {
        async dispatch(message) {
          const { id, method, params } = message as { id: number; method: string; params: Record<string, unknown> }
          const discovered = { supportedVersions: ['2026-07-28'], capabilities: {} }
          if (method !== 'server/discover') capabilities.push(capabilitiesIn(params))
          const result = method === 'server/discover' ? discovered : { ...made, ttlMs: null }
          return { text: JSON.stringify({ jsonrpc: '2.0', id, result }) }
        },
      },
      { tasks: false },
    )
    onTestFinished(() => client.close())
    await expect(client.callTool('hello_world')).rejects.toMatchObject({
      code: 'BAD_RESPONSE',
      message: expect.stringContaining('the resultType of tools/call is unknown, got "task"'),
    })
    expect(capabilities).toEqual([{}])
    expect(() => client.task(TASK_ID)).toThrow('This client was connected with tasks: false.')
  })

  test('for tools only: nothing else may become one', async () => {
    const task = { resultType: 'task', taskId: TASK_ID, status: 'working', createdAt: '2026-07-28T10:30:00Z' }
    const { client } = await begun(
      {},
      {
        instead: ({ method }) => (/^(prompts|resources)\//.test(method) ? { result: task } : undefined),
        isWrong: true,
      },
    )
    const bad = { code: 'BAD_RESPONSE', message: expect.stringMatching(/the resultType of .* is unknown, got "task"/) }
    await expect(client.getPrompt('hello')).rejects.toMatchObject(bad)
    await expect(client.readResource('a://b')).rejects.toMatchObject(bad)
  })
})

describe('a server that says of its task what cannot be is refused, clearly:', () => {
  const many = Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`q${n}`, { method: 'roots/list' }]))
  let deep: object = {}
  for (let n = 0; n < 200; n += 1) deep = { deep }

  test.each<[string, Told, string]>([
    ['no id', { taskId: 7 }, 'taskId of its task'],
    ['an id without end', { taskId: 'x'.repeat(3_000) }, 'taskId of its task'],
    [
      'a status of its own',
      { status: 'paused' },
      'the status of its task must be one of working, input_required, completed, failed, cancelled, got "paused"',
    ],
    ['a message that is none', { statusMessage: { a: 1 } }, 'statusMessage of its task'],
    ['no date of its making', { createdAt: 'yesterday' }, 'createdAt of its task must be an ISO 8601 date'],
    ['a date without end', { createdAt: '2026'.repeat(100) }, 'createdAt of its task must be an ISO 8601 date'],
    ['no date of its change', { lastUpdatedAt: 7 }, 'lastUpdatedAt of its task must be an ISO 8601 date'],
    ['no time to live', { ttlMs: undefined }, 'ttlMs of its task'],
    ['half an interval', { pollIntervalMs: 0.5 }, 'pollIntervalMs of its task'],
    ['no questions', { status: 'input_required' }, 'inputRequests must be an object'],
    [
      'questions without a bottom',
      { status: 'input_required', inputRequests: deep },
      'nested more than 100 levels deep',
    ],
    ['no result', { status: 'completed' }, 'the result of its task must be an object'],
    ['a result without content', { status: 'completed', result: {} }, 'content of tools/call'],
    [
      'a result that is none',
      { status: 'completed', result: { resultType: 'input_required' } },
      'the resultType of tasks/get',
    ],
    ['no error', { status: 'failed' }, 'its error is not an object'],
    ['an error without a code', { status: 'failed', error: { message: 'x' } }, 'its error has no code and message'],
  ])('%s', async (_what, told, says) => {
    const { client } = await begun(told, {
      isWrong: true,
      // Made as it should be, and told as it should not.
      call: () => madeRight(),
    })
    await expect(client.callTool('hello_world')).rejects.toMatchObject({
      code: 'BAD_RESPONSE',
      message: expect.stringContaining(says),
    })
  })

  test('more questions than anybody answers', async () => {
    const { client } = await begun({ status: 'input_required', inputRequests: many })
    await expect(client.callTool('hello_world')).rejects.toMatchObject({ code: 'QUESTION_INVALID' })
  })

  test('another task than was asked for', async () => {
    const { client } = await begun({ taskId: 'another' }, { isWrong: true, call: () => madeRight() })
    await expect(client.callTool('hello_world')).rejects.toMatchObject({
      message: expect.stringContaining('its taskId must be '),
    })
  })

  test('a task that was never made right', async () => {
    const { client } = await begun({}, { isWrong: true, call: () => ({ resultType: 'task', task: {} }) })
    await expect(client.callTool('hello_world')).rejects.toMatchObject({ code: 'BAD_RESPONSE', pending: undefined })
  })
})
