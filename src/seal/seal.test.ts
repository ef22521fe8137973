import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RallyError } from '../protocol/errors.ts'
import type { Logger } from '../protocol/logger.ts'
import { canonical, digest } from './canonical.ts'
import { requestState, type Claims } from './claims.ts'
import type { StateCodec } from './codec.ts'
import { bindTo, isText, writePlaintext, type Binding, type PayloadCodec } from './envelope.ts'
import { InvalidState, SealError } from './errors.ts'
import { ephemeral, keyring, type Purpose } from './keyring.ts'
import { createSeal, type Seal, type SealFor, type SealOptions } from './seal.ts'

const audience = 'deployer'
const start = 1_800_000_000_000
const minute = 60_000
const old = 'the old secret'.padEnd(32, '.')
const fresh = 'the new secret'.padEnd(32, '.')
const binding: Binding = {
  method: 'tools/call',
  target: 'deploy',
  argumentsDigest: digest(canonical({ env: 'production' })),
  principal: 'alice',
}
const claims: Claims = {
  startedAt: start,
  flowId: 'flow-1',
  round: 2,
  deferrals: 1,
  version: '3',
  capabilities: 5,
  revision: '2026-07-28',
  carry: { open: { confirm: ['pin', 1] }, held: {} },
  journal: '[["plan",{"sha":"classified"}]]',
}

/** No secret at all, but a codec; its tokens are readable in a failing test. */
const backwards = {
  seal: (plaintext: string): string => Array.from(plaintext).toReversed().join(''),
  open: (token: string): string => Array.from(token).toReversed().join(''),
}

const refused = '{"name":"InvalidState","rpcCode":-32602,"message":"Invalid or expired requestState"}'

