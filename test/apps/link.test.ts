// Questions on a page by a link, for clients with nothing: what the model is told, what the page is told, and who is refused.
import { mkdtempSync, rmSync } from 'node:fs'
import { get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ClientInfo, HttpRequest, PageRequest, Rally, RallyOptions, Store } from 'mcp-rally'
import { MemoryStore, rally, Unavailable } from 'mcp-rally'
import { serve } from 'mcp-rally/node'
import { sqlite } from 'mcp-rally/sqlite'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { accept, call, headersOf, META } from '../wire/messages.ts'
import { makeApp } from './app.ts'
import type { Json, Send } from './peer.ts'
import { afterTurn, callTool, peer, pipePeer, UI } from './peer.ts'
import { linkIn, Visitor } from './visitor.ts'

const NOTHING = { capabilities: {} }
const YES = accept({ confirm: true })
const EAST = accept({ region: 'us-east' })
const OPEN = { url: 'http://localhost/ask', trustModelWithLink: true, waitMs: 5_000 }

function makeLinked(options: Partial<RallyOptions> = {}): ReturnType<typeof makeApp> {
  return makeApp({ apps: false, page: OPEN, ...options })
}

const browse = (request: Request): Promise<Response> => fetch(request)

/** The status for a page of others that gave its own name to this address. */
const statusRebound = (link: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    get(link, { headers: { host: 'rebound.example' } }, (response) => {
      response.resume()
      resolve(response.statusCode)
    }).on('error', reject)
  })

function sqliteFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'rally-page-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return join(folder, 'calls.db')
}

function opened(file: string): Store {
  const store = sqlite(file, { synchronous: 'normal' })
  onTestFinished(() => store.close())
  return store
}

/** Has the model call the tool, and opens the link that it is given. */
async function begin(
  app: Rally,
  send: Send,
  tool: string,
  args: object = {},
): Promise<{ id: string; page: Visitor; view: Json }> {
  const link = linkIn(await callTool(send, tool, args))
  const page = await Visitor.open(app.fetch, link)
  return { id: new URL(link).searchParams.get('call') ?? '', page, view: await page.look() }
}

