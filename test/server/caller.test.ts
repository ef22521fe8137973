// Who is calling, in the handler: on every host, revision and carrier.
import { PassThrough } from 'node:stream'
import type { Authenticate, Io, Rally } from 'mcp-rally'
import { rally, send } from 'mcp-rally'
import type { Client } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { serve, stdio } from 'mcp-rally/node'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { Caller as TaskCaller, WITH_TASKS } from '../tasks/caller.ts'
import { Office } from '../tasks/office.ts'
import { accept, askedIn, call, errorOf, request, resultOf } from '../wire/messages.ts'

const META_KEY = 'com.example/trace'
const GRANTED = { alice: ['expenses:read'], bob: ['expenses:read', 'expenses:approve'] }

/** What a handler sees. */
function seen({ caller, client, meta }: Pick<Io, 'caller' | 'client' | 'meta'>): string {
  const { name, version, revision, extensions } = client
  return JSON.stringify({ caller, client: { name, version, revision, extensions }, trace: meta[META_KEY] })
}

function addTo(app: Rally): Rally {
  return app
    .tool('who', {}, (_args, io) => seen(io))
    .tool('ask', {}, async (_args, io) => {
      await io.ask('n', 'A number?', z.object({ n: z.number() }))
      return seen(io)
    })
    .tool('needs', { needs: {} }, async (_args, io) => io.scope('inner', (inner) => seen(inner)))
    .prompt(
      'greet',
      { arguments: z.object({ to: z.string().optional() }), complete: { to: (_typed, context) => [seen(context)] } },
      (_args, io) => seen(io),
    )
    .resource('a://b', { name: 'b' }, (io) => seen(io))
}

function newApp(): Rally {
  const keys = ['a secret of the tests of callers, long enough']
  return addTo(rally({ name: 'expenses', version: '1.0.0', keys, logger: { warn() {}, error() {} } }))
}

/** The user's name is the token. */
const authenticate: Authenticate = (http) => {
  const user = http.header('authorization')?.replace('Bearer ', '')
  if (user !== 'alice' && user !== 'bob') return undefined
  return { principal: user, scopes: GRANTED[user], claims: { department: `${user}'s` } }
}

function callerOf(user: keyof typeof GRANTED): object {
  return { principal: user, scopes: GRANTED[user], claims: { department: `${user}'s` } }
}

describe.each(['2026-07-28', '2025-11-25', '2025-06-18'])('over HTTP, in %s', (revision) => {
  const clients = new Map<keyof typeof GRANTED, Client>()
  let close: () => Promise<void>

  beforeAll(async () => {
    const serving = await serve(newApp(), { port: 0, authenticate, handleSignals: false })
    ;({ close } = serving)
    for (const user of ['alice', 'bob'] as const) {
      const client = await connect(serving.url, {
        headers: { authorization: `Bearer ${user}` },
        revision,
        name: `${user}'s client`,
        version: '7',
        onElicit: () => accept({ n: 1 }),
      })
      clients.set(user, client)
    }
  })

  afterAll(async () => {
    for (const client of clients.values()) await client.close()
    await close()
  })

  test.each(['who', 'ask', 'needs'])('the tool "%s" sees its own caller, however the calls are mixed', async (tool) => {
    const calls = Array.from({ length: 60 }, async (_, index) => {
      const user = index % 3 === 0 ? 'alice' : 'bob'
      const { content } = (await clients.get(user)?.callTool(tool, {})) ?? {}
      const [{ text } = { text: '' }] = (content ?? []) as { text: string }[]
      expect(JSON.parse(text)).toEqual({
        caller: callerOf(user),
        client: { name: `${user}'s client`, version: '7', revision, extensions: expect.any(Object) },
      })
    })
    await Promise.all(calls)
  })

  test('a prompt, a resource and a completion see theirs', async () => {
    const client = clients.get('alice')
    const { messages } = (await client?.getPrompt('greet', {})) ?? {}
    const { contents } = (await client?.readResource('a://b')) ?? {}
    const completed = await client?.complete({ type: 'ref/prompt', name: 'greet' }, { name: 'to', value: '' })
    const texts = [messages?.[0]?.content, contents?.[0], { text: completed?.values[0] }] as { text: string }[]
    for (const { text } of texts) expect(JSON.parse(text)).toMatchObject({ caller: callerOf('alice') })
  })
})

