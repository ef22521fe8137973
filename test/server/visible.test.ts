// What a caller may know of: lists by scopes, and things that are hidden, on every path, revision and round.
import type { Authenticate, Rally } from 'mcp-rally'
import { MemoryStore, rally, send } from 'mcp-rally'
import type { Client } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { serve } from 'mcp-rally/node'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { Caller as TaskCaller, WITH_TASKS } from '../tasks/caller.ts'
import { Office } from '../tasks/office.ts'
import { accepted, answerTo, fetchSegment, openCarrying, readSegment } from '../legacy/carried.ts'
import type { Ask, Wired } from '../legacy/raw.ts'
import { Events, hosts, RawSession, send as post } from '../legacy/raw.ts'
import { accept, askedIn, call, errorOf, headersOf, request, resultOf } from '../wire/messages.ts'

const KEYS = ['a secret of the tests of visible, long enough']
const logger = { warn() {}, error() {} }

/** Only alice may know of what is hers. */
const forAlice = ({ caller }: { caller?: { principal: string } | undefined }): boolean => caller?.principal === 'alice'

function newApp(options: object = {}): Rally {
  const visible = forAlice
  const completes = { arguments: z.object({ a: z.string().optional() }), complete: { a: ['one'] } }
  return rally({ name: 'seen', version: '1.0.0', keys: KEYS, logger, ...options })
    .tool('open', {}, () => 'open')
    .tool('scoped', { scopes: ['admin'] }, () => 'scoped')
    .tool('hers', { visible }, () => 'hers')
    .tool('hers_scoped', { visible, scopes: ['admin'] }, () => 'hers')
    .prompt('p_open', {}, () => 'open')
    .prompt('p_hers', { ...completes, visible }, () => 'hers')
    .resource('a://open', { name: 'open' }, () => 'open')
    .resource('a://hers', { name: 'hers', visible }, () => 'hers')
    .resourceTemplate('t://hers/{x}', { name: 'hers', visible, complete: { x: ['one'] } }, () => 'hers')
    .resourceTemplate('t://open/{x}', { name: 'open' }, () => 'open')
}

const authenticate: Authenticate = (http) => {
  const [user = '', ...scopes] = (http.header('authorization') ?? '').split(' ').slice(1)
  return user === '' ? undefined : { principal: user, scopes }
}

describe.each(['2026-07-28', '2025-11-25'])('over HTTP, in %s', (revision) => {
  const app = newApp({ pageSize: 2 })
  let url = ''
  let close: () => Promise<void>
  const clients: Client[] = []
  beforeAll(async () => {
    ;({ url, close } = await serve(app, { port: 0, authenticate, handleSignals: false }))
  })
  afterAll(async () => {
    for (const client of clients) await client.close()
    await close()
  })

  async function as(...user: string[]): Promise<Client> {
    const headers = { authorization: `Bearer ${user.join(' ')}` }
    const client = await connect(url, { headers, revision })
    clients.push(client)
    return client
  }

  test.each([
    { user: ['alice', 'admin'], tools: ['open', 'scoped', 'hers', 'hers_scoped'], hers: true },
    { user: ['alice'], tools: ['open', 'hers'], hers: true },
    { user: ['bob', 'admin'], tools: ['open', 'scoped'], hers: false },
    { user: ['bob'], tools: ['open'], hers: false },
  ])('lists show what $user may see, over all pages', async ({ user, tools, hers }) => {
    const client = await as(...user)
    expect(names(await client.listTools())).toEqual(tools)
    expect(names(await client.listPrompts())).toEqual(hers ? ['p_open', 'p_hers'] : ['p_open'])
    expect(names(await client.listResources())).toEqual(hers ? ['open', 'hers'] : ['open'])
    expect(names(await client.listResourceTemplates())).toEqual(hers ? ['hers', 'open'] : ['open'])
  })

  test('what is hidden is unknown to every method, in the words for what does not exist', async () => {
    const bob = await as('bob')
    const alice = await as('alice')
    const hidden = await refusals(bob, 'hers')
    expect(hidden).toEqual(await refusals(bob, 'none'))
    expect(hidden).not.toContain('served')
    expect(new Set(await refusals(alice, 'hers'))).toEqual(new Set(['served']))
    // Scopes would be a 403, which says that there is something.
    await expect(bob.callTool('hers_scoped', {})).rejects.toThrow('Unknown tool: hers_scoped')
    await expect(bob.callTool('scoped', {})).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
  })
})

