// Whatever names a target needs the scopes of that target, in every revision and whatever the method.
import { rally, type Rally } from 'mcp-rally'
import { beforeEach, describe, expect, test } from 'vitest'

const NEWEST = '2026-07-28'

let app: Rally
let ran: string[]

beforeEach(() => {
  ran = []
  app = rally({
    name: 'scoped',
    version: '1',
    keys: ['a secret of the tests of scopes, long enough'],
    logger: { warn() {}, error() {} },
    revisions: ['2026-06-XX', '2026-02-03-draft'],
    http: {
      authenticate: (request) => ({
        principal: 'ann',
        scopes: (request.header('x-scopes') ?? '').split(' '),
      }),
    },
  })
  app.tool('drop', { scopes: ['tool'] }, () => void ran.push('drop'))
  app.prompt('open', {}, () => 'Open.')
  app.prompt('secret', { scopes: ['prompt'] }, () => 'Secret.')
  app.resource('config://app', { name: 'config', scopes: ['resource'] }, () => '{}')
  app.resource('note://open', { name: 'note' }, () => 'Open.')
  const complete = (): string[] => {
    ran.push('complete')
    return ['ann']
  }
  app.resourceTemplate('users://{id}', { name: 'user', scopes: ['template'], complete: { id: complete } }, () => 'Ann')
})

type Send = (method: string, params: object, scopes?: string) => Promise<Response>

function post(body: object, headers: Record<string, string>, scopes = ''): Promise<Response> {
  return app.fetch(
    new Request('http://localhost/mcp', {
      method: 'POST',
      body: JSON.stringify(body),
      headers: {
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        'X-Scopes': scopes,
        ...headers,
      },
    }),
  )
}

const newest: Send = (method, params, scopes) => {
  const { name, uri } = params as { name?: string; uri?: string }
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': NEWEST,
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  return post(
    { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } },
    { 'MCP-Protocol-Version': NEWEST, 'Mcp-Method': method, 'Mcp-Name': name ?? uri ?? '' },
    scopes,
  )
}

async function sessionOf(revision: string): Promise<Record<string, string>> {
  const params = { protocolVersion: revision, capabilities: {}, clientInfo: { name: 'test', version: '1' } }
  const response = await post({ jsonrpc: '2.0', id: 0, method: 'initialize', params }, {})
  const { result } = (await response.json()) as { result: { protocolVersion: string } }
  expect(result.protocolVersion).toBe(revision)
  return { 'Mcp-Session-Id': response.headers.get('mcp-session-id') ?? '', 'MCP-Protocol-Version': revision }
}

async function inSession(revision: string): Promise<Send> {
  const headers = await sessionOf(revision)
  return (method, params, scopes) => post({ jsonrpc: '2.0', id: 1, method, params }, headers, scopes)
}

/** The message beside others that need no scope. */
async function inBatch(): Promise<Send> {
  const headers = await sessionOf('2025-03-26')
  return (method, params, scopes) => {
    const harmless = { jsonrpc: '2.0', id: 2, method: 'ping' }
    return post([harmless, { jsonrpc: '2.0', id: 1, method, params }, harmless], headers, scopes)
  }
}