describe.each(['2026-07-28', '2025-11-25'])('in %s', (revision) => {
  test('gives the model a link, asks twice on the page, and returns the exact result', async () => {
    const { app, steps } = makeLinked()
    const send = await peer(app, revision, NOTHING)
    const first = await callTool(send, 'deploy', { env: 'prod' })
    expect(Object.keys(first).toSorted()).toEqual(
      revision === '2026-07-28' ? ['_meta', 'content', 'resultType'] : ['content'],
    )
    const link = linkIn(first)
    expect(link).toMatch(/^http:\/\/localhost\/ask\?call=[\w-]{22}$/)
    expect(first.content[0].text).toContain('You cannot answer for the user')
    const page = await Visitor.open(app.fetch, link)
    const one = await page.look()
    expect(first.content[0].text).toContain(`call rally_result with id "${one.id}"`)
    const waiting = callTool(send, 'rally_result', { id: one.id })
    const two = await page.answer(one, { go: accept({ confirm: true, note: 'hi' }) })
    expect(two.questions.where.params.message).toContain('(note: hi)')
    expect(await page.answer(two, { where: EAST })).toMatchObject({ kind: 'done', heard: true })
    expect((await waiting).structuredContent).toEqual({ sha: 'c0ffee1', region: 'us-east' })
    expect(steps).toEqual({ plan: 1, ship: 1 })
    // Opened again, and an old window that sends its answer.
    expect(await (await Visitor.open(app.fetch, link)).look()).toMatchObject({ kind: 'done' })
    expect(await page.answer(one, { go: { action: 'decline' } })).toMatchObject({ kind: 'done' })
    expect(steps).toEqual({ plan: 1, ship: 1 })
  })

  test('adds one tool to the list, and leaves out schemas that a call that waits cannot match', async () => {
    const { app } = makeLinked()
    const plain = await peer(makeApp({ apps: false }).app, revision, NOTHING)
    const { tools } = await (await peer(app, revision, NOTHING))('tools/list')
    const before = (await plain('tools/list')).tools
    expect(tools.map(({ name }: Json) => name)).toEqual([...before.map(({ name }: Json) => name), 'rally_result'])
    expect(tools[0]).not.toHaveProperty('outputSchema')
    expect(tools[0]).not.toHaveProperty('_meta')
    expect(tools.at(-1)).not.toHaveProperty('_meta')
    expect(tools.slice(1, -1)).toEqual(before.slice(1))
  })

  test('serves a client that shows forms as ever, byte for byte', async () => {
    const capabilities = { elicitation: { form: {} } }
    const hello = revision === '2026-07-28' ? 'server/discover' : 'initialize'
    const [with_, without] = await Promise.all(
      [makeLinked(), makeApp({ apps: false })].map(({ app }) => peer(app, revision, { capabilities })),
    )
    for (const method of ['tools/list', hello]) {
      expect(JSON.stringify(await with_?.(method))).toBe(JSON.stringify(await without?.(method)))
    }
    await expect(callTool(with_ as Send, 'rally_result', { id: 'x' })).rejects.toThrow('Unknown tool: rally_result')
  })

  test('answers the questions of a task, and tells the model the link again', async () => {
    const { app } = makeLinked({
      store: new MemoryStore(),
      tasks: { pollMs: 10, watchdogMs: false },
      page: { ...OPEN, waitMs: 0 },
    })
    const send = await peer(app, revision, NOTHING)
    const { id, page, view: asked } = await begin(app, send, 'provision', { name: 'web' })
    let view = await page.answer(asked, { cost: accept({ confirm: true }) })
    while (view.kind === 'working') view = await afterTurn(() => page.look())
    expect(linkIn(await callTool(send, 'rally_result', { id }))).toBe(page.link)
    const [key = ''] = Object.keys(view.questions)
    const [field = ''] = Object.keys(view.questions[key].params.requestedSchema.properties)
    view = await page.answer(view, { [key]: accept({ [field]: 'us-east' }) })
    while (view.kind === 'working') view = await afterTurn(() => page.look())
    expect((await callTool(send, 'rally_result', { id })).content[0].text).toBe('web runs in us-east.')
    app.drain()
    await app.idle()
  })
})

test('runs middleware around the answers of a page, and not around its looks', async () => {
  const { app } = makeLinked({ store: new MemoryStore(), tasks: { pollMs: 10, watchdogMs: false } })
  let isDown = false
  const seen: string[] = []
  app.use(async ({ method, target, args }, next) => {
    seen.push(`${method} ${target ?? ''} ${Object.keys(args).join()}`)
    if (isDown) throw new Unavailable('Down for maintenance.', { retryAfterMs: 1_000, isUnprocessed: true })
    return next()
  })
  const { page, view: asked } = await begin(app, await peer(app, '2026-07-28', NOTHING), 'provision', { name: 'web' })
  let view = await page.answer(asked, { cost: YES })
  while (view.kind === 'working') view = await afterTurn(() => page.look())
  const [key = ''] = Object.keys(view.questions)
  const answers = { [key]: accept({ choice: 'us-east' }) }
  isDown = true
  expect(await page.post({ ...view, answers })).toMatchObject({
    status: 503,
    body: { message: expect.stringContaining('Down for maintenance.') as string },
  })
  expect(await page.look()).toEqual(view)
  isDown = false
  view = await page.answer(view, answers)
  while (view.kind === 'working') view = await afterTurn(() => page.look())
  expect(view.result.content[0].text).toBe('web runs in us-east.')
  const round = 'tools/call provision name'
  const update = 'tasks/update  taskId,inputResponses'
  expect(seen).toEqual([round, round, update, update])
  app.drain()
  await app.idle()
})

