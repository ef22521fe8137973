// What a client may not carry: every state and event id that is not its own, not whole, or not in time.
import type { HttpRequest } from 'mcp-rally'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { accepted, answerTo, errorTo, fetchSegment, readSegment, openCarrying, STATE, stateOf } from './carried.ts'
import { askedBy, useCarrying } from './carrying-app.ts'
import { hosts, RawSession, textOf } from './raw.ts'

const FROZEN = { code: -32602, message: 'Invalid or expired requestState' }

async function refusal(response: Response): Promise<void> {
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ error: FROZEN })
}

/** As they say themselves. */
function authenticate(request: HttpRequest): { principal: string } {
  return { principal: request.header('x-user') ?? 'nobody' }
}

describe.each(hosts)('$name', (host) => {
  const on = useCarrying(host)

  describe('refuses', () => {
    const yes = accepted({ confirm: true })

    test.each([
      ['that is no string', 7],
      ['that is empty', ''],
      ['that is none', 'sr1.AAAA'],
      ['that is too large', `sr1.${'A'.repeat(70_000)}`],
      ['that is null', null],
    ])('a state %s', async (_what, state) => {
      const { question } = await askedBy(on.session)
      await refusal(await on.session.post(answerTo(question, yes, state as string)))
    })

    test('a state of which one character is another', async () => {
      const { question } = await askedBy(on.session)
      const state = stateOf(question) ?? ''
      const at = Math.floor(state.length / 2)
      const other = state[at] === 'A' ? 'B' : 'A'
      await refusal(await on.session.post(answerTo(question, yes, state.slice(0, at) + other + state.slice(at + 1))))
    })

    test('a state in an error like one in a result', async () => {
      const { question } = await askedBy(on.session)
      await refusal(await on.session.post(errorTo(question, 'No.', 'sr1.AAAA')))
    })

    test('a state of another question', async () => {
      const one = await askedBy(on.session)
      const other = await askedBy(on.session)
      await refusal(await on.session.post(answerTo(one.question, yes, stateOf(other.question))))
    })

    test('a state of another session, and of one that carries none', async () => {
      const { question } = await askedBy(on.session)
      await refusal(await (await openCarrying(on.ask)).post(answerTo(question, yes)))
      await refusal(await (await RawSession.open(on.ask)).post(answerTo(question, yes)))
    })

    test('what is a token of another purpose: the session, the event, the state of a modern round', async () => {
      const { question, lastId } = await askedBy(on.session)
      for (const token of [on.session.id, lastId]) await refusal(await on.session.post(answerTo(question, yes, token)))
      const modern = await on.app.dispatch({
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
      await refusal(await on.session.post(answerTo(question, yes, result.requestState)))
    })

    test('a state of a server with other keys, and one of another audience', async () => {
      const { question } = await askedBy(on.session)
      for (const options of [{ keys: ['a secret of somebody else, long enough'] }, { audience: 'elsewhere' }]) {
        const other = await host.open(on.made.app(options))
        const carrying = await openCarrying(other.ask)
        await refusal(await carrying.post(answerTo(question, yes)))
        await other.close()
      }
    })

    test('a batch as a whole in which one state is bad', async () => {
      const old = await openCarrying(on.ask, '2025-03-26')
      const { last } = await readSegment(await old.call('workspace'))
      const good = answerTo(last, { roots: [] })
      await refusal(await old.post([good, answerTo(last, { roots: [] }, 'sr1.AAAA')]))
      expect((await old.post([good])).status).toBe(202)
    })

    test('a response without the state, as nobody waits for it', async () => {
      const { question } = await askedBy(on.session)
      const response = await on.session.answer(question, yes)
      expect(response.status).toBe(400)
      expect(await response.json()).toMatchObject({ error: { code: -32600 } })
    })

    test.each([
      ['of another session', async () => (await openCarrying(on.ask)).id],
      ['that is none', async () => 'ev1.AAAA'],
    ])('a Last-Event-ID %s', async (_what, tokenOf) => {
      const response = await on.session.get({ 'Last-Event-ID': await tokenOf() })
      expect(response.status).toBe(400)
    })

    test('a Last-Event-ID of another session of the same client', async () => {
      const { lastId } = await askedBy(on.session)
      expect((await (await openCarrying(on.ask)).get({ 'Last-Event-ID': lastId })).status).toBe(400)
    })
  })

  test('a state and an event id are good for their principal alone', async () => {
    const own = await host.open(on.made.app(), { authenticate })
    const ada = await openCarrying(own.ask, '2025-11-25', { 'x-user': 'ada' })
    const segment = await readSegment(await ada.call('deploy', { env: 'x' }))
    // A session is its principal's too, so it is refused before its states are looked at.
    const stolen = await ada.post(answerTo(segment.last, accepted({ confirm: true })), { 'x-user': 'bob' })
    expect(stolen.status).toBe(404)
    expect((await ada.post(answerTo(segment.last, accepted({ confirm: true })))).status).toBe(202)
    expect((await ada.get({ 'Last-Event-ID': segment.lastId, 'x-user': 'bob' })).status).toBe(404)
    expect(textOf((await fetchSegment(ada, segment.lastId)).last)).toMatch(/^Deployed/)
    await own.close()
  })

  test('to answer takes the scopes that it took to begin', async () => {
    const scoped = on.made.app()
    scoped.tool('ship', { scopes: ['write'] }, async (_args, io) =>
      (await io.confirm('sure', 'Sure?')) ? 'Shipped.' : '',
    )
    const own = await host.open(scoped, {
      authenticate: (request) => ({ principal: 'ada', scopes: [request.header('x-scope') ?? ''] }),
    })
    const carrying = await openCarrying(own.ask)
    const segment = await readSegment(await carrying.call('ship', {}, { 'x-scope': 'write' }))
    const response = answerTo(segment.last, accepted({ confirm: true }))
    const refused = await carrying.post(response, { 'x-scope': 'read' })
    expect(refused.status).toBe(403)
    expect(refused.headers.get('www-authenticate')).toContain('insufficient_scope')
    expect((await carrying.post(response, { 'x-scope': 'write' })).status).toBe(202)
    expect(textOf((await fetchSegment(carrying, segment.lastId)).last)).toBe('Shipped.')
    await own.close()
  })

  test('a state is good for its time alone', async () => {
    // Of an instance whose clock is two minutes behind. A minute is forgiven.
    const real = Date.now
    Date.now = () => real() - 120_000
    const behind = on.made.app({ ttl: 1 })
    Date.now = real
    const brief = await host.open(behind)
    const carrying = await openCarrying(brief.ask)
    const segment = await readSegment(await carrying.call('deploy', { env: 'x' }))
    const response = await carrying.at(on.ask).post(answerTo(segment.last, accepted({ confirm: true })))
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: FROZEN })
    expect((await carrying.at(on.ask).get({ 'Last-Event-ID': segment.lastId })).status).toBe(400)
    expect((await carrying.post(answerTo(segment.last, accepted({ confirm: true })))).status).toBe(202)
    await brief.close()
  })

  test('whatever comes in the place of a response and its state is answered', async () => {
    const { question } = await askedBy(on.session)
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
        expect([202, 400]).toContain((await on.session.post(message)).status)
      }),
      { numRuns: 100 },
    )
    expect((await on.session.post(answerTo(question, accepted({ confirm: true }), good))).status).toBe(202)
  })

  test('a codec of the user seals states and event ids too, and takes neither for the other', async () => {
    const codec = {
      seal: async (text: string) => Buffer.from(text).toString('base64url'),
      open: async (token: string) => Buffer.from(token, 'base64url').toString('utf8'),
    }
    const opened = await host.open(on.made.app({ codec, keys: undefined }))
    const carrying = await openCarrying(opened.ask)
    const segment = await readSegment(await carrying.call('workspace'))
    const wrong = await carrying.post(answerTo(segment.last, { roots: [] }, segment.lastId))
    expect(await wrong.json()).toMatchObject({ error: FROZEN })
    const stateAsEvent = await carrying.get({ 'Last-Event-ID': stateOf(segment.last) ?? '' })
    expect(stateAsEvent.status).toBe(400)
    expect((await carrying.post(answerTo(segment.last, { roots: [{ uri: 'file:///two' }] }))).status).toBe(202)
    expect(textOf((await fetchSegment(carrying, segment.lastId)).last)).toBe('file:///two')
    await opened.close()
  })
})
