// SEP-1685 over HTTP, by raw clients: what is asked carries the call, and an answer brings it back.
import type { HttpRequest, Rally } from 'mcp-rally'
import { MemoryOnceStore } from 'mcp-rally'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { MemoryMailbox } from '../../src/server/memory-mailbox.ts'
import { olderApp } from './app.mjs'
import { accepted, answerTo, callThrough, errorTo, fetchLeg, legOf, openCarrying, STATE, stateOf } from './carried.ts'
import type { Ask, RawSession, Wired } from './raw.ts'
import { Events, hosts, RawSession as Session, textOf } from './raw.ts'

const REVISIONS = ['2025-11-25', '2025-06-18', '2025-03-26']

const FROZEN = { code: -32602, message: 'Invalid or expired requestState' }

const said = { role: 'assistant', content: { type: 'text', text: 'In short.' }, model: 'm' }

/** What a patient user answers to everything that the app asks. */
function answer({ method, params }: Wired): object {
  if (method === 'sampling/createMessage') return said
  if (method === 'roots/list') return { roots: [{ uri: 'file:///one' }] }
  const message = String(params?.['message'])
  if (message.startsWith('Deploy')) return accepted({ confirm: true })
  if (message.startsWith('How old')) return accepted({ age: 36 })
  if (message.startsWith('Where to')) return accepted({ choice: 'hills' })
  if (/^(Please|Look|Go on)/.test(message)) return accepted()
  return accepted({ name: 'Ada' })
}

async function refusal(response: Response): Promise<void> {
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ error: FROZEN })
}

/** As they say themselves. */
function authenticate(request: HttpRequest): { principal: string } {
  return { principal: request.header('x-user') ?? 'nobody' }
}

