// Batches, which 2025-03-26 has and no other revision.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { olderApp } from './app.mjs'
import type { Ask, Wired } from './raw.ts'
import { Events, hosts, initializeMessage, RawSession, textOf } from './raw.ts'

const request = (id: number, method: string, params?: object): object => ({ jsonrpc: '2.0', id, method, params })
const note = { jsonrpc: '2.0', method: 'notifications/roots/list_changed' }

describe.each(hosts)('$name', (host) => {
  let ask: Ask
  let close: () => Promise<void>
  let session: RawSession
  beforeEach(async () => {
    ;({ ask, close } = await host.open(olderApp()))
    session = await RawSession.open(ask, { revision: '2025-03-26', capabilities: { sampling: {}, roots: {} } })
  })
  afterEach(() => close())

  test('is answered by an array, with an error for each invalid message', async () => {
    const response = await session.post([
      request(1, 'ping'),
      note,
      7,
      request(2, 'tools/call', { name: 'greet' }),
      request(3, 'nothing'),
      initializeMessage(),
    ])
    const answers = (await response.json()) as Wired[]
    const byId = new Map(answers.map((answer) => [answer.id, answer]))
    expect(byId.get(1)?.result).toEqual({})
    expect(textOf(byId.get(2))).toBe('Hello')
    expect(byId.get(3)?.error?.code).toBe(-32601)
    expect(byId.get(0)?.error?.code).toBe(-32600)
    expect(byId.get(undefined)?.error?.code).toBe(-32600)
    expect(answers).toHaveLength(5)
  })

  test('is answered by events where one of its calls asks, and holds an answer to that too', async () => {
    const calls = [request(1, 'tools/call', { name: 'workspace' }), request(2, 'tools/call', { name: 'summarize' })]
    const events = new Events(await session.post([request(3, 'ping'), ...calls]))
    const first = [await events.message(), await events.message(), await events.message()]
    const roots = first.find((message) => message?.method === 'roots/list')
    const sample = first.find((message) => message?.method === 'sampling/createMessage')
    const said = { role: 'assistant', content: { type: 'text', text: 'Short.' }, model: 'm' }
    const answered = await session.post([
      { jsonrpc: '2.0', id: roots?.id, result: { roots: [{ uri: 'file:///one' }] } },
      { jsonrpc: '2.0', id: sample?.id, result: said },
    ])
    expect(answered.status).toBe(202)
    const all = [...first, ...(await events.rest())]
    expect(all.find((message) => message?.id === 3)?.result).toEqual({})
    expect(textOf(all.find((message) => message?.id === 1))).toBe('file:///one')
    expect(textOf(all.find((message) => message?.id === 2))).toBe('Short.')
  })

  test('of notifications alone is a 202', async () => {
    expect((await session.post([note, note])).status).toBe(202)
  })

  test.each([
    ['that is empty', []],
    ['of more than 100', Array.from({ length: 101 }, (_, id) => request(id, 'ping'))],
    ['of very many', Array.from({ length: 200_000 }, () => 1)],
  ])('%s is a 400', async (_what, batch) => {
    const response = await session.post(batch)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { code: -32600 } })
  })

  test.each(['2025-06-18', '2025-11-25'])('is a 400 under %s', async (revision) => {
    const other = await RawSession.open(ask, { revision })
    expect((await other.post([request(1, 'ping')])).status).toBe(400)
  })
})