describe('a seal', () => {
  it('opens what it minted, without a promise', () => {
    const seal = sealOf()
    expect(seal.open(seal.mint(claims, binding), binding)).toEqual(claims)
  })

  it('carries any claims', () => {
    const seal = sealOf()
    const json = fc.jsonValue().map((value): unknown => JSON.parse(JSON.stringify(value)))
    fc.assert(
      fc.property(json, fc.json(), fc.nat(), (carry, journal, round) => {
        const some = { ...claims, carry, journal, round }
        expect(seal.open(seal.mint(some, binding), binding)).toEqual(some)
      }),
    )
  })

  it('seals for another purpose under the same keys and terms, and neither opens what the other minted', () => {
    for (const seal of [sealOf({ ttl: minute }), sealOf({ keys: undefined })]) {
      const other = seal.for({ ...requestState, purpose: 'serverRequest' })
      expect(other).toMatchObject({ ttl: seal.ttl, maxBytes: seal.maxBytes, ephemeral: seal.ephemeral })
      const token = other.mint(claims, binding) as string
      expect(token.startsWith('sr1.')).toBe(true)
      expect(other.open(token, binding)).toEqual(claims)
      expect(seal.for({ ...requestState, purpose: 'serverRequest' }).open(token, binding)).toEqual(claims)
      for (const wrong of [seal, seal.for({ ...requestState, purpose: 'event' })]) {
        expect(() => wrong.open(token, binding)).toThrow(InvalidState)
      }
    }
  })

  it('seals any payload with a purpose, and checks who opens it and when as for a requestState', () => {
    const to = bindTo('event', 'a session', 'alice')
    const opensAt = (after: number, options: Partial<SealOptions> = {}): unknown => {
      const seal = sealOf({ now: () => start + after, ...options }).for(noteCodec('event'), { ttl: minute })
      return answerOf(() => seal.open(token, to))
    }
    const minting = sealOf().for(noteCodec('event'), { ttl: minute })
    const token = text(minting.mint('classified', to))
    expect(minting).toMatchObject({ ttl: minute, lifetimeMs: 3 * minute })
    expect(minting.open(token, to)).toBe('classified')
    expect(opensAt(2 * minute)).toBe('opened')
    expect(opensAt(2 * minute + 1)).toBe(refused)
    expect(opensAt(-minute - 1)).toBe(refused)
    expect(opensAt(0, { audience: 'other' })).toBe(refused)
    for (const other of [{ principal: 'bob' }, { principal: undefined }, { target: 'another session' }]) {
      expect(answerOf(() => minting.open(token, { ...to, ...other }))).toBe(refused)
    }
  })

  it('keeps purposes apart under a custom codec too, which has no key for each', () => {
    const seal = sealOf({ keys: undefined, codec: backwards })
    const [events, sessions] = [seal.for(noteCodec('event')), seal.for(noteCodec('session'))]
    const token = events.mint('a note', bindTo('event', '', 'alice'))
    expect(events.open(token, bindTo('event', '', 'alice'))).toBe('a note')
    expect(answerOf(() => sessions.open(token, bindTo('session', '', 'alice')))).toBe(refused)
    expect(answer(seal, token)).toBe(refused)
    expect(answerOf(() => events.open(seal.mint(claims, binding), bindTo('event', '', 'alice')))).toBe(refused)
  })

  it('without keys or codec is ephemeral: no other instance opens its states', () => {
    const seal = createSeal({ audience })
    const state = seal.mint({ ...claims, startedAt: Date.now() }, binding)
    expect(seal.ephemeral).toBe(true)
    expect(seal.open(state, binding)).toMatchObject({ flowId: 'flow-1' })
    expect(answer(createSeal({ audience }), state)).toBe(refused)
  })

  it('takes a ring that is already made', () => {
    expect(sealOf({ keys: ephemeral() }).ephemeral).toBe(true)
    const state = sealOf({ keys: keyring([old]) }).mint(claims, binding)
    expect(sealOf({ keys: [old] }).open(state, binding)).toEqual(claims)
  })

  it.each<[string, Record<string, unknown>, string]>([
    ['an empty audience', { audience: '' }, 'audience'],
    ['no audience', { audience: undefined }, 'audience'],
    ['a ttl of nothing', { ttl: 0 }, '`ttl` must be a whole number above 0, got 0'],
    ['a ttl without end', { ttl: Number.POSITIVE_INFINITY }, '`ttl` must be a whole number above 0, got Infinity'],
    ['a ttl in words', { ttl: '10m' }, '`ttl` must be a whole number above 0, got 10m'],
    ['a negative maxAge', { maxAge: -1 }, '`maxAge` must be a whole number above 0, got -1'],
    ['half a byte', { maxBytes: 0.5 }, '`maxBytes` must be a whole number above 0, got 0.5'],
    ['keys and a codec', { keys: [old], codec: backwards }, 'not both'],
    ['a codec that cannot open', { keys: undefined, codec: { seal: String } }, 'open(token)'],
    ['a short key', { keys: ['short'] }, 'keys[0] must have at least 32 bytes, got 5'],
    ['no keys at all', { keys: [] }, '`keys` is empty'],
    ['a key without its brackets', { keys: old }, 'array'],
    ['an empty key', { keys: '' }, 'array'],
  ])('is not built with %s', (_case, options, message) => {
    const build = (): Seal => sealOf(options)
    expect(build).toThrow(RallyError)
    expect(build).toThrow(message)
    expect(build).not.toThrow(old)
  })
})