test('shows wrong answers beside their fields, visits until they are done, and takes a decline', async () => {
  const { app, visited } = makeLinked()
  const send = await peer(app, '2026-07-28', NOTHING)
  const form = await begin(app, send, 'everything')
  const again = await form.page.answer(form.view, { all: accept({ name: 'x', count: 99 }) })
  expect(again.questions.all.params.message).toBe(form.view.questions.all.params.message)
  expect(again.issues.all).toMatchObject({
    name: 'Must have at least 2 characters',
    count: 'Must be at most 9',
    email: 'Is required',
  })
  const visit = await begin(app, send, 'connect')
  const pending = await visit.page.answer(visit.view, { 'sign-in': { action: 'accept' } })
  expect(pending.questions['sign-in'].params.message).toContain('has not been completed yet')
  visited()
  expect(await visit.page.answer(pending, { 'sign-in': { action: 'accept' } })).toMatchObject({ kind: 'done' })
  const declined = await begin(app, send, 'deploy', { env: 'prod' })
  const done = await declined.page.answer(declined.view, { go: { action: 'decline' } })
  expect(done).toMatchObject({ kind: 'done', result: { isError: true } })
})

test('asks in any tool without an output schema, and says what to add to the others', async () => {
  const { app } = makeLinked()
  app.tool('shaped', { output: { type: 'object' } }, async (_args, io) => ({ sure: await io.confirm('sure', 'Sure?') }))
  const send = await peer(app, '2026-07-28', NOTHING)
  const { page, view } = await begin(app, send, 'unlinked')
  const [field = ''] = Object.keys(view.questions.sure.params.requestedSchema.properties)
  expect(await page.answer(view, { sure: accept({ [field]: true }) })).toMatchObject({ kind: 'done' })
  expect((await callTool(send, 'shaped')).content[0].text).toContain('add `apps: true` to its options')
  expect((await callTool(send, 'ping')).content[0].text).toBe('pong')
})

test('prefers forms of the client, then MCP Apps, then the link, unless `when` says otherwise', async () => {
  const { app } = makeApp({ page: OPEN })
  const asked = async (capabilities: object): Promise<string> => {
    const result = await callTool(await peer(app, '2026-07-28', { capabilities }), 'deploy', { env: 'prod' })
    return result.resultType === 'input_required' ? 'forms' : linkIn(result) === '' ? 'apps' : 'link'
  }
  expect(await asked({ ...UI, elicitation: { form: {} } })).toBe('forms')
  expect(await asked(UI)).toBe('apps')
  expect(await asked({})).toBe('link')
  const { app: never } = makeLinked({ page: { ...OPEN, when: () => false } })
  await expect(callTool(await peer(never, '2026-07-28', NOTHING), 'trip')).rejects.toThrow(/cannot ask its user/)
})

test('runs a round once when two windows answer it, on two instances', async () => {
  const store = new MemoryStore()
  const [here, there] = [makeLinked({ store }), makeLinked({ store })]
  const { page, view } = await begin(here.app, await peer(here.app, '2026-07-28', NOTHING), 'deploy', { env: 'prod' })
  const other = await Visitor.open(there.app.fetch, page.link)
  const two = await other.answer(view, { go: YES })
  const both = await Promise.all([
    page.answer(two, { where: accept({ region: 'eu-north' }) }),
    other.answer(two, { where: EAST }),
  ])
  expect(both.map(({ kind }) => kind)).toEqual(['done', 'done'])
  expect(both[1].result).toEqual(both[0].result)
  expect(here.steps.ship + there.steps.ship).toBe(1)
})

test('a call that one instance began is answered on another, through stores of one SQLite file', async () => {
  const file = sqliteFile()
  const [here, there] = [makeLinked({ store: opened(file) }), makeLinked({ store: opened(file) })]
  const send = await peer(here.app, '2026-07-28', NOTHING)
  const { id, page, view } = await begin(here.app, send, 'deploy', { env: 'prod' })
  const waiting = callTool(send, 'rally_result', { id })
  const other = await Visitor.open(there.app.fetch, page.link)
  const two = await other.answer(view, { go: YES })
  expect(await page.look()).toEqual(two)
  expect(await other.answer(two, { where: EAST })).toMatchObject({ kind: 'done' })
  expect((await waiting).structuredContent).toEqual({ sha: 'c0ffee1', region: 'us-east' })
})

