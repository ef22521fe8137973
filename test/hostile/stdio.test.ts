// Servers that misbehave in ways that only a process has.
import type { ClientOptions } from 'mcp-rally/client'
import { describe, expect, test, vi } from 'vitest'
import { expectUsable, failureOf, growthDuring, hostileWires, textOf } from './hostile.ts'

const { stdio } = hostileWires()

const LOST = /^The response was lost: .*The request may or may not have taken effect\.$/s
const BAD = "The server's response is not valid: "
const TOO_LARGE =
  "The server's response is larger than 16777216 bytes. To accept it, raise maxResponseBytes in connect()."

test.each<[string, string, string | RegExp]>([
  ['dies', 'LOST', /exited with code 7 and wrote nothing to stderr/],
  ['dies_midway', 'LOST', /exited with code 0/],
  ['closes_its_output', 'LOST', LOST],
  ['floods_its_errors_and_dies', 'LOST', /exited with code 1\. Its stderr ends with:\ne{4096}\n/],
  ['odd_error', 'BAD_RESPONSE', `${BAD}its error has no code and message.`],
  ['no_result', 'BAD_RESPONSE', `${BAD}it has neither a result nor an error.`],
])('%s is told of as %s, and the next call is fine', async (tool, code, message) => {
  const client = await stdio.connect()
  expect(await failureOf(client.callTool(tool))).toEqual({
    code,
    message: typeof message === 'string' ? message : expect.stringMatching(message),
  })
  await expectUsable(client)
})

test.each([
  'silence',
  'drips',
  'another_id',
  'text_id',
  'no_id',
  'proto_id',
  'object_id',
  'a_batch',
  'endless_lines',
  'endless_blanks',
  'endless_notifications',
  'endless_answers',
])('%s ends with the time of the call, and the next call is fine', async (tool) => {
  const client = await stdio.connect({ timeoutMs: 1_000 })
  const growth = await growthDuring(async () =>
    expect(await failureOf(client.callTool(tool, {}, { timeoutMs: 150, onProgress: () => {} }))).toEqual({
      code: 'TIMEOUT',
      message: `tools/call ${tool}: the server did not respond within 150 ms (timeoutMs). The request may or may not have taken effect.`,
    }),
  )
  expect(growth).toBeLessThan(80)
  await expectUsable(client)
})

test('a line without end is read no further than the limit, and its server is started anew', async () => {
  const client = await stdio.connect()
  const growth = await growthDuring(async () =>
    expect(await failureOf(client.callTool('endless_line'))).toEqual({
      code: 'RESPONSE_TOO_LARGE',
      message: TOO_LARGE,
    }),
  )
  expect(growth).toBeLessThan(80)
  await expectUsable(client)
})

test('a server that has closed its input is started anew', async () => {
  const client = await stdio.connect()
  const call = client.callTool('closes_its_input', {}, { timeoutMs: 100 })
  expect(await failureOf(call)).toMatchObject({ code: 'TIMEOUT' })
  await expectUsable(client)
})

test.each(['ignores_its_input', 'stops'])('%s holds no call for longer than its time, and is ended', async (tool) => {
  const client = await stdio.connect()
  expect(await failureOf(client.callTool(tool, {}, { timeoutMs: 100 }))).toMatchObject({ code: 'TIMEOUT' })
  const growth = await growthDuring(async () => {
    for (let n = 0; n < 5; n += 1) {
      const call = client.callTool('ping', { large: 'x'.repeat(1_000_000) }, { timeoutMs: 20 })
      expect(await failureOf(call)).toMatchObject({ code: 'TIMEOUT' })
    }
  })
  expect(growth).toBeLessThan(40)
  await client.close()
  expect(await failureOf(client.callTool('ping'))).toMatchObject({ code: 'CLOSED' })
})

describe('a flood', () => {
  test('of all that is no answer keeps no call from its own, nor fills the log', async () => {
    const warn = vi.fn<(message: string) => void>()
    const options: ClientOptions = { logger: { warn, error: warn }, onLog: () => {} }
    const client = await stdio.connect(options)
    const onProgress = vi.fn<() => void>()
    expect(textOf(await client.callTool('flood', {}, { onProgress }))).toBe('ok')
    expect(onProgress).toHaveBeenCalledTimes(50_000)
    expect(warn.mock.calls.length).toBeLessThanOrEqual(100)
    await expectUsable(client)
  })

  test('on the error stream is read, and forgotten', async () => {
    const client = await stdio.connect()
    const growth = await growthDuring(async () => expect(textOf(await client.callTool('floods_its_errors'))).toBe('ok'))
    expect(growth).toBeLessThan(40)
    await expectUsable(client)
  })

  test('of answers to one request is one answer', async () => {
    const client = await stdio.connect()
    expect(textOf(await client.callTool('answers_twice'))).toBe('ok')
    await expectUsable(client)
  })
})
