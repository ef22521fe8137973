import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { keyring, type Keyring } from './keyring.ts'
import { prefixes, type Purpose } from './keyring.ts'
import { SealError } from './errors.ts'
import { plaintextRoom, tokens, type Tokens } from './token.ts'

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const purposes: readonly Purpose[] = ['requestState', 'serverRequest', 'session', 'event', 'cursor']
const secret = 'a secret of the operator'.padEnd(32, '.')
const ring = keyring([secret])
const states = tokens(ring, 'requestState')

describe('a token', () => {
  it('opens to the very text that was sealed, on any instance with the key', () => {
    const elsewhere = tokens(keyring([secret]), 'requestState')
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 500 }), (text) => {
        expect(elsewhere.open(states.seal(text))).toBe(text)
      }),
    )
  })

  it.each([0, 1, 300, 49_097, 49_098, 200_000])('holds a text of %i bytes', (size) => {
    const text = 'x'.repeat(size)
    expect(states.open(states.seal(text))).toBe(text)
  })

  it('never looks the same twice', () => {
    const minted = Array.from({ length: 2_000 }, () => states.seal('same'))
    expect(new Set(minted.map((token) => nonceOf(token))).size).toBe(minted.length)
  })

  it('is as large as plaintextRoom says', () => {
    for (const size of [100, 101, 102, 103, 65_536]) {
      const room = plaintextRoom(size)
      expect(states.seal('x'.repeat(room)).length).toBeLessThanOrEqual(size)
      expect(states.seal('x'.repeat(room + 1)).length).toBeGreaterThan(size)
    }
  })

  it('opens across the renewal of its sub-key (invariant 8)', () => {
    const renewing = tokens(ring, 'requestState', { tokensEach: 2, cacheSize: 2 })
    const minted = Array.from({ length: 9 }, (_, index) => renewing.seal(`text ${index}`))
    expect(new Set(minted.map((token) => headOf(token))).size).toBe(5)
    for (const round of [minted, minted.toReversed()]) {
      expect(round.map((token) => renewing.open(token)).toSorted()).toEqual(minted.map((_, index) => `text ${index}`))
    }
  })

  it('with a made-up salt pushes no sub-key in use out of the cache (invariant 8)', () => {
    const { counted, derivations } = countingRing()
    const small = tokens(counted, 'requestState', { cacheSize: 2 })
    const token = small.seal('text')
    const forged = Array.from({ length: 100 }, (_, salt) => {
      const bytes = bytesOf(token)
      bytes.writeUInt32BE(salt, 8)
      return tokenOf(bytes)
    })
    small.open(token)
    expect(derivations()).toBe(1)
    expect(accepted(small, [...forged, token, token])).toEqual([token, token])
    expect(derivations()).toBe(101)
  })
})

