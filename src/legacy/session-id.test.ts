import { describe, expect, test } from 'vitest'
import { negotiated } from '../protocol/revisions/index.ts'
import { digest } from '../seal/canonical.ts'
import type { StateCodec } from '../seal/codec.ts'
import type { SealOptions } from '../seal/seal.ts'
import { createSeal } from '../seal/seal.ts'
import { readInitialize } from './initialize.ts'
import { SessionIds } from './session-id.ts'

const NOW = 1_800_000_000_000
const SECRET = 'a secret of the session tests, long enough'
const claims = {
  revision: negotiated('2025-06-18'),
  capabilities: 5,
  carriesState: false,
  clientName: 'Ada',
  clientVersion: '1',
}

function sessionIds(options: Partial<SealOptions> = {}): {
  ids: SessionIds
  log: unknown[]
  at: (ms: number) => void
} {
  const log: unknown[] = []
  let time = NOW
  const seal = createSeal({
    audience: 'here',
    keys: [SECRET],
    logger: { warn: (_message, details) => log.push(details?.['reason']), error: () => {} },
    now: () => time,
    ...options,
  })
  return { ids: new SessionIds(seal, []), log, at: (ms) => (time = NOW + ms) }
}

const DAY = 86_400_000

describe('A session id', () => {
  test.each([
    ['', false],
    [', and that the client carries states', true],
  ])('gives back what was negotiated%s, on every instance that has the keys (1)', async (_what, carriesState) => {
    const token = await sessionIds().ids.mint({ ...claims, carriesState }, 'ada')
    const opened = await sessionIds({ keys: ['another secret that mints, also long enough', SECRET] }).ids.open(
      token,
      'ada',
    )
    expect(opened).toEqual({ ...claims, carriesState, id: expect.stringMatching(/^[\w-]{16}$/) })
  })

  test('holds the extensions of the client, however long everything else is (3)', async () => {
    const declared = { 'com.example/a': { settings: 'x'.repeat(450) } }
    const extensions = readInitialize(
      {
        protocolVersion: '2025-11-25',
        capabilities: { extensions: declared },
        clientInfo: { name: 'a', version: '1' },
      },
      [],
    ).extensions
    const long = '\u0000'.repeat(1_000)
    const { ids } = sessionIds()
    const token = await ids.mint(
      { ...claims, clientName: long, clientVersion: long, ...(extensions && { extensions }) },
      'ada',
    )
    expect((await ids.open(token, 'ada'))?.extensions).toEqual(declared)
  })

  test('holds only the names of extensions whose settings are too large', () => {
    const declared = Object.fromEntries(
      Array.from({ length: 100 }, (_, index) => [`com.example/${index}`, { a: index }]),
    )
    const { extensions = {} } = readInitialize(
      {
        protocolVersion: '2025-11-25',
        capabilities: { extensions: declared },
        clientInfo: { name: 'a', version: '1' },
      },
      [],
    )
    expect(JSON.stringify(extensions).length).toBeLessThan(512)
    expect(extensions).toMatchObject({ 'com.example/0': {}, 'com.example/9': {} })
  })

  test('is another one each time', async () => {
    const { ids } = sessionIds()
    const [one, two] = [await ids.mint(claims, undefined), await ids.mint(claims, undefined)]
    expect((await ids.open(one, undefined))?.id).not.toBe((await ids.open(two, undefined))?.id)
  })

  test.each([
    ['for another principal', {}, 'bob', 0, 'minted for another principal'],
    ['for nobody', {}, undefined, 0, 'minted for another principal'],
    ['for another audience', { audience: 'there' }, 'ada', 0, 'minted for another audience'],
    ['under other keys', { keys: ['a secret that somebody else has, long enough'] }, 'ada', 0, /^no key has this id/],
    ['after more than a day', {}, 'ada', DAY + 60_001, 'expired'],
    ['before it was made', {}, 'ada', -60_001, /^minted in the future/],
  ])('does not open %s, and the log has the reason (1, 2)', async (_what, options, principal, ms, reason) => {
    const token = await sessionIds().ids.mint(claims, 'ada')
    const { ids, log, at } = sessionIds(options)
    at(ms)
    expect(await ids.open(token, principal)).toBeUndefined()
    expect(log).toEqual([typeof reason === 'string' ? reason : expect.stringMatching(reason)])
  })

  test.each([DAY + 59_999, -59_999])('opens when clocks differ by less than a minute: %d ms (1)', async (ms) => {
    const { ids, at } = sessionIds()
    const token = await ids.mint(claims, undefined)
    at(ms)
    expect(await ids.open(token, undefined)).toBeDefined()
  })

  test('has at most 2 KiB, whatever the client calls itself (3)', async () => {
    const { ids } = sessionIds({ audience: 'x'.repeat(10_000) })
    for (const name of ['\u0000', '\ud800', '\u{1f600}', '"', 'a'].map((each) => each.repeat(10_000))) {
      const token = await ids.mint({ ...claims, clientName: name, clientVersion: name }, name)
      expect(token.length).toBeLessThanOrEqual(2_048)
      expect(await ids.open(token, name)).toMatchObject({ capabilities: 5 })
    }
  })

  describe('under a codec of the user', () => {
    const plain: StateCodec = {
      seal: (plaintext) => Promise.resolve(Buffer.from(plaintext).toString('base64url')),
      open: (token) => Promise.resolve(Buffer.from(token, 'base64url').toString()),
    }
    const { ids, log } = sessionIds({ keys: undefined, codec: plain })

    test('opens too', async () => {
      expect(await ids.open(await ids.mint(claims, 'ada'), 'ada')).toMatchObject(claims)
    })

    const header = [
      1,
      NOW,
      NOW,
      NOW + DAY,
      digest('here'),
      'session',
      '',
      '',
      '',
      'id',
      '2025-06-18',
      5,
      false,
      'a',
      '1',
    ]

    test('is laid out as the seal describes', async () => {
      expect(await ids.open(await plain.seal(sealedAs(header)), undefined)).toMatchObject({ id: 'id', capabilities: 5 })
    })

    test.each([
      ['a state', sealedAs(header.with(5, 'tools/call')), 'minted for another method'],
      ['an event', sealedAs(header.with(5, 'event')), 'minted for another method'],
      ['nothing', '', 'no header'],
      ['text that is not JSON', '{\n', 'the header is not JSON'],
      ['another layout', sealedAs(header.with(0, 2)), 'the header has a layout that this version does not know'],
      ['the layout of version 0.1', 'session\n[1,"id"]', 'the header is not JSON'],
      ['too few fields', sealedAs(header.slice(0, -1)), 'the header has 14 positions'],
      ['the wrong types', sealedAs(header.with(12, 1)), 'the header is wrong at position 12'],
      ['an unknown revision', sealedAs(header.with(10, '2024-01-01')), 'of a revision that is not served any more'],
    ])('does not open as %s (1)', async (_what, plaintext, reason) => {
      log.length = 0
      expect(await ids.open(await plain.seal(plaintext), undefined)).toBeUndefined()
      expect(log).toEqual([reason])
    })

    test.each([
      ['that a header cannot hold', () => 'a\nb', 'a session id that a header cannot hold'],
      ['that is too long', () => 'x'.repeat(3_073), 'The session id has 3073 bytes, at most 3072 are allowed'],
    ])('is never one %s (3)', async (_what, seal, message) => {
      const odd = sessionIds({ keys: undefined, codec: { ...plain, seal } }).ids
      await expect(odd.mint(claims, undefined)).rejects.toThrow(message)
    })
  })
})

function sealedAs(header: readonly unknown[]): string {
  return `${JSON.stringify(header)}\n`
}
