// Sessions over HTTP as the transport pages of the older revisions have them: ids, statuses, streams, batches.
import type { Rally } from 'mcp-rally'
import { rally } from 'mcp-rally'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { KEYS, olderApp } from './app.mjs'
import type { Ask } from './raw.ts'
import { ALL, Events, hosts, initializeMessage, RawSession, send, textOf } from './raw.ts'
import { call as modernCall, headersOf, textOf as modernText } from '../wire/messages.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()))
})

describe.each(hosts)('$name', ({ open: openHost }) => {
  const open = async (app: Rally = olderApp()): Promise<Ask> => {
    const { ask, close } = await openHost(app)
    closing.push(close)
    return ask
  }
  let ask: Ask
  beforeEach(async () => {
    ask = await open()
  })

  test.each([
    ['2025-11-25', '2025-11-25'],
    ['2025-06-18', '2025-06-18'],
    ['2025-03-26', '2025-03-26'],
    ['2024-11-05', '2024-11-05'],
    ['2024-10-07', '2025-11-25'],
    ['2099-01-01', '2025-11-25'],
    ['', '2025-11-25'],
  ])('a client that proposes %j gets %s', async (revision, negotiated) => {
    const session = await RawSession.open(ask, { revision })
    expect(session.initialized.result).toMatchObject({ protocolVersion: negotiated })
    expect(session.id).toMatch(/^se1\.[\x21-\x7e]{1,2044}$/)
    expect(textOf(await session.json('tools/call', { name: 'revision' }))).toMatch(new RegExp(`^${negotiated}`))
  })

  test('who the client says it is does not make its id longer than 2 KiB', async () => {
    const name = '\u0001\ud83d'.repeat(5_000)
    const message = { ...initializeMessage() } as { params?: object }
    message.params = { ...message.params, clientInfo: { name, version: name } }
    const response = await send(ask, message)
    expect(response.headers.get('mcp-session-id')?.length).toBeLessThanOrEqual(2_048)
  })

  test.each([
    ['no protocolVersion', { capabilities: {}, clientInfo: { name: 'a', version: '1' } }],
    ['no capabilities', { protocolVersion: '2025-11-25', clientInfo: { name: 'a', version: '1' } }],
    ['no clientInfo', { protocolVersion: '2025-11-25', capabilities: {} }],
    ['a clientInfo without a version', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'a' } }],
  ])('a handshake with %s is -32602, and begins no session', async (_what, params) => {
    const response = await send(ask, { jsonrpc: '2.0', id: 1, method: 'initialize', params })
    expect(response.headers.get('mcp-session-id')).toBeNull()
    expect(await response.json()).toMatchObject({ id: 1, error: { code: -32602 } })
  })

  test('a request without a session is a 400', async () => {
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
    const response = await send(ask, list, { 'MCP-Protocol-Version': '2025-11-25' })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ id: 1, error: { code: -32600 } })
  })

  test('anything that is not a session id is a 404, always the same one', async () => {
    const { id } = await RawSession.open(ask)
    const other = await RawSession.open(await open(olderApp({ keys: ['another secret of the tests, long enough'] })))
    const elsewhere = await RawSession.open(await open(olderApp({ audience: 'somebody else' })))
    const asking = modernCall('deploy', { env: 'prod' }, {}, { 'io.modelcontextprotocol/clientCapabilities': ALL })
    const asked = await ask({ method: 'POST', headers: headersOf(asking), body: JSON.stringify(asking) })
    const { result } = (await asked.json()) as { result: { requestState: string } }
    const wrong = [
      'nonsense',
      'x'.repeat(5_000),
      id.slice(0, -1),
      `${id}A`,
      `${id}=`,
      `rs1.${id.slice(4)}`,
      id.toLowerCase(),
      ...[5, 20, 50, 80].map((at) => id.slice(0, at) + (id[at] === 'A' ? 'B' : 'A') + id.slice(at + 1)),
      other.id,
      elsewhere.id,
      result.requestState,
    ]
    const answers = new Set<string>()
    for (const each of wrong) {
      const session = new RawSession(ask, each)
      const response = await session.request('tools/list')
      expect(response.status).toBe(404)
      const { error } = (await response.json()) as { error: object }
      answers.add(JSON.stringify(error))
      expect((await session.get()).status).toBe(404)
    }
    expect([...answers]).toHaveLength(1)
  })

  test.each(['2026-07-28', '2024-10-07', '1.0', 'x'])('a session under revision %s is a 400', async (version) => {
    const session = await RawSession.open(ask)
    expect((await session.request('ping', {}, { 'MCP-Protocol-Version': version })).status).toBe(400)
  })

  test('a session ends by itself: DELETE is a 405, and so is GET without a session', async () => {
    const session = await RawSession.open(ask)
    const headers = { 'Mcp-Session-Id': session.id }
    const deleted = await ask({ method: 'DELETE', headers })
    expect([deleted.status, deleted.headers.get('allow')]).toEqual([405, 'GET, POST'])
    const got = await ask({ method: 'GET', headers: { Accept: 'text/event-stream' } })
    expect([got.status, got.headers.get('allow')]).toEqual([405, 'POST'])
    expect((await session.json('ping')).result).toEqual({})
  })

  test('any instance that has the keys serves a session, and no other does', async () => {
    const session = await RawSession.open(ask, { revision: '2025-06-18', capabilities: { elicitation: {} } })
    const there = session.at(await open(olderApp({ keys: ['a new secret that mints, also long enough', ...KEYS] })))
    expect(textOf(await there.json('tools/call', { name: 'revision' }))).toBe('2025-06-18 elicitation.form')
    const events = new Events(await there.call('outcome'))
    const question = await events.message()
    // What waits for its answer waits on one instance.
    expect((await session.answer(question, { action: 'accept' })).status).toBe(400)
    expect((await there.answer(question, { action: 'decline' })).status).toBe(202)
    expect(textOf(await events.message())).toBe('The user said decline.')
  })

  test('a session belongs to who began it', async () => {
    const { ask: theirs, close } = await openHost(olderApp(), {
      authenticate: (request) => ({ principal: request.header('authorization') ?? 'nobody' }),
    })
    closing.push(close)
    const session = await RawSession.open(theirs, { headers: { Authorization: 'Ada' } })
    expect((await session.request('ping')).status).toBe(200)
    expect((await session.request('ping', {}, { Authorization: 'Bob' })).status).toBe(404)
    expect((await session.get({ Authorization: 'Bob' })).status).toBe(404)
    const events = new Events(await session.get())
    expect(await events.next()).toMatchObject({ data: '' })
    await events.lose()
  })

  test('who is refused may not read the events of a session either', async () => {
    const { ask: guarded, close } = await openHost(olderApp(), { authenticate: () => undefined })
    closing.push(close)
    const { id } = await RawSession.open(ask)
    expect((await new RawSession(guarded, id).get()).status).toBe(401)
    expect((await new RawSession(guarded, id).request('ping')).status).toBe(401)
  })

  test('scopes hold for older clients too, one by one and in a batch', async () => {
    const app = rally({ name: 'scoped', version: '1', keys: KEYS, logger: { warn() {}, error() {} } })
    app.tool('drop', { scopes: ['admin'] }, () => 'Dropped')
    const session = await RawSession.open(await open(app), { revision: '2025-03-26' })
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'drop' } }
    expect((await session.post(message)).status).toBe(403)
    expect((await session.post([{ jsonrpc: '2.0', id: 2, method: 'ping' }, message])).status).toBe(403)
  })

  test('an answer of one message is JSON, and of more it is events', async () => {
    const session = await RawSession.open(ask)
    const plain = await session.call('greet')
    expect(plain.headers.get('content-type')).toBe('application/json')
    expect(textOf((await plain.json()) as never)).toBe('Hello')
    const events = new Events(await session.request('tools/call', { name: 'report', _meta: { progressToken: 'p' } }))
    expect(await events.rest()).toEqual([
      expect.objectContaining({
        method: 'notifications/progress',
        params: { progressToken: 'p', progress: 1, total: 2, message: 'half' },
      }),
      expect.objectContaining({ method: 'notifications/message' }),
      expect.objectContaining({ result: { content: [{ type: 'text', text: 'Reported.' }] } }),
    ])
  })

  test('events have ids, and where the revision knows it the first one has nothing else but how to come back', async () => {
    const latest = new Events(await (await RawSession.open(ask)).call('report'))
    expect(await latest.next()).toEqual({ id: expect.stringMatching(/:0$/), retry: '1000', data: '' })
    expect(await latest.next()).toMatchObject({ id: expect.stringMatching(/:1$/) })
    const older = new Events(await (await RawSession.open(ask, { revision: '2025-06-18' })).call('report'))
    expect(await older.next()).toMatchObject({ id: expect.stringMatching(/:1$/), data: expect.stringMatching(/^\{/) })
    await Promise.all([latest.rest(), older.rest()])
  })

  test('a client that takes no events gets an error where it would be asked, and is served otherwise', async () => {
    const session = await RawSession.open(ask)
    const asked = await session.call('deploy', { env: 'prod' }, { Accept: 'application/json' })
    const result = (await asked.json()) as { result: object }
    expect(result.result).toMatchObject({ isError: true })
    expect(textOf(result as never)).toMatch(/"confirm" cannot be sent: there is no event stream/)
    const reported = await session.call('report', {}, { Accept: 'application/json' })
    expect(textOf((await reported.json()) as never)).toBe('Reported.')
    expect((await session.get({ Accept: 'application/json' })).status).toBe(406)
  })

  test('notifications are a 202, and so is what they do', async () => {
    const session = await RawSession.open(ask)
    for (const method of ['initialized', 'roots/list_changed', 'cancelled', 'anything']) {
      expect((await session.post({ jsonrpc: '2.0', method: `notifications/${method}` })).status).toBe(202)
    }
  })

  test('a session that was begun is not begun again by a message in it', async () => {
    const session = await RawSession.open(ask)
    const again = await session.post(initializeMessage())
    expect(again.headers.get('mcp-session-id')).not.toBe(session.id)
    expect((await session.json('ping')).result).toEqual({})
  })

  test('an id that is under way is not taken for a second call', async () => {
    const session = await RawSession.open(ask)
    const message = { jsonrpc: '2.0', id: 'same', method: 'tools/call', params: { name: 'outcome' } }
    const events = new Events(await session.post(message))
    const question = await events.message()
    expect(await (await session.post(message)).json()).toMatchObject({ id: 'same', error: { code: -32600 } })
    await session.answer(question, { action: 'cancel' })
    expect(textOf(await events.message())).toBe('The user said cancel.')
  })

  test('what names its revision is served by that, whatever session it names beside', async () => {
    const { id } = await RawSession.open(ask)
    const message = modernCall('greet')
    const headers = { ...headersOf(message), 'Mcp-Session-Id': id }
    const response = await ask({ method: 'POST', headers, body: JSON.stringify(message) })
    expect(modernText((await response.json()) as object)).toBe('Hello')
  })

  test.each([
    ['another method', { 'Mcp-Method': 'tools/list' }],
    ['another tool', { 'Mcp-Name': 'deploy' }],
    ['a tool that cannot be read', { 'Mcp-Name': '=?base64?%%?=' }],
  ])('a header that names %s than the body is -32020, though the revision has none such', async (_what, headers) => {
    const session = await RawSession.open(ask, { revision: '2025-03-26' })
    const response = await session.call('greet', {}, headers)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { code: -32020 } })
    expect((await session.post([{ jsonrpc: '2.0', id: 1, method: 'ping' }], headers)).status).toBe(400)
    expect((await session.call('greet', {}, { 'Mcp-Method': 'tools/call', 'Mcp-Name': 'greet' })).status).toBe(200)
  })

  test('an app that turns older clients away tells them the revisions, and has no streams', async () => {
    const modern = await open(olderApp({ legacy: false }))
    const response = await send(modern, initializeMessage())
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { code: -32022 } })
    const { id } = await RawSession.open(ask)
    const got = await new RawSession(modern, id).get()
    expect([got.status, got.headers.get('allow')]).toEqual([405, 'POST'])
  })
})

test.each(['askMs', 'callMs', 'keepMs'])('a %s that is no time is an error when the app is built', (name) => {
  for (const ms of [0, -1, Number.NaN])
    expect(() => olderApp({ legacy: { [name]: ms } })).toThrow(`\`legacy.${name}\` must be`)
})