describe('a token is refused (invariant 1)', () => {
  const token = states.seal('{"a":"some text to seal"}')
  const places = Array.from(token, (_, at) => at)

  it('with any character changed to any other', () => {
    const characters = Array.from(`${alphabet}.=+/ \n\0é`)
    const forged = places.flatMap((at) => characters.map((other) => token.slice(0, at) + other + token.slice(at + 1)))
    expect(new Set(accepted(states, forged))).toEqual(new Set([token]))
  })

  it('with any bit flipped', () => {
    const bits = Array.from({ length: bytesOf(token).length * 8 }, (_, bit) => bit)
    const forged = bits.map((bit) => {
      const bytes = bytesOf(token)
      bytes.writeUInt8(bytes.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
      return tokenOf(bytes)
    })
    expect(accepted(states, forged)).toEqual([])
  })

  it('cut off at any length, at either end', () => {
    const forged = places.flatMap((at) => [token.slice(0, at), token.slice(at + 1)])
    expect(accepted(states, forged)).toEqual([])
  })

  it('when too short, even right after the whole one has left its bytes in the shared frame', () => {
    const whole = states.seal('')
    const lengths = Array.from({ length: bytesOf(whole).length }, (_, length) => length)
    const forged = lengths.map((length) => tokenOf(bytesOf(whole).subarray(0, length)))
    const inTurn = forged.flatMap((short) => [whole, short])
    expect(new Set(accepted(states, inTurn))).toEqual(new Set([whole]))
  })

  it('with anything added', () => {
    const more = [...Array.from(`${alphabet}=. \n\0é`), 'AA', 'AAA', 'AAAA', '==', token]
    const forged = more.flatMap((text) => [token + text, text + token, `rs1.${text}${token.slice(4)}`])
    expect(accepted(states, forged)).toEqual([])
  })

  // One text for each remainder of its size by 3: the last character has no, four or two bits to spare.
  it.each([
    ['12', 0],
    ['123', 15],
    ['1234', 3],
  ])('when it is not canonical base64url, sealing %s', (text, othersWithTheSameBytes) => {
    const body = states.seal(text).slice(4)
    const lastChanged = Array.from(alphabet, (last) => body.slice(0, -1) + last)
    const spare = lastChanged.filter((other) => other !== body && decoded(other).equals(decoded(body)))
    expect(spare).toHaveLength(othersWithTheSameBytes)
    const spaced = [` ${body}`, `${body}\n`, `${body.slice(0, 40)}\n${body.slice(40)}`]
    const padded = [`${body}=`, `${body}==`, `${body}====`]
    const forms = [...spare, ...spaced, ...padded, body.replaceAll('-', '+').replaceAll('_', '/')]
    for (const form of forms) expect(decoded(form)).toEqual(decoded(body))
    const forged = forms.filter((form) => form !== body).map((form) => `rs1.${form}`)
    expect(accepted(states, forged)).toEqual([])
  })

  it('under another key, or with the id of another', () => {
    const otherSecret = 'another secret altogether'.padEnd(32, '.')
    const other = keyring([otherSecret])
    const both = tokens(keyring([secret, otherSecret]), 'requestState')
    const renamed = tokenOf(Buffer.concat([other.minting.id, bytesOf(token).subarray(8)]))
    expect(accepted(tokens(other, 'requestState'), [token, renamed])).toEqual([])
    expect(accepted(both, [token, renamed])).toEqual([token])
  })

  it.each(purposes)('for any purpose but its own, %s, whatever its prefix says', (purpose) => {
    const sealed = tokens(ring, purpose).seal('text')
    const opening = purposes.filter((other) => {
      const relabelled = prefixes[other] + sealed.slice(4)
      return accepted(tokens(ring, other), [sealed, relabelled]).length > 0
    })
    expect(opening).toEqual([purpose])
  })

  it('when it is nothing but a guess', () => {
    const bytes = fc.uint8Array({ maxLength: 200 })
    const guess = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string().map((text) => `rs1.${text}`),
      bytes.map((some) => tokenOf(Buffer.from(some))),
      bytes.map((some) => tokenOf(Buffer.concat([ring.minting.id, some]))),
    )
    expect(accepted(states, fc.sample(guess, 2_000))).toEqual([])
  })
})

/** Those that open. Whatever is thrown for the others is a `SealError`. */
function accepted(box: Tokens, given: readonly string[]): string[] {
  return given.filter((token) => {
    try {
      box.open(token)
      return true
    } catch (error) {
      if (error instanceof SealError) return false
      throw error
    }
  })
}

/** A key is looked up in the ring when a sub-key is derived, and at no other time. */
function countingRing(): { counted: Keyring; derivations: () => number } {
  let lookups = 0
  const byId = new Map(ring.byId)
  byId.get = (id) => {
    lookups++
    return ring.byId.get(id)
  }
  return { counted: { ...ring, byId }, derivations: () => lookups }
}

function tokenOf(bytes: Buffer): string {
  return prefixes.requestState + bytes.toString('base64url')
}

function decoded(body: string): Buffer {
  return Buffer.from(body, 'base64url')
}

function bytesOf(token: string): Buffer {
  return decoded(token.slice(4))
}

function headOf(token: string): string {
  return bytesOf(token).toString('hex', 0, 24)
}

function nonceOf(token: string): string {
  return bytesOf(token).toString('hex', 24, 36)
}
