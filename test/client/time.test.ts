// Time, and the end of patience: what counts, and what ends a call in whatever it is doing.
import { EventEmitter, once } from 'node:events'
import { serve } from 'mcp-rally/node'
import { connect } from 'mcp-rally/client'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { testApp } from './app.mjs'
import { asks, deferred, done, scripted, YES } from './scripted.ts'
import { inProcess, textOf } from './wires.ts'

afterEach(() => void vi.useRealTimers())

const slowly = (said: object) => () => new Promise<object>((resolve) => void setTimeout(() => resolve(said), 400))

describe('the time of a call', () => {
  test('is not used up by a user who thinks for hours, in every round', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const HOURS = 8 * 3_600_000
    const { client } = await scripted((_request, n) => (n < 3 ? asks(['a'], `s${n}`) : done('ok')), {
      timeoutMs: 1_000,
      onElicit: () => new Promise((resolve) => void setTimeout(() => resolve(YES), HOURS)),
    })
    const call = client.callTool('deploy')
    await vi.advanceTimersByTimeAsync(3 * HOURS)
    expect(textOf(await call)).toBe('ok')
  })

  test('is not used up by a loop in the hands of somebody who thinks', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const { client } = await scripted((_request, n) => (n === 0 ? asks(['a'], 's') : done('ok')), { timeoutMs: 1_000 })
    const rounds = client.rounds({ tool: 'deploy' })
    const { value: round } = await rounds.next()
    await vi.advanceTimersByTimeAsync(86_400_000)
    if (round?.kind === 'asks') round.answer({ a: YES })
    expect((await rounds.next()).value).toMatchObject({ kind: 'done' })
  })

  test('is that of all rounds together, and what is left can be gone on with', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const { client, requests } = await scripted((_request, n) => slowly(asks(['a'], `s${n}`)), {
      timeoutMs: 1_000,
      onElicit: () => YES,
    })
    const call = client.callTool('deploy')
    call.catch(() => {})
    await vi.advanceTimersByTimeAsync(2_000)
    await expect(call).rejects.toMatchObject({
      code: 'TIMEOUT',
      message:
        'tools/call deploy: the server did not respond within 1000 ms (timeoutMs). The request may or may not have taken effect.',
      pending: { requestState: 's1' },
    })
    expect(requests).toHaveLength(3)
  })

  test('may be given to one call alone', async () => {
    const { client } = await scripted(
      () =>
        ({ cancelled }) =>
          cancelled.then(() => ({})),
    )
    await expect(client.callTool('deploy', {}, { timeoutMs: 20 })).rejects.toMatchObject({ code: 'TIMEOUT' })
    await expect(client.listTools({ timeoutMs: 20 })).rejects.toMatchObject({ code: 'TIMEOUT' })
    const ref = { type: 'ref/prompt', name: 'a' } as const
    const complete = client.complete(ref, { name: 'a', value: '' }, {}, { timeoutMs: 20 })
    await expect(complete).rejects.toMatchObject({ code: 'TIMEOUT' })
  })
})

describe.each(inProcess)('over $name', (wire) => {
  test('a call that takes too long is cancelled at the server', async () => {
    const heard = new EventEmitter()
    const cancelled = once(heard, 'cancelled')
    const { client, close } = await wire.connect({ timeoutMs: 200, hold: async (what) => void heard.emit(what) })
    await expect(client.callTool('wait')).rejects.toMatchObject({ code: 'TIMEOUT' })
    await cancelled
    await close()
  })

  test('a call that is aborted is cancelled at the server', async () => {
    const controller = new AbortController()
    const heard = new EventEmitter()
    const cancelled = once(heard, 'cancelled')
    heard.on('waiting', () => controller.abort('changed my mind'))
    const { client, close } = await wire.connect({ hold: async (what) => void heard.emit(what) })
    await expect(client.callTool('wait', {}, { signal: controller.signal })).rejects.toMatchObject({
      code: 'ABORTED',
      message: 'tools/call wait was aborted.',
      cause: 'changed my mind',
    })
    await cancelled
    await close()
  })
})