describe.each([
  { kind: 'no store', makeStore: () => undefined },
  { kind: 'a store in memory', makeStore: () => new MemoryStore() },
  { kind: 'a store in SQLite', makeStore: () => opened(sqliteFile()) },
])('with $kind, limits.maxWaitingBytes bounds', ({ makeStore }) => {
  const CALLS = 20
  const limited = (): ReturnType<typeof makeApp> => {
    const store = makeStore()
    return makeLinked({
      ...(store && { store }),
      limits: { maxWaitingBytes: 1_000_000 },
      page: { ...OPEN, waitMs: 0 },
    })
  }
  /** Makes calls with large arguments. Returns how many of them are known afterwards. */
  async function kept(send: Send): Promise<number> {
    const links: string[] = []
    for (let made = 0; made < CALLS; made += 1) {
      links.push(linkIn(await callTool(send, 'deploy', { env: 'x'.repeat(100_000) })))
    }
    const ids = links.filter(Boolean).map((link) => new URL(link).searchParams.get('call'))
    const results = await Promise.all(ids.map((id) => callTool(send, 'rally_result', { id })))
    return results.filter(({ isError }) => isError !== true).length
  }

  test('what callers without a principal keep waiting, all together', async () => {
    const { app } = limited()
    expect(await kept(await peer(app, '2026-07-28', NOTHING))).toBe(4)
  })

  test('what one session keeps waiting to its share, so that another has room', async () => {
    const { app } = limited()
    const [first, second] = [await peer(app, '2025-11-25', NOTHING), await peer(app, '2025-11-25', NOTHING)]
    const before = linkIn(await callTool(second, 'deploy', { env: 'prod' }))
    expect(await kept(first)).toBe(1)
    expect(await (await Visitor.open(app.fetch, before)).look()).toMatchObject({ kind: 'asks' })
    expect(linkIn(await callTool(second, 'deploy', { env: 'prod' }))).not.toBe('')
  })
})

test('expires with its ttl', async () => {
  const clock = vi.spyOn(Date, 'now')
  const { app } = makeLinked({ page: { ...OPEN, ttl: 100 } })
  const { page, view } = await begin(app, await peer(app, '2026-07-28', NOTHING), 'deploy', { env: 'prod' })
  clock.mockReturnValue(Date.now() + 200_000)
  expect(await page.answer(view, { go: YES })).toMatchObject({ kind: 'problem' })
  clock.mockRestore()
})

test('continues with the caller, the client and the `_meta` of the call itself', async () => {
  const ann = { principal: 'ann', scopes: ['s'], claims: { team: 'red' } }
  const { app } = makeLinked({ http: { authenticate: () => ann } })
  app.tool('who', { scopes: ['s'] }, async (_args, io) => {
    await io.confirm('sure', 'Sure?')
    return JSON.stringify([io.caller, io.client.name, io.meta['com.example/x']])
  })
  const send = await peer(app, '2026-07-28', NOTHING)
  const link = linkIn(await send('tools/call', { name: 'who', _meta: {} }))
  const page = await Visitor.open(app.fetch, link)
  const view = await page.look()
  const [field = ''] = Object.keys(view.questions.sure.params.requestedSchema.properties)
  const { result } = await page.answer(view, { sure: accept({ [field]: true }) })
  expect(JSON.parse(result.content[0].text)).toEqual([
    { principal: 'ann', scopes: ['s'], claims: { team: 'red' } },
    'wire-tests',
    null,
  ])
})

const hasRoots = ({ client }: { client: ClientInfo }): boolean =>
  client.capabilities.roots !== undefined && client.capabilities.sampling?.tools !== undefined

