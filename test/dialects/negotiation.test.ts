// Drafts are spoken where both sides name them, and nowhere else.
import { fileURLToPath } from 'node:url'
import { rally } from 'mcp-rally'
import { connect } from 'mcp-rally/client'
import { serve } from 'mcp-rally/node'
import { describe, expect, test } from 'vitest'
import { hosts, RawSession, send } from '../legacy/raw.ts'
import { call, headersOf, request } from '../wire/messages.ts'
import { draftApp } from './app.mjs'
import { handshake } from './wires.ts'

const DRAFTS = ['2026-06-XX', '2026-02-03-draft'] as const
const RELEASES = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']

const agreed = async (proposed: string, revisions?: (typeof DRAFTS)[number][]): Promise<unknown> => {
  const app = draftApp(revisions === undefined ? { revisions: [] } : { revisions })
  const { result } = await handshake(app, { revision: proposed })
  return (result as { protocolVersion: unknown }).protocolVersion
}

describe('A server', () => {
  test.each(DRAFTS)('that does not name %s answers a client that does with the latest release', async (draft) => {
    expect(await agreed(draft)).toBe('2025-11-25')
    const plain = rally({ name: 'plain', version: '1' })
    expect(await handshake(plain, { revision: draft })).toMatchObject({ result: { protocolVersion: '2025-11-25' } })
  })

  test('that names one of them does not speak the other', async () => {
    expect(await agreed('2026-06-XX', ['2026-06-XX'])).toBe('2026-06-XX')
    expect(await agreed('2026-02-03-draft', ['2026-06-XX'])).toBe('2025-11-25')
  })

  test.each([...RELEASES, '2024-10-07', '2026-07-28', 'first-draft', '2026-06-xx', ''])(
    'that names both still answers %j with a release',
    async (proposed) => {
      const release = RELEASES.includes(proposed) ? proposed : '2025-11-25'
      expect(await agreed(proposed, [...DRAFTS])).toBe(release)
    },
  )

  test('does not offer them in server/discover', async () => {
    const app = draftApp()
    const reply = await app.dispatch(request('server/discover'))
    expect(JSON.parse(reply?.text ?? '')).toMatchObject({ result: { supportedVersions: ['2026-07-28'] } })
  })

  test.each([[['2026-07-28']], [['first-draft']], [['2026-06-XX', 7]], ['2026-06-XX'], [{}]])(
    'is not made with the revisions %j, and told the names that there are',
    (revisions) => {
      expect(() => draftApp({ revisions: revisions as never })).toThrow(
        /`revisions` must be an array of '2026-06-XX' and '2026-02-03-draft', got /,
      )
    },
  )

  test('is not made with drafts and without sessions', () => {
    expect(() => draftApp({ legacy: false })).toThrow(/needs sessions, but `legacy` is false/)
    expect(() => draftApp({ legacy: false, revisions: [] })).not.toThrow()
  })
})

describe.each(hosts)('A session over $name', ({ open }) => {
  test.each(DRAFTS)('of %s ends where the draft is not spoken any more', async (draft) => {
    const spoken = await open(draftApp())
    const session = await RawSession.open(spoken.ask, { revision: draft })
    const other = await open(draftApp({ revisions: [] }))
    expect((await session.at(other.ask).request('ping')).status).toBe(404)
    const header = { 'MCP-Protocol-Version': draft }
    expect((await session.request('ping', {}, header)).status).toBe(200)
    const released = await RawSession.open(other.ask)
    expect((await released.request('ping', {}, header)).status).toBe(400)
    await spoken.close()
    await other.close()
  })

  test('of a release never sees a word of the drafts', async () => {
    const { ask, close } = await open(draftApp())
    for (const revision of RELEASES) {
      const session = await RawSession.open(ask, { revision, capabilities: {} })
      const texts = await Promise.all([
        session.call('greet').then((response) => response.text()),
        session.call('get_weather', { location: 'Ghent' }).then((response) => response.text()),
        session.request('resources/read', { uri: 'note://plain' }).then((response) => response.text()),
        session.request('tools/list').then((response) => response.text()),
      ])
      expect(texts.join()).toContain('Hello')
      expect(texts.join()).not.toMatch(/result_?type|input_?requests|request_?state/i)
    }
    await close()
  })

  test('of a release takes neither spelling of answers and states', async () => {
    const { ask, close } = await open(draftApp())
    const session = await RawSession.open(ask, { capabilities: {} })
    const message = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'greet', inputResponses: 7, requestState: 'made up' },
      input_responses: 7,
      request_state: 'made up',
    }
    const said: unknown = await (await session.post(message)).json()
    expect(said).toMatchObject({ result: { content: [{ text: 'Hello' }] } })
    await close()
  })

  test('leaves clients of 2026-07-28 on the same endpoint as they were', async () => {
    const { ask, close } = await open(draftApp())
    await RawSession.open(ask, { revision: '2026-06-XX' })
    const message = { ...call('get_weather', { location: 'Ghent' }), input_responses: 7, request_state: 7 }
    const response = await send(ask, message, headersOf(message))
    const { result } = (await response.json()) as { result: Record<string, unknown> }
    expect(Object.keys(result).toSorted()).toEqual(['_meta', 'inputRequests', 'requestState', 'resultType'])
    expect(result['resultType']).toBe('input_required')
    await close()
  })
})

