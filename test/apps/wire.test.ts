// Questions in pages of the client's host, as the server sees them: the model's calls, the page's calls, and what both are told.
import { MemoryStore, rally, Unavailable } from 'mcp-rally'
import { describe, expect, test, vi } from 'vitest'
import { accept } from '../wire/messages.ts'
import { KEYS, makeApp } from './app.ts'
import type { Json, Send } from './peer.ts'
import { afterTurn, callTool, Page, peer, pipePeer, UI, VIEW } from './peer.ts'

const YES = accept({ confirm: true })
const EAST = accept({ region: 'us-east' })

/** Has the model call the tool, and returns what the page is given. */
async function begin(send: Send, tool: string, args: object = {}): Promise<Json> {
  return (await callTool(send, tool, args))._meta[VIEW]
}

const names = async (send: Send): Promise<string[]> =>
  (await send('tools/list')).tools.map(({ name }: { name: string }) => name)

describe.each(['2026-07-28', '2025-11-25', '2025-06-18'])('in %s', (revision) => {
  test('links the tools that ask to the page, for such clients only', async () => {
    const { app } = makeApp()
    const send = await peer(app, revision)
    const { tools } = await send('tools/list')
    const find = (name: string): Json => tools.find((tool: Json) => tool.name === name)
    expect(find('deploy')).toMatchObject({ _meta: { ui: { resourceUri: 'ui://rally/ask' } } })
    expect(find('deploy')).not.toHaveProperty('outputSchema')
    expect(find('trip')._meta.ui.resourceUri).toBe('ui://rally/ask')
    expect(find('ping')).not.toHaveProperty('_meta')
    expect(find('rally_result')._meta.ui.visibility).toEqual(['model'])
    expect(find('rally_answer')._meta.ui.visibility).toEqual(['app'])
    const { resources } = await send('resources/list')
    expect(resources).toEqual([
      { uri: 'ui://rally/ask', name: 'Questions of tools', mimeType: 'text/html;profile=mcp-app' },
    ])
    const hello = await send(revision === '2026-07-28' ? 'server/discover' : 'initialize')
    expect(hello.capabilities).toMatchObject({
      resources: {},
      extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } },
    })
  })

  test.each([
    { client: 'without the extension', capabilities: {} },
    { client: 'that shows forms itself', capabilities: { ...UI, elicitation: { form: {} } } },
    {
      client: 'that shows other pages',
      capabilities: { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/x'] } } },
    },
  ])('tells a client $client the same as ever, byte for byte', async ({ capabilities }) => {
    const [withApps, without] = [makeApp(), makeApp({ apps: false })]
    const methods = ['tools/list', ...(revision === '2026-07-28' ? ['server/discover'] : ['initialize'])]
    for (const method of methods) {
      const [one, other] = await Promise.all(
        [withApps, without].map(async ({ app }) =>
          JSON.stringify(await (await peer(app, revision, { capabilities }))(method)),
        ),
      )
      expect(one).toBe(other)
    }
    const send = await peer(withApps.app, revision, { capabilities })
    await expect(callTool(send, 'rally_result', { id: 'x' })).rejects.toThrow('Unknown tool: rally_result')
    await expect(callTool(send, 'rally_answer', { id: 'x', tool: 'ping' })).rejects.toThrow(
      'Unknown tool: rally_answer',
    )
    await expect(send('resources/read', { uri: 'ui://rally/ask' })).rejects.toThrow(/not found/)
  })

  test('asks twice, gives the model the exact result, and runs each step once', async () => {
    const { app, steps } = makeApp()
    const send = await peer(app, revision)
    const first = await callTool(send, 'deploy', { env: 'prod' })
    const one = first._meta[VIEW]
    expect(first.content[0].text).toContain(`Now call rally_result with id "${one.id}"`)
    expect(JSON.stringify([first.content, first.structuredContent ?? null])).not.toContain(one.state)
    const page = await Page.open(send)
    const waiting = callTool(send, 'rally_result', { id: one.id })
    const two = await page.answer(one, { go: accept({ confirm: true, note: 'hi' }) })
    expect(two).toMatchObject({ kind: 'asks', id: one.id })
    expect(two.questions.where.params.message).toContain('(note: hi)')
    const done = await page.answer(two, { where: EAST })
    expect(done).toMatchObject({ kind: 'done', heard: true })
    const result = await waiting
    expect(result.structuredContent).toEqual({ sha: 'c0ffee1', region: 'us-east' })
    expect(result).not.toHaveProperty(['_meta', VIEW])
    expect(steps).toEqual({ plan: 1, ship: 1 })
  })

  test('shows a page that is opened again how the call stands now', async () => {
    const { app, steps } = makeApp()
    const send = await peer(app, revision)
    const page = await Page.open(send)
    const one = await begin(send, 'deploy', { env: 'prod' })
    expect(await page.call({ id: one.id })).toEqual(one)
    const two = await page.answer(one, { go: YES })
    expect(await page.call({ id: one.id })).toEqual(two)
    await page.answer(two, { where: EAST })
    expect(await page.call({ id: one.id })).toMatchObject({
      kind: 'done',
      result: { structuredContent: { region: 'us-east' } },
    })
    // An old page with old answers is told the same, and runs nothing.
    expect(await page.answer(one, { go: { action: 'decline' } })).toMatchObject({ kind: 'done' })
    expect(await page.answer(two, { where: accept({ region: 'eu-north' }) })).toMatchObject({ kind: 'done' })
    expect(steps).toEqual({ plan: 1, ship: 1 })
  })

  test('runs a round once when two windows answer it at the same time', async () => {
    const { app, steps } = makeApp()
    const send = await peer(app, revision)
    const page = await Page.open(send)
    const two = await page.answer(await begin(send, 'deploy', { env: 'prod' }), { go: YES })
    const both = await Promise.all(
      ['eu-north', 'us-east'].map((region) => page.answer(two, { where: accept({ region }) })),
    )
    expect(both[0]).toMatchObject({ kind: 'done' })
    expect(both[1].result).toEqual(both[0].result)
    expect(steps.ship).toBe(1)
  })

  test('asks several questions at once, each with a decline of its own', async () => {
    const { app } = makeApp()
    const send = await peer(app, revision)
    const page = await Page.open(send)
    const asked = await begin(send, 'trip')
    expect(Object.keys(asked.questions)).toEqual(['where', 'who', 'train'])
    const [field = ''] = Object.keys(asked.questions.who.params.requestedSchema.properties)
    const answers = { where: accept({ city: 'Oslo' }), who: accept({ [field]: 'two' }), train: { action: 'decline' } }
    expect(await page.answer(asked, answers)).toMatchObject({
      kind: 'done',
      result: { content: [{ type: 'text', text: 'two to Oslo, some other way' }] },
    })
  })

  test('asks again what does not match, and says why', async () => {
    const { app } = makeApp()
    const send = await peer(app, revision)
    const page = await Page.open(send)
    const again = await page.answer(await begin(send, 'everything'), { all: accept({ name: 'x' }) })
    expect(again.kind).toBe('asks')
    expect(again.issues.all).toMatchObject({ name: 'Must have at least 2 characters', email: 'Is required' })
    expect(again.questions.all.params.message).not.toMatch(/name/)
  })

  test('asks for a visit until it is done', async () => {
    const { app, visited } = makeApp()
    const send = await peer(app, revision)
    const page = await Page.open(send)
    const asked = await begin(send, 'connect')
    expect(asked.questions['sign-in'].params).toMatchObject({
      mode: 'url',
      url: 'https://bank.example/authorize?account=1',
    })
    const again = await page.answer(asked, { 'sign-in': { action: 'accept' } })
    expect(again.questions['sign-in'].params.message).toContain('has not been completed yet')
    visited()
    expect(await page.answer(again, { 'sign-in': { action: 'accept' } })).toMatchObject({
      result: { content: [{ text: 'Connected.' }] },
    })
  })

  test('gives the model the result of a call that asks nothing, without a view for the page', async () => {
    const { app } = makeApp()
    const send = await peer(app, revision)
    const result = await callTool(send, 'pay', { amount: 5 })
    expect(result.content[0].text).toBe('Paid 5.')
    expect(result._meta?.[VIEW]).toBeUndefined()
  })

  test('may ask in forms, and neither the model nor for roots', async () => {
    const { app } = makeApp()
    const send = await peer(app, revision, { capabilities: { ...UI, sampling: {}, roots: {} } })
    expect((await callTool(send, 'can')).content[0].text).toBe('[true,false,false]')
    const failed = await callTool(send, 'summarise')
    expect(failed).toMatchObject({ isError: true })
    expect(failed.content[0].text).toContain("needs the client's model or its roots")
  })

  test('says what to add to a tool that asks without a page', async () => {
    for (const strict of [true, false]) {
      const send = await peer(makeApp({ strict }).app, revision)
      const failed = await callTool(send, 'unlinked')
      expect(failed).toMatchObject({ isError: true })
      expect(failed.content[0].text.includes('add `apps: true` to its options')).toBe(strict)
    }
  })

  test('tells the model that it still waits', async () => {
    const { app } = makeApp({ apps: { waitMs: 0 } })
    const send = await peer(app, revision)
    const { id } = await begin(send, 'deploy', { env: 'prod' })
    expect((await callTool(send, 'rally_result', { id })).content[0].text).toContain('Still waiting')
    expect(await callTool(send, 'rally_result', { id: `${id}x` })).toMatchObject({ isError: true })
  })

  test('follows a task in the page, and answers what it asks', async () => {
    const { app } = makeApp({ store: new MemoryStore(), tasks: { pollMs: 10, watchdogMs: false } })
    const send = await peer(app, revision)
    const page = await Page.open(send)
    const asked = await begin(send, 'provision', { name: 'web' })
    const waiting = callTool(send, 'rally_result', { id: asked.id })
    let view = await page.answer(asked, { cost: accept({ confirm: true }) })
    while (view.kind === 'working') view = await afterTurn(() => page.call({ id: asked.id }))
    const [key = ''] = Object.keys(view.questions)
    const [field = ''] = Object.keys(view.questions[key].params.requestedSchema.properties)
    view = await page.answer(view, { [key]: accept({ [field]: 'us-east' }) })
    while (view.kind === 'working') view = await afterTurn(() => page.call({ id: asked.id }))
    expect(view).toMatchObject({ kind: 'done', result: { content: [{ text: 'web runs in us-east.' }] } })
    expect((await waiting).content).toEqual([{ type: 'text', text: 'web runs in us-east.' }])
    app.drain()
    await app.idle()
  })

  test('continues on another instance, with a shared store and from the id alone', async () => {
    const store = new MemoryStore()
    const [here, there] = [makeApp({ store }), makeApp({ store })]
    const one = await begin(await peer(here.app, revision), 'deploy', { env: 'prod' })
    const waiting = callTool(await peer(here.app, revision), 'rally_result', { id: one.id })
    const page = await Page.open(await peer(there.app, revision))
    const two = await page.answer(await page.call({ id: one.id }), { go: YES })
    await page.answer(two, { where: EAST })
    expect((await waiting).structuredContent).toEqual({ sha: 'c0ffee1', region: 'us-east' })
    expect([here.steps, there.steps]).toEqual([
      { plan: 1, ship: 0 },
      { plan: 0, ship: 1 },
    ])
  })

  test('continues from what the page carries after a restart without a store', async () => {
    const one = await begin(await peer(makeApp().app, revision), 'deploy', { env: 'prod' })
    const page = await Page.open(await peer(makeApp().app, revision))
    expect(await page.call({ id: one.id })).toMatchObject({ kind: 'problem', reason: 'unknown' })
    expect(await page.answer(one, { go: YES })).toMatchObject({ kind: 'asks', id: one.id })
  })
})

