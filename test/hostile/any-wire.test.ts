// Servers that misbehave in what they say, over each wire: every call ends, clearly and within bounds, and the same client is
// good for the next.
import type { LogEntry, ProgressUpdate } from 'mcp-rally/client'
import { describe, expect, test, vi } from 'vitest'
import { expectUsable, failureOf, growthDuring, hostileWires, textOf } from './hostile.ts'

const { http, stdio } = hostileWires()

const polluted = (): unknown => ({} as { polluted?: unknown }).polluted

describe.each([http, stdio])('over $name', (wire) => {
  test.each([
    [
      'asks_for_ever',
      'TOO_MANY_ROUNDS',
      'tools/call asks_for_ever: the server asked in 11 rounds, and maxRounds is 10. To allow more rounds, raise maxRounds in connect(), or pass error.pending to client.resume().',
    ],
    [
      'doubles_its_state',
      'STATE_TOO_LARGE',
      "The server's state must have at most 65536 bytes, got 131072. To accept it, raise maxStateBytes in connect().",
    ],
    [
      'state_of_10_mb',
      'STATE_TOO_LARGE',
      "The server's state must have at most 65536 bytes, got 10000000. To accept it, raise maxStateBytes in connect().",
    ],
    ['asks_10000_questions', 'QUESTION_INVALID', 'The server asks 10000 questions in one round, and the limit is 100.'],
    [
      'form_of_10000_fields',
      'QUESTION_INVALID',
      'The server\'s question "it" is not valid: its form has more than 5000 properties and items.',
    ],
    [
      'form_with_a_long_name',
      'QUESTION_INVALID',
      /^The server's question "it" is not valid: requestedSchema: property "n{200}…" may be null/,
    ],
    [
      'question_with_a_long_key',
      'QUESTION_INVALID',
      /^The server's question "k+…" is not valid: its key must have at most 4096 bytes\.$/,
    ],
    [
      'question_of_a_long_method',
      'QUESTION_INVALID',
      /^The server's question "it" is not valid: its method is unknown, got "m+…"\.$/,
    ],
    ['form_of_references', 'QUESTION_INVALID', /property "a" takes more than 50000 steps to resolve/],
    ['form_from_a_value', 'QUESTION_INVALID', /refers to "#\/default", which is a value and not a schema/],
    ['form_in_a_circle', 'QUESTION_INVALID', /refers back to itself/],
    [
      'form_on_the_network',
      'QUESTION_INVALID',
      /refers to "http:\/\/127\.0\.0\.1:9\/schema", which is not in this schema/,
    ],
    [
      'form_with_a_long_default',
      'ANSWER_INVALID',
      /^The answer to "it" does not match its question: mail must be an email address/,
    ],
    ['visits_a_script', 'QUESTION_INVALID', /its url must begin with http: or https:, got "javascript:"/],
    ['visits_a_file', 'QUESTION_INVALID', /its url must begin with http: or https:, got "file:"/],
    ['visits_for_a_while', 'QUESTION_INVALID', /its url must be a URL/],
    ['nests_questions', 'BAD_RESPONSE', /its inputRequests are nested more than 100 levels deep/],
    ['infinite_numbers', 'BAD_RESPONSE', /contain a number that is not finite/],
    ['proto_type', 'BAD_RESPONSE', /the content of tools\/call must be a list of objects/],
    ['proto_question', 'QUESTION_INVALID', /question "__proto__" is not valid: its method is unknown, got "nonsense"/],
    [
      'proto_field',
      'QUESTION_INVALID',
      /property "__proto__" has a name that is not safe in JavaScript objects\. Rename it\.$/,
    ],
  ])('%s is refused with %s, and the next call is not', async (tool, code, message) => {
    const client = await wire.connect()
    expect(await failureOf(client.callTool(tool))).toEqual({
      code,
      message: typeof message === 'string' ? message : expect.stringMatching(message),
    })
    expect(polluted()).toBeUndefined()
    await expectUsable(client)
  })

  test('a state of 100 MB is not even read', async () => {
    const client = await wire.connect()
    const growth = await growthDuring(async () =>
      expect(await failureOf(client.callTool('state_of_100_mb'))).toEqual({
        code: 'RESPONSE_TOO_LARGE',
        message:
          "The server's response is larger than 16777216 bytes. To accept it, raise maxResponseBytes in connect().",
      }),
    )
    expect(growth).toBeLessThan(60)
    await expectUsable(client)
  })

  test('a call that is put off for ever ends with its time', async () => {
    const client = await wire.connect()
    expect(await failureOf(client.callTool('defers_for_ever', {}, { timeoutMs: 400 }))).toEqual({
      code: 'TIMEOUT',
      message:
        'tools/call defers_for_ever: the server did not respond within 400 ms (timeoutMs). The request may or may not have taken effect.',
    })
    await expectUsable(client)
  })

  test('a form whose pattern is a catastrophe is asked without it', async () => {
    const client = await wire.connect()
    expect(textOf(await client.callTool('form_with_a_catastrophe'))).toMatch(/"content":\{"word":"a{40}!"\}/)
    await expectUsable(client)
  })

  test('nesting of any depth in what is only handed on is handed on', async () => {
    const client = await wire.connect()
    expect(textOf(await client.callTool('nests_content'))).toBe('deep')
    await expectUsable(client)
  })

  test('keys that JavaScript has other uses for stay what they are', async () => {
    const client = await wire.connect({}, 'proto')
    const result = await client.callTool('proto_result')
    expect(textOf(result)).toBe('ok')
    expect(Object.getPrototypeOf(result)).toBe(Object.prototype)
    expect(Object.hasOwn(client.server.capabilities, '__proto__')).toBe(true)
    expect(polluted()).toBeUndefined()
    await expectUsable(client)
  })

  describe('a structured result', () => {
    test('whose schema has a catastrophe for a pattern is checked without it', async () => {
      const client = await wire.connect()
      await client.listTools()
      expect((await client.callTool('structured_catastrophe')).structuredContent).toHaveProperty('word')
      await expectUsable(client)
    })

    test.each([
      ['structured_long', /takes longer than 2000 ms to compile/],
      ['structured_value', /refers to "#\/default", which is not a schema inside it/],
    ])('whose schema cannot be compiled in time, or hides one in a value, is not checked: %s', async (tool, why) => {
      const warn = vi.fn<(message: string, ...details: unknown[]) => void>()
      const client = await wire.connect({ logger: { warn, error: () => {} } })
      await client.listTools()
      const began = performance.now()
      expect(textOf(await client.callTool(tool))).toBe('ok')
      expect(performance.now() - began).toBeLessThan(10_000)
      expect(warn).toHaveBeenCalledExactlyOnceWith(
        'The results of a tool are not checked, because its outputSchema cannot be compiled.',
        expect.objectContaining({ tool, error: expect.objectContaining({ message: expect.stringMatching(why) }) }),
      )
      await expectUsable(client)
    })

    test.each([
      ['structured_maze', /^The result of structured_maze .*takes longer than \d+ ms to check\.$/],
      ['structured_proto', /^The result of structured_proto does not match the outputSchema of the tool/],
      ['structured_nest', /^The result of structured_nest does not match the outputSchema of the tool/],
    ])('that does not fit, or is endless to check, is refused: %s', async (tool, message) => {
      const client = await wire.connect()
      await client.listTools()
      expect(await failureOf(client.callTool(tool))).toEqual({
        code: 'RESULT_INVALID',
        message: expect.stringMatching(message),
      })
      expect(polluted()).toBeUndefined()
      await expectUsable(client)
    })
  })

  describe('a list', () => {
    test.each([
      ['endless', 'BAD_RESPONSE', "The server's response is not valid: tools/list: the list has more than 1000 pages."],
      [
        'repeating',
        'BAD_RESPONSE',
        "The server's response is not valid: tools/list: the server sent the same nextCursor twice.",
      ],
      [
        'crowded',
        'BAD_RESPONSE',
        "The server's response is not valid: tools/list: the list has more than 100000 entries.",
      ],
      [
        'heavy',
        'RESPONSE_TOO_LARGE',
        "The server's response is larger than 16777216 bytes. To accept it, raise maxResponseBytes in connect().",
      ],
      [
        'shapeless',
        'BAD_RESPONSE',
        "The server's response is not valid: tools/list: tools must be a list, got an object.",
      ],
    ])('that is %s is refused with %s, and a call is not', async (mode, code, message) => {
      const client = await wire.connect({}, mode)
      expect(await failureOf(client.listTools())).toEqual({ code, message })
      await expectUsable(client)
    })

    test.each(['malformed', 'unlistable'])('that is %s in part is used for the rest', async (mode) => {
      const client = await wire.connect({}, mode)
      expect((await client.listTools()).map(({ name }) => name)).toContain('ping')
      await expectUsable(client)
    })
  })

  test('what a server says about itself is kept in part', async () => {
    const client = await wire.connect({}, 'talkative')
    const { name, version, title = '', description = '', instructions = '', icons = [], websiteUrl } = client.server
    expect([name, version, title, description, instructions].map(({ length }) => length)).toEqual([
      1_024, 1_024, 1_024, 8_192, 65_536,
    ])
    expect([icons.length, websiteUrl]).toEqual([100, undefined])
    await expectUsable(client)
  })

  test('a message of progress, of the log or of an error is passed on in part', async () => {
    const onLog = vi.fn<(entry: LogEntry) => void>()
    const onProgress = vi.fn<(progress: ProgressUpdate) => void>()
    const client = await wire.connect({ onLog })
    expect((await failureOf(client.callTool('talks', {}, { onProgress }))).message).toMatch(/^x{8192}$/)
    expect(onProgress.mock.calls[0]?.[0].message).toHaveLength(8_192)
    expect(onLog.mock.calls[0]?.[0]).toEqual({ level: 'info', data: 'd', logger: 'x'.repeat(1_024) })
    await expectUsable(client)
  })

  test.each([
    ['nonsense', 'REVISION', /^The server supports no revision that it names, this client supports 2026-07-28\.$/],
    ['verbose', 'REVISION', /^The server supports revision 3000-0, .*, 3000-9, this client supports 2026-07-28\.$/],
    ['burdensome', 'BAD_RESPONSE', /its capabilities must have at most 65536 bytes\.$/],
    ['asking', 'BAD_RESPONSE', /the resultType of server\/discover is unknown, got "input_required"/],
  ])('a discovery that is %s fails to connect with %s', async (mode, code, message) => {
    expect(await failureOf(wire.connect({ timeoutMs: 1_000 }, mode))).toEqual({
      code,
      message: expect.stringMatching(message),
    })
  })
})
