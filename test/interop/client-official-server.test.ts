// Our client against the official server: every way that it documents to ask, and the rest of what it serves.
import { fileURLToPath } from 'node:url'
import type { CallToolResult, Client, ClientOptions, ServerQuestion } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { Child } from './child.ts'

const SERVER = fileURLToPath(new URL('./client-official-server.mjs', import.meta.url))

interface Connected {
  readonly client: Client
  /** Another client of the same server, or of another of its kind. */
  readonly another: (options: ClientOptions) => Promise<Client>
  readonly close: () => Promise<void>
}

type Connecting = (options: ClientOptions) => Promise<Connected>

async function connected(
  to: Parameters<typeof connect>[0],
  options: ClientOptions,
  stop: () => unknown,
): Promise<Connected> {
  const client = await connect(to, options)
  const clients = [client]
  const another = async (own: ClientOptions): Promise<Client> => {
    const made = await connect(to, own)
    clients.push(made)
    return made
  }
  const close = async (): Promise<void> => {
    await Promise.all(clients.map((each) => each.close()))
    await stop()
  }
  return { client, another, close }
}

const overHttp: Connecting = async (options) => {
  const child = new Child(process.execPath, [SERVER])
  const [, url = ''] = await child.printed.match(/listening on (\S+)/)
  return connected(url, options, () => child.kill())
}

const overStdio: Connecting = (options) =>
  connected({ command: process.execPath, args: [SERVER, '--stdio'] }, options, () => {})

const asked: ServerQuestion[] = []
const answers: Record<string, Readonly<Record<string, unknown>>> = {
  who: { name: 'Ada', age: 36 },
  when: { days: ['sun'] },
  tone: { tone: 'kind' },
}

/** One answerer for each kind of question serves whatever asks. */
const everybody: ClientOptions = {
  onElicit: (question) => {
    asked.push(question)
    return { action: 'accept', content: answers[question.key] ?? { confirm: true } }
  },
  onVisit: (question) => {
    asked.push(question)
    return { action: 'accept' }
  },
  onSample: ({ messages }) => ({
    role: 'assistant',
    model: 'a-model',
    content: { type: 'text', text: `${messages.length} message` },
  }),
  onRoots: () => [{ uri: 'file:///home/ada', name: 'home' }],
}

const textOf = ({ content: [block] }: Pick<CallToolResult, 'content'>): string | undefined =>
  block?.type === 'text' ? block.text : undefined