describe('every refusal is the same error (invariants 1 to 4)', () => {
  const seal = sealOf()
  const state = text(seal.mint(claims, binding))

  it('which tells nothing, and keeps its cause', () => {
    const error = new InvalidState(new SealError('expired'))
    expect(seen(error)).toBe(refused)
    expect(error.cause).toEqual(new SealError('expired'))
    expect(() => seal.open('no state', binding)).toThrow(expect.objectContaining({ cause: expect.any(SealError) }))
  })

  it('for a state changed, cut or lengthened anywhere', () => {
    const forged = Array.from(state, (character, at) => {
      const [before, after] = [state.slice(0, at), state.slice(at + 1)]
      return [before, `${before}${character === 'A' ? 'B' : 'A'}${after}`, `${before}A${character}${after}`]
    })
    const answers = [...forged.flat(), `${state}A`, `${state}=`].map((sent) => answer(seal, sent))
    expect(new Set(answers)).toEqual(new Set([refused]))
  })

  it.each<[string, Partial<SealOptions>, Partial<Binding>]>([
    ['another key', { keys: [fresh] }, {}],
    ['another audience', { audience: 'other' }, {}],
    ['another principal', {}, { principal: 'bob' }],
    ['no principal', {}, { principal: undefined }],
    ['another method', {}, { method: 'prompts/get' }],
    ['another tool', {}, { target: 'destroy' }],
    ['another argument', {}, { argumentsDigest: digest(canonical({ env: 'staging' })) }],
    ['an expired state', { now: () => start + 11 * minute + 1 }, {}],
    ['a flow past its maxAge', { maxAge: minute, now: () => start + 2 * minute + 1 }, {}],
    ['a state from the future', { now: () => start - minute - 1 }, {}],
    ['a smaller limit', { maxBytes: 100 }, {}],
    ['another codec', { keys: undefined, codec: backwards }, {}],
  ])('for %s', (_case, options, other) => {
    expect(answer(sealOf(options), state, { ...binding, ...other })).toBe(refused)
    expect(seal.open(state, binding)).toEqual(claims)
  })

  it('for whatever else a client may send', () => {
    const oddities = [undefined, null, 7, true, {}, [state], '', 'rs1.', 'rs2.'.padEnd(200, 'A')]
    const answers = [...oddities, ...fc.sample(fc.anything(), 500)].map((sent) => answer(seal, sent))
    expect(new Set(answers)).toEqual(new Set([refused]))
  })

  it('for a codec that fails, at once or later', async () => {
    const opens = [
      () => 'no claims',
      () => undefined,
      () => {
        throw new RangeError('the KMS said no')
      },
    ]
    for (const open of opens) {
      expect(answer(sealThatOpens(open), state)).toBe(refused)
      await expect(sealThatOpens(async () => open()).open(state, binding)).rejects.toBeInstanceOf(InvalidState)
    }
  })
})

describe('the log (invariant 5)', () => {
  it('learns the reason and nothing of what was sealed', () => {
    const logger = recorder()
    const seal = sealOf({ logger })
    const state = text(seal.mint(claims, binding))
    expect(answer(seal, `${state}A`)).toBe(refused)
    expect(answer(seal, state, { ...binding, principal: 'bob' })).toBe(refused)
    const said = JSON.stringify(logger.said)
    for (const word of [state.slice(0, 20), 'classified', 'alice', 'bob', 'flow-1']) expect(said).not.toContain(word)
    expect(logger.said).toHaveLength(2)
    expect(logger.said[1]).toEqual([
      'A requestState was refused.',
      { reason: 'minted for another principal', method: 'tools/call', target: 'deploy' },
    ])
  })

  it('is not written when a state opens', () => {
    const logger = recorder()
    const seal = sealOf({ logger })
    expect(answer(seal, seal.mint(claims, binding))).toBe('opened')
    expect(logger.said).toEqual([])
  })
})

describe('the size (invariant 6)', () => {
  it('is checked before the codec sees anything', () => {
    const opened: string[] = []
    const codec: StateCodec = { ...backwards, open: (token) => String(opened.push(token)) }
    const seal = sealOf({ keys: undefined, codec, maxBytes: 1_000 })
    expect(answer(seal, 'x'.repeat(1_001))).toBe(refused)
    expect(answer(seal, 'é'.repeat(501))).toBe(refused)
    expect(opened).toEqual([])
    expect(answer(seal, 'x'.repeat(1_000))).toBe(refused)
    expect(opened).toHaveLength(1)
  })

  it('is at most maxBytes when minted, and maxPlaintextBytes fit in it', () => {
    const seal = sealOf({ maxBytes: 2_000 })
    const terms = { audience, ttl: 1, maxAge: 1 }
    const empty = writePlaintext(requestState, { ...claims, journal: '' }, binding, terms, start)
    const journal = 'x'.repeat(seal.maxPlaintextBytes - empty.length)
    expect(text(seal.mint({ ...claims, journal }, binding)).length).toBeLessThanOrEqual(2_000)
    expect(() => seal.mint({ ...claims, journal: `${journal}x` }, binding)).toThrow('at most 2000 are allowed')
  })
})

