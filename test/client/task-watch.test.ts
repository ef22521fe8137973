// How a task is followed: asked about as often as the server likes, told of where it tells, and not lost with a connection.
import { EventEmitter, once } from 'node:events'
import type { ClientOptions, FormAnswer } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Instead, Told } from './task-server.ts'
import { answerOf, asking, begun, completed, TASK_ID, TaskServer } from './task-server.ts'
import { textOf } from './wires.ts'

/** From now on time passes only as it is told to. */
const holdTime = (): void => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })

afterEach(() => void vi.useRealTimers())

/** Resolves when the client has made of what it was told in this process whatever it makes of it. */
const processed = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

/** Answers every question with its key. */
const byKey: ClientOptions = { onElicit: ({ key }) => answerOf(key) }

/** When it was looked at, in milliseconds since the call. */
async function lookedAt(told: Told, spanMs: number): Promise<number[]> {
  holdTime()
  const since = performance.now()
  const times: number[] = []
  const { client } = await begun(told, {
    instead: ({ method }) => {
      if (method === 'tasks/get') times.push(performance.now() - since)
      return undefined
    },
  })
  const call = client.callTool('hello_world', {}, { taskMs: spanMs })
  call.catch(() => {})
  await vi.advanceTimersByTimeAsync(spanMs + 1)
  await expect(call).rejects.toMatchObject({ code: 'TIMEOUT' })
  return times
}

/** Each of the first requests of a method is answered with the next of these. */
const first = (method: string, ...answers: Instead[]) => {
  return (request: { method: string }): Instead => (request.method === method ? answers.shift() : undefined)
}

describe('how often a task is looked at', () => {
  test.each([
    { says: 'what the server says', pollIntervalMs: 5_000, every: 5_000 },
    { says: 'a second where it says nothing', pollIntervalMs: undefined, every: 1_000 },
    { says: 'a tenth of a second where it says less', pollIntervalMs: 0, every: 100 },
    { says: 'a tenth of a second where it says less than nothing', pollIntervalMs: -5_000, every: 100 },
    { says: 'five minutes where it says more', pollIntervalMs: Number.MAX_SAFE_INTEGER, every: 300_000 },
  ])('is $says', async ({ pollIntervalMs, every }) => {
    const times = await lookedAt({ pollIntervalMs }, every * 4 - 1)
    expect(times).toEqual([every, every * 2, every * 3])
  })

  test('changes when the server says so', async () => {
    holdTime()
    const { server, client } = await begun({ pollIntervalMs: 1_000 })
    const call = client.callTool('hello_world')
    await vi.advanceTimersByTimeAsync(500)
    server.told['pollIntervalMs'] = 10_000
    await vi.advanceTimersByTimeAsync(1_000)
    expect(server.count('tasks/get')).toBe(1)
    server.become(completed('done'))
    await vi.advanceTimersByTimeAsync(9_000)
    expect(server.count('tasks/get')).toBe(1)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(textOf(await call)).toBe('done')
  })
})

