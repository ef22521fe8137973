// What nobody should send in a session, over HTTP: every request gets an answer, and the server lives on.
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { olderApp } from './app.mjs'
import type { Ask, Wired } from './raw.ts'
import { Events, hosts, RawSession } from './raw.ts'

describe.each(hosts)('$name', (host) => {
  let ask: Ask
  let close: () => Promise<void>
  beforeAll(async () => {
    ;({ ask, close } = await host.open(olderApp()))
  })
  afterAll(() => close())

  const anything = fc.jsonValue({ maxDepth: 3 })
  const or = (...good: unknown[]): fc.Arbitrary<unknown> =>
    fc.oneof({ weight: 2, arbitrary: fc.constantFrom(...good) }, { weight: 1, arbitrary: anything })
  const nearly = fc.record(
    {
      jsonrpc: or('2.0'),
      id: or('a', 'b', 7),
      method: or('tools/call', 'prompts/get', 'resources/read', 'initialize', 'notifications/cancelled', 'ping'),
      params: fc.oneof(
        anything,
        fc.record(
          {
            name: or('greet', 'deploy', 'report', 'brief'),
            arguments: or({ env: 'x' }, {}),
            uri: or('note://plain', 'note://by/7'),
            requestId: or('a', 'b'),
            _meta: or({ progressToken: 1 }),
            protocolVersion: or('2025-11-25'),
          },
          { requiredKeys: [] },
        ),
      ),
      result: anything,
    },
    { requiredKeys: [] },
  )

  test.each(['2025-03-26', '2025-11-25'])('anything in a session of %s is answered', async (revision) => {
    const session = await RawSession.open(ask, { revision, capabilities: {} })
    await fc.assert(
      fc.asyncProperty(fc.oneof(nearly, fc.array(nearly, { maxLength: 4 }), anything), async (message) => {
        const response = await session.post(message)
        expect([200, 202, 400]).toContain(response.status)
        await response.text()
      }),
      { numRuns: 150 },
    )
    expect((await session.json('ping')).result).toEqual({})
  })

  test('any header is answered', async () => {
    const session = await RawSession.open(ask)
    const text = fc
      .string({ unit: fc.constantFrom(...'ab:gc.0123 -_/"{}'.split('')), maxLength: 40 })
      .map((each) => each.trim())
    await fc.assert(
      fc.asyncProperty(text, text, text, async (id, event, version) => {
        const odd = new RawSession(ask, id)
        const statuses = [
          (await odd.request('ping')).status,
          (await session.request('ping', {}, { 'MCP-Protocol-Version': version })).status,
          (await session.get({ 'Last-Event-ID': event })).status,
        ]
        expect(statuses).toEqual([404, 400, 400])
      }),
      { numRuns: 50 },
    )
  })

  test('two hundred streams are refused but for four, and those leave nothing behind', async () => {
    const session = await RawSession.open(ask)
    const statuses: number[] = []
    const open: Response[] = []
    for (let i = 0; i < 200; i += 1) {
      const response = await session.get()
      statuses.push(response.status)
      if (response.status === 200) open.push(response)
      else await response.text()
    }
    expect(statuses.filter((status) => status === 200)).toHaveLength(4)
    expect(statuses.filter((status) => status === 409)).toHaveLength(196)
    await Promise.all(open.map(async (response) => response.body?.cancel()))
    const again = async (): Promise<number> => {
      const response = await session.get()
      await response.body?.cancel()
      return response.status
    }
    await expect.poll(again, { interval: 10, timeout: 5_000 }).toBe(200)
  })

  test('answers come in floods, and one of them counts', async () => {
    const session = await RawSession.open(ask)
    const events = new Events(await session.call('outcome'))
    const question = await events.message()
    const answers = Array.from({ length: 50 }, (_, i) => ({ action: i % 2 === 0 ? 'decline' : 'cancel' }))
    const statuses = await Promise.all(answers.map(async (each) => (await session.answer(question, each)).status))
    expect(statuses.filter((status) => status === 202)).toHaveLength(1)
    expect(statuses.filter((status) => status === 400)).toHaveLength(49)
    expect((await events.rest()).map(({ result }: Wired) => result !== undefined)).toEqual([true])
  })
})
