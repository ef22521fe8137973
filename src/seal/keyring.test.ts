import { describe, expect, it } from 'vitest'
import { ephemeral, keyring } from './keyring.ts'
import { prefixes } from './keyring.ts'

const one = 'one'.padEnd(32, '.')
const two = 'two'.padEnd(32, '.')

describe('keyring', () => {
  it('mints with the first secret and finds every one by its id', () => {
    const ring = keyring([one, two])
    expect(ring.ephemeral).toBe(false)
    expect(ring.minting.id).toEqual(keyring([one]).minting.id)
    expect(ring.byId.size).toBe(2)
    expect(ring.byId.get(keyring([two]).minting.id.toString('latin1'))?.id).toHaveLength(8)
  })

  it('gives every secret and purpose a key of its own', () => {
    const keys = [...keyring([one, two]).byId.values()].flatMap((key) => Object.values(key.of))
    const texts = keys.map((key) => key.export().toString('hex'))
    expect(new Set(texts).size).toBe(2 * Object.keys(prefixes).length)
  })

  it('takes a string for its UTF-8 bytes', () => {
    expect(keyring(['é'.repeat(16)]).minting.id).toEqual(keyring([Buffer.from('é'.repeat(16))]).minting.id)
  })

  it('does not follow later changes to the bytes it was given', () => {
    const bytes = Buffer.from(one)
    const ring = keyring([bytes])
    bytes.fill(0)
    expect(ring.minting.of.requestState.equals(keyring([one]).minting.of.requestState)).toBe(true)
  })

  it.each<[string, unknown, string]>([
    ['no secret', [], '`keys` is empty'],
    ['a short string', [one, 'é'.repeat(15)], 'keys[1] must have at least 32 bytes, got 30'],
    ['short bytes', [new Uint8Array(31)], 'keys[0] must have at least 32 bytes, got 31'],
    ['a secret that is not set', [one, undefined], 'keys[1] must be a string or a Uint8Array, got undefined'],
    ['a secret given twice', [two, one, Buffer.from(two)], 'keys[2] is the same secret as keys[0]'],
    ['a lone string', one, '`keys` must be an array'],
  ])('refuses %s and says which', (_case, secrets, message) => {
    const make = (): unknown => Reflect.apply(keyring, undefined, [secrets])
    expect(make).toThrow(expect.objectContaining({ code: 'SECRET_INVALID', message: expect.stringContaining(message) }))
  })

  it('never repeats a secret in its error', () => {
    expect(() => keyring(['hunter2'])).toThrow(expect.not.stringContaining('hunter2'))
  })
})

describe('ephemeral', () => {
  it('is another ring each time, and says what it is', () => {
    expect(ephemeral().ephemeral).toBe(true)
    expect(ephemeral().minting.id).not.toEqual(ephemeral().minting.id)
  })
})
