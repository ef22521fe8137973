// The sub-keys that the tokens of one purpose are sealed under: one of this process's own to mint with, and the few it
// has lately opened with.

import { createSecretKey, hkdfSync, randomBytes, type KeyObject } from 'node:crypto'
import { keyIdBytes, type Keyring, type RingKey } from './keyring.ts'
import { prefixes, type Purpose } from './keyring.ts'

export interface SubKey {
  /** Key id and salt, as a token begins with them. */
  readonly head: Buffer
  /** Prefix and key id, which the tag vouches for too. It need not for the salt: with another, the key is another. */
  readonly bound: Buffer
  readonly key: KeyObject
}

export interface SubKeys {
  /** The sub-key to mint the next token with. */
  toMint(): SubKey
  /** A sub-key that has opened a token before; `head` is key id and salt as latin1 text. */
  known(head: string): SubKey | undefined
  /** The sub-key of this head, or undefined when its key is not in the ring. */
  derive(head: string): SubKey | undefined
  /** Call only once a token has opened under it, so that made-up salts can not push out the sub-keys in use. */
  keep(head: string, subKey: SubKey): void
}

export interface SubKeyOptions {
  /** Default `Date.now`. */
  now?: () => number
  /** How many tokens one sub-key mints. Default 2^20. */
  tokensEach?: number
  /** How long one sub-key mints, in milliseconds. Default one hour. */
  lifetime?: number
  /** How many sub-keys to keep for opening. Default 256. */
  kept?: number
}

const saltBytes = 16
export const headBytes = keyIdBytes + saltBytes

/**
 * Two tokens with the same nonce and key would give the key's authentication away. With random 96-bit nonces that has a
 * chance of 2^-32 after 2^32 tokens, the usual limit, which a fleet under one key reaches in hours. After 2^20 tokens it
 * is 2^-57. The hour bounds what one sub-key protects where few tokens are minted.
 */
export function subKeys(ring: Keyring, purpose: Purpose, options: SubKeyOptions = {}): SubKeys {
  const { now = Date.now, tokensEach = 2 ** 20, lifetime = 3_600_000, kept = 256 } = options
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
    known: (head) => opened.get(head),
    derive(head) {
      const key = ring.byId.get(head.slice(0, keyIdBytes))
      return key && subKey(key, purpose, Buffer.from(head.slice(keyIdBytes), 'latin1'))
    },
    keep(head, found) {
      // Oldest first out, without counting uses: a live sub-key that drops out costs one derivation.
      const oldest = opened.keys().next()
      if (opened.size >= kept && !oldest.done) opened.delete(oldest.value)
      opened.set(head, found)
    },
  }
}

function subKey({ id, of }: RingKey, purpose: Purpose, salt: Buffer): SubKey {
  // The salt is HKDF's info and not its salt: on opening it is whatever the client sent, which RFC 5869 wants kept out
  // of the extraction.
  const info = Buffer.concat([Buffer.from('mcp-rally seal 1 sub-key '), salt])
  const key = createSecretKey(Buffer.from(hkdfSync('sha256', of[purpose], '', info, 32)))
  return { head: Buffer.concat([id, salt]), bound: Buffer.concat([Buffer.from(prefixes[purpose]), id]), key }
}
