import { expect, test } from 'vitest'
import { parseMessages } from './message.ts'

const batch = (length: number): string =>
  JSON.stringify(Array.from({ length }, (_, id) => ({ jsonrpc: '2.0', id, method: 'ping' })))

test('a batch has at most 1000 messages', () => {
  expect(parseMessages(batch(1_000))).toHaveLength(1_000)
  expect(() => parseMessages(batch(20_000))).toThrow('its batch must have at most 1000 messages, got 20000')
})

test.each(['[', '[1]', '[{"jsonrpc":"1.0"}]', '7'])('%s is not a message or a batch of them', (text) => {
  expect(() => parseMessages(text)).toThrow(expect.objectContaining({ code: 'BAD_RESPONSE' }))
})
