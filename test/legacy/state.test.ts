// SEP-1685 over HTTP, by raw clients: what is asked carries the call, and an answer brings it back.
import { describe, expect, test } from 'vitest'
import {
  accepted,
  answerTo,
  callThrough,
  errorTo,
  fetchSegment,
  readSegment,
  openCarrying,
  STATE,
  stateOf,
} from './carried.ts'
import { answer, askedBy, useCarrying, said } from './carrying-app.ts'
import type { Wired } from './raw.ts'
import { Events, hosts, RawSession, textOf } from './raw.ts'

/** On a machine that has other things to do. */
const SOON = { timeout: 10_000 }

const REVISIONS = ['2025-11-25', '2025-06-18', '2025-03-26']

describe.each(hosts)('$name', (host) => {
  const on = useCarrying(host)

  describe.each(REVISIONS)('in %s', (revision) => {
    test('a question has a state, an event id and a retry, its stream ends, and the answer is fetched by GET', async () => {
      const carrying = await openCarrying(on.ask, revision)
      const segment = await readSegment(await carrying.call('workspace'))
      expect(segment.last).toMatchObject({ method: 'roots/list', params: { _meta: { [STATE]: expect.any(String) } } })
      expect(segment.events.at(-1)).toMatchObject({ retry: expect.stringMatching(/^\d+$/), id: expect.any(String) })
      const response = await carrying.post(answerTo(segment.last, { roots: [{ uri: 'file:///one' }] }))
      expect(response.status).toBe(202)
      const { last } = await fetchSegment(carrying, segment.lastId)
      expect(last).toMatchObject({ id: 1, result: { content: [{ text: 'file:///one' }] } })
    })

    test.each([
      ['without the capability', {}],
      ['with another scope', { state: { scopes: ['tool'] } }],
      ['with a capability that is none', { state: true }],
      ['with scopes that are none', { state: { scopes: 'request' } }],
    ])('a client %s sees no state, and its stream stays', async (_what, more) => {
      const plain = await RawSession.open(on.ask, { revision, capabilities: { roots: {}, ...more } })
      const events = new Events(await plain.call('workspace'))
      const question = await events.message()
      expect(JSON.stringify(question)).not.toContain('state')
      expect((await plain.answer(question, { roots: [] })).status).toBe(202)
      expect(await events.rest()).toMatchObject([{ id: 1, result: { content: [{ text: '' }] } }])
    })
  })

  test.each([
    ['a form between two steps', 'deploy', { env: 'x' }, /^Deployed plan (\d) of \1 to x$/, 1],
    ['a model', 'summarize', {}, /^In short\.$/, 1],
    ['a page to visit that is asked for twice', 'sign_in', { looks: 2 }, /^Signed in\.$/, 2],
    ['several rounds', 'survey', {}, /^Ada is 36\.$/, 2],
    ['several questions at once, one by one', 'trip', {}, /^hills, In short\., 1$/, 3],
    ['rounds by hand', 'wizard', {}, /^Ada, Ada$/, 2],
    ['a page by hand', 'look', {}, /^Was told accept\.$/, 1],
  ])('carries %s', async (_what, tool, args, says, questions) => {
    const segments = await callThrough(on.session, tool, answer, args)
    const asks = segments.flatMap(({ messages }) => messages.filter(({ id, method }) => id !== undefined && method))
    expect(textOf(segments.at(-1)?.last)).toMatch(says)
    expect(asks).toHaveLength(questions)
    expect(new Set(asks.map(stateOf)).size).toBe(questions)
    expect(new Set(asks.map(({ id }) => id)).size).toBe(questions)
  })

  test('carries prompts and resources too', async () => {
    const prompt = await readSegment(
      await on.session.request('prompts/get', { name: 'brief', arguments: { topic: 'tea' } }),
    )
    await on.session.post(answerTo(prompt.last, accepted({ context: 'school' })))
    expect((await fetchSegment(on.session, prompt.lastId)).last).toMatchObject({ id: 1, result: { messages: [{}] } })
    const resource = await readSegment(await on.session.request('resources/read', { uri: 'note://by/7' }))
    await on.session.post(answerTo(resource.last, accepted({ context: 'school' })))
    expect((await fetchSegment(on.session, resource.lastId)).last).toMatchObject({ id: 2, result: { contents: [{}] } })
  })

  test.each([
    ['decline', /The user said decline/],
    ['cancel', /The user said cancel/],
  ])('tells a %s to the handler', async (action, says) => {
    const segments = await callThrough(on.session, 'outcome', () => ({ action }))
    expect(textOf(segments.at(-1)?.last)).toMatch(says)
  })

  test('asks again, with a state that is another one, where an answer does not fit', async () => {
    let times = 0
    const segments = await callThrough(on.session, 'survey', (question) => {
      times += 1
      return times === 1 ? accepted({ name: 'nobody' }) : answer(question)
    })
    expect(segments[1]?.last?.params?.['message']).toContain('must be the name of somebody')
    expect(textOf(segments.at(-1)?.last)).toBe('Ada is 36.')
  })

  test('an error in place of an answer ends the call with its reason', async () => {
    const { question, lastId } = await askedBy(on.session)
    expect((await on.session.post(errorTo(question, 'The user has left.'))).status).toBe(202)
    const { last } = await fetchSegment(on.session, lastId)
    expect(last?.result).toMatchObject({ isError: true })
    expect(textOf(last)).toBe('The client could not answer the question "confirm": The user has left.')
  })

  test('progress only rises, over all segments of a call', async () => {
    const params = { name: 'climb', arguments: {}, _meta: { progressToken: 7 } }
    const segments = [await readSegment(await on.session.request('tools/call', params))]
    for (let segment = segments[0]; segment?.last?.method !== undefined; segment = segments.at(-1)) {
      await on.session.post(answerTo(segment.last, accepted({ confirm: true })))
      segments.push(await fetchSegment(on.session, segment.lastId))
    }
    const reported = segments.map(({ messages }) =>
      messages.flatMap(({ method, params: { progress } = {} }) =>
        method === 'notifications/progress' ? progress : [],
      ),
    )
    expect(reported).toEqual([[1, 3], [4, 5], [6], []])
    expect(textOf(segments.at(-1)?.last)).toBe('Climbed.')
  })

  test('each step runs once, and the messages of a segment arrive in order and once', async () => {
    const first = await readSegment(
      await on.session.request('tools/call', { name: 'count', arguments: { by: 'A' }, _meta: { progressToken: 7 } }),
    )
    expect(first.messages.map(({ method }) => method)).toEqual(['notifications/progress', 'elicitation/create'])
    await on.session.post(answerTo(first.last, accepted({ confirm: true })))
    const second = await fetchSegment(on.session, first.lastId)
    expect(second.messages).toMatchObject([
      { method: 'notifications/progress', params: { progressToken: 7, progress: 2 } },
      { method: 'notifications/message', params: { level: 'warning', data: 'It is done.' } },
      { id: 1, result: { content: [{ text: 'Counted 2.' }] } },
    ])
    expect(on.made.effects).toEqual(['A before', 'A after'])
    const [, middle] = second.events
    expect((await fetchSegment(on.session, middle?.id ?? '')).messages).toEqual(second.messages.slice(1))
  })

  test('a client that reconnects before the answer waits for what follows it', async () => {
    const { question, lastId } = await askedBy(on.session)
    const waiting = fetchSegment(on.session, lastId)
    const other = await RawSession.open(on.ask)
    expect((await other.json('ping')).result).toEqual({})
    await on.session.post(answerTo(question, accepted({ confirm: true })))
    expect(textOf((await waiting).last)).toMatch(/^Deployed/)
  })

  test('a state that grows too large fails the call, and says of what', async () => {
    const last = await on.session.json('tools/call', { name: 'large' })
    expect(last).toMatchObject({ id: 1, result: { isError: true } })
    expect(textOf(last)).toMatch(/^The call state has \d+ bytes, at most 65536 are allowed.*"much"/)
  })

  test('a client that takes no events cannot be asked, and gets an error that says so', async () => {
    const response = await on.session.call('deploy', { env: 'x' }, { Accept: 'application/json' })
    expect(textOf((await response.json()) as Wired)).toContain('there is no event stream to the client')
  })

  test('in a batch the connection carries the calls, because one stream cannot resume two', async () => {
    const old = await openCarrying(on.ask, '2025-03-26')
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'workspace' } }
    const events = new Events(await old.post([call, { jsonrpc: '2.0', id: 2, method: 'ping' }]))
    const messages = [await events.message(), await events.message()]
    const question = messages.find((message) => message?.method === 'roots/list')
    expect(stateOf(question)).toBeUndefined()
    expect((await old.answer(question, { roots: [] })).status).toBe(202)
    expect(await events.rest()).toMatchObject([{ id: 1 }])
  })

  test('a call that was cancelled while it waited nowhere does not go on', async () => {
    const { question, lastId } = await askedBy(on.session, 'count', { by: 'E' })
    const params = { requestId: 1 }
    expect((await on.session.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params })).status).toBe(202)
    expect((await on.session.post(answerTo(question, accepted({ confirm: true })))).status).toBe(202)
    expect(on.made.effects).toEqual(['E before'])
    const controller = new AbortController()
    const events = new Events(await on.session.get({ 'Last-Event-ID': lastId }, controller.signal))
    expect((await events.next())?.data ?? '').toBe('')
    controller.abort()
  })

  test('a resumed call is cancelled on the instance that runs it', async () => {
    const { question } = await askedBy(on.session, 'hold', {})
    const answered = on.session.post(answerTo(question, accepted({ confirm: true })))
    await expect.poll(() => on.made.effects, SOON).toEqual(['holding'])
    await on.session.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } })
    await expect.poll(() => on.made.effects, SOON).toEqual(['holding', 'stopped'])
    expect((await answered).status).toBe(202)
  })

  test('a completed visit is reported under the id of its question', async () => {
    const segments = await callThrough(on.session, 'sign_in', answer, { looks: 2 })
    const ids = segments.map(({ last }) => last?.params?.['elicitationId']).filter(Boolean)
    expect(new Set(ids).size).toBe(1)
    expect(segments.at(-1)?.messages[0]).toMatchObject({
      method: 'notifications/elicitation/complete',
      params: { elicitationId: ids[0] },
    })
  })

  test('a state is not in what the handler sees of an answer', async () => {
    const seen: unknown[] = []
    on.app.tool('see', {}, async (_args, io) => {
      seen.push(
        await io.sample('said', { messages: [{ role: 'user', content: { type: 'text', text: 'Hi' } }], maxTokens: 9 }),
      )
      return 'Seen.'
    })
    await callThrough(on.session, 'see', () => said)
    expect(seen).toHaveLength(1)
    expect(JSON.stringify(seen)).not.toContain(STATE)
  })

  test('a stream that was lost before the question is resumed where it was', async () => {
    const events = new Events(await on.session.call('late'))
    expect(await events.message()).toMatchObject({ method: 'notifications/message' })
    await events.lose()
    on.made.open()
    const segment = await fetchSegment(on.session, events.lastId)
    expect(segment.last).toMatchObject({ method: 'elicitation/create' })
    await on.session.post(answerTo(segment.last, accepted({ confirm: true })))
    expect(textOf((await fetchSegment(on.session, segment.lastId)).last)).toBe('Yes.')
  })
})
