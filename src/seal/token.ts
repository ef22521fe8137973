// Seals a text into a token and opens it again: AES-256-GCM, synchronous. A token is a prefix that names version and
// purpose, then base64url of `key id (8) | sub-key salt (16) | nonce (12) | tag (16) | ciphertext`.

import { createCipheriv, createDecipheriv, randomFillSync } from 'node:crypto'
import { defaults } from './defaults.ts'
import type { Keyring } from './keyring.ts'
import { prefixBytes, prefixes, type Purpose } from './keyring.ts'
import { SealError } from './seal-error.ts'
import { headBytes, subKeys, type SubKey, type SubKeyOptions } from './subkeys.ts'

/** A `Codec` under a keyring, always synchronous. */
export interface Tokens {
  /** The plaintext must be well-formed Unicode, which everything from `JSON.stringify` is. */
  seal(plaintext: string): string
  /** Throws `SealError` and nothing else. The caller has checked the token's size. */
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
      const known = keys.known(head)
      const subKey = known ?? keys.derive(head)
      if (!subKey) throw new SealError('no key has this id: it was dropped from the ring, or belongs to another server')
      const plaintext = decrypt(subKey, frame, size)
      if (!known) keys.keep(head, subKey)
      return plaintext
    },
  }
}

/** The largest plaintext, in bytes, whose token has at most this many. */
export function plaintextRoom(tokenBytes: number): number {
  return roomIn(tokenBytes - prefixBytes) - textAt
}

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
  cipher.setAAD(subKey.bound)
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
  decipher.setAAD(subKey.bound)
  decipher.setAuthTag(frame.tag)
  const plaintext = decipher.update(frame.bytes.subarray(textAt, size))
  try {
    decipher.final()
  } catch {
    throw new SealError('the token was changed, or made under another key')
  }
  return plaintext.toString('utf8')
}

/** Node decodes padding, other alphabets and stray bits too. Encoding again leaves one text per token. */
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

/** One frame serves every token of the usual size: sealing and opening are synchronous and keep nothing of it. */
const shared = newFrame(roomIn(defaults.maxTokenBytes))

function frameOf(size: number): Frame {
  return size <= shared.bytes.length ? shared : newFrame(size)
}

function newFrame(size: number): Frame {
  const bytes = Buffer.allocUnsafeSlow(size)
  return { bytes, nonce: bytes.subarray(nonceAt, tagAt), tag: bytes.subarray(tagAt, textAt) }
}

/** Asking the system for 12 bytes costs nearly as much as asking for thousands. */
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
