import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { requestState, type Claims } from './claims.ts'
import { readPlaintext, writePlaintext, type Binding, type Terms } from './envelope.ts'
import { SealError } from './errors.ts'

const write = (value: Claims, to: Binding, under: Terms, now: number): string =>
  writePlaintext(requestState, value, to, under, now)
const read = (plaintext: string, by: Binding, under: Terms, now: number): Claims =>
  readPlaintext(requestState, plaintext, by, under, now)

const minute = 60_000
const start = 1_800_000_000_000
const terms: Terms = { audience: 'deployer', ttl: 10 * minute, maxAge: 60 * minute }
const binding: Binding = { method: 'tools/call', target: 'deploy', argumentsDigest: 'digest', principal: 'alice' }
const claims: Claims = {
  startedAt: start,
  flowId: 'flow',
  round: 1,
  deferrals: 0,
  version: undefined,
  capabilities: 5,
  revision: '2026-07-28',
  carry: { open: [] },
  journal: '["a",1]',
}

describe('claims', () => {
  it('come back as they were written', () => {
    const count = fc.nat()
    const text = fc.string({ unit: 'binary' })
    const anyClaims: fc.Arbitrary<Claims> = fc.record({
      startedAt: fc.constant(start),
      flowId: text,
      round: count,
      deferrals: fc.nat(2 ** 20 - 1),
      versionDeferrals: fc.option(fc.integer({ min: 1, max: 5 }), { nil: undefined }),
      version: fc.option(text, { nil: undefined }),
      capabilities: count,
      revision: text,
      carry: fc.jsonValue().map((value): unknown => JSON.parse(JSON.stringify(value))),
      journal: fc.oneof(text, fc.json(), fc.constant('\n["line"]\n')),
    })
    const anyBinding: fc.Arbitrary<Binding> = fc.record({
      method: text,
      target: text,
      argumentsDigest: text,
      principal: fc.option(text, { nil: undefined }),
    })
    fc.assert(
      fc.property(anyClaims, anyBinding, (someClaims, someBinding) => {
        const plaintext = write(someClaims, someBinding, terms, start)
        expect(read(plaintext, someBinding, terms, start)).toEqual(someClaims)
      }),
    )
  })

  it('end with the journal to the letter', () => {
    expect(write(claims, binding, terms, start).endsWith('\n["a",1]')).toBe(true)
  })

  it('say nothing of who the principal is, nor that two flows have the same', () => {
    const one = write(claims, binding, terms, start)
    const two = write({ ...claims, flowId: 'other' }, binding, terms, start)
    expect(one).not.toContain('alice')
    expect(headerOf(one)[8]).not.toBe(headerOf(two)[8])
  })
})

describe('claims are bound (invariant 2)', () => {
  it.each<[string, Partial<Binding>, Partial<Terms>]>([
    ['another principal', { principal: 'bob' }, {}],
    ['no principal', { principal: undefined }, {}],
    ['an empty principal', { principal: '' }, {}],
    ['another audience', {}, { audience: 'other' }],
    ['another method', { method: 'prompts/get' }, {}],
    ['another target', { target: 'destroy' }, {}],
    ['other arguments', { argumentsDigest: 'other' }, {}],
  ])('and refused to %s', (_case, otherBinding, otherTerms) => {
    const plaintext = write(claims, binding, terms, start)
    expect(() => read(plaintext, { ...binding, ...otherBinding }, { ...terms, ...otherTerms }, start)).toThrow(
      SealError,
    )
  })

  it.each([
    [undefined, ''],
    [undefined, 'alice'],
    ['', undefined],
    ['null', undefined],
  ])('to the principal %o, and refused to %o', (minted, presented) => {
    const plaintext = write(claims, { ...binding, principal: minted }, terms, start)
    expect(read(plaintext, { ...binding, principal: minted }, terms, start)).toEqual(claims)
    expect(() => read(plaintext, { ...binding, principal: presented }, terms, start)).toThrow(
      'minted for another principal',
    )
  })
})