describe.each<[string, Connecting]>([
  ['HTTP', overHttp],
  ['stdio', overStdio],
])('the official server over %s', (_name, connecting) => {
  let client: Client
  let another: Connected['another']
  let close: Connected['close']
  beforeAll(async () => {
    ;({ client, another, close } = await connecting(everybody))
  })
  afterAll(() => close())

  test('says who it is and what it can do', () => {
    expect(client.server).toMatchObject({ name: 'official', version: '2.0.0', instructions: 'Ask away.' })
    expect(client.server.capabilities).toMatchObject({ tools: { listChanged: true }, completions: {} })
  })

  test('has its tools listed, and their structured results checked', async () => {
    const tools = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(['add', 'deploy', 'everything']))
    expect((await client.callTool('add', { a: 2, b: 3 })).structuredContent).toEqual({ sum: 5 })
  })

  test('asks twice, for a form and then for a visit, with a signed state in between', async () => {
    asked.length = 0
    expect(textOf(await client.callTool('deploy', { env: 'prod' }))).toBe('Deployed to prod')
    expect(asked).toMatchObject([
      { kind: 'form', key: 'confirm', message: 'Deploy to prod?', form: { required: ['confirm'] } },
      { kind: 'visit', key: 'auth', url: 'https://example.com/auth?env=prod', host: 'example.com', lookalike: false },
    ])
  })

  test.each(['decline', 'cancel'] as const)('is told that its form was met with a %s', async (action) => {
    const unwilling = await another({ ...everybody, onElicit: () => ({ action }) })
    expect(textOf(await unwilling.callTool('deploy', { env: 'prod' }))).toBe(`Left as it was: ${action}`)
  })

  test.each(['decline', 'cancel'] as const)('is told that its page was met with a %s', async (action) => {
    const homely = await another({ ...everybody, onVisit: () => ({ action }) })
    expect(textOf(await homely.callTool('deploy', { env: 'prod' }))).toBe(`Not signed in: ${action}`)
  })

  test('asks several questions at once, which are answered together, with the defaults of their forms', async () => {
    asked.length = 0
    const booked = JSON.parse(textOf(await client.callTool('book')) ?? '')
    expect(booked).toEqual({ name: 'Ada', age: 36, class: 'second', insured: false, days: ['sun'] })
    expect(asked.map(({ key }) => key)).toEqual(['who', 'when'])
  })

  test('asks a question of every kind in one round', async () => {
    expect(JSON.parse(textOf(await client.callTool('everything')) ?? '')).toEqual([
      { kind: 'elicit', action: 'accept', content: { confirm: true } },
      { kind: 'elicit', action: 'accept' },
      {
        kind: 'sampling',
        result: { role: 'assistant', model: 'a-model', content: { type: 'text', text: '1 message' } },
      },
      { kind: 'roots', roots: [{ uri: 'file:///home/ada', name: 'home' }] },
    ])
  })

  test('puts a call off with a state alone, and is called again', async () => {
    const kinds: string[] = []
    for await (const round of client.rounds({ tool: 'later' })) {
      kinds.push(round.kind)
      if (round.kind === 'done') expect(textOf(round.result)).toBe('Now.')
    }
    expect(kinds).toEqual(['deferred', 'deferred', 'deferred', 'done'])
  })

  test('goes on from a pending round that was plain text for a while', async () => {
    let kept = ''
    for await (const round of client.rounds({ tool: 'deploy', arguments: { env: 'test' } })) {
      if (round.kind === 'asks') kept = JSON.stringify(round.pending)
      break
    }
    const answer = { confirm: { action: 'accept', content: { confirm: true } } } as const
    expect(textOf((await client.resume(JSON.parse(kept), answer)) as CallToolResult)).toBe('Deployed to test')
  })

  test('refuses a state that was tampered with, in its own words', async () => {
    expect.assertions(1)
    for await (const round of client.rounds({ tool: 'deploy', arguments: { env: 'test' } })) {
      if (round.kind !== 'asks') continue
      const { requestState = '' } = round.pending
      const forged = { ...round.pending, requestState: `x${requestState.slice(1)}` }
      await expect(client.resume(forged)).rejects.toMatchObject({ rpcCode: -32602 })
      break
    }
  })

  test('refuses to ask a client that did not declare that it answers', async () => {
    const silent = await another({})
    await expect(silent.callTool('deploy', { env: 'prod' })).rejects.toMatchObject({
      rpcCode: -32021,
      data: { requiredCapabilities: { elicitation: {} } },
    })
  })

  test('tells of its progress and of what it logs', async () => {
    const onLog = vi.fn<(entry: object) => void>()
    const onProgress = vi.fn<(progress: object) => void>()
    const listening = await another({ ...everybody, onLog })
    expect(textOf(await listening.callTool('work', {}, { onProgress }))).toBe('Worked.')
    expect(onProgress.mock.calls).toEqual([
      [{ progress: 1, total: 2, message: 'part 1' }],
      [{ progress: 2, total: 2, message: 'part 2' }],
    ])
    expect(onLog.mock.calls).toEqual([[{ level: 'info', data: { done: true }, logger: 'worker' }]])
  })

  test('gives failures of tools as results, and its refusals as errors', async () => {
    expect(await client.callTool('fail')).toMatchObject({ isError: true, content: [{ text: 'It went wrong.' }] })
    await expect(client.callTool('nonsense')).rejects.toMatchObject({ rpcCode: -32602 })
  })

  test('has a prompt that asks, and completes its argument', async () => {
    expect(await client.listPrompts()).toMatchObject([{ name: 'review', arguments: [{ name: 'language' }] }])
    const { values } = await client.complete({ type: 'ref/prompt', name: 'review' }, { name: 'language', value: 'p' })
    expect(values).toEqual(['python', 'perl'])
    const { messages } = await client.getPrompt('review', { language: 'perl' })
    expect(messages).toMatchObject([{ role: 'user', content: { text: 'Review this perl, be kind.' } }])
  })

  test('has resources, and a template that asks and completes', async () => {
    expect(await client.listResources()).toMatchObject([{ uri: 'memo://notes', mimeType: 'text/plain' }])
    expect((await client.readResource('memo://notes')).contents).toMatchObject([{ text: 'Notes.' }])
    const [template] = await client.listResourceTemplates()
    expect(template?.uriTemplate).toBe('memo://{year}/report')
    const reference = { type: 'ref/resource', uri: 'memo://{year}/report' } as const
    const { values } = await client.complete(reference, { name: 'year', value: '2025' })
    expect(values).toEqual(['2025'])
    expect((await client.readResource('memo://2025/report')).contents).toMatchObject([{ text: 'Report of 2025' }])
  })

  test('tells subscribers of its changes', async () => {
    const seen: unknown[] = []
    for await (const change of client.subscribe({ tools: true, uris: ['memo://notes'] })) {
      seen.push(change)
      if (change.type === 'acknowledged') await client.callTool('change')
      if (seen.length === 3) break
    }
    expect(seen).toEqual([
      { type: 'acknowledged', accepted: { tools: true, uris: ['memo://notes'] } },
      { type: 'tools' },
      { type: 'updated', uri: 'memo://notes' },
    ])
  })

  test('is left by a call that is aborted, and serves the next', async () => {
    const controller = new AbortController()
    const call = client.callTool('wait', {}, { signal: controller.signal })
    // Looked at below, and settled before that.
    call.catch(() => {})
    await client.callTool('add', { a: 1, b: 1 })
    controller.abort()
    await expect(call).rejects.toMatchObject({ code: 'ABORTED' })
    expect(textOf(await client.callTool('add', { a: 1, b: 2 }))).toBe('3')
  })
})