describe.each(['2026-07-28', '2025-11-25'])('refuses, in %s,', (revision) => {
  const authenticate = {
    authenticate: (http: { header(name: string): string | undefined }) => {
      const [principal = '', ...scopes] = (http.header('authorization') ?? '').split(' ').slice(1)
      return { principal, scopes }
    },
  }
  const answers = { go: YES }

  test('the model that calls the tool of the page', async () => {
    const { app, steps } = makeApp()
    const send = await peer(app, revision)
    const one = await begin(send, 'deploy', { env: 'prod' })
    const { key } = await Page.open(send)
    const forged = [
      undefined,
      '',
      'x',
      one.state,
      one.id,
      `${key.slice(0, -2)}AA`,
      `${key}A`,
      'x'.repeat(100_000),
      { key },
    ]
    for (const guess of forged) {
      const result = await callTool(send, 'rally_answer', { ...one, key: guess, answers })
      expect(result).toMatchObject({ isError: true, _meta: { [VIEW]: { kind: 'problem', reason: 'stale' } } })
    }
    expect(await (await Page.open(send)).call({ id: one.id })).toEqual(one)
    expect(steps.plan).toBe(1)
  })

  test('answers and a state in a call of the model itself', async () => {
    const { app } = makeApp()
    const send = await peer(app, revision)
    const one = await begin(send, 'deploy', { env: 'prod' })
    const again = await send('tools/call', {
      name: 'deploy',
      arguments: { env: 'prod' },
      requestState: one.state,
      inputResponses: answers,
    })
    expect(again._meta[VIEW]).toMatchObject({ kind: 'asks', questions: { go: {} } })
    expect(again._meta[VIEW].id).not.toBe(one.id)
  })

  test('a state of a page from a client that carries states itself', async () => {
    const { app } = makeApp()
    const one = await begin(await peer(app, revision), 'deploy', { env: 'prod' })
    const other = await peer(app, '2026-07-28', { capabilities: { elicitation: { form: {} } } })
    const call = { name: 'deploy', arguments: { env: 'prod' } }
    await expect(other('tools/call', { ...call, requestState: one.state, inputResponses: answers })).rejects.toThrow(
      /expired/,
    )
    const { requestState } = await other('tools/call', call)
    const page = await Page.open(await peer(app, revision))
    expect(await page.answer({ ...one, state: requestState }, answers)).toMatchObject({
      kind: 'problem',
      reason: 'expired',
    })
  })

  test('another principal, with its own page and with the page of the first', async () => {
    const { app, steps } = makeApp({ http: authenticate })
    const [ann, bob] = [await peer(app, revision, { user: 'ann' }), await peer(app, revision, { user: 'bob' })]
    const one = await begin(ann, 'deploy', { env: 'prod' })
    const { key } = await Page.open(ann)
    const page = await Page.open(bob)
    expect(await page.call({ id: one.id })).toMatchObject({ reason: 'unknown' })
    expect(await page.answer(one, answers)).toMatchObject({ reason: 'expired' })
    expect(await page.call({ ...one, key, answers })).toMatchObject({ reason: 'stale' })
    expect(await callTool(bob, 'rally_result', { id: one.id })).toMatchObject({ isError: true })
    expect(steps.ship).toBe(0)
  })

  test('a state with other arguments, another tool, or a changed character', async () => {
    const { app } = makeApp()
    const send = await peer(app, revision)
    const page = await Page.open(send)
    const one = await begin(send, 'deploy', { env: 'prod' })
    const changes = [
      { arguments: { env: 'dev' } },
      { tool: 'trip' },
      { tool: 'no_such' },
      { tool: undefined },
      { state: `${one.state}A` },
      { state: 5 },
    ]
    for (const change of changes) {
      expect(await page.answer({ ...one, ...change }, answers)).toMatchObject({ kind: 'problem', reason: 'expired' })
    }
    expect(await page.call({ id: one.id })).toEqual(one)
  })

  test('a page whose key is not in the ring any more, and takes one of an older key', async () => {
    const [old, fresh] = KEYS.concat('another secret of the tests of apps, long enough')
    const page = await Page.open(await peer(makeApp({ keys: [old ?? ''] }).app, revision))
    const later = await peer(makeApp({ keys: [fresh ?? '', old ?? ''] }).app, revision)
    const one = await begin(later, 'deploy', { env: 'prod' })
    expect((await callTool(later, 'rally_answer', { key: page.key, id: one.id }))._meta[VIEW]).toEqual(one)
    const last = await peer(makeApp({ keys: [fresh ?? ''] }).app, revision)
    expect((await callTool(last, 'rally_answer', { key: page.key, id: one.id }))._meta[VIEW].reason).toBe('stale')
  })

  test('a caller who lost the scopes of the tool, or from whom it is hidden', async () => {
    const { app } = makeApp({ http: authenticate })
    const isAdmin = { visible: ({ caller }: Json): boolean => caller?.scopes.includes('admin') }
    app.tool('drop', { scopes: ['db'], apps: true }, async (_args, io) => String(await io.confirm('sure', 'Drop it?')))
    app.tool('hidden', { ...isAdmin, apps: true }, async (_args, io) => String(await io.confirm('sure', 'Sure?')))
    const able = await peer(app, revision, { user: 'ann db admin' })
    const unable = await peer(app, revision, { user: 'ann' })
    const page = await Page.open(unable)
    const dropped = await begin(able, 'drop')
    await expect(page.answer(dropped, { sure: YES })).rejects.toMatchObject({ status: 403 })
    expect(await page.call({ id: dropped.id })).toMatchObject({ reason: 'unknown' })
    const hidden = await begin(able, 'hidden')
    expect(await page.answer(hidden, { sure: YES })).toMatchObject({ reason: 'expired' })
    expect(await callTool(unable, 'rally_result', { id: hidden.id })).toMatchObject({ isError: true })
    await expect(callTool(unable, 'hidden')).rejects.toThrow('Unknown tool: hidden')
    expect(await names(unable)).not.toContain('hidden')
  })

  test('nothing of a task that has begun, though its tool is hidden or its scopes are lost', async () => {
    const { app } = makeApp({
      http: authenticate,
      store: new MemoryStore(),
      tasks: { pollMs: 10, watchdogMs: false },
      apps: { waitMs: 0 },
    })
    let isVisible = true
    const options = { scopes: ['db'], visible: () => isVisible, apps: true, task: 'always' } as const
    app.tool('drop', options, async (_args, io) => String(await io.confirm('sure', 'Drop it?')))
    const able = await peer(app, revision, { user: 'ann db' })
    const unable = await peer(app, revision, { user: 'ann' })
    const page = await Page.open(unable)
    let view = await begin(able, 'drop')
    const { id } = view
    isVisible = false
    while (view.kind === 'working') view = await afterTurn(() => page.call({ id }))
    expect(view).toMatchObject({ kind: 'asks', tool: 'drop' })
    const [key = ''] = Object.keys(view.questions)
    view = await page.answer(view, { [key]: YES })
    while (view.kind === 'working') view = await afterTurn(() => page.call({ id }))
    expect(view).toMatchObject({ kind: 'done', result: { content: [{ text: 'true' }] } })
    expect((await callTool(unable, 'rally_result', { id })).content[0].text).toBe('true')
    const other = await peer(app, revision, { user: 'bob db' })
    expect(await callTool(other, 'rally_result', { id })).toMatchObject({ isError: true })
    app.drain()
    await app.idle()
  })

  test('answers that are too deep or too many, like those of any client', async () => {
    const { app } = makeApp()
    const send = await peer(app, revision)
    const page = await Page.open(send)
    const one = await begin(send, 'deploy', { env: 'prod' })
    const deep: Json = {}
    for (let at = deep, depth = 0; depth < 200; depth += 1) at = at.a = {}
    await expect(page.answer(one, { go: deep })).rejects.toThrow(/nested at most/)
    const many = Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`k${index}`, {}]))
    await expect(page.answer(one, many)).rejects.toThrow(/at most 1000 answers/)
  })
})

