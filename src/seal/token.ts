// Encrypts a text into a token and decrypts it: AES-256-GCM, synchronous. A token is a prefix that names version and
// purpose, then base64url of `key id (8) | sub-key salt (16) | nonce (12) | tag (16) | ciphertext`.

import { createCipheriv, createDecipheriv, randomFillSync } from 'node:crypto'
import { SealError } from './errors.ts'
import { prefixBytes, prefixes, type Keyring, type Purpose } from './keyring.ts'
import { headBytes, subKeys, type SubKey, type SubKeyOptions } from './subkeys.ts'

/** A `StateCodec` under a keyring, always synchronous. */
export interface Tokens {
  /** The plaintext must be well-formed Unicode, which everything from `JSON.stringify` is. */
  seal(plaintext: string): string
  /** Throws only `SealError`. The caller has checked the token's size. */
  open(token: string): string
}

export function tokens(ring: Keyring, purpose: Purpose, options?: SubKeyOptions): Tokens {
  const prefix = prefixes[purpose]
  const keys = subKeys(ring, purpose, options)

  return {
    seal: (plaintext) => prefix + encrypt(keys.toMint(), plaintext),
    open(token) {
      if (!token.startsWith(prefix)) throw new SealError(`not a ${purpose} token of version 1`)
      const text = token.slice(prefixBytes)
      const frame = frameOf(roomIn(text.length))
      const size = decode(text, frame)
      const head = frame.bytes.toString('latin1', 0, headBytes)
      const cached = keys.cached(head)
      const subKey = cached ?? keys.derive(head)
      if (!subKey) throw new SealError(UNKNOWN_KEY)
      const plaintext = decrypt(subKey, frame, size)
      if (!cached) keys.cache(head, subKey)
      return plaintext
    },
  }
}

/** The largest plaintext, in bytes, whose token has at most this many. */
export function plaintextRoom(tokenBytes: number): number {
  return roomIn(tokenBytes - prefixBytes) - textAt
}

const UNKNOWN_KEY =
  'no key has this id: it was removed from `keys`, belongs to another server, or was made at start-up by a process that has ended'

const algorithm = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16
const tagLength = { authTagLength: tagBytes }
const nonceAt = headBytes
const tagAt = nonceAt + nonceBytes
const textAt = tagAt + tagBytes

function encrypt(subKey: SubKey, plaintext: string): string {
  nextNonce()
  const cipher = createCipheriv(algorithm, subKey.key, nonce, tagLength)
  cipher.setAAD(subKey.authenticated)
  const ciphertext = cipher.update(plaintext, 'utf8')
  cipher.final()
  const size = textAt + ciphertext.length
  const { bytes } = frameOf(size)
  bytes.set(subKey.head)
  bytes.set(nonce, nonceAt)
  bytes.set(cipher.getAuthTag(), tagAt)
  bytes.set(ciphertext, textAt)
  return bytes.toString('base64url', 0, size)
}

function decrypt(subKey: SubKey, frame: Frame, size: number): string {
  const decipher = createDecipheriv(algorithm, subKey.key, frame.nonce, tagLength)
  decipher.setAAD(subKey.authenticated)
  decipher.setAuthTag(frame.tag)
  const plaintext = decipher.update(frame.bytes.subarray(textAt, size))
  try {
    decipher.final()
  } catch {
    throw new SealError('the token was changed, or minted under another key')
  }
  return plaintext.toString('utf8')
}

/** Node also decodes padding, other alphabets and stray bits. Comparing with the encoding again leaves one text per token. */
function decode(text: string, { bytes }: Frame): number {
  const size = bytes.write(text, 'base64url')
  if (size < textAt) throw new SealError(`the token is too short: ${size} bytes`)
  if (bytes.toString('base64url', 0, size) !== text) throw new SealError('the token is not canonical base64url')
  return size
}

/** How many bytes this many characters of base64url hold. */
function roomIn(characters: number): number {
  return Math.floor((characters * 3) / 4)
}

/** The bytes of a token, with views at its fixed offsets. */
interface Frame {
  readonly bytes: Buffer
  readonly nonce: Buffer
  readonly tag: Buffer
}

/** The default limit of the seal. */
export const DEFAULT_MAX_BYTES = 65_536

/** One frame serves every token up to the default limit: sealing and opening are synchronous and keep no reference to it. */
const shared = newFrame(roomIn(DEFAULT_MAX_BYTES))

function frameOf(size: number): Frame {
  return size <= shared.bytes.length ? shared : newFrame(size)
}

function newFrame(size: number): Frame {
  const bytes = Buffer.allocUnsafeSlow(size)
  return { bytes, nonce: bytes.subarray(nonceAt, tagAt), tag: bytes.subarray(tagAt, textAt) }
}

/** Drawing 12 random bytes costs nearly as much as drawing thousands. */
const noncePool = Buffer.allocUnsafeSlow(nonceBytes * 256)
const nonce = Buffer.allocUnsafeSlow(nonceBytes)
let nextAt = noncePool.length

function nextNonce(): void {
  if (nextAt === noncePool.length) {
    randomFillSync(noncePool)
    nextAt = 0
  }
  noncePool.copy(nonce, 0, nextAt, nextAt + nonceBytes)
  nextAt += nonceBytes
}
