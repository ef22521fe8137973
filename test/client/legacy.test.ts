// Our client against the official servers as they serve 2025-era clients, and against our own server's way of doing so:
// the same answerers, over HTTP and stdio.
import { fileURLToPath } from 'node:url'
import type { ServerChange, Client, ClientOptions, LogEntry, ProgressUpdate, ServerQuestion } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { serve } from 'mcp-rally/node'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { olderApp } from '../legacy/app.mjs'
import { listen, listenSse } from './legacy-server.mjs'
import { textOf } from './wires.ts'

const OFFICIAL = fileURLToPath(new URL('./legacy-server.mjs', import.meta.url))
const OURS = fileURLToPath(new URL('../legacy/process.mjs', import.meta.url))

type To = Parameters<typeof connect>[0]

interface Peer {
  readonly name: string
  /** Where it is, and how to stop it. */
  readonly start: () => Promise<{ readonly to: To; readonly stop?: () => Promise<void> }>
  readonly options?: ClientOptions
}

const command = (...args: string[]): To => ({ command: process.execPath, args })
const overHttp = (version: 'v1' | 'v2', how?: 'apart'): Peer['start'] => {
  return async () => {
    const { url, close } = await listen(version, how)
    return { to: url, stop: close }
  }
}

const official: readonly Peer[] = [
  { name: 'the v1 server over HTTP', start: overHttp('v1') },
  { name: 'the v1 server over HTTP, asking on the stream that belongs to no call', start: overHttp('v1', 'apart') },
  {
    name: 'the v1 server over HTTP, by fetch',
    start: overHttp('v1'),
    options: { fetch: (url, init) => fetch(url, init) },
  },
  {
    name: 'the v1 server over HTTP+SSE',
    start: async () => {
      const { url, close } = await listenSse()
      return { to: url, stop: close }
    },
  },
  { name: 'the v1 server over stdio', start: async () => ({ to: command(OFFICIAL, 'v1') }) },
  { name: 'the v2 server over HTTP', start: overHttp('v2') },
  { name: 'the v2 server over stdio', start: async () => ({ to: command(OFFICIAL, 'v2') }) },
]

const asked: ServerQuestion[] = []
const content: Record<string, Readonly<Record<string, unknown>>> = {
  'Deploy to prod?': { confirm: true },
  'Your name?': { name: 'Ada' },
  'How old, Ada?': { age: 36 },
  'How old are you, Ada?': { age: 36 },
  'Where to?': { to: 'sea', choice: 'sea' },
  'What for?': { what: 'fun', context: 'fun' },
  'Name 1?': { name: 'Ada' },
  'Name 2?': { name: 'Bob' },
}

const accepting: NonNullable<ClientOptions['onElicit']> = ({ message }) => ({
  action: 'accept',
  content: content[message] ?? {},
})

/** Changed by tests that answer otherwise. */
let answering = accepting
let visiting: () => { action: 'accept' | 'decline' | 'cancel' } = () => ({ action: 'accept' })

afterEach(() => {
  answering = accepting
  visiting = () => ({ action: 'accept' })
})

/** One answerer for each kind of question serves whatever asks. */
const everybody: ClientOptions = {
  onElicit: (question, context) => {
    asked.push(question)
    return answering(question, context)
  },
  onVisit: (question) => {
    asked.push(question)
    return visiting()
  },
  onSample: () => ({ role: 'assistant', content: { type: 'text', text: 'Short.' }, model: 'm1' }),
  onRoots: () => [{ uri: 'file:///a' }, { uri: 'file:///b' }],
}

const logged: LogEntry[] = []