test('an anonymous caller is undefined', async () => {
  const { caller, client } = JSON.parse(textIn(await send(newApp(), call('who')))) as Record<string, object>
  expect(caller).toBeUndefined()
  expect(client).toMatchObject({ name: 'wire-tests', version: '1.0.0', revision: '2026-07-28' })
})

test('in memory, `send` names the caller', async () => {
  const options = { caller: { principal: 'carol', claims: { department: 'sales' } } }
  const { caller } = JSON.parse(textIn(await send(newApp(), call('who'), options))) as Record<string, object>
  expect(caller).toEqual({ principal: 'carol', scopes: [], claims: { department: 'sales' } })
})

test('a handler cannot give scopes or claims to callers who have none', async () => {
  const app = newApp().tool('greedy', {}, (_args, io) => {
    const { scopes = [], claims = {} } = io.caller ?? {}
    for (const change of [() => (scopes as string[]).push('admin'), () => Object.assign(claims, { admin: true })]) {
      expect(change).toThrow(TypeError)
    }
    return seen(io)
  })
  await send(app, call('greedy'), { principal: 'carol' })
  const { caller } = JSON.parse(textIn(await send(app, call('greedy'), { principal: 'dave' }))) as { caller: object }
  expect(caller).toEqual({ principal: 'dave', scopes: [], claims: {} })
})

test('over stdio, the host names the caller', async () => {
  const input = new PassThrough()
  const output = new PassThrough()
  const app = newApp().tool('greedy', {}, (_args, io) => {
    const { scopes = [] } = io.caller ?? {}
    ;(scopes as string[]).push('admin')
    return 'Granted.'
  })
  const over = stdio(app, { input, output, caller: { principal: 'dave', scopes: ['a'] } })
  const ask = async (tool: string): Promise<string> => {
    const answered = new Promise((resolve) => void output.once('data', (chunk: Buffer) => resolve(String(chunk))))
    input.write(`${JSON.stringify(call(tool))}\n`)
    return textIn(JSON.parse(String(await answered)) as object)
  }
  // It is one caller for all requests, so no handler may change it.
  expect(await ask('greedy')).not.toBe('Granted.')
  const { caller } = JSON.parse(await ask('who')) as Record<string, object>
  expect(caller).toEqual({ principal: 'dave', scopes: ['a'], claims: {} })
  input.end()
  await over
})

test('scopes, claims and _meta are those of the request being served; the client is that of the first reading', async () => {
  const app = newApp().tool('twice', {}, async (_args, io) => {
    const first = io.client.name
    await io.ask('n', 'A number?', z.object({ n: z.number() }))
    return JSON.stringify({ first, second: io.client.name, scopes: io.caller?.scopes, trace: io.meta[META_KEY] })
  })
  const asked = askedIn(await send(app, call('twice', {}, {}, sentBy('one')), { caller: { principal: 'a' } }))
  const round = { requestState: asked.state, inputResponses: { n: accept({ n: 1 }) } }
  const second = await send(app, call('twice', {}, round, sentBy('two')), {
    caller: { principal: 'a', scopes: ['new'] },
  })
  expect(JSON.parse(textIn(second))).toEqual({ first: 'one', second: 'one', scopes: ['new'], trace: 'of two' })
  // A flow whose handler never reads the client does not carry it.
  const plain = askedIn(await send(app, call('ask', {}, {}, sentBy('n'.repeat(60)))))
  const without = askedIn(await send(app, call('ask', {}, {}, sentBy('n'))))
  expect(plain.state.length).toBe(without.state.length)
})