/** Sends a call of this tool. */
type CallTool = (name: string, args: object, headers: Record<string, string>) => Promise<Response>

async function inSession(ask: Ask, revision: string, headers: Record<string, string>): Promise<CallTool> {
  const session = await RawSession.open(ask, { revision, headers })
  return (name, args, more) => session.post(callMessage(name, args), more)
}

async function inBatch(ask: Ask, _revision: string, headers: Record<string, string>): Promise<CallTool> {
  const session = await RawSession.open(ask, { revision: '2025-03-26', headers })
  return (name, args, more) => session.post([{ jsonrpc: '2.0', id: 2, method: 'ping' }, callMessage(name, args)], more)
}

async function alone(ask: Ask, _revision: string, headers: Record<string, string>): Promise<CallTool> {
  return (name, args, more) => {
    const message = { ...call(name, args), id: 1 }
    return post(ask, message, { ...headersOf(message), ...headers, ...more })
  }
}

function callMessage(name: string, args: object): object {
  return { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }
}

const wires = [
  { revision: '2026-07-28', open: alone },
  { revision: '2025-11-25', open: inSession },
  { revision: '2025-06-18', open: inSession },
  { revision: '2025-03-26', open: inSession },
  { revision: '2025-03-26, in a batch', open: inBatch },
  { revision: '2026-06-XX', open: inSession },
  { revision: '2026-02-03-draft', open: inSession },
]

const as = (...user: string[]): Record<string, string> => ({ authorization: `Bearer ${user.join(' ')}` })

describe.each(hosts)('over $name', (host) => {
  test.each(wires)(
    'the headers that a hidden tool asks for do not show it, in $revision',
    async ({ revision, open }) => {
      const region = { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } } as const
      const app = newApp({ revisions: ['2026-06-XX', '2026-02-03-draft'] })
      app.tool('hers_routed', { visible: forAlice, scopes: ['admin'], input: region }, () => 'hers')
      const { ask, close } = await host.open(app, { authenticate })
      const alice = await open(ask, revision, as('alice', 'admin'))
      const bob = await open(ask, revision, as('bob'))
      for (const args of [{}, { region: 'eu' }]) {
        for (const headers of [{}, { 'Mcp-Param-Region': 'us' }, { 'Mcp-Param-Region': 'eu' }]) {
          const answer = await answerText(bob, 'hers_routed', args, headers)
          expect(answer).toEqual(await answerText(bob, 'none_routed', args, headers))
          expect(answer).toContain('Unknown tool: NAME')
        }
      }
      expect(await answerText(alice, 'hers_routed', { region: 'eu' }, { 'Mcp-Param-Region': 'us' })).toContain('-32020')
      expect(await answerText(alice, 'hers_routed', { region: 'eu' }, { 'Mcp-Param-Region': 'eu' })).toContain('"hers"')
      await close()
    },
  )

  test('an answer whose call is hidden by then gets the error of an unknown tool, whatever the scopes', async () => {
    let isOpen = true
    const app = newApp().tool('ask', { visible: () => isOpen, scopes: ['admin'] }, async (_args, io) => {
      await io.confirm('sure', 'Sure?')
      return 'done'
    })
    const { ask, close } = await host.open(app, { authenticate })
    const session = await openCarrying(ask, '2025-11-25', as('bob', 'admin'))
    const { last, lastId } = await readSegment(await session.call('ask'))
    const answer = answerTo(last, accepted({ confirm: true }))
    expect((await session.post(answer, as('bob'))).status).toBe(403)
    isOpen = false
    expect((await session.post(answer, as('bob'))).status).toBe(202)
    expect((await fetchSegment(session, lastId)).last?.error).toMatchObject({ message: 'Unknown tool: ask' })
    await close()
  })

  test('a session may subscribe to a hidden resource as to one that does not exist, and is told nothing', async () => {
    const app = newApp()
    const { ask, close } = await host.open(app, { authenticate })
    const told = async (user: string): Promise<Wired | undefined> => {
      const session = await RawSession.open(ask, { headers: as(user) })
      const stream = new Events(await session.get())
      for (const uri of ['a://hers', 'a://none', 'a://open']) {
        expect(await session.json('resources/subscribe', { uri })).toMatchObject({ result: {} })
      }
      app.notify.resourceUpdated('a://hers')
      app.notify.resourceUpdated('a://open')
      const first = await stream.message()
      await stream.lose()
      return first
    }
    expect(await told('alice')).toMatchObject({ params: { uri: 'a://hers' } })
    expect(await told('bob')).toMatchObject({ params: { uri: 'a://open' } })
    await close()
  })
})