describe('a call is aborted', () => {
  test('while somebody thinks, who is told', async () => {
    const controller = new AbortController()
    let told: AbortSignal | undefined
    const { client, requests } = await scripted(() => asks(['a'], 's'), {
      onElicit: (_question, { signal }) => {
        told = signal
        queueMicrotask(() => controller.abort('enough'))
        return new Promise(() => {})
      },
    })
    await expect(client.callTool('deploy', {}, { signal: controller.signal })).rejects.toMatchObject({
      code: 'ABORTED',
      pending: { requestState: 's' },
    })
    expect(told?.aborted).toBe(true)
    expect(requests).toHaveLength(1)
  })

  test('in the pause before a round that was put off', async () => {
    const controller = new AbortController()
    const { client, requests } = await scripted(() => () => {
      setImmediate(() => controller.abort())
      return deferred('s')
    })
    await expect(client.callTool('deploy', {}, { signal: controller.signal })).rejects.toMatchObject({
      code: 'ABORTED',
      pending: { requestState: 's' },
    })
    expect(requests).toHaveLength(1)
  })

  test('between two rounds in the hands of its caller', async () => {
    const controller = new AbortController()
    const { client, requests } = await scripted(() => asks(['a'], 's'))
    const rounds = client.rounds({ tool: 'deploy' }, { signal: controller.signal })
    const { value: round } = await rounds.next()
    if (round?.kind === 'asks') round.answer({ a: YES })
    controller.abort()
    await expect(rounds.next()).rejects.toMatchObject({ code: 'ABORTED' })
    expect(await rounds.next()).toEqual({ done: true, value: undefined })
    expect(requests).toHaveLength(1)
  })

  test('in the middle of the pages of a list', async () => {
    const controller = new AbortController()
    const { client, requests } = await scripted((_request, n) => {
      if (n === 1) controller.abort()
      return { tools: [], nextCursor: String(n) }
    })
    await expect(client.listTools({ signal: controller.signal })).rejects.toMatchObject({ code: 'ABORTED' })
    expect(requests).toHaveLength(2)
  })

  test('by the end of its client, whatever it is doing, and later calls are not begun', async () => {
    const waiting = await scripted(
      () =>
        ({ cancelled }) =>
          cancelled.then(() => ({})),
    )
    const call = waiting.client.callTool('deploy')
    const thinking = await scripted(() => asks(['a']), {
      onElicit: () => {
        queueMicrotask(() => void thinking.client.close())
        return new Promise(() => {})
      },
    })
    await expect(thinking.client.callTool('deploy')).rejects.toMatchObject({ code: 'CLOSED' })
    await waiting.client.close()
    await expect(call).rejects.toMatchObject({ code: 'CLOSED', message: 'The client was closed.' })
    await expect(waiting.client.callTool('deploy')).rejects.toMatchObject({ code: 'CLOSED' })
    await expect(waiting.client.rounds({ tool: 'a' }).next()).rejects.toMatchObject({ code: 'CLOSED' })
    await waiting.client.close()
  })
})

test('a signal that outlives many calls holds nothing of them', async () => {
  const { client } = await scripted((_request, n) => (n % 2 === 0 ? asks(['a'], 's') : done('ok')), {
    onElicit: () => YES,
  })
  const { signal } = new AbortController()
  const add = vi.spyOn(signal, 'addEventListener')
  const remove = vi.spyOn(signal, 'removeEventListener')
  for (let i = 0; i < 10; i += 1) await client.callTool('deploy', {}, { signal })
  expect(add).toHaveBeenCalledTimes(10)
  expect(remove.mock.calls.map(([, listener]) => listener)).toEqual(add.mock.calls.map(([, listener]) => listener))
})

test('a call whose server is being replaced goes on at the next, and no step is done twice', async () => {
  const steps: string[] = []
  const first = await serve(
    testApp({}, async (step) => {
      steps.push(`first: ${step}`)
      // The server begins to go in the middle of the call's first step.
      closing = first.close()
    }),
    { port: 0, handleSignals: false },
  )
  let closing: Promise<void> | undefined
  const second = await serve(
    testApp({}, async (step) => void steps.push(`second: ${step}`)),
    { port: 0, handleSignals: false },
  )
  const client = await connect(first.url, {
    // A balancer, which sends nothing to a server that is going.
    fetch: (_url, init) => fetch(closing === undefined ? first.url : second.url, init),
  })
  const kinds: string[] = []
  for await (const round of client.rounds({ tool: 'work' })) {
    kinds.push(round.kind)
    if (round.kind === 'done') expect(String(textOf(round.result)).split(' ')).toHaveLength(2)
  }
  expect(kinds).toEqual(['deferred', 'done'])
  expect(steps).toEqual(['first: one', 'second: two'])
  await closing
  await client.close()
  await second.close()
})
