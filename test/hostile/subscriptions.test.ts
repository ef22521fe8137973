// Servers that misbehave towards a subscriber: what waits for a slow one is bounded, and the client stays usable.
import type { ServerChange } from 'mcp-rally/client'
import { describe, expect, test } from 'vitest'
import { expectUsable, failureOf, growthDuring, hostileWires } from './hostile.ts'

const { http, stdio } = hostileWires()

describe.each([http, stdio])('over $name', (wire) => {
  test.each([
    ['repeating', ['acknowledged', 'tools']],
    ['inventive', ['acknowledged', 'updated']],
    ['lengthy', ['acknowledged', 'missed']],
  ])('a slow subscriber of a server that is %s holds little', async (mode, expected) => {
    const client = await wire.connect({}, mode)
    const seen: ServerChange[] = []
    const growth = await growthDuring(async () => {
      for await (const change of client.subscribe({ tools: true, uris: ['memo://a'] })) {
        seen.push(change)
        if (seen.length === 1) await client.callTool('poured')
        if (seen.length === 2) break
      }
    })
    expect(seen.map(({ type }) => type)).toEqual(expected)
    expect(growth).toBeLessThan(150)
    await expectUsable(client)
  })

  test('a subscriber who is never acknowledged is told so', async () => {
    // Long enough for a child process to start on a busy machine.
    const client = await wire.connect({ timeoutMs: 1_500 }, 'silent')
    const changes = client.subscribe({ tools: true })
    expect(await failureOf(changes.next())).toEqual({
      code: 'TIMEOUT',
      message: 'subscriptions/listen: the server did not acknowledge the subscription within 1500 ms (timeoutMs).',
    })
    await expectUsable(client)
  })

  test('what is odd about changes is passed over', async () => {
    const client = await wire.connect({}, 'odd')
    const seen: ServerChange[] = []
    for await (const change of client.subscribe({ tools: true, prompts: true })) {
      seen.push(change)
      if (change.type === 'prompts') break
    }
    expect(seen.filter(({ type }) => type === 'updated')).toEqual([])
    expect(seen.at(-1)).toEqual({ type: 'prompts' })
    await expectUsable(client)
  })
})