test('shows a call to its user that is visible only to clients with its capabilities', async () => {
  const { app } = makeLinked()
  app.tool('rooted', { visible: hasRoots }, async (_args, io) => String(await io.confirm('sure', 'Sure?')))
  const send = await peer(app, '2026-07-28', { capabilities: { roots: {}, sampling: { tools: {} } } })
  const { page, view } = await begin(app, send, 'rooted')
  expect(view).toMatchObject({ kind: 'asks' })
  expect(await page.answer(view, { sure: YES })).toMatchObject({
    kind: 'done',
    result: { content: [{ text: 'true' }] },
  })
})

test('a call whose arguments hold -0 is answered', async () => {
  const { app } = makeLinked()
  app.tool('minus', { input: z.object({ n: z.number() }) }, async ({ n }, io) => {
    await io.confirm('sure', 'Sure?')
    return String(n)
  })
  const fetched = async (body: string): Promise<Json> => {
    const headers = headersOf(JSON.parse(body) as object)
    const response = await app.fetch(new Request('http://localhost/mcp', { method: 'POST', body, headers }))
    return ((await response.json()) as Json).result
  }
  const body = JSON.stringify(call('minus', { n: 17 }, {}, { 'io.modelcontextprotocol/clientCapabilities': {} }))
  const page = await Visitor.open(app.fetch, linkIn(await fetched(body.replace('17', '-0'))))
  const view = await page.look()
  expect(await page.answer(view, { sure: YES })).toMatchObject({ kind: 'done', result: { content: [{ text: '0' }] } })
})

test('node:http serves the page, and nothing of it to another host name', async () => {
  const probe = await serve(rally({ name: 'probe', version: '1', logger: { warn() {}, error() {} } }), { port: 0 })
  await probe.close()
  const { port } = probe
  const { app } = makeLinked({ page: { ...OPEN, url: `http://127.0.0.1:${port}/ask` } })
  const serving = await serve(app, { port })
  const page = await Visitor.open(
    browse,
    linkIn(await callTool(await peer(app, '2026-07-28', NOTHING), 'deploy', { env: 'x' })),
  )
  expect(page.response.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(await page.answer(await page.look(), { go: { action: 'decline' } })).toMatchObject({ kind: 'done' })
  const tooMuch = await page.post({ answers: 'x'.repeat(5_000_000) })
  expect(tooMuch.status).toBe(413)
  expect(await statusRebound(page.link)).toBe(403)
  await serving.close()
})

test.each(['2026-07-28', '2025-11-25'])(
  'over standard streams the page is on this machine, from the first link on, in %s',
  async (revision) => {
    const { app } = makeLinked({ page: { trustModelWithLink: true, waitMs: 5_000 } })
    const { send, close } = await pipePeer(app, revision, {})
    expect((await callTool(send, 'ping')).content[0].text).toBe('pong')
    const link = linkIn(await callTool(send, 'deploy', { env: 'prod' }))
    expect(link).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\?call=/)
    const page = await Visitor.open(browse, link)
    const two = await page.answer(await page.look(), { go: YES })
    expect(await page.answer(two, { where: EAST })).toMatchObject({ kind: 'done' })
    // Nothing else is served there, and nobody else's name.
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: META } }
    const { origin } = new URL(link)
    expect((await fetch(origin, { method: 'POST', body: JSON.stringify(message) })).status).toBe(404)
    expect(await statusRebound(link)).toBe(403)
    await close()
    await expect.poll(() => fetch(origin).catch(() => 'closed')).toBe('closed')
  },
)

/** What the browser of a user sends who is logged in. */
const as = (user: string): Record<string, string> => ({ Cookie: `user=${user}` })

