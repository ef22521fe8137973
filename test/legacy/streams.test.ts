// Streams of events that are lost and gone on with, streams of their own, time-outs, cancellation and drain.
import type { LegacyOptions, Rally } from 'mcp-rally'
import { rally } from 'mcp-rally'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { KEYS, olderApp } from './app.mjs'
import type { Ask, RawHost } from './raw.ts'
import { Events, hosts, RawSession, textOf } from './raw.ts'
import { olderProblems } from './spec.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()))
})

async function begin({ open }: RawHost, app: Rally = olderApp(), drainMs = 100): Promise<Ask> {
  const { ask, close } = await open(app, { drainMs })
  closing.push(close)
  return ask
}

/** An app with a tool that lasts until it is told to go on, and tells how it ended. */
function patientApp(legacy: LegacyOptions = {}): {
  app: Rally
  begun: Promise<void>
  goOn: () => void
  ended: Promise<string>
} {
  const app = rally({ name: 'patient', version: '1', keys: KEYS, legacy, logger: { warn() {}, error() {} } })
  const [begun, began] = promised<void>()
  const [gone, goOn] = promised<void>()
  const [whenEnded, ended] = promised<string>()
  app.tool('patient', {}, async (_args, io) => {
    io.log('info', 'begun')
    began()
    const { signal } = io
    const cancelled = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    await Promise.race([gone, cancelled])
    ended(signal.aborted ? 'cancelled' : 'done')
    io.log('info', 'nearly there')
    return 'It is done.'
  })
  return { app, begun, goOn, ended: whenEnded }
}

function promised<T>(): [Promise<T>, (value: T) => void] {
  let resolved: ((value: T) => void) | undefined
  const promise = new Promise<T>((resolve) => {
    resolved = resolve
  })
  return [promise, (value) => resolved?.(value)]
}

