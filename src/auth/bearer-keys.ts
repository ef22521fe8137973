// The keys that access tokens are verified with: a set at an address, a set in hand, or a function of the author's.
import type {
  CryptoKey,
  FlattenedJWSInput,
  JSONWebKeySet,
  JWK,
  JWTHeaderParameters,
  JWTVerifyGetKey,
  KeyObject,
} from 'jose'
import { createLocalJWKSet, createRemoteJWKSet, customFetch, errors } from 'jose'
import { RallyError } from '../protocol/errors.ts'

type Key = CryptoKey | KeyObject | JWK

/**
 * Finds the public key of a token that nothing is known about yet. Giving nothing means that there is no such key
 * (401), throwing that it cannot be told right now (503). What jose's `createRemoteJWKSet` gives is one.
 */
export type KeyFunction = (
  header: JWTHeaderParameters,
  token: FlattenedJWSInput,
) => Key | undefined | Promise<Key | undefined>

/** Where the issuer's public keys are. */
export type Jwks = string | URL | JSONWebKeySet | KeyFunction

/** The keys cannot be had right now, which says nothing about the token. The cause is there once for each failure. */
export class KeysUnavailable extends Error {}

export function keysOf(jwks: Jwks): JWTVerifyGetKey {
  const find = finderOf(jwks)
  let told: unknown
  return async (header, token) => {
    let key: Key | undefined
    try {
      key = await find(header, token)
    } catch (error) {
      if (isSeveralKeys(error)) throw error
      if (codeOf(error) === errors.JWKSNoMatchingKey.code) throw new errors.JWKSNoMatchingKey()
      // Those who waited for one fetch share its error, and one line in the log is enough.
      const isNews = !(error instanceof TooSoon) && error !== told
      told = error
      throw new KeysUnavailable('The keys cannot be had.', isNews ? { cause: error } : undefined)
    }
    if (key === undefined) throw new errors.JWKSNoMatchingKey()
    return key
  }
}

/** Whether a token fits several keys of a set, because it does not say which one it was signed with. */
export function isSeveralKeys(error: unknown): error is errors.JWKSMultipleMatchingKeys {
  return codeOf(error) === errors.JWKSMultipleMatchingKeys.code
}

/** By code and not by class: a function of the author's may come from another copy of jose. */
function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}

function finderOf(jwks: Jwks): KeyFunction {
  if (typeof jwks === 'function') return jwks
  if (typeof jwks === 'string' || jwks instanceof URL) return remote(jwks)
  try {
    if (jwks.keys.some((key) => 'd' in key || 'priv' in key || key.kty === 'oct')) {
      throw new RallyError(
        'OPTION_INVALID',
        'bearer: jwks holds a private key or a shared secret. Give public keys only.',
      )
    }
    return createLocalJWKSet(jwks)
  } catch (cause) {
    if (cause instanceof RallyError) throw cause
    throw new RallyError('OPTION_INVALID', 'bearer: jwks must be an address, a JSON Web Key Set or a function.', {
      cause,
    })
  }
}

/** Least time between two fetches of which the first failed. After one that did not, jose waits for longer. */
const RETRY_MS = 1_000

class TooSoon extends Error {}

/** A set that is fetched when first needed, when it is old, and when a token names a key that it does not hold. */
function remote(address: string | URL): KeyFunction {
  const url = secure(address)
  let triedAt: number | undefined
  return createRemoteJWKSet(url, {
    // Anybody can send a token with an unknown key, and must not thereby send a request to the issuer each time.
    [customFetch]: async (target, options) => {
      const now = Date.now()
      if (triedAt !== undefined && Math.abs(now - triedAt) < RETRY_MS) throw new TooSoon()
      triedAt = now
      return fetch(target, options)
    },
  })
}

const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

/** Whoever can change the keys on their way can sign any token. */
function secure(address: string | URL): URL {
  const url = URL.canParse(String(address)) ? new URL(address) : undefined
  if (url?.protocol === 'https:' || (url?.protocol === 'http:' && LOOPBACK.has(url.hostname))) return url
  throw new RallyError(
    'OPTION_INVALID',
    `bearer: jwks is ${JSON.stringify(String(address))}, which must be an https address (http on loopback only).`,
  )
}
