// Servers that misbehave in ways that only HTTP has, to Node's own client and to fetch.
import type { ClientOptions } from 'mcp-rally/client'
import { describe, expect, test, vi } from 'vitest'
import { expectUsable, failureOf, growthDuring, hostileWires, textOf } from './hostile.ts'

const { http, fetched } = hostileWires()

const BAD = "The server's response is not valid: "
const LOST = /^The response was lost: .*\. The request may or may not have taken effect\.$/s
const TOO_LARGE =
  "The server's response is larger than 16777216 bytes. To accept it, raise maxResponseBytes in connect()."

describe.each([http, fetched])('over $name', (wire) => {
  test.each<[string, string, string | RegExp]>([
    ['hangs_up', 'LOST', LOST],
    ['resets', 'LOST', LOST],
    ['half_closes', 'LOST', LOST],
    ['half_closes_midway', 'LOST', LOST],
    ['event_of_another', 'BAD_RESPONSE', `${BAD}its id is not the id of the request.`],
    ['event_of_nonsense', 'BAD_RESPONSE', `${BAD}it is not JSON.`],
    ['event_of_bytes', 'BAD_RESPONSE', `${BAD}it is not JSON.`],
    ['event_of_a_list', 'BAD_RESPONSE', `${BAD}it is not a JSON-RPC 2.0 message.`],
    ['event_unended', 'LOST', /^The response was lost: the stream ended before the response\./],
    ['event_of_nothing', 'BAD_RESPONSE', `${BAD}it is not JSON.`],
    ['no_events', 'LOST', /^The response was lost: the stream ended before the response\./],
    ['event_type_of_json', 'LOST', /^The response was lost: the stream ended before the response\./],
    ['another_id', 'BAD_RESPONSE', `${BAD}its id is not the id of the request.`],
    ['text_id', 'BAD_RESPONSE', `${BAD}its id is not the id of the request.`],
    ['no_id', 'BAD_RESPONSE', `${BAD}its id is not the id of the request.`],
    ['a_request', 'BAD_RESPONSE', new RegExp(`^${BAD}`)],
    ['a_batch', 'BAD_RESPONSE', `${BAD}it is not a JSON-RPC 2.0 message.`],
    ['odd_error', 'BAD_RESPONSE', `${BAD}its error has no code and message.`],
    ['status_204', 'BAD_RESPONSE', `${BAD}HTTP 204 without a body.`],
    ['status_205', 'BAD_RESPONSE', `${BAD}HTTP 205 without a body.`],
    ['status_299', 'BAD_RESPONSE', `${BAD}it is not JSON.`],
    ['status_304', 'HTTP_STATUS', 'The server answered HTTP 304 without a protocol message. Check the address.'],
    ['status_418', 'HTTP_STATUS', 'The server answered HTTP 418 without a protocol message. Check the address.'],
    ['status_503', 'LOST', /^The response was lost: the server is not available \(HTTP 503\)\./],
    ['status_101', 'LOST', wire === http ? /the server switches to another protocol/ : LOST],
    ['redirects', 'HTTP_STATUS', /HTTP 302 .* It redirects to "\/mcp.*"; redirects are not followed\.$/],
    ['redirects_with_method', 'HTTP_STATUS', /HTTP 308 .* It redirects to "\/mcp.*"; redirects are not followed\.$/],
    ['page', 'BAD_RESPONSE', `${BAD}it is not JSON.`],
    ['picture', 'BAD_RESPONSE', `${BAD}it is not JSON.`],
    ['no_type', 'BAD_RESPONSE', `${BAD}it is not JSON.`],
    ['gzip_of_nonsense', wire === http ? 'BAD_RESPONSE' : 'LOST', wire === http ? `${BAD}it is not JSON.` : LOST],
    ['large_header', 'LOST', LOST],
    ['endless_head', 'LOST', LOST],
    ['length_of_more', 'RESPONSE_TOO_LARGE', TOO_LARGE],
    ['length_of_nonsense', 'LOST', LOST],
    ['two_lengths', 'LOST', LOST],
    ['chunks_of_nonsense', 'LOST', LOST],
    ['no_http', 'LOST', LOST],
  ])('%s is refused with %s, and the next call is not', async (tool, code, message) => {
    const client = await wire.connect()
    expect(await failureOf(client.callTool(tool))).toEqual({
      code,
      message: typeof message === 'string' ? message : expect.stringMatching(message),
    })
    await expectUsable(client)
  })

  test.each([
    'silence',
    'drips_its_head',
    'drips_its_body',
    'drips_comments',
    'drips_its_event',
    'endless_comments',
    'endless_events',
    'endless_notifications',
    'endless_requests',
  ])('%s ends with the time of the call, and the next call is fine', async (tool) => {
    const client = await wire.connect({ timeoutMs: 150 })
    const growth = await growthDuring(async () =>
      expect(await failureOf(client.callTool(tool, {}, { onProgress: () => {} }))).toEqual({
        code: 'TIMEOUT',
        message: `tools/call ${tool}: the server did not respond within 150 ms (timeoutMs). The request may or may not have taken effect.`,
      }),
    )
    expect(growth).toBeLessThan(80)
    await expectUsable(client)
  })

  test.each(['endless_body', 'endless_line', 'endless_event', 'endless_comment'])(
    '%s is read no further than the limit',
    async (tool) => {
      const client = await wire.connect()
      const growth = await growthDuring(async () =>
        expect(await failureOf(client.callTool(tool))).toEqual({ code: 'RESPONSE_TOO_LARGE', message: TOO_LARGE }),
      )
      expect(growth).toBeLessThan(200)
      await expectUsable(client)
    },
  )

  test('a flood of notifications before the answer keeps no call from it, nor fills the log', async () => {
    const warn = vi.fn<(message: string) => void>()
    const options: ClientOptions = { logger: { warn, error: warn }, onLog: () => {} }
    const client = await wire.connect(options)
    const onProgress = vi.fn<() => void>()
    expect(textOf(await client.callTool('flood', {}, { onProgress }))).toBe('ok')
    expect(onProgress).toHaveBeenCalledTimes(100_000)
    expect(warn.mock.calls.length).toBeLessThanOrEqual(100)
    await expectUsable(client)
  })

  test('an answer too many is not taken for that of the next call', async () => {
    const client = await wire.connect()
    expect(textOf(await client.callTool('two_answers'))).toBe('ok')
    await expectUsable(client)
  })
})

test("a compressed answer that nobody asked for is not unpacked by Node's client, and is by fetch", async () => {
  const byNode = await http.connect()
  expect(await failureOf(byNode.callTool('gzipped'))).toEqual({
    code: 'BAD_RESPONSE',
    message: `${BAD}it is not JSON.`,
  })
  const byFetch = await fetched.connect()
  expect(textOf(await byFetch.callTool('gzipped'))).toBe('ok')
})

test('a bomb of 400 MB is unpacked no further than the limit', async () => {
  const client = await fetched.connect()
  const growth = await growthDuring(async () =>
    expect(await failureOf(client.callTool('gzip_bomb'))).toEqual({ code: 'RESPONSE_TOO_LARGE', message: TOO_LARGE }),
  )
  expect(growth).toBeLessThan(200)
  await expectUsable(client)
})

test('informational answers without end are not waited for without end', async () => {
  const client = await http.connect({ timeoutMs: 150 })
  expect(await failureOf(client.callTool('endless_continue'))).toMatchObject({ code: 'TIMEOUT' })
  await expectUsable(client)
})
