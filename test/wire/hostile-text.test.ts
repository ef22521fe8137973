import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ARGS, expectFate, expectServed, guardPrototypes, hostileApp, secondRound, WANTED } from './hostile.ts'
import type { WireRequest } from './messages.ts'
import { call, headersOf, META, request, textOf } from './messages.ts'
import { pathsOf, replaced } from './paths.ts'
import type { RawAnswer, RawWire } from './raw.ts'
import { isNotification, parsed, rawWires } from './raw.ts'

guardPrototypes()

const echo = (text: string): string => JSON.stringify(call('echo', { text }))

describe.each(rawWires.filter(({ takesText }) => takesText))('$name', ({ open }) => {
  let wire: RawWire
  beforeAll(async () => {
    wire = await open(hostileApp())
  })
  afterAll(() => wire.close())

  test.each([
    '{',
    '}',
    '[',
    '{"jsonrpc"',
    '{"jsonrpc":"2.0",}',
    "{'jsonrpc':'2.0'}",
    '{"jsonrpc":"2.0"}{"jsonrpc":"2.0"}',
    '[,]',
    'undefined',
    'NaN',
    'Infinity',
    '-',
    '01',
    '1.',
    '"',
    '"\u0001"',
    '"\\x41"',
    '"\\ud8"',
    'tru',
    'nul',
    '// nothing',
    'GET / HTTP/1.1',
    '<?xml version="1.0"?>',
    '\0',
    '\u{1f600}',
    'Content-Length: 20',
  ])('says -32700 to %j', async (text) => {
    const answer = await wire.send(text)
    expectFate(answer, '400 -32700')
    expect(answer.message).not.toHaveProperty('id')
    await expectServed(wire)
  })

  test('says -32700 to a message that ends too early, wherever it does', async () => {
    const text = echo('\u00e9\u{1f600}')
    const bytes = Buffer.from(text)
    for (let length = 1; length < bytes.length; length += 1) {
      expectFate(await wire.send(bytes.subarray(0, length)), '400 -32700', `${length} bytes`)
    }
    expectFate(await wire.send(bytes), 'done')
  })

  test('puts a character together whose bytes came apart', async () => {
    const text = 'h\u00e9llo \u2713 \u{1f600}'
    for (const chunk of [1, 2, 3, 5]) {
      const { message } = await wire.send(echo(text), { chunk })
      expect(textOf(message)).toBe(text)
    }
  })

  test('reads bytes that are no UTF-8 as the character that stands for them, inside a text', async () => {
    for (const bytes of [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf0, 0x9f, 0x98], [0x80], [0xf8, 0x88]]) {
      const [before = '', after = ''] = echo('[HOLE]').split('HOLE')
      const body = Buffer.concat([Buffer.from(before), Buffer.from(bytes), Buffer.from(after)])
      const { message } = await wire.send(body, { headers: headersOf(call('echo')) })
      expect(textOf(message)).toMatch(/^\[\ufffd+\]$/)
    }
  })

  test('says -32700 to bytes that are no UTF-8 outside of a text', async () => {
    for (const bytes of [[0xff], [0xfe, 0xff], [0x7b, 0x80, 0x7d], [0xc3, 0x28]]) {
      expectFate(await wire.send(Uint8Array.from(bytes)), '400 -32700')
    }
    await expectServed(wire)
  })

  test('says -32700 to UTF-16', async () => {
    const utf16 = Buffer.from(echo('x'), 'utf16le')
    expectFate(await wire.send(utf16), '400 -32700')
  })

  test('answers any bytes at all, and lives on', async () => {
    const bytes = fc
      .uint8Array({ minLength: 1, maxLength: 200 })
      .filter((array) => !array.includes(0x0a) && Buffer.from(array).toString('utf8').trim() !== '')
    await fc.assert(
      fc.asyncProperty(bytes, async (body) => expectAnswered(await wire.send(body), Buffer.from(body).toString())),
      { numRuns: 100 },
    )
    await expectServed(wire)
  })

  test('answers a valid message with any of its bytes changed, and lives on', async () => {
    const valid = Buffer.from(JSON.stringify(call('deploy', ARGS, {}, WANTED)))
    const changed = fc.tuple(fc.nat(valid.length - 1), fc.integer({ min: 0x0b, max: 0xff })).map(([at, byte]) => {
      const body = Buffer.from(valid)
      body[at] = byte
      return body
    })
    await fc.assert(
      fc.asyncProperty(changed, async (body) => expectAnswered(await wire.send(body), body.toString())),
      { numRuns: 200 },
    )
    await expectServed(wire)
  })
})