describe.each(official)('with $name', ({ start, options = {} }) => {
  let client: Client
  let stop: (() => Promise<void>) | undefined
  beforeAll(async () => {
    const started = await start()
    ;({ stop } = started)
    client = await connect(started.to, { ...options, ...everybody, onLog: (entry) => void logged.push(entry) })
  })
  afterAll(async () => {
    await client.close()
    await stop?.()
  })

  test('an older revision is agreed on, and the server says who it is', () => {
    expect(client.revision).toBe('2025-11-25')
    expect(client.server).toMatchObject({ name: expect.stringContaining('official'), instructions: 'Be patient.' })
  })

  test.each([
    ['a form', 'deploy', { env: 'prod' }, 'Deployed to prod: true'],
    ['a page to visit', 'sign_in', {}, 'The user said accept.'],
    ['a sample', 'summarize', {}, 'm1: Short.'],
    ['the roots', 'workspace', {}, 'file:///a file:///b'],
    ['one question after another', 'survey', {}, 'Ada is 36.'],
    ['several questions at once', 'trip', {}, 'sea, Short., 2'],
  ])('a tool that asks %s gets its answer', async (_what, name, args, text) => {
    const result = await client.callTool(name, args)
    expect(textOf(result)).toBe(text)
    expect(result.resultType).toBe('complete')
  })

  test('a server that waits for other roots is told of them', async () => {
    const following = client.callTool('follow')
    await client.rootsChanged()
    expect(textOf(await following)).toBe('file:///a file:///b')
  })

  test('tools that ask at the same time each get their own answers', async () => {
    const calls = [client.callTool('deploy', { env: 'prod' }), client.callTool('survey'), client.callTool('trip')]
    const results = await Promise.all(calls)
    expect(results.map(textOf)).toEqual(['Deployed to prod: true', 'Ada is 36.', 'sea, Short., 2'])
  })

  test('a page to visit is shown with its host', () => {
    expect(asked).toContainEqual(
      expect.objectContaining({ kind: 'visit', url: 'https://pages.example/in', host: 'pages.example' }),
    )
  })

  test('a tool that refuses until a page was visited is called again after that', async () => {
    expect(textOf(await client.callTool('link_account'))).toBe('Linked.')
    expect(asked).toContainEqual(
      expect.objectContaining({ kind: 'visit', key: 'e2', message: 'Link it.', url: 'https://pages.example/link' }),
    )
    visiting = () => ({ action: 'decline' })
    await expect(client.callTool('link_account')).rejects.toMatchObject({ rpcCode: -32042 })
  })

  test.each(['decline', 'cancel'] as const)('a %s is told', async (action) => {
    answering = () => ({ action })
    visiting = () => ({ action })
    expect(textOf(await client.callTool('deploy', { env: 'prod' }))).toBe(`The user said ${action}.`)
    expect(textOf(await client.callTool('sign_in'))).toBe(`The user said ${action}.`)
  })

  test('a call is a single round to whoever takes its rounds in their own hands', async () => {
    const rounds = []
    for await (const round of client.rounds({ tool: 'survey' })) rounds.push(round)
    expect(rounds).toMatchObject([{ kind: 'done', result: { content: [{ text: 'Ada is 36.' }] } }])
  })

  test('an answer that does not fit ends the call', async () => {
    answering = () => ({ action: 'accept', content: { confirm: 'maybe' } })
    const calling = client.callTool('deploy', { env: 'prod' })
    await expect(calling).rejects.toMatchObject({ code: 'ANSWER_INVALID' })
  })

  test("an answerer's failure ends the call with it", async () => {
    const failure = new Error('The screen is off.')
    answering = () => {
      throw failure
    }
    await expect(client.callTool('deploy', { env: 'prod' })).rejects.toBe(failure)
  })

  test('prompts ask too', async () => {
    const { messages } = await client.getPrompt('brief', { topic: 'moon' })
    expect(messages).toMatchObject([{ content: { text: 'moon for fun' } }])
  })

  test('lists, resources, templates and completion are there', async () => {
    expect((await client.listTools()).map(({ name }) => name)).toContain('deploy')
    expect(await client.listPrompts()).toMatchObject([{ name: 'brief' }])
    expect(await client.listResources()).toMatchObject([{ uri: 'note://plain' }])
    expect(await client.listResourceTemplates()).toMatchObject([{ uriTemplate: 'note://by/{id}' }])
    expect(await client.readResource('note://plain')).toMatchObject({ contents: [{ text: 'A note.' }] })
    const ref = { type: 'ref/resource', uri: 'note://by/{id}' } as const
    expect(await client.complete(ref, { name: 'id', value: 't' })).toMatchObject({ values: ['two'] })
  })

  test('progress and the log are told, from the level that was set', async () => {
    logged.length = 0
    const progress: ProgressUpdate[] = []
    await client.callTool('report', {}, { onProgress: (each) => void progress.push(each) })
    expect(progress).toEqual([{ progress: 1, total: 2, message: 'half' }])
    await vi.waitFor(() => expect(logged).toEqual([{ level: 'warning', data: 'late' }]))
  })

  test('an aborted call is cancelled at the server', async () => {
    logged.length = 0
    const controller = new AbortController()
    const calling = client.callTool('wait', {}, { signal: controller.signal })
    calling.catch(() => {})
    await vi.waitFor(() => expect(logged).toContainEqual({ level: 'warning', data: 'waiting' }))
    controller.abort()
    await expect(calling).rejects.toMatchObject({ code: 'ABORTED' })
    await vi.waitFor(() => expect(logged).toContainEqual({ level: 'warning', data: 'was cancelled' }))
  })

  test('changes are told of', async () => {
    const changes: ServerChange[] = []
    const wish = { tools: true, prompts: true, uris: ['note://plain'] }
    for await (const change of client.subscribe(wish)) {
      changes.push(change)
      if (change.type === 'acknowledged') await client.callTool('change')
      if (changes.length === 3) break
    }
    expect(changes[0]).toMatchObject({ type: 'acknowledged', accepted: { tools: true, uris: ['note://plain'] } })
    expect(changes.slice(1)).toEqual(
      expect.arrayContaining([{ type: 'tools' }, { type: 'updated', uri: 'note://plain' }]),
    )
  })
})