test('expires with its ttl', async () => {
  const clock = vi.spyOn(Date, 'now')
  const { app } = makeApp({ apps: { ttl: 100 } })
  const send = await peer(app, '2026-07-28')
  const page = await Page.open(send)
  const one = await begin(send, 'deploy', { env: 'prod' })
  clock.mockReturnValue(Date.now() + 90_000)
  expect(await page.call({ id: one.id })).toEqual(one)
  clock.mockReturnValue(Date.now() + 200_000)
  expect(await page.answer(one, { go: YES })).toMatchObject({ reason: 'expired' })
  expect(await page.call({ id: one.id })).toMatchObject({ reason: 'unknown' })
  clock.mockRestore()
})

test('`when` decides for hosts that declare the wrong thing', async () => {
  const { app } = makeApp({
    apps: { when: ({ capabilities }) => (capabilities.roots === undefined ? undefined : true) },
  })
  expect(await names(await peer(app, '2026-07-28', { capabilities: { roots: {} } }))).toContain('rally_result')
  expect(await names(await peer(app, '2026-07-28', { capabilities: {} }))).not.toContain('rally_result')
  expect(await names(await peer(app, '2026-07-28'))).toContain('rally_result')
})

test('runs middleware around every call, with the name of the inner tool for answers', async () => {
  const { app } = makeApp()
  const seen: (string | undefined)[] = []
  app.use(async (call, next) => {
    seen.push(`${call.method} ${call.target ?? ''}`)
    return next()
  })
  const send = await peer(app, '2026-07-28')
  await send('tools/list')
  const page = await Page.open(send)
  await page.answer(await begin(send, 'deploy', { env: 'prod' }), { go: YES })
  expect(seen).toEqual(['tools/list ', 'resources/read ', 'tools/call deploy', 'tools/call deploy'])
})