describe('a server that tells of the task', () => {
  const seldom = { pollIntervalMs: 300_000 }

  test('is not asked: questions and the result come as they are there', async () => {
    const { server, client } = await begun(
      seldom,
      { tells: true, onUpdate: (_responses, at) => at.become(completed('done')) },
      byKey,
    )
    const call = client.callTool('hello_world')
    await server.listened()
    server.become(asking('name'))
    expect(textOf(await call)).toBe('done')
    expect(server.count('tasks/get')).toBe(0)
    await server.unlistened()
  })

  test('is asked once at the usual time, and then now and then, since what was told may have been lost', async () => {
    holdTime()
    const { server, client } = await begun({ pollIntervalMs: 1_000 }, { tells: true })
    const call = client.callTool('hello_world')
    await vi.advanceTimersByTimeAsync(30_000)
    expect(server.count('tasks/get')).toBe(1)
    server.told = { ...server.told, ...completed('never told') }
    await vi.advanceTimersByTimeAsync(1_000)
    expect(textOf(await call)).toBe('never told')
    expect(server.count('tasks/get')).toBe(2)
  })

  test('and ends the stream is asked again, and listened to again', async () => {
    const { server, client } = await begun({ pollIntervalMs: 100 }, { tells: true })
    const call = client.callTool('hello_world')
    await server.listened()
    await server.asked('tasks/get')
    await processed()
    server.fallSilent()
    await server.asked('tasks/get', 3)
    await server.asked('subscriptions/listen', 2)
    server.become(completed('told by the second'))
    expect(textOf(await call)).toBe('told by the second')
  })

  test.each<[string, Instead]>([
    ['refuses to', { error: { code: -32601, message: 'Method not found' } }],
    ['is lost with the stream', 'lost'],
  ])('and %s is asked instead', async (_what, instead) => {
    const { server, client } = await begun(
      {},
      { tells: true, instead: ({ method }) => (method === 'subscriptions/listen' ? instead : undefined) },
    )
    const call = client.callTool('hello_world')
    await server.asked('tasks/get', 2)
    server.become(completed('done'))
    expect(textOf(await call)).toBe('done')
  })

  test('and takes other tasks only is asked instead, and its stream is let go of', async () => {
    const server = new TaskServer()
    const { app } = server
    const stream = new EventEmitter()
    const letGo = once(stream, 'over')
    const client = await connect({
      dispatch(message, context) {
        const { id, method } = message as { id: number; method: string }
        if (method !== 'subscriptions/listen') return app.dispatch(message, context)
        context.cancel.listen(() => stream.emit('over'))
        const _meta = { 'io.modelcontextprotocol/subscriptionId': id }
        const params = { _meta, notifications: { taskIds: ['another'] } }
        const acknowledged = { jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged', params }
        context.notify(JSON.stringify(acknowledged))
        return letGo.then(() => undefined)
      },
    })
    onTestFinished(() => client.close())
    const call = client.callTool('hello_world')
    await letGo
    await server.asked('tasks/get', 2)
    server.become(completed('done'))
    expect(textOf(await call)).toBe('done')
  })

  test('is not believed what cannot be, is of another task, or is older than what is known', async () => {
    const { server, client } = await begun(
      { ...asking('name'), pollIntervalMs: 500 },
      { tells: true, isWrong: true },
      { onElicit: () => new Promise(() => {}) },
    )
    const call = client.callTool('hello_world')
    await server.listened()
    await server.asked('tasks/get')
    const good = server.detailed()
    await processed()
    const wrong = [
      { ...good, status: 'failed', error: 'none' },
      { ...good, ...completed('of another'), taskId: 'another' },
      { ...good, ...completed('old'), lastUpdatedAt: '2020-01-01T00:00:00Z' },
    ]
    for (const told of wrong) {
      server.tell(told)
      await processed()
    }
    server.become(completed('right'))
    expect(textOf(await call)).toBe('right')
  })
})

describe('what is lost of a task', () => {
  const broken = { error: { code: -32603, message: 'The store is not there.' } }

  test.each<[string, Instead[]]>([
    ['the connection', ['lost', 'lost', 'lost', 'lost']],
    ['the store of the server', [broken, broken]],
  ])('with %s is asked for again', async (_what, answers) => {
    const { server, client } = await begun(completed('there again'), { instead: first('tasks/get', ...answers) })
    expect(textOf(await client.callTool('hello_world'))).toBe('there again')
    expect(server.count('tasks/get')).toBe(answers.length + 1)
  })

  test('of an answer is sent again, and nobody is asked twice', async () => {
    const onElicit = vi.fn<() => FormAnswer>(() => answerOf('Luca'))
    const lose = first('tasks/update', 'lost', 'lost', 'lost', 'lost', broken)
    const { server, client } = await begun(
      asking('name'),
      { instead: lose, onUpdate: (_responses, at) => at.become(completed('done')) },
      { onElicit },
    )
    expect(textOf(await client.callTool('hello_world'))).toBe('done')
    expect(onElicit).toHaveBeenCalledOnce()
    const sent = server.sent('tasks/update')
    expect(sent).toHaveLength(6)
    expect(new Set(sent.map((params) => JSON.stringify(params))).size).toBe(1)
  })

  test('for longer than the client waits ends the call, with what to take up', async () => {
    holdTime()
    const { server, client } = await begun(
      {},
      { instead: ({ method }) => (method === 'tasks/get' ? 'lost' : undefined) },
    )
    const call = client.callTool('hello_world', {})
    call.catch(() => {})
    await vi.advanceTimersByTimeAsync(120_000)
    await expect(call).rejects.toMatchObject({ code: 'LOST', task: { taskId: TASK_ID } })
    const tries = server.count('tasks/get')
    expect(tries).toBeGreaterThan(12)
    expect(tries).toBeLessThan(40)
  })
})
