import { createHash, randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ephemeral, keyring } from './keyring.ts'
import { prefixes } from './keyring.ts'

const one = 'the first secret of these tests, long enough'
const two = 'the second secret of these tests, long enough'
const accented = 'é, ü and ß have two bytes each, so here'

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
    expect(keyring([accented]).minting.id).toEqual(keyring([Buffer.from(accented)]).minting.id)
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

  it.each<[string, string | Uint8Array, string]>([
    ['one repeated letter', 'k'.repeat(32), 'it is one byte, repeated'],
    ['zeros', new Uint8Array(32), 'it is one byte, repeated'],
    ['spaces', ' '.repeat(40), 'it is one byte, repeated'],
    ['a repeated word', 'changeme'.repeat(4), 'it is 8 bytes, repeated'],
    ['a word that is cut off at the end', 'secret-'.repeat(5).slice(0, 32), 'it is 7 bytes, repeated'],
    ['digits in a row', '01234567890123456789012345678901', 'it is 10 bytes, repeated'],
    ['half a secret, twice', 'a phrase of 17 by'.repeat(2), 'it is 17 bytes, repeated'],
    ['spaces and line ends', ' \t\n'.repeat(5) + ' \n\n\t\t \n'.repeat(3), 'no more than 4 different bytes'],
    ['a few letters', 'abbabaaabbbabaabbabaaabababbbaab', 'no more than 4 different bytes'],
    ['a word padded with dots', 'secret'.padEnd(32, '.'), 'its bytes count up or down'],
    ['a counting sequence', Uint8Array.from({ length: 32 }, (_, n) => n), 'its bytes count up or down'],
    [
      'one that counts down past zero',
      Uint8Array.from({ length: 32 }, (_, n) => 10 - 2 * n),
      'its bytes count up or down',
    ],
    ['the alphabet and digits', 'abcdefghijklmnopqrstuvwxyz0123456789', 'its bytes count up or down'],
    ['a password between spaces', 'correct horse battery'.padEnd(40), 'only 21 bytes without extra spaces'],
    [
      'words with many spaces between them',
      'correct horse     battery     staple',
      'only 28 bytes without extra spaces',
    ],
    ['a repeated word and a line end', `${'changeme'.repeat(4)}\n`, 'it has only 9 bytes without what it repeats'],
    ['the same in bytes', Buffer.from(`${'changeme'.repeat(4)}\n`), 'it has only 9 bytes without what it repeats'],
    ['a repeated word and a digit', `${'password'.repeat(4)}1`, 'it has only 9 bytes without what it repeats'],
    ['a repeated word after a letter', `x${'password'.repeat(5)}`, 'it has only 9 bytes without what it repeats'],
    [
      'two words with spaces between them',
      `secret${' '.repeat(26)}key!`,
      'it has only 11 bytes without what it repeats',
    ],
    ['two repeated words', 'password'.repeat(3) + 'changeme'.repeat(3), 'it has only 16 bytes without what it repeats'],
  ])('refuses %s as easy to guess, and says how to make a good one', (_case, secret, why) => {
    const message = expect.stringMatching(/^keys\[1\] is easy to guess: .*node -p "crypto\.randomBytes/)
    expect(() => keyring([one, secret])).toThrow(expect.objectContaining({ code: 'SECRET_INVALID', message }))
    expect(() => keyring([one, secret])).toThrow(why)
  })

  it('takes random secrets in every usual form, and phrases', () => {
    for (let n = 0; n < 2_000; n += 1) {
      const bytes = randomBytes(32)
      const forms = [bytes, bytes.toString('base64'), bytes.toString('base64url'), bytes.toString('hex')]
      for (const form of [...forms, `${bytes.toString('base64')}\n`, randomBytes(16).toString('hex')]) keyring([form])
    }
    keyring(['a bench key of at least thirty-two bytes', '3f29c2d8-8c1d-4f0e-9d53-0a6f1c4b7e21'])
    // A random secret twice is still that secret.
    keyring([randomBytes(32).toString('hex').repeat(2)])
  })

  it('never refuses a random secret, whatever its form, its length and what is around it', () => {
    const forms = ['bytes', 'hex', 'base64', 'base64url', 'digits'] as const
    const around = fc.constantFrom('', '\n', ' ', 'key-', 'secret: ')
    fc.assert(
      fc.property(fc.bigInt(), fc.integer({ min: 32, max: 200 }), around, around, (seed, length, before, after) => {
        const bytes = createHash('shake256', { outputLength: length }).update(`${seed}`).digest()
        for (const form of forms) {
          if (form === 'bytes') keyring([bytes])
          else keyring([before + textOf(bytes, form).slice(0, length) + after])
        }
      }),
      { numRuns: 200 },
    )
  })

  it('never repeats a secret in its error', () => {
    expect(() => keyring(['hunter2'])).toThrow(expect.not.stringContaining('hunter2'))
  })
})

function textOf(bytes: Buffer, form: 'hex' | 'base64' | 'base64url' | 'digits'): string {
  return form === 'digits' ? bytes.reduce((text, byte) => text + (byte % 10), '') : bytes.toString(form)
}

describe('ephemeral', () => {
  it('is another ring each time, and says what it is', () => {
    expect(ephemeral().ephemeral).toBe(true)
    expect(ephemeral().minting.id).not.toEqual(ephemeral().minting.id)
  })
})