describe('A client', () => {
  const ask = { onElicit: () => ({ action: 'accept', content: { name: 'octocat' } }) as const }
  const weather = { location: 'Ghent' }

  test.each(DRAFTS)('that prefers %s uses a release with a server that does not speak it', async (draft) => {
    const { url, close } = await serve(draftApp({ revisions: [] }), { port: 0, handleSignals: false })
    const client = await connect(url, { revision: draft, ...ask })
    expect(client.revision).toBe('2025-11-25')
    expect(await client.callTool('get_weather', weather)).toMatchObject({ content: [{ type: 'text' }] })
    await client.close()
    await close()
  })

  test.each(DRAFTS)('does so over stdio too, in %s', async (revision) => {
    const server = fileURLToPath(new URL('./server.mjs', import.meta.url))
    const env = { OPTIONS: JSON.stringify({ revisions: [] }) }
    const client = await connect({ command: process.execPath, args: [server, '--stdio'], env }, { revision, ...ask })
    expect(client.revision).toBe('2025-11-25')
    expect(await client.callTool('get_weather', weather)).toMatchObject({ content: [{ type: 'text' }] })
    await client.close()
  })

  test.each(DRAFTS)('that prefers %s uses 2026-07-28 with a server that has no sessions', async (draft) => {
    const { url, close } = await serve(draftApp({ revisions: [], legacy: false }), { port: 0, handleSignals: false })
    const client = await connect(url, { revision: draft, ...ask })
    expect(client.revision).toBe('2026-07-28')
    expect(await client.callTool('get_weather', weather)).toMatchObject({ content: [{ type: 'text' }] })
    await client.close()
    await close()
  })

  test('that is told to use one release fails if the server does not speak it, and says why', async () => {
    const { url, close } = await serve(draftApp({ revisions: [], legacy: false }), { port: 0, handleSignals: false })
    await expect(connect(url, { revision: '2025-11-25' })).rejects.toMatchObject({ rpcCode: -32022 })
    await close()
  })

  test('without configuration speaks the release with a server of drafts', async () => {
    const { url, close } = await serve(draftApp(), { port: 0, handleSignals: false })
    const client = await connect(url)
    expect(client.revision).toBe('2026-07-28')
    await client.close()
    await close()
  })

  test('that is configured for an unknown revision gets an error that lists the known ones', async () => {
    await expect(connect('http://127.0.0.1:9/mcp', { revision: 'first-draft' })).rejects.toMatchObject({
      code: 'OPTION_INVALID',
      message:
        'revision must be one of 2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05, 2026-06-XX, 2026-02-03-draft, got "first-draft".',
    })
  })
})

test('A 2025-era call is still asked in the middle of it, with drafts spoken', async () => {
  const { url, close } = await serve(draftApp(), { port: 0, drainMs: 100, handleSignals: false })
  const asked: string[] = []
  const client = await connect(url, {
    revision: '2025-11-25',
    onElicit: ({ message }) => {
      asked.push(message)
      return { action: 'accept', content: { name: 'octocat' } }
    },
  })
  const kinds: string[] = []
  for await (const round of client.rounds({ tool: 'get_weather', arguments: { location: 'Ghent' } })) {
    kinds.push(round.kind)
  }
  expect(kinds).toEqual(['done'])
  expect(asked).toEqual(['Please provide your GitHub username'])
  await client.close()
  await close()
})
