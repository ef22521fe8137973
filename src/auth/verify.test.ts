import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { VerifiedTokens } from './verify.ts'

const NOW = Date.UTC(2026, 6, 28)
const FAR = NOW + 3_600_000

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: NOW })
})

afterEach(() => {
  vi.useRealTimers()
})

const caller = (principal: string) => ({ principal })

describe('the cache of verified tokens', () => {
  test('finds what it was told of a token, and nothing of another', () => {
    const tokens = new VerifiedTokens(60_000)
    tokens.remember('a', caller('ada'), FAR)
    expect(tokens.find('a')).toEqual({ principal: 'ada' })
    expect(tokens.find('b')).toBeUndefined()
  })

  test('forgets after its time', () => {
    const tokens = new VerifiedTokens(60_000)
    tokens.remember('a', caller('ada'), FAR)
    vi.setSystemTime(NOW + 59_999)
    expect(tokens.find('a')).toBeDefined()
    vi.setSystemTime(NOW + 60_000)
    expect(tokens.find('a')).toBeUndefined()
  })

  test('forgets at the expiry of the token where that comes first', () => {
    const tokens = new VerifiedTokens(60_000)
    tokens.remember('a', caller('ada'), NOW + 5_000)
    vi.setSystemTime(NOW + 4_999)
    expect(tokens.find('a')).toBeDefined()
    vi.setSystemTime(NOW + 5_000)
    expect(tokens.find('a')).toBeUndefined()
  })

  test('being found does not make an entry last longer', () => {
    const tokens = new VerifiedTokens(60_000)
    tokens.remember('a', caller('ada'), FAR)
    vi.setSystemTime(NOW + 30_000)
    expect(tokens.find('a')).toBeDefined()
    vi.setSystemTime(NOW + 60_000)
    expect(tokens.find('a')).toBeUndefined()
  })

  test('keeps a thousand, and lets go of the one not seen for longest', () => {
    const tokens = new VerifiedTokens(60_000)
    for (let i = 0; i < 1_000; i += 1) tokens.remember(`token ${i}`, caller(`user ${i}`), FAR)
    expect(tokens.find('token 0')).toEqual({ principal: 'user 0' })
    tokens.remember('one more', caller('grace'), FAR)
    expect(tokens.find('token 1')).toBeUndefined()
    expect(tokens.find('token 0')).toEqual({ principal: 'user 0' })
    expect(tokens.find('token 2')).toEqual({ principal: 'user 2' })
    expect(tokens.find('one more')).toEqual({ principal: 'grace' })
  })

  test('remembers nothing when it is switched off', () => {
    const tokens = new VerifiedTokens(0)
    tokens.remember('a', caller('ada'), FAR)
    expect(tokens.find('a')).toBeUndefined()
  })
})
