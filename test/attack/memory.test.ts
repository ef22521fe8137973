// Callers that try to use up the memory of a server. It lives, serves others meanwhile, and forgets what it was sent.
import { expect, test } from 'vitest'
import type { Keeping } from './caller.ts'
import { Caller, flood, KEPT } from './caller.ts'
import { Target } from './target.ts'

const MIB = 1024 * 1024

/** Runs the attack while another caller is served. Returns how many megabytes the server uses more than before. */
async function survives(attack: (attacker: Caller) => Promise<unknown>): Promise<number> {
  const target = await Target.start({}, {})
  const other = new Caller(target, 'bob')
  let served = 0
  const over = new AbortController()
  const attacking = attack(new Caller(target, 'ann')).finally(() => over.abort())
  while (!over.signal.aborted) {
    const { text } = await other.call('tools/call', { name: 'greet' })
    if (text.includes('Hello')) served += 1
  }
  await attacking
  expect(served).toBeGreaterThan(2)
  return target.growth()
}

test('ids of 4 MiB in subscriptions are refused, and nothing of them is kept', async () => {
  const id = 'i'.repeat(4 * MIB - 1_000)
  const grown = await survives((attacker) =>
    flood(20, 2, async () => {
      const { status, text } = await attacker.call('subscriptions/listen', { notifications: {} }, id)
      // A busy server refuses some of them before it reads them.
      if (status !== 503) expect([status, text]).toEqual([400, expect.stringContaining('limits.maxIdBytes')])
      expect(text.length).toBeLessThan(1_000)
    }),
  )
  expect(grown).toBeLessThan(10)
})

test('older subscriptions to long URIs are refused past the share of the caller', async () => {
  const grown = await survives((attacker) =>
    flood(60, 4, async (i) => {
      const headers = await attacker.begin('2025-03-26')
      const batch = Array.from({ length: 100 }, (_, id) => ({
        jsonrpc: '2.0',
        id,
        method: 'resources/subscribe',
        params: { uri: `note://${i}/${id}/${'x'.repeat(8_000)}` },
      }))
      const { text } = await attacker.post(JSON.stringify(batch), headers)
      expect(text).toMatch(/limits\.maxSubscri(ptionBytes|bedBytes)/)
    }),
  )
  // A quarter of limits.maxSubscribedBytes.
  expect(grown).toBeLessThan(20)
})

test.each(Object.entries(KEPT))('%s keep no more than the share of the caller', async (_name, prepare) => {
  const seen: Awaited<ReturnType<Keeping>>[] = []
  const grown = await survives(async (attacker) => {
    const keep = await prepare(attacker)
    const padding = 'x'.repeat(MIB - 1_000)
    await flood(40, 1, async (i) => void seen.push(await keep(padding, i)))
    // What is refused for its size is not refused for good.
    expect(await keep('', 0)).toBe('kept')
  })
  expect(seen[0]).toBe('kept')
  expect(grown).toBeLessThan(15)
})

test('tasks with large arguments are refused past the limit of the caller', async () => {
  const target = await Target.start({}, { limits: { maxTaskBytes: 16 * MIB } })
  const attacker = new Caller(target, 'ann')
  const texts: string[] = []
  await flood(50, 4, async () => {
    texts.push((await attacker.call('tools/call', { name: 'work', arguments: { text: 'x'.repeat(MIB) } })).text)
  })
  const created = texts.filter((text) => text.includes('"taskId"'))
  expect(created).toHaveLength(15)
  expect(texts.at(-1)).toContain('Too many bytes of tasks: one caller may store 16777216 (limits.maxTaskBytes).')
  const { text } = await new Caller(target, 'bob').call('tools/call', { name: 'work' })
  expect(text).toContain('"taskId"')
})

test('tasks that outlive their ttl at once count for their caller until they are deleted', async () => {
  const target = await Target.start({}, { limits: { maxTaskBytes: 8 * MIB } })
  const attacker = new Caller(target, 'ann')
  const headers = await attacker.begin('2025-11-25', { elicitation: {} })
  const params = { name: 'work', arguments: { text: 'x'.repeat(MIB) }, task: { ttl: 100 } }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  const texts: string[] = []
  const until = performance.now() + 3_000
  while (performance.now() < until) texts.push((await attacker.post(body, headers)).text)
  expect(texts.filter((text) => text.includes('"taskId"'))).toHaveLength(7)
  expect(texts.at(-1)).toContain('limits.maxTaskBytes')
  expect(await target.growth()).toBeLessThan(20)
})