test('a task sees the caller, the client and the _meta of the request that made it, on whatever instance it runs', async () => {
  const office = new Office()
  const first = office.instance(addTask)
  const message = call('long', {}, {}, { ...WITH_TASKS, [META_KEY]: 'kept' })
  const caller = { principal: 'alice', scopes: ['a'], claims: { department: 'sales' }, challenge: () => 'never stored' }
  const { taskId } = resultOf(await send(first.app, message, { caller })) as { taskId: string }
  const alice = new TaskCaller(office, first.app, 'alice')
  await alice.asked(taskId, 'n')
  first.app.interrupt()
  const second = office.instance(addTask)
  const again = new TaskCaller(office, second.app, 'alice')
  await again.update(taskId, { n: accept({ n: 1 }) })
  expect(JSON.parse(await again.said(taskId))).toMatchObject({
    caller: { principal: 'alice', scopes: ['a'], claims: { department: 'sales' } },
    client: { name: 'wire-tests', version: '1.0.0', revision: '2026-07-28' },
    trace: 'kept',
  })
})

/** Not by `send`, which writes the message as JSON first. */
async function answer(app: Rally, message: object): Promise<object> {
  return JSON.parse((await app.dispatch(message))?.text ?? '') as object
}

describe('what is too large', () => {
  test('a _meta past limits.maxMetaBytes fails the handler that reads it, and no other', async () => {
    const large = { [META_KEY]: 'x'.repeat(20_000) }
    const app = newApp().tool('blind', {}, () => 'done')
    expect(errorOf(await send(app, call('who', {}, {}, large)))).toMatchObject({
      code: -32602,
      message: '_meta must be at most 16384 bytes long (limits.maxMetaBytes)',
    })
    expect(textIn(await send(app, call('blind', {}, {}, large)))).toBe('done')
  })

  test('a _meta or extensions that nest thousands of levels deep overflow nothing', async () => {
    const deep = JSON.parse(`${'{"a":'.repeat(20_000)}{}${'}'.repeat(20_000)}`) as object
    expect(errorOf(await answer(newApp(), call('who', {}, {}, { [META_KEY]: deep })))).toMatchObject({
      code: -32602,
      message: '_meta must be nested at most 100 levels deep',
    })
    const capabilities = { extensions: { 'com.example/deep': deep, 'io.modelcontextprotocol/tasks': {} } }
    const meta = { 'io.modelcontextprotocol/clientCapabilities': capabilities }
    const app = newApp().tool('seen', {}, (_args, io) => JSON.stringify(io.client.extensions))
    expect(textIn(await answer(app, call('seen', {}, {}, meta)))).toContain('"com.example/deep":{}')
  })

  test('the settings of extensions are left out past 1 KiB, and a long name is cut', async () => {
    const extensions = { 'com.example/big': { x: 'x'.repeat(5_000) }, 'com.example/small': {} }
    const meta = {
      'io.modelcontextprotocol/clientCapabilities': { extensions },
      'io.modelcontextprotocol/clientInfo': { name: 'n'.repeat(5_000), version: '1' },
    }
    const { client } = JSON.parse(textIn(await send(newApp(), call('who', {}, {}, meta)))) as Record<string, object>
    expect(client).toMatchObject({
      name: 'n'.repeat(64),
      extensions: { 'com.example/big': {}, 'com.example/small': {} },
    })
  })

  test('claims past 4 KiB cannot become a task, and the log says why', async () => {
    const office = new Office()
    const { app, logged } = office.instance((each) => each.tool('long', { task: 'always' }, () => 'done'))
    const caller = { principal: 'a', claims: { much: 'x'.repeat(5_000) } }
    expect(errorOf(await send(app, request('tools/call', { name: 'long' }, WITH_TASKS), { caller }))).toMatchObject({
      code: -32603,
    })
    expect(logged.join()).toContain('Serving tools/call failed')
  })
})

function textIn(response: object | undefined): string {
  const { content } = resultOf(response) as { content: { text: string }[] }
  return content[0]?.text ?? ''
}

function addTask(app: Rally): Rally {
  return app.tool('long', { task: 'always' }, async (_args, io) => {
    await io.ask('n', 'A number?', z.object({ n: z.number() }))
    return seen(io)
  })
}

/** The `_meta` of a client of this name. */
function sentBy(name: string): object {
  return { 'io.modelcontextprotocol/clientInfo': { name, version: '1' }, [META_KEY]: `of ${name}` }
}
