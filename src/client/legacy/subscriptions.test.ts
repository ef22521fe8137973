import { expect, test } from 'vitest'
import type { OutgoingRequest } from '../transports/transport.ts'
import { LegacySubscriptions } from './subscriptions.ts'

const LONG = `memo://a/${'x'.repeat(1_000_000)}`

test('of a change before the acknowledgement only the address is kept, and only if it is short', async () => {
  const received: Record<string, unknown>[] = []
  const answers: ((isSubscribed: boolean) => void)[] = []
  const subscriptions = new LegacySubscriptions({
    logger: console,
    receive: (message) => void received.push(message),
    ready: async () => ({ tools: { listChanged: true }, resources: { subscribe: true } }),
    request: () => new Promise((resolve) => void answers.push(resolve)),
  })
  const notifications = { toolsListChanged: true, resourceSubscriptions: ['memo://a'] }
  const request: OutgoingRequest = {
    id: 1,
    method: 'subscriptions/listen',
    revision: '2025-11-25',
    name: undefined,
    headers: [],
    text: '',
    params: { notifications },
    call: undefined,
  }
  subscriptions.add(request, { resolve: () => {}, reject: () => {} })
  // Until the resource is being subscribed to.
  await Promise.resolve()
  await Promise.resolve()
  const updated = (params: object): boolean =>
    subscriptions.receive({ jsonrpc: '2.0', method: 'notifications/resources/updated', params })
  expect(updated({ uri: LONG })).toBe(true)
  expect(updated({ uri: 'memo://a/b', title: LONG })).toBe(true)
  subscriptions.receive({ method: 'notifications/tools/list_changed', params: { _meta: { LONG } }, LONG })
  for (const answer of answers) answer(true)
  await expect.poll(() => received.length).toBe(4)
  expect(JSON.stringify(received).length).toBeLessThan(10_000)
  expect(received.slice(2)).toEqual([
    { method: 'notifications/resources/updated', params: { uri: 'memo://a/b' } },
    { method: 'notifications/tools/list_changed', params: {} },
  ])
  // Longer than a subscriber takes: a change that was missed.
  expect(received[1]).toEqual({ method: 'notifications/resources/updated', params: { uri: 'x'.repeat(8_193) } })
})