describe('rotation (invariant 7)', () => {
  const rings = [[old], [old, fresh], [fresh, old], [fresh]]

  // An operator rolls each ring out over a fleet, so two neighbouring ones are live at once.
  it.each([
    [0, 1],
    [1, 2],
    [2, 3],
  ])('loses no flow between ring %i and ring %i, either way', (before, after) => {
    const [one, two] = [sealOf({ keys: rings[before] }), sealOf({ keys: rings[after] })]
    expect(two.open(one.mint(claims, binding), binding)).toEqual(claims)
    expect(one.open(two.mint(claims, binding), binding)).toEqual(claims)
  })

  it('loses no flow that has a round under every ring', () => {
    let state = sealOf({ keys: rings[0] }).mint(claims, binding)
    for (const keys of rings) {
      const seal = sealOf({ keys })
      const opened = seal.open(state, binding)
      expect(opened).toEqual(claims)
      state = seal.mint(claims, binding)
    }
  })

  it('refuses what a dropped key minted, at once', () => {
    const state = sealOf({ keys: [old] }).mint(claims, binding)
    expect(sealOf({ keys: [fresh, old] }).open(state, binding)).toEqual(claims)
    expect(answer(sealOf({ keys: [fresh] }), state)).toBe(refused)
  })
})

describe('a codec of the user’s', () => {
  it('seals in place of keys, and its claims are checked all the same', () => {
    const seal = sealOf({ keys: undefined, codec: backwards })
    const state = seal.mint(claims, binding)
    expect(seal.ephemeral).toBe(false)
    expect(seal.open(state, binding)).toEqual(claims)
    expect(answer(seal, state, { ...binding, principal: undefined })).toBe(refused)
  })

  it('may be asynchronous', async () => {
    const slow: StateCodec = {
      seal: async (plain) => backwards.seal(plain),
      open: async (token) => backwards.open(token),
    }
    const seal = sealOf({ keys: undefined, codec: slow, maxBytes: 1_000 })
    const state = await seal.mint(claims, binding)
    await expect(seal.open(state, binding)).resolves.toEqual(claims)
    await expect(seal.open(state, { ...binding, target: 'destroy' })).rejects.toBeInstanceOf(InvalidState)
    const large = { ...claims, journal: 'x'.repeat(1_000) }
    await expect(seal.mint(large, binding)).rejects.toMatchObject({ code: 'STATE_TOO_LARGE' })
  })
})

function sealOf(options: Partial<SealOptions> = {}): Seal {
  return createSeal({ audience, keys: [old], now: () => start, ...options })
}

/** A payload of one text, for any purpose. */
function noteCodec(purpose: Purpose): PayloadCodec<string, [note: string]> {
  return {
    purpose,
    name: 'note',
    tests: [isText],
    write: (note) => ({ id: 'id', fields: [note], text: '' }),
    read: ({ fields: [note] }) => note,
  }
}

function sealThatOpens(open: () => unknown): Seal {
  return sealOf({ keys: undefined, codec: Object.assign({ ...backwards }, { open }) })
}

function recorder(): Logger & { said: unknown[][] } {
  const said: unknown[][] = []
  const record = (...words: unknown[]): void => void said.push(words)
  return { said, warn: record, error: record }
}

/** All that a caller gets to see. */
function answer(seal: SealFor<unknown>, token: unknown, request = binding): string {
  return answerOf(() => seal.open(token, request))
}

function answerOf(open: () => unknown): string {
  try {
    const opened = open()
    return opened instanceof Promise ? 'a promise' : 'opened'
  } catch (error) {
    return error instanceof InvalidState ? seen(error) : String(error)
  }
}

function seen({ name, rpcCode, message, data }: InvalidState): string {
  return JSON.stringify({ name, rpcCode, message, data })
}

function text(token: string | Promise<string>): string {
  if (typeof token === 'string') return token
  throw new Error('The seal of a synchronous codec gave a promise.')
}