describe.each(['2026-07-28', '2025-11-25'])('middleware in %s', (revision) => {
  test('runs once around each request of a page, whatever the request is', async () => {
    const { app } = makeApp({ store: new MemoryStore(), tasks: { pollMs: 10, watchdogMs: false } })
    let isDown = false
    const seen: Json[] = []
    app.use(async ({ method, target, args }, next) => {
      seen.push({ method, target, args })
      if (isDown) throw new Unavailable('Down for maintenance.', { retryAfterMs: 1_000, isUnprocessed: true })
      return next()
    })
    let sent = 0
    const peered = await peer(app, revision)
    const send: Send = (...given) => {
      sent += 1
      return peered(...given)
    }
    const page = await Page.open(send)
    const asked = await begin(send, 'provision', { name: 'web' })
    const { id } = asked
    expect(await page.call({ id })).toEqual(asked)
    expect(await page.call({ id: 'unknown' })).toMatchObject({ reason: 'unknown' })
    expect((await callTool(send, 'rally_answer', { key: 'wrong', id }))._meta[VIEW].reason).toBe('stale')
    let view = await page.answer(asked, { cost: YES })
    while (view.kind === 'working') view = await afterTurn(() => page.call({ id }))
    const [key = ''] = Object.keys(view.questions)
    const answers = { [key]: accept({ choice: 'us-east' }) }
    isDown = true
    await expect(page.answer(view, answers)).rejects.toThrow('Down for maintenance.')
    await expect(page.call({ id })).rejects.toThrow('Down for maintenance.')
    isDown = false
    // What was refused was not taken.
    expect(await page.call({ id })).toEqual(view)
    await page.answer(view, answers)
    expect(seen).toHaveLength(sent)
    expect(seen.at(-1)).toMatchObject({
      method: 'tools/call',
      args: { name: 'rally_answer', arguments: { id, answers } },
    })
    expect(JSON.stringify(seen)).not.toContain(page.key)
    app.drain()
    await app.idle()
  })
})

