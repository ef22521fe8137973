import { rally } from 'mcp-rally'
import { describe, expect, test } from 'vitest'
import { fits, readLimits } from './limits.ts'

const logger = { warn() {}, error() {} }

test.each<[object, string]>([
  [{ maxIdBytes: 0 }, '`limits.maxIdBytes` must be a whole number of at least 1, got 0.'],
  [{ maxStreams: 1.5 }, '`limits.maxStreams` must be a whole number of at least 1, got 1.5.'],
  [{ share: 0 }, '`limits.share` must be above 0 and at most 1, got 0.'],
  [{ share: 2 }, '`limits.share` must be above 0 and at most 1, got 2.'],
  [{ maxSubscription: 7 }, '`limits.maxSubscription` does not exist.'],
])('a limit that cannot be used is an error when the app is built: %j', (limits, message) => {
  expect(() => rally({ name: 'limits', version: '1', logger, limits })).toThrow(message)
})

test('a limit that is undefined has its default', () => {
  const { share, ...undefinedOnes } = { ...readLimits(), maxIdBytes: undefined }
  expect(readLimits({ ...undefinedOnes, share } as never)).toEqual(readLimits())
})

test.each<[string, number, boolean]>([
  ['x'.repeat(10), 10, true],
  ['x'.repeat(11), 10, false],
  ['\u20ac'.repeat(3), 9, true],
  ['\u20ac'.repeat(3), 8, false],
  ['\u{1f600}', 4, true],
  ['\u{1f600}', 3, false],
  ['', 1, true],
])('%j fits into %i bytes: %s', (text, bytes, expected) => {
  expect(fits(text, bytes)).toBe(expected)
})

describe('a message with a string that is too long', () => {
  const app = rally({ name: 'limits', version: '1', logger })
  app.resource('note://one', { name: 'one' }, () => 'One')
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const longId = 'i'.repeat(1_025)
  const longUri = `note://${'u'.repeat(8_192)}`

  test.each<[string, object, number, string]>([
    ['id', { id: longId }, -32600, 'id must be at most 1024 bytes long (limits.maxIdBytes)'],
    ['id of few characters', { id: '\u20ac'.repeat(400) }, -32600, 'id must be at most 1024 bytes long'],
    [
      'progress token',
      { id: 1, params: { _meta: { ...meta, progressToken: longId } } },
      -32602,
      'progressToken must be at most 1024 bytes long (limits.maxIdBytes)',
    ],
    [
      'URI',
      { id: 1, params: { uri: longUri, _meta: meta } },
      -32602,
      'uri must be at most 8192 bytes long (limits.maxUriBytes)',
    ],
  ])('is refused, and the error does not repeat it: %s', async (_what, members, code, why) => {
    const message = { jsonrpc: '2.0', method: 'resources/read', params: { _meta: meta }, ...members }
    const reply = await app.dispatch(message)
    expect(reply?.status).toBe(400)
    expect(reply?.text.length).toBeLessThan(300)
    expect(JSON.parse(reply?.text ?? '')).toMatchObject({
      error: { code, message: expect.stringContaining(why) as string },
    })
  })

  test('is refused whatever the id of a notification or a response is', () => {
    expect(app.resolve({ jsonrpc: '2.0', id: longId, result: {} })).toMatchObject({ kind: 'invalid', id: undefined })
  })

  test('has no part in the error about a revision that is not served', async () => {
    const params = { _meta: { ...meta, 'io.modelcontextprotocol/protocolVersion': 'v'.repeat(100_000) } }
    const reply = await app.dispatch({ jsonrpc: '2.0', id: 1, method: 'tools/list', params })
    expect(reply?.text.length).toBeLessThan(1_000)
  })

  test('of the longest kind is served', async () => {
    const id = 'i'.repeat(1_024)
    const reply = await app.dispatch({ jsonrpc: '2.0', id, method: 'tools/list', params: { _meta: meta } })
    expect(JSON.parse(reply?.text ?? '')).toMatchObject({ id, result: { tools: [] } })
  })
})
