// Our client and our server in the drafts, over each wire: the same calls, answerers and limits as in the release.
import { fileURLToPath } from 'node:url'
import type { Client, ClientOptions, PendingCall, PendingTool } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { serve } from 'mcp-rally/node'
import { afterEach, describe, expect, test } from 'vitest'
import { draftApp } from './app.mjs'

const SERVER = fileURLToPath(new URL('./server.mjs', import.meta.url))

const ANSWERERS: ClientOptions = {
  onElicit: ({ form }) => {
    const values: Record<string, unknown> = { name: 'octocat', age: 36, context: 'school', confirm: true }
    const content = Object.keys(form.properties).map((name) => [name, values[name]])
    return { action: 'accept', content: Object.fromEntries(content) as never }
  },
  onVisit: () => ({ action: 'accept' }),
  onSample: () => ({ role: 'assistant', model: 'test', content: { type: 'text', text: 'Paris.' } }),
}

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (let close = closing.pop(); close !== undefined; close = closing.pop()) await close()
})

const wires = [
  {
    wire: 'HTTP',
    open: async (options: ClientOptions): Promise<Client> => {
      const { url, close } = await serve(draftApp(), { port: 0, drainMs: 100, handleSignals: false })
      closing.push(close)
      return connect(url, options)
    },
  },
  {
    wire: 'stdio',
    open: (options: ClientOptions): Promise<Client> =>
      connect({ command: process.execPath, args: [SERVER, '--stdio'] }, options),
  },
]

const cases = ['2026-06-XX', '2026-02-03-draft'].flatMap((revision) =>
  wires.map(({ wire, open }) => ({ revision, wire, open })),
)

describe.each(cases)('In $revision over $wire', ({ revision, open }) => {
  const client = async (options: ClientOptions = ANSWERERS): Promise<Client> => {
    const made = await open({ revision, ...options })
    closing.push(() => made.close())
    return made
  }

  test('calls of tools, prompts and resources return their results after any number of rounds', async () => {
    const talk = await client()
    expect(talk.revision).toBe(revision)
    const texts: unknown[] = []
    for (const name of ['both', 'ConfirmAction', 'WizardTool', 'DeferredTool', 'page', 'greet', 'revision']) {
      const { content } = await talk.callTool(name, name === 'ConfirmAction' ? { action: 'delete all files' } : {})
      texts.push((content[0] as { text: string }).text)
    }
    expect(texts).toEqual([
      'octocat: Paris.',
      'Action confirmed!',
      'Welcome, octocat! You are 36 years old.',
      'Completed step 1',
      'Was told accept.',
      'Hello',
      `${revision} elicitation.form elicitation.url sampling`,
    ])
    expect(await talk.getPrompt('brief', { topic: 'moon' })).toMatchObject({
      resultType: 'complete',
      messages: [{ content: { text: 'moon: school' } }],
    })
    expect(await talk.readResource('note://by/7')).toMatchObject({ contents: [{ text: '7 for school' }] })
  })

  test('rounds are taken one at a time, and those that put off are rounds', async () => {
    const talk = await client()
    const kinds: string[] = []
    for await (const round of talk.rounds({ tool: 'WizardTool' })) {
      kinds.push(round.kind)
      if (round.kind !== 'asks') continue
      const [question] = round.questions
      if (question?.key === 'name') round.answer({ name: { action: 'accept', content: { name: 'Grace' } } })
    }
    expect(kinds).toEqual(['asks', 'asks', 'done'])
    kinds.splice(0)
    for await (const round of talk.rounds({ tool: 'DeferredTool' })) kinds.push(round.kind)
    expect(kinds).toEqual(['deferred', 'done'])
  })

  test('a pending round is plain JSON, and another client with a session of its own resumes it', async () => {
    const asking = await client({ can: ['elicitation.form'] })
    const saved = await pendingOf(asking, 'get_weather', { location: 'New York' })
    expect(JSON.parse(saved)).toEqual({
      version: 1,
      revision,
      method: 'tools/call',
      params: { name: 'get_weather', arguments: { location: 'New York' } },
      inputRequests: { github_login: expect.objectContaining({ method: 'elicitation/create' }) },
      requestState: expect.stringMatching(/^rs1\./),
    })
    await asking.close()
    const later = await client({})
    const answers = { github_login: { action: 'accept', content: { name: 'octocat' } } } as const
    const { content } = await later.resume(JSON.parse(saved) as PendingTool, answers)
    expect(content).toMatchObject([{ text: expect.stringMatching(/^Current weather in New York/) }])
  })

  test('where nobody answers, the error holds the round to go on from', async () => {
    const talk = await client({ can: ['elicitation.form'] })
    await expect(talk.callTool('ConfirmAction', { action: 'x' })).rejects.toMatchObject({
      code: 'NO_ANSWERER',
      pending: { revision, method: 'tools/call', inputRequests: { confirm: {} } },
    })
  })

  test('the limits are those of the release', async () => {
    const talk = await client({ ...ANSWERERS, maxRounds: 1 })
    await expect(talk.callTool('WizardTool')).rejects.toMatchObject({ code: 'TOO_MANY_ROUNDS' })
    const small = await client({ ...ANSWERERS, maxStateBytes: 16 })
    await expect(small.callTool('WizardTool')).rejects.toMatchObject({ code: 'STATE_TOO_LARGE' })
  })

  test('a tampered state is refused with the one error that there is for it', async () => {
    const talk = await client({ can: ['elicitation.form'] })
    const pending = JSON.parse(await pendingOf(talk, 'get_weather', { location: 'Ghent' })) as PendingTool
    const state = pending.requestState ?? ''
    const damaged = { ...pending, requestState: `${state.slice(0, -2)}${state.endsWith('AA') ? 'BB' : 'AA'}` }
    const answers = { github_login: { action: 'decline' } } as const
    await expect(talk.resume(damaged, answers)).rejects.toMatchObject({
      rpcCode: -32602,
      message: 'Invalid or expired requestState',
    })
  })

  test('progress and logs reach the caller', async () => {
    const logged: unknown[] = []
    const talk = await client({ ...ANSWERERS, onLog: ({ data }) => void logged.push(data) })
    const seen: unknown[] = []
    await talk.callTool('report', {}, { onProgress: ({ message }) => void seen.push(message) })
    expect(seen[0]).toBe('half')
    expect(logged[0]).toBe('late')
  })
})