/** What is asked, the tool that asks it, its arguments, and what it says in the end. */
type Asking = [string, string, Record<string, unknown>, string | RegExp]

const ours: readonly Peer[] = ['2025-11-25', '2025-06-18', '2025-03-26'].flatMap((revision) => [
  {
    name: `our own server over HTTP in ${revision}`,
    start: async () => {
      const { url, close } = await serve(olderApp(), { port: 0, handleSignals: false, drainMs: 100 })
      return { to: url, stop: close }
    },
    options: { revision },
  },
  {
    name: `our own server over stdio in ${revision}`,
    start: async () => ({ to: command(OURS) }),
    options: { revision },
  },
])

describe.each(ours)('with $name', ({ start, options = {} }) => {
  const { revision = '' } = options
  let client: Client
  let stop: (() => Promise<void>) | undefined
  beforeAll(async () => {
    const started = await start()
    ;({ stop } = started)
    client = await connect(started.to, { ...options, ...everybody, onLog: (entry) => void logged.push(entry) })
  })
  afterAll(async () => {
    await client.close()
    await stop?.()
  })

  test('the server knows the revision and what is declared', async () => {
    expect(client.revision).toBe(revision)
    expect(textOf(await client.callTool('revision'))).toMatch(new RegExp(`^${revision} .*sampling.* roots`))
  })

  const forms: Asking[] = [
    ['a form', 'deploy', { env: 'prod' }, /^Deployed plan \d+ of \d+ to prod$/],
    ['one question after another', 'survey', {}, 'Ada is 36.'],
    ['several questions at once', 'trip', {}, 'sea, Short., 2'],
    ['its rounds by hand', 'wizard', {}, 'Ada, Bob'],
  ]
  const visits: Asking[] = [['a page to visit', 'sign_in', {}, 'Signed in.']]
  test.each<Asking>([
    ['a sample', 'summarize', {}, 'Short.'],
    ['the roots', 'workspace', {}, 'file:///a file:///b'],
    ...(revision === '2025-03-26' ? [] : forms),
    ...(revision === '2025-11-25' ? visits : []),
  ])('a tool that asks %s gets its answer', async (_what, name, args, text) => {
    expect(textOf(await client.callTool(name, args))).toEqual(
      typeof text === 'string' ? text : expect.stringMatching(text),
    )
  })

  test('progress and the log are told, from the level that was set', async () => {
    logged.length = 0
    const progress: ProgressUpdate[] = []
    await client.callTool('report', {}, { onProgress: (each) => void progress.push(each) })
    expect(progress).toEqual([{ progress: 1, total: 2, message: 'half' }])
    await vi.waitFor(() => expect(logged).toEqual([{ level: 'warning', data: { it: 'is late' }, logger: 'clock' }]))
  })
})

describe('what was not given to answer with', () => {
  let url: string
  let close: () => Promise<void>
  beforeAll(async () => {
    ;({ url, close } = await listen('v1'))
  })
  afterAll(() => close())

  test('is not declared, and the server says so', async () => {
    const client = await connect(url)
    expect(await client.callTool('deploy', { env: 'prod' })).toMatchObject({ isError: true })
    await client.close()
  })

  test('was to be answered by hand: then the call ends, because nothing of it can be saved', async () => {
    const client = await connect(url, { can: ['elicitation.form'] })
    await expect(client.callTool('deploy', { env: 'prod' })).rejects.toMatchObject({
      code: 'NOT_RESUMABLE',
      message: expect.stringMatching(/2025-11-25.*to connect\(\)/),
    })
    await client.close()
  })
})

test('closing the client ends its session', async () => {
  const { url, sessions, close } = await listen('v1')
  const client = await connect(url)
  expect(sessions.size).toBe(1)
  await client.close()
  expect(sessions.size).toBe(0)
  await close()
})