describe('claims have their time (invariant 3)', () => {
  const late = start + 55 * minute

  it.each([
    ['from a minute before they were minted', start, start - minute],
    ['to a minute past their ttl', start, start + 11 * minute],
    ['to a minute past the maxAge of their flow', late, start + 61 * minute],
  ])('%s', (_case, mintedAt, openedAt) => {
    expect(read(write(claims, binding, terms, mintedAt), binding, terms, openedAt)).toEqual(claims)
  })

  it.each([
    ['earlier than a minute before they were minted', start, start - minute - 1, 'minted in the future'],
    ['later than a minute past their ttl', start, start + 11 * minute + 1, 'expired'],
    ['later than a minute past the maxAge, though within their ttl', late, start + 61 * minute + 1, 'expired'],
  ])('and not %s', (_case, mintedAt, openedAt, reason) => {
    const plaintext = write(claims, binding, terms, mintedAt)
    expect(() => read(plaintext, binding, terms, openedAt)).toThrow(reason)
  })

  it('by the maxAge of the instance that opens them too', () => {
    const plaintext = write(claims, binding, terms, start + 5 * minute)
    const stricter = { ...terms, maxAge: 6 * minute }
    expect(read(plaintext, binding, stricter, start + 7 * minute)).toEqual(claims)
    expect(() => read(plaintext, binding, stricter, start + 7 * minute + 1)).toThrow('older than maxAge')
  })
})

describe('a text that is not a state', () => {
  const good = headerOf(write(claims, binding, terms, start))
  const notACount = ['-1', '0.5', '1e999', '"1"', 'null', 'true', '[]', '{}']
  const notAText = ['1', 'null', 'true', '[]', '{}']

  it.each([
    ['a count', [1, 2, 3, 10, 11, 13], notACount],
    ['a text', [4, 5, 6, 7, 8, 9, 14], notAText],
    ['a text or null', [12], notAText.filter((json) => json !== 'null')],
  ])('is refused where a position should hold %s', (_case, positions, wrong) => {
    for (const position of positions) {
      for (const json of wrong) {
        const header = JSON.stringify(good.with(position, '#')).replace('"#"', json)
        expect(refuses(`${header}\n[]`).reason).toBe(`the header is wrong at position ${position}`)
      }
    }
  })

  it.each([
    ['', 'no header'],
    [JSON.stringify(good), 'no header'],
    ['\n[]', 'not JSON'],
    ['[1,\n[]', 'not JSON'],
    ['{"0":1}\n[]', 'not an array'],
    ['null\n[]', 'not an array'],
    [`${JSON.stringify(good.with(0, 2))}\n[]`, 'layout'],
    [`${JSON.stringify(good.slice(0, -1))}\n[]`, '15 positions'],
    [`${JSON.stringify([...good, 1])}\n[]`, '17 positions'],
  ])('is refused: %s', (plaintext, reason) => {
    expect(refuses(plaintext).reason).toContain(reason)
  })

  it('is refused with nothing else thrown, and its words not repeated (invariant 5)', () => {
    fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (text) => void refuses(`${text}\n${text}`)))
    expect(refuses('[1,"a secret\n').cause).toBeUndefined()
    expect(refuses('[1,"a secret\n').reason).not.toContain('secret')
    expect(refuses(`${'['.repeat(100_000)}\n[]`)).toBeInstanceOf(SealError)
  })
})

function refuses(plaintext: string): SealError {
  try {
    read(plaintext, binding, terms, start)
  } catch (error) {
    if (error instanceof SealError) return error
    throw error
  }
  throw new Error(`${plaintext} was read`)
}

function headerOf(plaintext: string): unknown[] {
  const header: unknown = JSON.parse(plaintext.slice(0, plaintext.indexOf('\n')))
  return Array.isArray(header) ? header : []
}