test.each(['2026-07-28', '2025-11-25'])('asks over standard streams too, in %s', async (revision) => {
  const { app, steps } = makeApp()
  const { send, close } = await pipePeer(app, revision)
  expect(await names(send)).toContain('rally_answer')
  const page = await Page.open(send)
  const one = await begin(send, 'deploy', { env: 'prod' })
  const waiting = callTool(send, 'rally_result', { id: one.id })
  await page.answer(await page.answer(one, { go: YES }), { where: EAST })
  expect((await waiting).structuredContent).toEqual({ sha: 'c0ffee1', region: 'us-east' })
  expect(steps).toEqual({ plan: 1, ship: 1 })
  await close()
})

test.each(['2026-07-28', '2025-11-25'])('says that there is no room for a question, in %s', async (revision) => {
  const { app } = makeApp({ limits: { maxWaitingBytes: 300 } })
  const failed = await callTool(await peer(app, revision), 'deploy', { env: 'prod' })
  expect(failed).toMatchObject({ isError: true })
  expect(failed.content[0].text).toContain('too many questions wait for this user already')
})

test('one older session that waits for many results does not keep another from waiting for its own', async () => {
  const { app } = makeApp({ limits: { maxTaskWaits: 4 } })
  const [greedy, other] = [await peer(app, '2025-11-25'), await peer(app, '2025-11-25')]
  const { id } = await begin(greedy, 'deploy', { env: 'prod' })
  const waits = Array.from({ length: 8 }, () => callTool(greedy, 'rally_result', { id }))
  const asked = await begin(other, 'pay', { amount: 200 })
  const waiting = callTool(other, 'rally_result', { id: asked.id })
  await (await Page.open(other)).answer(asked, { big: { action: 'decline' } })
  expect((await waiting).content[0].text).toBe('Not paid.')
  app.drain()
  await Promise.all(waits)
})

test('says at start that one instance is served without a store', () => {
  const warnings: string[] = []
  const logger = { warn: (message: string) => void warnings.push(message), error() {} }
  rally({ name: 'a', version: '1', apps: true, logger })
  expect(warnings[0]).toContain('`apps` without a `store`')
  rally({ name: 'a', version: '1', apps: true, logger, store: new MemoryStore() })
  expect(warnings).toHaveLength(1)
})

test.each([
  { apps: 'yes', why: '`apps` must be true, false or an object of options' },
  { apps: { waitMs: -1 }, why: '`apps.waitMs` must be a whole number of 0 or more' },
  { apps: { ttl: 0 }, why: '`apps.ttl` must be a number of seconds above 0' },
  { apps: { when: true }, why: '`apps.when` must be a function of the client' },
])('rejects the option $apps', ({ apps, why }) => {
  expect(() => rally({ name: 'a', version: '1', apps: apps as never })).toThrow(why)
})

test('keeps the names of its own tools', () => {
  expect(() => makeApp().app.tool('rally_answer', {}, () => 'x')).toThrow("is Rally's own")
  expect(() => makeApp({ apps: false }).app.tool('rally_answer', {}, () => 'x')).not.toThrow()
})
