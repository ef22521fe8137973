import { describe, expect, it } from 'vitest'
import type { Logger } from '../protocol/logger.ts'
import { requestState } from './claims.ts'
import { describe as describeToken, type Binding } from './envelope.ts'
import { SealError } from './errors.ts'
import { sizeLimit, type SizeLimit } from './size.ts'

const binding: Binding = { method: 'tools/call', target: 'deploy', argumentsDigest: '', principal: undefined }
const large = 'x'.repeat(8_193)

describe('the size of a token (invariant 6)', () => {
  it.each(['x'.repeat(100), 'é'.repeat(50), ''])('is taken up to the limit, in bytes: %s', (token) => {
    expect(limitOf(100).received(token)).toBe(token)
    expect(limitOf(100).minted(token, binding)).toBe(token)
  })

  it.each(['x'.repeat(101), 'é'.repeat(51), 7, undefined, null, ['x']])('is refused on receipt: %s', (token) => {
    expect(() => limitOf(100).received(token)).toThrow(SealError)
  })

  it('past the limit is an error that says how large it is, and what makes it so', () => {
    const limit = limitOf(100)
    expect(() => limit.minted('x'.repeat(101), binding, () => ['plan', 'ship'])).toThrow(
      expect.objectContaining({
        code: 'STATE_TOO_LARGE',
        message:
          'The sealed state of tools/call deploy has 101 bytes, at most 100 are allowed. ' +
          'Record less in its steps, or raise maxStateBytes. Largest entries: plan, ship.',
      }),
    )
  })

  it('past 8 KiB is warned of, once for each target', () => {
    const { limit, said } = recorded()
    for (const target of ['deploy', 'deploy', 'destroy']) limit.minted(large, { ...binding, target }, () => ['plan'])
    expect(said).toEqual([
      'The sealed state of tools/call deploy has 8193 bytes, and the client sends it back with every round. ' +
        'Record less in its steps. Largest entries: plan.',
      expect.stringContaining('tools/call destroy'),
    ])
  })

  it('up to 8 KiB is nothing to ask or speak about', () => {
    const { limit, said } = recorded()
    limit.minted(large.slice(1), binding, () => {
      throw new Error('asked for the largest entries')
    })
    expect(said).toEqual([])
  })

  it('is remembered of a bounded number of targets, for a client may name any', () => {
    const { limit, said } = recorded()
    const mint = (target: string): string => limit.minted(large, { ...binding, target })
    for (let target = 0; target < 256; target++) mint(`file:///${target}`)
    mint('file:///0')
    expect(said).toHaveLength(256)
    mint('file:///256')
    mint('file:///0')
    expect(said).toHaveLength(258)
  })
})

function limitOf(maxBytes: number, logger?: Logger): SizeLimit {
  return sizeLimit(maxBytes, logger, (to) => describeToken(requestState, to))
}

function recorded(): { limit: SizeLimit; said: string[] } {
  const said: string[] = []
  const warn = (message: string): void => void said.push(message)
  return { limit: limitOf(65_536, { warn, error: warn }), said }
}