describe.each(rawWires)('$name', ({ open }) => {
  const app = hostileApp()
  let wire: RawWire
  let retry: WireRequest
  beforeAll(async () => {
    wire = await open(app)
    retry = await secondRound(app)
  })
  afterAll(() => wire.close())

  test.each(['null', 'true', 'false', '0', '-1.5e300', '""', '"tools/list"', '{}', '[]', '[[]]', '[null]', '[1,2]'])(
    'says -32600 to %s',
    async (text) => {
      const answer = await wire.send(text)
      expectFate(answer, '400 -32600')
      expect(answer.message).not.toHaveProperty('id')
    },
  )

  test('says -32600 to a batch, once and without an id, and does nothing of it', async () => {
    for (const batch of [[call('echo', { text: 'x' })], [call('echo', { text: 'x' }), request('tools/list')]]) {
      const answer = await wire.send(JSON.stringify(batch))
      expectFate(answer, '400 -32600')
      expect(answer.message).not.toHaveProperty('id')
    }
    await expectServed(wire)
  })

  const texts = [
    '\ud800',
    '\udc00\ud800',
    'a\0b',
    '\u2028\u2029',
    '\u0000\u001f\u007f',
    '\ufeff',
    '\ufffe',
    '</script>',
  ]
  test.each(texts)('gives the text %j back as it came, and the id too', async (text) => {
    const sent = { ...call('echo', { text }), id: text }
    const { message } = await wire.send(JSON.stringify(sent))
    expect(textOf(message)).toBe(text)
    expect(message?.id).toBe(text)
  })

  test.each(texts)('takes %j as a name that nobody knows', async (name) => {
    // A header holds no lone surrogate, and so cannot agree with one.
    const toTool = wire.name === 'Node HTTP' && /\p{Surrogate}/u.test(name) ? '400 -32020' : '200 -32602'
    expectFate(await wire.send(JSON.stringify(call(name))), toTool)
    expectFate(await wire.send(JSON.stringify(call('deploy', { ...ARGS, [name]: name }))), 'asks')
    const { requestState } = retry.params
    const answers = { [name]: { action: 'accept', content: {} } }
    expectFate(await wire.send(JSON.stringify(call('deploy', ARGS, { requestState, inputResponses: answers }))), 'asks')
  })

  test('keeps arguments apart that differ in a lone surrogate only', async () => {
    const first = await wire.send(JSON.stringify(call('deploy', { ...ARGS, env: '\ud800' })))
    const round = {
      requestState: first.message?.result?.['requestState'],
      inputResponses: retry.params['inputResponses'],
    }
    expectFate(await wire.send(JSON.stringify(call('deploy', { ...ARGS, env: '\ud801' }, round))), '200 frozen')
    expectFate(await wire.send(JSON.stringify(call('deploy', { ...ARGS, env: '\ufffd' }, round))), '200 frozen')
    expectFate(await wire.send(JSON.stringify(call('deploy', { ...ARGS, env: '\ud800' }, round))), 'done')
  })

  test('takes the last of two properties with the same name, and holds the headers against that one', async () => {
    const text = JSON.stringify(request('tools/list')).replace('"method"', '"method":"tools/call","method"')
    expectFate(await wire.send(text, { headers: headersOf(request('tools/list')) }), 'done')
  })

  test('answers anything that is nearly a request, and lives on', async () => {
    const anything = fc.jsonValue({ maxDepth: 3 })
    const or = (...good: unknown[]): fc.Arbitrary<unknown> =>
      fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...good) }, anything)
    const nearly = fc.record(
      {
        jsonrpc: or('2.0'),
        id: or(1, 'a', 0, -7),
        method: or('tools/call', 'tools/list', 'server/discover', 'initialize', 'notifications/cancelled', 'ping'),
        params: fc.oneof(
          anything,
          fc.record(
            {
              _meta: or({ ...META, ...WANTED }),
              name: or('deploy', 'echo', 'sample', 'roots', 'visit', 'mirror'),
              arguments: or(ARGS, { text: 'x' }, {}),
              inputResponses: or(retry.params['inputResponses'], { q: { roots: [] } }),
              requestState: or(retry.params['requestState'], undefined),
            },
            { requiredKeys: [] },
          ),
        ),
      },
      { requiredKeys: [] },
    )
    await fc.assert(
      fc.asyncProperty(fc.oneof(nearly, anything), async (message) => {
        const text = JSON.stringify(message)
        expectAnswered(await wire.send(text), text)
      }),
      { numRuns: wire.name === 'dispatch' ? 1_000 : 200 },
    )
    await expectServed(wire)
  })

  test('answers a valid round with anything anywhere in it, and lives on', async () => {
    const paths = pathsOf(retry)
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...paths), fc.jsonValue(), async (path, value) => {
        const text = JSON.stringify(replaced(retry, path, value))
        expectAnswered(await wire.send(text), text)
      }),
      { numRuns: wire.name === 'dispatch' ? 1_000 : 200 },
    )
    await expectServed(wire)
  })
})

/** What is due an answer got one, with a status that goes with it. The wire has held it against the specification. */
function expectAnswered({ status, message }: RawAnswer, sent: string): void {
  if (isNotification(parsed(sent))) {
    expect([undefined, 202]).toContain(status)
    return
  }
  expect(message).toBeDefined()
  const { code } = message?.error ?? {}
  const allowed = code === undefined ? [200] : code === -32601 ? [404] : code === -32602 ? [200, 400] : [400]
  if (status !== undefined) expect(allowed).toContain(status)
}

// On stdio the answer could be taken for that of a request with the same id: there it is passed over.
describe.each(rawWires.filter(({ name }) => name !== 'stdio'))('$name', ({ open }) => {
  test.each(['{"jsonrpc":"2.0","id":1,"result":{}}', '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}'])(
    'says -32600 to the response %s, for it has asked nothing',
    async (text) => {
      const wire = await open(hostileApp())
      expectFate(await wire.send(text), '400 -32600')
      await wire.close()
    },
  )
})