describe.each(hosts)('$name', (host) => {
  let session: RawSession
  let ask: Ask
  beforeEach(async () => {
    ask = await begin(host)
    session = await RawSession.open(ask)
  })

  test('a lost stream cancels no call, and Last-Event-ID resumes it with the next event', async () => {
    const { app, begun, goOn, ended } = patientApp()
    const patient = await RawSession.open(await begin(host, app))
    const lost = new Events(await patient.call('patient'))
    expect(await lost.message()).toMatchObject({ params: { data: 'begun' } })
    await begun
    await lost.lose()
    goOn()
    expect(await ended).toBe('done')
    const events = new Events(await patient.get({ 'Last-Event-ID': lost.lastId }))
    const [log, result, ...more] = await events.rest()
    expect(log).toMatchObject({ params: { data: 'nearly there' } })
    expect(textOf(result)).toBe('It is done.')
    expect(more).toEqual([])
  })

  test('events can be read again, from any event on, for as long as they are kept', async () => {
    const events = new Events(await session.call('report'))
    const { id = '' } = (await events.next()) ?? {}
    const all = await events.rest()
    expect(all).toHaveLength(2)
    const again = new Events(await session.get({ 'Last-Event-ID': id }))
    expect(await again.rest()).toEqual(all)
    // Who has it all need not come back.
    expect((await session.get({ 'Last-Event-ID': events.lastId })).status).toBe(204)
  })

  test('a question is answered while its stream is lost, and another one comes on the next stream', async () => {
    const lost = new Events(await session.call('survey'))
    const first = await lost.message()
    await lost.lose()
    expect((await session.answer(first, { action: 'accept', content: { name: 'Ada' } })).status).toBe(202)
    const events = new Events(await session.get({ 'Last-Event-ID': lost.lastId }))
    const second = await events.message()
    expect(second?.params).toMatchObject({ message: 'How old are you, Ada?' })
    await session.answer(second, { action: 'accept', content: { age: 36 } })
    expect(textOf(await events.message())).toBe('Ada is 36.')
    expect(await events.message()).toBeUndefined()
  })

  test('the one who comes back has the stream, and who had it before has it no more', async () => {
    const before = new Events(await session.call('outcome'))
    const question = await before.message()
    const after = new Events(await session.get({ 'Last-Event-ID': before.lastId }))
    expect(await before.next()).toBeUndefined()
    await session.answer(question, { action: 'decline' })
    expect(textOf(await after.message())).toBe('The user said decline.')
  })

  test('an event belongs to its session, and any other Last-Event-ID is a 400', async () => {
    const events = new Events(await session.call('report'))
    await events.rest()
    const { lastId } = events
    const other = await RawSession.open(ask)
    const [stream = ''] = lastId.split(':')
    expect((await other.get({ 'Last-Event-ID': lastId })).status).toBe(400)
    const wrong = ['x', '', `${stream}:99`, `${stream}:`, `${stream}:-1`, `c${'A'.repeat(20)}:0`, 'y'.repeat(10_000)]
    for (const each of wrong) expect((await session.get({ 'Last-Event-ID': each })).status).toBe(400)
    expect((await session.get({ 'Last-Event-ID': lastId })).status).toBe(204)
  })

  test('an answer is for its own session, and one that nobody waits for is a 400', async () => {
    const events = new Events(await session.call('outcome'))
    const question = await events.message()
    const other = await RawSession.open(ask)
    expect((await other.answer(question, { action: 'accept' })).status).toBe(400)
    for (const id of [1, 'ask-made-up', null]) {
      expect((await session.post({ jsonrpc: '2.0', id, result: {} })).status).toBe(400)
    }
    expect((await session.answer(question, { action: 'decline' })).status).toBe(202)
    expect((await session.answer(question, { action: 'accept' })).status).toBe(400)
    expect(textOf(await events.message())).toBe('The user said decline.')
  })

  test.each([
    ['no object', 'yes'],
    ['null', null],
    ['nested too deep', { action: 'accept', content: JSON.parse(`${'['.repeat(200)}${']'.repeat(200)}`) as unknown }],
    ['of no kind', { action: 'maybe' }],
  ])('an answer that is %s is asked for again', async (_what, result) => {
    const events = new Events(await session.call('outcome'))
    const question = await events.message()
    await session.post({ jsonrpc: '2.0', id: question?.id, result })
    const again = await events.message()
    expect(again?.params?.['message']).toMatch(/^Go on\?\n\nThe last answer did not fit/)
    await session.answer(again, { action: 'cancel' })
    expect(textOf(await events.message())).toBe('The user said cancel.')
  })

  test.each([
    [500, 500],
    [50_000, 1_000],
  ])('of %d things that a handler says in one breath, %d and the result get out at least', async (said, told) => {
    const app = rally({ name: 'chatty', version: '1', keys: KEYS })
    app.tool('chat', {}, (_args, io) => {
      for (let i = 0; i < said; i += 1) io.log('info', i)
      return 'That is all.'
    })
    const chatty = await RawSession.open(await begin(host, app))
    const messages = await new Events(await chatty.call('chat')).rest()
    expect(textOf(messages.at(-1))).toBe('That is all.')
    expect(messages.length - 1).toBeGreaterThanOrEqual(told)
  })

  test('the signal of a cancelled call aborts, and its stream ends without a result', async () => {
    const { app, begun, ended } = patientApp()
    const patient = await RawSession.open(await begin(host, app))
    const message = { jsonrpc: '2.0', id: 'it', method: 'tools/call', params: { name: 'patient' } }
    const events = new Events(await patient.post(message))
    await begun
    const params = { requestId: 'it', reason: 'No more.' }
    const other = await RawSession.open(await begin(host, app))
    await other.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params })
    await patient.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params })
    expect(await ended).toBe('cancelled')
    expect(await events.rest()).toMatchObject([{ method: 'notifications/message' }])
    expect((await patient.get({ 'Last-Event-ID': events.lastId })).status).toBe(204)
  })

  test('a client that never answers gets a result that says so, and the question is withdrawn', async () => {
    const hasty = await RawSession.open(await begin(host, olderApp({ legacy: { askMs: 30 } })))
    const events = new Events(await hasty.call('trip'))
    const messages = await events.rest()
    expect(messages.flatMap((message) => olderProblems(message, 'tools/call'))).toEqual([])
    const asked = messages.slice(0, 3).map(({ id }) => id)
    const withdrawn = messages.slice(3, 6).map(({ method, params }) => [method, params?.['requestId']])
    expect(withdrawn).toEqual(asked.map((id) => ['notifications/cancelled', id]))
    expect(messages[6]?.result).toMatchObject({ isError: true })
    expect(textOf(messages[6])).toBe('The client did not answer the questions "to", "said", "roots" within 30 ms.')
    expect((await hasty.post({ jsonrpc: '2.0', id: asked[0], result: {} })).status).toBe(400)
  })

  test('a whole call has its time too, however often it asks', async () => {
    const hasty = await RawSession.open(await begin(host, olderApp({ legacy: { callMs: 200 } })))
    const messages = await new Events(await hasty.call('outcome')).rest()
    expect(textOf(messages.at(-1))).toMatch(/^The client did not answer the question "q" within \d{1,3} ms\.$/)
  })

  test('a stream that nobody came back to is forgotten in its time', async () => {
    const forgetful = await RawSession.open(await begin(host, olderApp({ legacy: { keepMs: 20 } })))
    const events = new Events(await forgetful.call('report'))
    await events.rest()
    const status = async (): Promise<number> => (await forgetful.get({ 'Last-Event-ID': events.lastId })).status
    await expect.poll(status, { interval: 25, timeout: 5_000 }).toBe(400)
  })

  test('changes are sent on a stream of their own, and of resources only those that were subscribed to', async () => {
    const app = olderApp()
    const listener = await RawSession.open(await begin(host, app))
    const events = new Events(await listener.get())
    expect((await listener.json('resources/subscribe', { uri: 'note://plain' })).result).toEqual({})
    app.notify.resourceUpdated('note://other')
    app.notify.resourceUpdated('note://plain')
    app.notify.toolsChanged()
    const [updated, changed] = [await events.message(), await events.message()]
    expect(updated).toMatchObject({ method: 'notifications/resources/updated', params: { uri: 'note://plain' } })
    expect(changed).toEqual({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' })
    expect([updated, changed].flatMap((message) => olderProblems(message ?? {}))).toEqual([])
    await listener.json('resources/unsubscribe', { uri: 'note://plain' })
    app.notify.resourceUpdated('note://plain')
    app.tool('new', {}, () => 'It is new.')
    expect(await events.message()).toMatchObject({ method: 'notifications/tools/list_changed' })
    // Lost, and what is told meanwhile is told later.
    await events.lose()
    app.notify.promptsChanged()
    const again = new Events(await listener.get({ 'Last-Event-ID': events.lastId }))
    expect(await again.message()).toMatchObject({ method: 'notifications/prompts/list_changed' })
    await again.lose()
  })

  test('each message goes out on one stream only, and a session has four of them at most', async () => {
    const app = olderApp()
    const listener = await RawSession.open(await begin(host, app))
    const four = []
    for (let i = 0; i < 4; i += 1) four.push(new Events(await listener.get()))
    expect((await listener.get()).status).toBe(409)
    const first = Promise.race(four.map((events) => events.message()))
    app.notify.toolsChanged()
    expect(await first).toMatchObject({ method: 'notifications/tools/list_changed' })
    await Promise.all(four.map((events) => events.lose()))
    const room = async (): Promise<number> => {
      const response = await listener.get()
      await response.body?.cancel()
      return response.status
    }
    await expect.poll(room, { interval: 10, timeout: 5_000 }).toBe(200)
  })

  test('a stream of its own that is not kept here is a new one', async () => {
    const events = new Events(await session.get({ 'Last-Event-ID': `g${'A'.repeat(20)}:7` }))
    expect(await events.next()).toMatchObject({ id: expect.stringMatching(/^g[\w-]{20}:0$/), data: '' })
    await events.lose()
  })

  test('when the server goes down, streams of no call end, and calls that wait fail and say so', async () => {
    const app = olderApp()
    const leaving = await RawSession.open(await begin(host, app))
    const standalone = new Events(await leaving.get())
    const call = new Events(await leaving.call('deploy', { env: 'prod' }))
    expect(await call.message()).toMatchObject({ method: 'elicitation/create' })
    app.drain()
    expect(await standalone.rest()).toEqual([])
    app.interrupt()
    const [withdrawn, result] = await call.rest()
    expect(withdrawn).toMatchObject({ method: 'notifications/cancelled' })
    expect(result?.result).toMatchObject({ isError: true })
    expect(textOf(result)).toMatch(/: the server shut down before this call was done\./)
  })
})

test('a Node server that closes waits for its calls, and at the limit they fail and say so', async () => {
  const [node] = hosts
  const { app, begun, goOn, ended } = patientApp()
  app.tool('ask', {}, async (_args, io) => ((await io.confirm('sure', 'Sure?')) ? 'Yes' : 'No'))
  if (node === undefined) throw new Error('There is no host.')
  const { ask, close } = await node.open(app, { drainMs: 1_000 })
  const session = await RawSession.open(ask)
  const [patient, asking, standalone] = [
    new Events(await session.call('patient')),
    new Events(await session.call('ask')),
    new Events(await session.get()),
  ]
  await begun
  expect(await asking.message()).toMatchObject({ method: 'elicitation/create' })
  const closed = close()
  expect(await standalone.rest()).toEqual([])
  goOn()
  expect(await ended).toBe('done')
  expect(textOf((await patient.rest()).at(-1))).toBe('It is done.')
  expect(textOf((await asking.rest()).at(-1))).toMatch(/: the server shut down before/)
  await closed
})