describe('refuses', () => {
  /** The login of the author: a cookie with the name of the user. */
  const identified = {
    http: {
      authenticate: (request: HttpRequest) => ({ principal: request.header('authorization')?.split(' ')[1] ?? '' }),
    },
    page: {
      url: 'http://localhost/ask',
      waitMs: 0,
      identify: (request: PageRequest) => request.header('cookie')?.split('user=')[1],
    },
  }
  const answers = { go: YES }

  async function asked(): Promise<{ app: Rally; link: string; page: Visitor; one: Json; steps: { ship: number } }> {
    const { app, steps } = makeLinked(identified)
    const send = await peer(app, '2026-07-28', { ...NOTHING, user: 'ann' })
    const link = linkIn(await callTool(send, 'deploy', { env: 'prod' }))
    const page = await Visitor.open(app.fetch, link, as('ann'))
    return { app, link, page, one: await page.look(), steps }
  }

  test('other principals, with and without the page of the first', async () => {
    const { app, link, page, one, steps } = await asked()
    const bob = await Visitor.open(app.fetch, link, as('bob'))
    expect(await bob.look()).toMatchObject({ kind: 'problem', reason: 'unknown' })
    expect(await bob.answer(one, answers)).toMatchObject({ reason: 'unknown' })
    expect(await bob.post({ ...one, answers, key: page.key })).toMatchObject({ status: 403, body: { reason: 'stale' } })
    expect((await Visitor.open(app.fetch, link)).response.status).toBe(401)
    expect((await page.post({ ...one, answers }, { Cookie: '' })).status).toBe(401)
    expect(await page.look()).toEqual(one)
    expect(steps.ship).toBe(0)
    const other = await peer(app, '2026-07-28', { ...NOTHING, user: 'bob' })
    expect(await callTool(other, 'rally_result', { id: one.id })).toMatchObject({ isError: true })
  })

  test('posts of other sites, and posts that no page of ours would send', async () => {
    const { page, one } = await asked()
    const sent = { ...one, answers }
    for (const origin of ['https://evil.example', 'null', 'http://localhost:81', 'https://localhost', '']) {
      expect(await page.post(sent, { Origin: origin })).toMatchObject({ status: 403 })
    }
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', '']) {
      expect(await page.post(sent, { 'Content-Type': type })).toMatchObject({ status: 415 })
    }
    expect(await page.look()).toEqual(one)
  })

  test('forged, foreign and missing keys', async () => {
    const { app, page, one } = await asked()
    const send = await peer(app, '2026-07-28', { ...NOTHING, user: 'ann' })
    const other = await Visitor.open(app.fetch, linkIn(await callTool(send, 'trip')), as('ann'))
    for (const key of [undefined, '', 'x', one.state, `${page.key.slice(0, -2)}AA`, other.key, { key: page.key }]) {
      const refused = await page.post({ ...one, answers, key })
      expect(refused).toMatchObject({ status: 403, body: { kind: 'problem', reason: 'stale' } })
    }
    expect(await page.look()).toEqual(one)
  })

  test('a replayed answer, and a state that is not the current one', async () => {
    const { page, one, steps } = await asked()
    const two = await page.answer(one, answers)
    const done = await page.answer(two, { where: EAST })
    for (const state of [one.state, two.state, `${two.state}A`, undefined, 5]) {
      expect((await page.post({ ...two, state, answers: { where: accept({ region: 'eu-north' }) } })).body).toEqual(
        done,
      )
    }
    expect(steps.ship).toBe(1)
  })

  test('answers that are too deep or too many, and bodies that are no JSON', async () => {
    const { page, one, app, link } = await asked()
    const deep: Json = {}
    for (let at = deep, depth = 0; depth < 200; depth += 1) at = at.a = {}
    expect(await page.post({ ...one, answers: { go: deep } })).toMatchObject({ status: 400 })
    const many = Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`k${index}`, {}]))
    expect(await page.post({ ...one, answers: many })).toMatchObject({ status: 400 })
    for (const body of ['', '[]', '{', 'null']) {
      const headers = { 'Content-Type': 'application/json', Origin: 'http://localhost', ...as('ann') }
      expect((await app.fetch(new Request(link, { method: 'POST', body, headers }))).status).toBe(400)
    }
    expect(await page.look()).toEqual(one)
  })

  test('frames, caches and referrers, whatever it answers, and changes nothing on a GET', async () => {
    const { app, link, page, one } = await asked()
    const requests = [
      new Request(link, { headers: as('ann') }),
      new Request(link),
      new Request(link, { method: 'POST', body: '{}' }),
      new Request(link, { method: 'PUT', body: '{}' }),
      new Request('http://localhost/ask?call='),
    ]
    for (const request of requests) {
      const { headers } = await app.fetch(request)
      expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
      expect(headers.get('x-frame-options')).toBe('DENY')
      expect(headers.get('cache-control')).toBe('no-store')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
      expect(headers.get('access-control-allow-origin')).toBeNull()
    }
    const policy = page.response.headers.get('content-security-policy') ?? ''
    const [, nonce = ''] = /'nonce-([^']+)'/.exec(policy) ?? []
    expect(page.html).toContain(`<script nonce="${nonce}"`)
    expect(policy).not.toContain('unsafe')
    const withAnswers = new Request(`${link}&answers=${JSON.stringify(answers)}&key=${page.key}`, {
      headers: as('ann'),
    })
    await app.fetch(withAnswers)
    const head = await app.fetch(new Request(link, { method: 'HEAD', headers: as('ann') }))
    expect([head.status, await head.text()]).toEqual([200, ''])
    expect(await page.look()).toEqual(one)
  })

  test('a link for a caller that it could not recognise, or that has no address, with a readable result', async () => {
    const { app: anonymous } = makeLinked({ page: identified.page })
    const failed = await callTool(await peer(anonymous, '2026-07-28', NOTHING), 'trip')
    expect(failed).toMatchObject({ isError: true })
    expect(failed.content[0].text).toContain('does not know who is calling')
    const { app: nowhere } = makeLinked({ page: { trustModelWithLink: true } })
    const send = await peer(nowhere, '2026-07-28', NOTHING)
    expect((await callTool(send, 'trip')).content[0].text).toContain('Pass `page.url`')
    expect((await callTool(send, 'can')).content[0].text).toBe('[false,false,false]')
  })

  test('visitors who are logged out, and sends them to the login that `identify` names', async () => {
    const login = { ...identified.page, identify: () => ({ redirect: '/login?next=ask' }) }
    const { app } = makeLinked({ ...identified, page: login })
    const sent = await app.fetch(new Request('http://localhost/ask?call=x'))
    expect([sent.status, sent.headers.get('location')]).toEqual([303, 'http://localhost/login?next=ask'])
    const failing = { ...identified.page, identify: () => Promise.reject(new Error('secret')) }
    const { app: broken } = makeLinked({ ...identified, page: failing })
    const answer = await broken.fetch(new Request('http://localhost/ask?call=x'))
    expect(answer.status).toBe(500)
    expect(await answer.text()).not.toContain('secret')
  })
})

test.each([
  { page: true, why: '`page` must be an object of options' },
  { page: {}, why: 'either `identify` or `trustModelWithLink: true`, but one of them is missing' },
  { page: { identify: () => 'x', trustModelWithLink: true }, why: 'but both are there' },
  { page: { ...OPEN, url: 'http://example.com/ask' }, why: '`page.url` must be an https address' },
  { page: { ...OPEN, url: 'https://example.com/ask?x=1' }, why: '`page.url` must be an https address' },
  { page: { ...OPEN, identify: 'x' }, why: '`page.identify` must be a function' },
  { page: { ...OPEN, trustModelWithLink: 1 }, why: '`page.trustModelWithLink` must be true or false' },
  { page: { ...OPEN, ttl: 0 }, why: '`page.ttl` must be a number of seconds above 0' },
])('rejects the option $page', ({ page, why }) => {
  expect(() => rally({ name: 'a', version: '1', page: page as never })).toThrow(why)
})