describe.each(hosts)('$name', (host) => {
  let app: Rally
  let ask: Ask
  let close: () => Promise<void>
  let session: RawSession
  const effects: string[] = []
  let gate: Promise<void>
  let open: () => void

  const newApp = (options: object = {}): Rally => {
    const made = olderApp(options)
    made.tool('count', { input: z.object({ by: z.string() }) }, async ({ by }, io) => {
      await io.step('before', () => void effects.push(`${by} before`))
      io.progress(1, 2, 'asking')
      const sure = await io.confirm('sure', 'Sure?')
      await io.step('after', () => void effects.push(`${by} after`))
      io.progress(2, 2, 'done')
      io.log('warning', 'It is done.')
      return sure ? `Counted ${effects.filter((each) => each.startsWith(by)).length}.` : 'Left as it was.'
    })
    made.tool('hold', {}, async (_args, io) => {
      await io.confirm('sure', 'Sure?')
      effects.push('holding')
      await new Promise((resolve) => io.signal.addEventListener('abort', resolve, { once: true }))
      effects.push('stopped')
    })
    made.tool('late', {}, async (_args, io) => {
      io.log('warning', 'Soon.')
      await io.step('gate', () => gate)
      return (await io.confirm('sure', 'Sure?')) ? 'Yes.' : 'No.'
    })
    made.tool('large', {}, async (_args, io) => {
      await io.step('much', () => 'x'.repeat(48_900))
      return (await io.confirm('sure', 'Sure?')) ? 'Yes.' : 'No.'
    })
    made.tool('tell_much', {}, async (_args, io) => ((await io.confirm('sure', 'Sure?')) ? 'y'.repeat(5_000) : ''))
    return made
  }

  beforeEach(async () => {
    effects.length = 0
    gate = new Promise((resolve) => {
      open = resolve
    })
    app = newApp()
    ;({ ask, close } = await host.open(app))
    session = await openCarrying(ask)
  })
  afterEach(() => close())

  const asked = async (tool = 'deploy', args: object = { env: 'x' }): Promise<{ question: Wired; lastId: string }> => {
    const { last, lastId } = await legOf(await session.call(tool, args))
    if (last?.method === undefined) throw new Error(`Nothing was asked: ${JSON.stringify(last)}`)
    return { question: last, lastId }
  }

  describe.each(REVISIONS)('in %s', (revision) => {
    test('a question has a state, an event id and a retry, its stream ends, and the answer is fetched by GET', async () => {
      const carrying = await openCarrying(ask, revision)
      const leg = await legOf(await carrying.call('workspace'))
      expect(leg.last).toMatchObject({ method: 'roots/list', params: { _meta: { [STATE]: expect.any(String) } } })
      expect(leg.events.at(-1)).toMatchObject({ retry: expect.stringMatching(/^\d+$/), id: expect.any(String) })
      const response = await carrying.post(answerTo(leg.last, { roots: [{ uri: 'file:///one' }] }))
      expect(response.status).toBe(202)
      const { last } = await fetchLeg(carrying, leg.lastId)
      expect(last).toMatchObject({ id: 1, result: { content: [{ text: 'file:///one' }] } })
    })

    test.each([
      ['without the capability', {}],
      ['with another scope', { state: { scopes: ['tool'] } }],
      ['with a capability that is none', { state: true }],
      ['with scopes that are none', { state: { scopes: 'request' } }],
    ])('a client %s sees no state, and its stream stays', async (_what, more) => {
      const plain = await Session.open(ask, { revision, capabilities: { roots: {}, ...more } })
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
    const legs = await callThrough(session, tool, answer, args)
    const asks = legs.flatMap(({ messages }) => messages.filter(({ id, method }) => id !== undefined && method))
    expect(textOf(legs.at(-1)?.last)).toMatch(says)
    expect(asks).toHaveLength(questions)
    expect(new Set(asks.map(stateOf)).size).toBe(questions)
    expect(new Set(asks.map(({ id }) => id)).size).toBe(questions)
  })

  test('carries prompts and resources too', async () => {
    const prompt = await legOf(await session.request('prompts/get', { name: 'brief', arguments: { topic: 'tea' } }))
    await session.post(answerTo(prompt.last, accepted({ context: 'school' })))
    expect((await fetchLeg(session, prompt.lastId)).last).toMatchObject({ id: 1, result: { messages: [{}] } })
    const resource = await legOf(await session.request('resources/read', { uri: 'note://by/7' }))
    await session.post(answerTo(resource.last, accepted({ context: 'school' })))
    expect((await fetchLeg(session, resource.lastId)).last).toMatchObject({ id: 2, result: { contents: [{}] } })
  })

  test.each([
    ['decline', /The user said decline/],
    ['cancel', /The user said cancel/],
  ])('tells a %s to the handler', async (action, says) => {
    const legs = await callThrough(session, 'outcome', () => ({ action }))
    expect(textOf(legs.at(-1)?.last)).toMatch(says)
  })

  test('asks again, with a state that is another one, where an answer does not fit', async () => {
    let times = 0
    const legs = await callThrough(session, 'survey', (question) => {
      times += 1
      return times === 1 ? accepted({ name: 'nobody' }) : answer(question)
    })
    expect(legs[1]?.last?.params?.['message']).toContain('must be the name of somebody')
    expect(textOf(legs.at(-1)?.last)).toBe('Ada is 36.')
  })

  test('an error in place of an answer ends the call with its reason', async () => {
    const { question, lastId } = await asked()
    expect((await session.post(errorTo(question, 'The user has left.'))).status).toBe(202)
    const { last } = await fetchLeg(session, lastId)
    expect(last?.result).toMatchObject({ isError: true })
    expect(textOf(last)).toBe('The client could not answer the question "confirm": The user has left.')
  })

  test('each step runs once, and what a leg tells is told in its order and once', async () => {
    const first = await legOf(
      await session.request('tools/call', { name: 'count', arguments: { by: 'A' }, _meta: { progressToken: 7 } }),
    )
    expect(first.messages.map(({ method }) => method)).toEqual(['notifications/progress', 'elicitation/create'])
    await session.post(answerTo(first.last, accepted({ confirm: true })))
    const second = await fetchLeg(session, first.lastId)
    expect(second.messages).toMatchObject([
      { method: 'notifications/progress', params: { progressToken: 7, progress: 2 } },
      { method: 'notifications/message', params: { level: 'warning', data: 'It is done.' } },
      { id: 1, result: { content: [{ text: 'Counted 2.' }] } },
    ])
    expect(effects).toEqual(['A before', 'A after'])
    const [, middle] = second.events
    expect((await fetchLeg(session, middle?.id ?? '')).messages).toEqual(second.messages.slice(1))
  })

  test('who comes back before the answer waits for what comes of it', async () => {
    const { question, lastId } = await asked()
    const waiting = fetchLeg(session, lastId)
    const other = await Session.open(ask)
    expect((await other.json('ping')).result).toEqual({})
    await session.post(answerTo(question, accepted({ confirm: true })))
    expect(textOf((await waiting).last)).toMatch(/^Deployed/)
  })

  test('the same answer twice does the work once', async () => {
    const { question, lastId } = await asked('count', { by: 'B' })
    const response = answerTo(question, accepted({ confirm: true }))
    const statuses = await Promise.all([session.post(response), session.post(response)])
    statuses.push(await session.post(response))
    expect(statuses.map(({ status }) => status)).toEqual([202, 202, 202])
    expect(textOf((await fetchLeg(session, lastId)).last)).toBe('Counted 2.')
    expect(effects).toEqual(['B before', 'B after'])
  })

  test('an answer that differs from the one that was taken up changes nothing', async () => {
    const { question, lastId } = await asked('count', { by: 'C' })
    await session.post(answerTo(question, accepted({ confirm: true })))
    await session.post(answerTo(question, accepted({ confirm: false })))
    expect(textOf((await fetchLeg(session, lastId)).last)).toBe('Counted 2.')
  })

  test('with single-use states an answer that differs is refused, and the same one is not', async () => {
    const mailbox = new MemoryMailbox()
    // Forgets at once, so that only the single use is left to tell.
    const forgetful = {
      leave: async () => true,
      after: mailbox.after.bind(mailbox),
      watch: mailbox.watch.bind(mailbox),
    }
    const strict = newApp({ once: new MemoryOnceStore(), legacy: { mailbox: forgetful } })
    const opened = await host.open(strict)
    const carrying = await openCarrying(opened.ask)
    const { last } = await legOf(await carrying.call('count', { by: 'D' }))
    const statusOf = async (result: object): Promise<number> => (await carrying.post(answerTo(last, result))).status
    expect(await statusOf(accepted({ confirm: true }))).toBe(202)
    expect(await statusOf(accepted({ confirm: true }))).toBe(202)
    expect(await statusOf(accepted({ confirm: false }))).toBe(400)
    expect(effects).toEqual(['D before', 'D after'])
    await opened.close()
  })

  describe('refuses', () => {
    const yes = accepted({ confirm: true })

    test.each([
      ['that is no string', 7],
      ['that is empty', ''],
      ['that is none', 'sr1.AAAA'],
      ['that is too large', `sr1.${'A'.repeat(70_000)}`],
      ['that is null', null],
    ])('a state %s', async (_what, state) => {
      const { question } = await asked()
      await refusal(await session.post(answerTo(question, yes, state as string)))
    })

    test('a state of which one character is another', async () => {
      const { question } = await asked()
      const state = stateOf(question) ?? ''
      const at = Math.floor(state.length / 2)
      const other = state[at] === 'A' ? 'B' : 'A'
      await refusal(await session.post(answerTo(question, yes, state.slice(0, at) + other + state.slice(at + 1))))
    })

    test('a state in an error like one in a result', async () => {
      const { question } = await asked()
      await refusal(await session.post(errorTo(question, 'No.', 'sr1.AAAA')))
    })

    test('a state of another question', async () => {
      const one = await asked()
      const other = await asked()
      await refusal(await session.post(answerTo(one.question, yes, stateOf(other.question))))
    })

    test('a state of another session, and of one that carries none', async () => {
      const { question } = await asked()
      await refusal(await (await openCarrying(ask)).post(answerTo(question, yes)))
      await refusal(await (await Session.open(ask)).post(answerTo(question, yes)))
    })

    test('what is a token of another purpose: the session, the event, the state of a modern round', async () => {
      const { question, lastId } = await asked()
      for (const token of [session.id, lastId]) await refusal(await session.post(answerTo(question, yes, token)))
      const modern = await app.dispatch({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: {
          name: 'deploy',
          arguments: { env: 'x' },
          _meta: {
            'io.modelcontextprotocol/protocolVersion': '2026-07-28',
            'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
          },
        },
      })
      const { result } = JSON.parse(modern?.text ?? '') as { result: { requestState: string } }
      await refusal(await session.post(answerTo(question, yes, result.requestState)))
    })

    test('a state of a server with other keys, and one of another audience', async () => {
      const { question } = await asked()
      for (const options of [{ keys: ['a secret of somebody else, long enough'] }, { audience: 'elsewhere' }]) {
        const other = await host.open(newApp(options))
        const carrying = await openCarrying(other.ask)
        await refusal(await carrying.post(answerTo(question, yes)))
        await other.close()
      }
    })

    test('a batch as a whole in which one state is bad', async () => {
      const old = await openCarrying(ask, '2025-03-26')
      const { last } = await legOf(await old.call('workspace'))
      const good = answerTo(last, { roots: [] })
      await refusal(await old.post([good, answerTo(last, { roots: [] }, 'sr1.AAAA')]))
      expect((await old.post([good])).status).toBe(202)
    })

    test('a response without the state, as nobody waits for it', async () => {
      const { question } = await asked()
      const response = await session.answer(question, yes)
      expect(response.status).toBe(400)
      expect(await response.json()).toMatchObject({ error: { code: -32600 } })
    })

    test.each([
      ['of another session', async () => (await openCarrying(ask)).id],
      ['that is none', async () => 'ev1.AAAA'],
    ])('a Last-Event-ID %s', async (_what, tokenOf) => {
      const response = await session.get({ 'Last-Event-ID': await tokenOf() })
      expect(response.status).toBe(400)
    })

    test('a Last-Event-ID of another session of the same client', async () => {
      const { lastId } = await asked()
      expect((await (await openCarrying(ask)).get({ 'Last-Event-ID': lastId })).status).toBe(400)
    })
  })

  test('a state and an event id are good for their principal alone', async () => {
    const own = await host.open(newApp(), { authenticate })
    const ada = await openCarrying(own.ask, '2025-11-25', { 'x-user': 'ada' })
    const leg = await legOf(await ada.call('deploy', { env: 'x' }))
    // A session is its principal's too, so it is refused before its states are looked at.
    const stolen = await ada.post(answerTo(leg.last, accepted({ confirm: true })), { 'x-user': 'bob' })
    expect(stolen.status).toBe(404)
    expect((await ada.post(answerTo(leg.last, accepted({ confirm: true })))).status).toBe(202)
    expect((await ada.get({ 'Last-Event-ID': leg.lastId, 'x-user': 'bob' })).status).toBe(404)
    expect(textOf((await fetchLeg(ada, leg.lastId)).last)).toMatch(/^Deployed/)
    await own.close()
  })

  test('a state is good for its time alone', async () => {
    // Of an instance whose clock is two minutes behind. A minute is forgiven.
    const real = Date.now
    Date.now = () => real() - 120_000
    const behind = newApp({ ttl: 1 })
    Date.now = real
    const brief = await host.open(behind)
    const carrying = await openCarrying(brief.ask)
    const leg = await legOf(await carrying.call('deploy', { env: 'x' }))
    const response = await carrying.at(ask).post(answerTo(leg.last, accepted({ confirm: true })))
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: FROZEN })
    expect((await carrying.at(ask).get({ 'Last-Event-ID': leg.lastId })).status).toBe(400)
    expect((await carrying.post(answerTo(leg.last, accepted({ confirm: true })))).status).toBe(202)
    await brief.close()
  })

  test('a state that grows too large fails the call, and says of what', async () => {
    const last = await session.json('tools/call', { name: 'large' })
    expect(last).toMatchObject({ id: 1, result: { isError: true } })
    expect(textOf(last)).toMatch(/sealed state .* at most 65536 are allowed.*"much"/)
  })

  test('a client that takes no events cannot be asked, and is told so', async () => {
    const response = await session.call('deploy', { env: 'x' }, { Accept: 'application/json' })
    expect(textOf((await response.json()) as Wired)).toContain('there is no event stream to the client')
  })

  test('in a batch the connection carries, because one stream cannot be gone on with for two calls', async () => {
    const old = await openCarrying(ask, '2025-03-26')
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'workspace' } }
    const events = new Events(await old.post([call, { jsonrpc: '2.0', id: 2, method: 'ping' }]))
    const messages = [await events.message(), await events.message()]
    const question = messages.find((message) => message?.method === 'roots/list')
    expect(stateOf(question)).toBeUndefined()
    expect((await old.answer(question, { roots: [] })).status).toBe(202)
    expect(await events.rest()).toMatchObject([{ id: 1 }])
  })

  test('a call that was cancelled while it waited nowhere does not go on', async () => {
    const { question, lastId } = await asked('count', { by: 'E' })
    const params = { requestId: 1 }
    expect((await session.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params })).status).toBe(202)
    expect((await session.post(answerTo(question, accepted({ confirm: true })))).status).toBe(202)
    expect(effects).toEqual(['E before'])
    const controller = new AbortController()
    const events = new Events(await session.get({ 'Last-Event-ID': lastId }, controller.signal))
    expect((await events.next())?.data ?? '').toBe('')
    controller.abort()
  })

  test('a call that has been taken up is cancelled where it runs', async () => {
    const { question } = await asked('hold', {})
    const answered = session.post(answerTo(question, accepted({ confirm: true })))
    await expect.poll(() => effects).toEqual(['holding'])
    await session.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } })
    await expect.poll(() => effects).toEqual(['holding', 'stopped'])
    expect((await answered).status).toBe(202)
  })

  test('a response that the mailbox of the process cannot hold is told of', async () => {
    const small = newApp({ legacy: { mailbox: new MemoryMailbox({ maxBytes: 3_000 }) } })
    const opened = await host.open(small)
    const carrying = await openCarrying(opened.ask)
    const { last, lastId } = await legOf(await carrying.call('tell_much'))
    expect((await carrying.post(answerTo(last, accepted({ confirm: true })))).status).toBe(202)
    const { last: told } = await fetchLeg(carrying, lastId)
    expect(told).toMatchObject({ id: 1, error: { code: -32603, message: expect.stringContaining('too large') } })
    await opened.close()
  })

  test('an answer is a 503 where what comes of it cannot be left, and goes on when it is sent again', async () => {
    const inner = new MemoryMailbox()
    let isDown = true
    const flaky = {
      leave: (...args: Parameters<MemoryMailbox['leave']>) =>
        isDown ? Promise.reject(new Error('The store is down.')) : inner.leave(...args),
      after: inner.after.bind(inner),
      watch: inner.watch.bind(inner),
    }
    const opened = await host.open(newApp({ legacy: { mailbox: flaky } }))
    const carrying = await openCarrying(opened.ask)
    const { last, lastId } = await legOf(await carrying.call('workspace'))
    const response = answerTo(last, { roots: [{ uri: 'file:///one' }] })
    expect((await carrying.post(response)).status).toBe(503)
    isDown = false
    expect((await carrying.post(response)).status).toBe(202)
    expect(textOf((await fetchLeg(carrying, lastId)).last)).toBe('file:///one')
    await opened.close()
  })

  test('an answer is taken up also where the instance that left its question does not know yet that it is there', async () => {
    const inner = new MemoryMailbox()
    let known: Promise<void> | undefined
    let know = (): void => {}
    const slow = {
      leave: async (...args: Parameters<MemoryMailbox['leave']>) => {
        const isFirst = await inner.leave(...args)
        await known
        return isFirst
      },
      after: inner.after.bind(inner),
      watch: inner.watch.bind(inner),
    }
    const opened = await host.open(newApp({ legacy: { mailbox: slow } }))
    const carrying = await openCarrying(opened.ask)
    const name = await legOf(await carrying.call('survey'))
    known = new Promise((resolve) => {
      know = resolve
    })
    const answers = [carrying.post(answerTo(name.last, accepted({ name: 'Ada' })))]
    const age = await fetchLeg(carrying, name.lastId)
    answers.push(carrying.post(answerTo(age.last, accepted({ age: 36 }))))
    expect(textOf((await fetchLeg(carrying, age.lastId)).last)).toBe('Ada is 36.')
    know()
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([202, 202])
    await opened.close()
  })

  test('whatever comes in the place of a response and its state is answered', async () => {
    const { question } = await asked()
    const good = stateOf(question)
    const anything = fc.jsonValue({ maxDepth: 3 })
    const or = (one: unknown): fc.Arbitrary<unknown> => fc.oneof(fc.constant(one), anything)
    const holder = fc.record({ _meta: fc.oneof(anything, fc.record({ [STATE]: or('sr1.AAAA') })) })
    const response = fc.record(
      {
        jsonrpc: or('2.0'),
        id: or(question.id),
        result: fc.oneof(anything, holder),
        error: fc.record({ data: holder }),
      },
      { requiredKeys: [] },
    )
    await fc.assert(
      fc.asyncProperty(response, async (message) => {
        expect([202, 400]).toContain((await session.post(message)).status)
      }),
      { numRuns: 100 },
    )
    expect((await session.post(answerTo(question, accepted({ confirm: true }), good))).status).toBe(202)
  })

  test('a codec of the user seals states and event ids too, and takes neither for the other', async () => {
    const codec = {
      seal: async (text: string) => Buffer.from(text).toString('base64url'),
      open: async (token: string) => Buffer.from(token, 'base64url').toString('utf8'),
    }
    const opened = await host.open(newApp({ codec, keys: undefined }))
    const carrying = await openCarrying(opened.ask)
    const leg = await legOf(await carrying.call('workspace'))
    const wrong = await carrying.post(answerTo(leg.last, { roots: [] }, leg.lastId))
    expect(await wrong.json()).toMatchObject({ error: FROZEN })
    const stateAsEvent = await carrying.get({ 'Last-Event-ID': stateOf(leg.last) ?? '' })
    expect(stateAsEvent.status).toBe(400)
    expect((await carrying.post(answerTo(leg.last, { roots: [{ uri: 'file:///two' }] }))).status).toBe(202)
    expect(textOf((await fetchLeg(carrying, leg.lastId)).last)).toBe('file:///two')
    await opened.close()
  })

  test('a state is not in what the handler sees of an answer', async () => {
    const seen: unknown[] = []
    app.tool('see', {}, async (_args, io) => {
      seen.push(
        await io.sample('said', { messages: [{ role: 'user', content: { type: 'text', text: 'Hi' } }], maxTokens: 9 }),
      )
      return 'Seen.'
    })
    await callThrough(session, 'see', () => said)
    expect(seen).toHaveLength(1)
    expect(JSON.stringify(seen)).not.toContain(STATE)
  })

  test('a stream that was lost before the question is gone on with where it was', async () => {
    const events = new Events(await session.call('late'))
    expect(await events.message()).toMatchObject({ method: 'notifications/message' })
    await events.lose()
    open()
    const leg = await fetchLeg(session, events.lastId)
    expect(leg.last).toMatchObject({ method: 'elicitation/create' })
    await session.post(answerTo(leg.last, accepted({ confirm: true })))
    expect(textOf((await fetchLeg(session, leg.lastId)).last)).toBe('Yes.')
  })
})