describe.each<[string, () => Promise<Send>]>([
  [NEWEST, () => Promise.resolve(newest)],
  ['2025-11-25', () => inSession('2025-11-25')],
  ['2025-03-26, in a batch', inBatch],
  ['2026-06-XX', () => inSession('2026-06-XX')],
  ['2026-02-03-draft', () => inSession('2026-02-03-draft')],
])('in %s', (revision, open) => {
  const argument = { name: 'id', value: '' }
  const subscription: [string, string, object, string] =
    revision === NEWEST
      ? [
          'a subscription',
          'subscriptions/listen',
          { notifications: { resourceSubscriptions: ['note://open', 'users://7'] } },
          'template',
        ]
      : ['a subscription', 'resources/subscribe', { uri: 'users://7' }, 'template']
  const cases: [string, string, object, string][] = [
    ['a tool', 'tools/call', { name: 'drop' }, 'tool'],
    ['a tool beside a URI', 'tools/call', { name: 'drop', uri: 'note://open' }, 'tool'],
    ['a prompt', 'prompts/get', { name: 'secret' }, 'prompt'],
    ['a resource', 'resources/read', { uri: 'config://app' }, 'resource'],
    ['a resource of a template', 'resources/read', { uri: 'users://7' }, 'template'],
    [
      'a completion for a template',
      'completion/complete',
      { ref: { type: 'ref/resource', uri: 'users://{id}' }, argument },
      'template',
    ],
    [
      'a completion for a prompt',
      'completion/complete',
      { ref: { type: 'ref/prompt', name: 'secret' }, argument },
      'prompt',
    ],
    [
      'a completion for a fixed resource',
      'completion/complete',
      { ref: { type: 'ref/resource', uri: 'config://app' }, argument },
      'resource',
    ],
    subscription,
  ]

  test.each(cases)('%s needs its scope', async (_what, method, params, scope) => {
    const send = await open()
    const refused = await send(method, params, 'other')
    expect(refused.status).toBe(403)
    expect(refused.headers.get('www-authenticate')).toBe(`Bearer error="insufficient_scope", scope="${scope}"`)
    expect(ran).toEqual([])
    const granted = await send(method, params, scope)
    expect(granted.status).not.toBe(403)
    await granted.body?.cancel()
  })

  test.each([
    { type: 'ref/resource', uri: 'users://{id}', name: 'open' },
    { type: 'ref/prompt', uri: 'users://{id}', name: 'open' },
    { type: 'ref/resource', uri: 'users://{id}', name: null },
  ])('a reference with a name and a URI is refused: %j', async (ref) => {
    const send = await open()
    const body: unknown = await (await send('completion/complete', { ref, argument })).json()
    const { error } = (Array.isArray(body) ? body.find(({ id }) => id === 1) : body) as { error?: unknown }
    expect(error).toMatchObject({ code: -32602, message: expect.stringContaining('not both') as string })
    expect(ran).toEqual([])
  })
})

describe('a resource that gets its scopes after somebody subscribed to it', () => {
  const LATE = 'late://one'

  /** Registers the resource and reports two changes; the second one is of a resource that everybody may read. */
  const change = (): void => {
    app.resource(LATE, { name: 'late', scopes: ['late'] }, () => 'Late')
    app.notify.resourceUpdated(LATE)
    app.notify.resourceUpdated('note://open')
  }

  test(`is not reported to a subscriber of ${NEWEST}`, async () => {
    const response = await newest('subscriptions/listen', {
      notifications: { resourceSubscriptions: [LATE, 'note://open'] },
    })
    const text = await until(response, '"uri":"note://open"', change)
    expect(text).not.toContain(`"uri":"${LATE}"`)
  })

  test('is not reported to a session', async () => {
    const headers = await sessionOf('2025-11-25')
    for (const uri of [LATE, 'note://open']) {
      const subscribed = await post({ jsonrpc: '2.0', id: 1, method: 'resources/subscribe', params: { uri } }, headers)
      expect(await subscribed.json()).toMatchObject({ result: {} })
    }
    const stream = await app.fetch(
      new Request('http://localhost/mcp', { headers: { Accept: 'text/event-stream', ...headers } }),
    )
    const text = await until(stream, '"uri":"note://open"', change)
    expect(text).not.toContain(`"uri":"${LATE}"`)
  })
})

/** Reads the stream up to this text. */
async function until({ body }: Response, end: string, begin: () => void): Promise<string> {
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = (await reader?.read())?.value ?? ''
  begin()
  while (!text.includes(end)) text += (await reader?.read())?.value ?? end
  await reader?.cancel()
  return text
}