test('a round after the first is refused if the tool is hidden by then', async () => {
  let isOpen = true
  const app = rally({ name: 'seen', version: '1', keys: KEYS, logger }).tool(
    'ask',
    { visible: () => isOpen },
    async (_args, io) => {
      await io.ask('n', 'A number?', z.object({ n: z.number() }))
      return 'done'
    },
  )
  const { state } = askedIn(await send(app, call('ask')))
  const round = { requestState: state, inputResponses: { n: accept({ n: 1 }) } }
  isOpen = false
  expect(errorOf(await send(app, call('ask', {}, round)))).toMatchObject({ code: -32602, message: 'Unknown tool: ask' })
  isOpen = true
  expect(resultOf(await send(app, call('ask', {}, round)))).toMatchObject({ content: [{ text: 'done' }] })
})

test('a task that has begun goes on, and its owner may read and answer it', async () => {
  const office = new Office()
  let isOpen = true
  const { app } = office.instance((each) =>
    each.tool('long', { task: 'always', visible: () => isOpen }, async (_args, io) => {
      await io.ask('n', 'A number?', z.object({ n: z.number() }))
      return 'done'
    }),
  )
  const alice = new TaskCaller(office, app, 'alice')
  const id = await alice.begin('long')
  await alice.asked(id, 'n')
  isOpen = false
  await alice.update(id, { n: accept({ n: 1 }) })
  expect(await alice.said(id)).toBe('done')
  expect(errorOf(await alice.send(call('long', {}, {}, WITH_TASKS)))).toMatchObject({ message: 'Unknown tool: long' })
})

test('a task that has begun may be cancelled, in 2025-11-25 too', async () => {
  let isOpen = true
  const app = newApp({ store: new MemoryStore() })
  app.tool('long', { task: 'always', visible: () => isOpen }, async (_args, io) => {
    await io.confirm('sure', 'Sure?')
    return 'done'
  })
  const session = await RawSession.open((init) => app.fetch(new Request('http://localhost/mcp', init)))
  const begin = (): Promise<Wired> => session.json('tools/call', { name: 'long', task: {} })
  const { task } = resultOf(await begin()) as { task: { taskId: string } }
  isOpen = false
  expect((await begin()).error).toMatchObject({ message: 'Unknown tool: long' })
  const { result } = await session.json('tasks/cancel', { taskId: task.taskId })
  expect(result).toMatchObject({ taskId: task.taskId, status: 'cancelled' })
  app.interrupt()
})

test('changes of a hidden resource are not told', async () => {
  const app = newApp()
  const told: Record<string, string[]> = { alice: [], bob: [] }
  for (const user of ['alice', 'bob']) {
    const notifications = { resourceSubscriptions: ['a://hers', 'a://open'] }
    void send(app, request('subscriptions/listen', { notifications }), {
      caller: { principal: user },
      onNotification: ({ method, params }) => {
        if (method === 'notifications/resources/updated') told[user]?.push(String(params?.['uri']))
      },
    })
  }
  await new Promise((resolve) => void setImmediate(resolve))
  app.notify.resourceUpdated('a://hers')
  app.notify.resourceUpdated('a://open')
  expect(told).toEqual({ alice: ['a://hers', 'a://open'], bob: ['a://open'] })
  app.interrupt()
})

test('a cursor does not tell whether something hidden exists', async () => {
  const app = newApp()
  const listed = async (name: string, principal: string): Promise<object | undefined> =>
    send(app, request('tools/list', { cursor: Buffer.from(name).toString('base64url') }), { caller: { principal } })
  expect(errorOf(await listed('hers', 'bob'))).toEqual(errorOf(await listed('none', 'bob')))
  expect(resultOf(await listed('hers', 'alice'))).toHaveProperty('tools')
})

