// The sub-keys of one purpose (invariant 8 of the seal): one that this process mints with, and those that it recently
// opened tokens with.

import { createSecretKey, hkdfSync, randomBytes, type KeyObject } from 'node:crypto'
import { keyIdBytes, prefixes, type Keyring, type Purpose, type RingKey } from './keyring.ts'

export interface SubKey {
  /** Key id and salt: the first bytes of a token. */
  readonly head: Buffer
  /** Prefix and key id, which GCM authenticates too. The salt needs no authentication: another salt is another key. */
  readonly authenticated: Buffer
  readonly key: KeyObject
}

export interface SubKeys {
  /** The sub-key to mint the next token with. */
  toMint(): SubKey
  /** Returns a sub-key that has opened a token before. `head` is key id and salt as latin1 text. */
  cached(head: string): SubKey | undefined
  /** Returns undefined if the key with this id is not in the ring. */
  derive(head: string): SubKey | undefined
  /** Call this only after a token has opened, so that invented salts cannot evict the sub-keys in use. */
  cache(head: string, subKey: SubKey): void
}

export interface SubKeyOptions {
  /** Default `Date.now`. */
  now?: () => number
  /** How many tokens one sub-key mints. Default 2^20. */
  tokensEach?: number
  /** How long one sub-key mints, in milliseconds. Default one hour. */
  lifetime?: number
  /** How many sub-keys to cache for opening. Default 256. */
  cacheSize?: number
}

const saltBytes = 16
export const headBytes = keyIdBytes + saltBytes

/**
 * Two tokens with the same nonce and key would break GCM's authentication. With random 96-bit nonces the chance is 2^-32
 * after 2^32 tokens, the usual limit, and a fleet under one key reaches that in hours. After 2^20 tokens it is 2^-57. The
 * lifetime of an hour bounds what one sub-key protects when few tokens are minted.
 */
export function subKeys(ring: Keyring, purpose: Purpose, options: SubKeyOptions = {}): SubKeys {
  const { now = Date.now, tokensEach = 2 ** 20, lifetime = 3_600_000, cacheSize = 256 } = options
  const opened = new Map<string, SubKey>()
  let minting: SubKey | undefined
  let left = 0
  let until = 0

  return {
    toMint() {
      if (!minting || left === 0 || now() >= until) {
        minting = subKey(ring.minting, purpose, randomBytes(saltBytes))
        left = tokensEach
        until = now() + lifetime
      }
      left--
      return minting
    },
    cached: (head) => opened.get(head),
    derive(head) {
      const key = ring.byId.get(head.slice(0, keyIdBytes))
      return key && subKey(key, purpose, Buffer.from(head.slice(keyIdBytes), 'latin1'))
    },
    cache(head, found) {
      // Evicts the oldest without counting uses: a sub-key that is still in use costs one derivation.
      const oldest = opened.keys().next()
      if (opened.size >= cacheSize && !oldest.done) opened.delete(oldest.value)
      opened.set(head, found)
    },
  }
}

function subKey({ id, of }: RingKey, purpose: Purpose, salt: Buffer): SubKey {
  // The salt is HKDF's info and not its salt: it comes from the client when a token is opened, and RFC 5869 forbids
  // attacker-chosen salts.
  const info = Buffer.concat([Buffer.from('mcp-rally seal 1 sub-key '), salt])
  const key = createSecretKey(Buffer.from(hkdfSync('sha256', of[purpose], '', info, 32)))
  return { head: Buffer.concat([id, salt]), authenticated: Buffer.concat([Buffer.from(prefixes[purpose]), id]), key }
}
