import { describe, expect, it } from 'vitest'
import { openWith, sealWith, type StateCodec } from './codec.ts'
import { ephemeral } from './keyring.ts'
import { SealError } from './errors.ts'
import { tokens } from './token.ts'

const plain: StateCodec = { seal: (text) => `sealed ${text}`, open: (token) => token.slice(7) }
const slow: StateCodec = { seal: async (text) => plain.seal(text), open: async (token) => plain.open(token) }

describe('a codec', () => {
  it('that is synchronous stays so', () => {
    expect(openWith(plain, 'sealed text')).toBe('text')
    expect(sealWith(plain, 'text')).toBe('sealed text')
  })

  it('may be asynchronous', async () => {
    await expect(sealWith(slow, 'text')).resolves.toBe('sealed text')
    await expect(openWith(slow, 'sealed text')).resolves.toBe('text')
  })

  it('is what tokens under a keyring are', () => {
    const codec: StateCodec = tokens(ephemeral(), 'requestState')
    const token = sealWith(codec, 'text')
    expect(typeof token === 'string' && openWith(codec, token)).toBe('text')
  })

  it.each<[string, unknown]>([
    ['an error', new TypeError('the KMS said no')],
    ['a string', 'no'],
    ['nothing', undefined],
    ['null', null],
    ['an object without a prototype', Object.create(null)],
  ])('that throws %s on opening refuses, at once or later', async (_case, thrown) => {
    const throwing = codecThatOpens(() => {
      throw thrown
    })
    const rejecting = codecThatOpens(() => Promise.reject(thrown))
    expect(() => openWith(throwing, 'token')).toThrow(SealError)
    await expect(openWith(rejecting, 'token')).rejects.toBeInstanceOf(SealError)
  })

  it('has its own reason kept, but not the token it quotes (invariant 5)', () => {
    const cause = new TypeError('can not read "tok.en"')
    const codec = codecThatOpens(() => {
      throw cause
    })
    expect(() => openWith(codec, 'tok.en')).toThrow(
      expect.objectContaining({ reason: 'codec.open threw TypeError: can not read "(token)"', cause }),
    )
  })

  it.each([[undefined], [null], [7], [Buffer.from('text')], [{ text: 'text' }]])(
    'that opens to %s refuses, at once or later',
    async (opened) => {
      const now = codecThatOpens(() => opened)
      expect(() => openWith(now, 'token')).toThrow(SealError)
      const later = codecThatOpens(() => Promise.resolve(opened))
      await expect(openWith(later, 'token')).rejects.toBeInstanceOf(SealError)
    },
  )

  it('that seals to anything but a string is an error that says so', async () => {
    const error = expect.objectContaining({ code: 'CODEC_INVALID', message: expect.stringContaining('object') })
    expect(() => sealWith(codecThatSealsTo(Buffer.from('token')), 'text')).toThrow(error)
    await expect(sealWith(codecThatSealsTo(Promise.resolve({})), 'text')).rejects.toEqual(error)
  })
})

// As JavaScript may write them, whatever the types say.
function codecThatOpens(open: () => unknown): StateCodec {
  return Object.assign({ ...plain }, { open })
}

function codecThatSealsTo(token: unknown): StateCodec {
  return Object.assign({ ...plain }, { seal: () => token })
}