test('lists that depend on the caller are private, and others are as before', async () => {
  expect(await scopeOf(newApp())).toBe('private')
  expect(await scopeOf(rally({ name: 'plain', version: '1', keys: KEYS }).tool('t', {}, () => 't'))).toBe('public')
})

test('a function that throws or rejects hides the thing, and the log says so; anything but a function is an error', async () => {
  const logged: object[] = []
  const log = (message: string, fields?: object): void => void logged.push({ message, ...fields })
  const app = rally({ name: 'seen', version: '1', keys: KEYS, logger: { warn: log, error: log } })
  const error = new Error('no directory')
  app.tool('t', { visible: () => JSON.parse('no JSON') as boolean }, () => 't')
  app.prompt('p', { visible: () => Promise.reject(error) as never }, () => 'p')
  const caller = { principal: 'bob' }
  expect(errorOf(await send(app, call('t'), { caller }))).toMatchObject({ message: 'Unknown tool: t' })
  errorOf(await send(app, request('prompts/get', { name: 'p' }), { caller }))
  expect(logged).toMatchObject([
    { message: 'Tool "t": visible() failed. It is hidden from the caller.', principal: 'bob' },
    {
      message:
        'Prompt "p": visible() must be synchronous and return true or false, got a promise. It is hidden from the caller.',
    },
    { message: 'Prompt "p": visible() failed. It is hidden from the caller.', principal: 'bob', error },
  ])
  expect(() => app.tool('u', { visible: true as never }, () => 'u')).toThrow('Tool "u": `visible` must be a function')
})

test.each([
  ['is async', async () => true, 'a promise'],
  ['returns a string', () => 'yes', 'a value of type string'],
  ['returns nothing', () => undefined, 'a value of type undefined'],
])('a function that %s hides the thing, and the log says so once for each', async (_how, visible, got) => {
  const logged: string[] = []
  const log = (message: string): void => void logged.push(message)
  const app = rally({ name: 'seen', version: '1', keys: KEYS, logger: { warn: log, error: log } })
  for (const name of ['a', 'b']) app.tool(name, { visible: visible as never }, () => name)
  for (let i = 0; i < 2; i += 1) {
    expect(resultOf(await send(app, request('tools/list')))).toMatchObject({ tools: [] })
    expect(errorOf(await send(app, call('a')))).toMatchObject({ message: 'Unknown tool: a' })
  }
  const rule = 'visible() must be synchronous and return true or false'
  expect(logged).toEqual(['a', 'b'].map((name) => `Tool "${name}": ${rule}, got ${got}. It is hidden from the caller.`))
})

function names(list: readonly { name: string }[]): string[] {
  return list.map(({ name }) => name)
}

/** How each method refuses this name. */
async function refusals(client: Client, name: string): Promise<string[]> {
  const asked = [
    client.callTool(name, {}),
    client.getPrompt(`p_${name}`, {}),
    client.readResource(`a://${name}`),
    client.readResource(`t://${name}/1`),
    client.complete({ type: 'ref/prompt', name: `p_${name}` }, { name: 'a', value: '' }),
    client.complete({ type: 'ref/resource', uri: `t://${name}/{x}` }, { name: 'x', value: '' }),
  ]
  const settled = await Promise.allSettled(asked)
  return settled.map((each) =>
    each.status === 'fulfilled' ? 'served' : (each.reason as Error).message.replaceAll(name, 'NAME'),
  )
}

/** All that a caller gets, without the name of the tool. */
async function answerText(callTool: CallTool, name: string, args: object, headers: object): Promise<string> {
  const response = await callTool(name, args, { ...headers })
  const { 'content-type': type, 'www-authenticate': challenge } = Object.fromEntries(response.headers)
  const parts = [response.status, type, challenge, await response.text()]
  return parts.join('\n').replaceAll(name, 'NAME')
}

async function scopeOf(app: Rally): Promise<unknown> {
  return resultOf(await send(app, request('tools/list')))['cacheScope']
}