test('A pending round of one revision cannot be resumed in another, and the error says what to do', async () => {
  const { url, close } = await serve(draftApp(), { port: 0, drainMs: 100, handleSignals: false })
  closing.push(close)
  const open = async (revision: string): Promise<Client> => {
    const made = await connect(url, { revision, can: ['elicitation.form'] })
    closing.push(() => made.close())
    return made
  }
  const names = ['2026-06-XX', '2026-02-03-draft', '2026-07-28']
  const clients = await Promise.all(names.map(open))
  for (const from of clients) {
    const pending = JSON.parse(await pendingOf(from, 'ConfirmAction', { action: 'x' })) as PendingCall
    for (const to of clients) {
      const resumed = to.resume(pending, { confirm: { action: 'decline' } })
      if (from === to) await expect(resumed).resolves.toMatchObject({ content: [{ text: 'Action cancelled.' }] })
      else {
        await expect(resumed).rejects.toMatchObject({
          code: 'PENDING_INVALID',
          message: `Cannot resume the pending call: it was saved under revision ${from.revision}, this connection uses ${to.revision}. Pass revision: '${from.revision}' to connect().`,
        })
      }
    }
    const older = await open('2025-11-25')
    await expect(older.resume(pending)).rejects.toMatchObject({ code: 'NOT_RESUMABLE' })
  }
})

/** The text of the first pending round of a call. */
async function pendingOf(talk: Client, tool: string, args: Record<string, unknown>): Promise<string> {
  for await (const round of talk.rounds({ tool, arguments: args })) {
    if (round.kind === 'asks') return JSON.stringify(round.pending)
  }
  throw new Error(`${tool} has asked nothing.`)
}
