// Access tokens: the keys they are verified with, the checks, and a cache of those that were verified lately.
import { hash } from 'node:crypto'
import type {
  CryptoKey,
  FlattenedJWSInput,
  JSONWebKeySet,
  JWK,
  JWTHeaderParameters,
  JWTPayload,
  JWTVerifyGetKey,
  JWTVerifyOptions,
  JWTVerifyResult,
  KeyObject,
} from 'jose'
import { createLocalJWKSet, createRemoteJWKSet, customFetch, errors, jwtVerify } from 'jose'
import { RallyError } from '../protocol/errors.ts'
import { shown } from '../protocol/text.ts'
import type { AuthenticatedCaller } from './authenticate.ts'

/** All of them are asymmetric: a server that can verify a shared secret's signature could also make one. */
export const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const

export interface Expected {
  readonly issuer: string
  readonly audience: string | readonly string[]
  readonly jwks: Jwks
  readonly algorithms?: readonly string[]
  readonly typ?: string
  readonly clockTolerance: number
}

/** Returns the claims of a token. Throws an error of jose about the token, or `KeysUnavailable`. */
export type Verify = (token: string) => Promise<JWTPayload>

export function verifierOf({ issuer, audience, jwks, algorithms, typ, clockTolerance }: Expected): Verify {
  const keys = keysOf(jwks)
  const options: JWTVerifyOptions = {
    issuer,
    audience: [audience].flat().flatMap(spellings),
    algorithms: [...(algorithms ?? ALGORITHMS)],
    clockTolerance,
    requiredClaims: ['exp'],
    ...(typ !== undefined && { typ }),
  }
  return async (token) => {
    const { payload, protectedHeader } = await verifyWith(keys, token, options)
    if (typ === undefined && !isAccessToken(protectedHeader.typ)) throw new errors.JWTInvalid('Unexpected typ')
    return payload
  }
}

type Key = CryptoKey | KeyObject | JWK

/**
 * Finds the public key of a token that is not verified yet. Return nothing when there is no such key (401). Throw when the
 * keys cannot be read at the moment (503). jose's `createRemoteJWKSet` returns such a function.
 */
export type KeyFunction = (
  header: JWTHeaderParameters,
  token: FlattenedJWSInput,
) => Key | undefined | Promise<Key | undefined>

/** Where to find the issuer's public keys: a URL, a JSON Web Key Set, or a function. */
export type Jwks = string | URL | JSONWebKeySet | KeyFunction

/** The keys cannot be read at the moment, which says nothing about the token. Only the first of equal failures has a cause. */
export class KeysUnavailable extends Error {}

/** How many tokens are kept. The one that was not used for the longest time goes first. */
const MOST_TOKENS = 1_000

/** Tokens that were verified lately: verifying a signature takes a hundred times as long as a look-up here. */
export class VerifiedTokens {
  readonly #forMs: number
  /** By digest, so that no token stays in memory. The least recently used comes first. */
  readonly #entries = new Map<string, { caller: AuthenticatedCaller; until: number }>()

  constructor(forMs: number) {
    this.#forMs = forMs
  }

  find(token: string): AuthenticatedCaller | undefined {
    if (this.#forMs === 0) return undefined
    const key = digestOf(token)
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    this.#entries.delete(key)
    if (Date.now() >= entry.until) return undefined
    this.#entries.set(key, entry)
    return entry.caller
  }

  /** Keeps the caller of a token until the token expires, but no longer than the cache keeps anything. */
  remember(token: string, caller: AuthenticatedCaller, expiresAt: number): void {
    if (this.#forMs === 0) return
    this.#entries.set(digestOf(token), { caller, until: Math.min(expiresAt, Date.now() + this.#forMs) })
    if (this.#entries.size <= MOST_TOKENS) return
    const [oldest] = this.#entries.keys()
    if (oldest !== undefined) this.#entries.delete(oldest)
  }
}

async function verifyWith(keys: JWTVerifyGetKey, token: string, options: JWTVerifyOptions): Promise<JWTVerifyResult> {
  try {
    return await jwtVerify(token, keys, options)
  } catch (error) {
    if (!isSeveralKeys(error)) throw error
    for await (const key of error) {
      try {
        return await jwtVerify(token, key, options)
      } catch (failure) {
        if (!(failure instanceof errors.JWSSignatureVerificationFailed)) throw failure
      }
    }
    throw new errors.JWSSignatureVerificationFailed()
  }
}

/** The audience as given, and as a URL is written. Clients send a URL without a path with or without its slash. */
function spellings(audience: string): string[] {
  if (!URL.canParse(audience)) return [audience]
  const { href, origin } = new URL(audience)
  return href === `${origin}/` ? [audience, href, origin] : [audience, href]
}

/** Other JWTs of an issuer, such as logout tokens, have types of their own. */
function isAccessToken(typ: string | undefined): boolean {
  return typ === undefined || /^(application\/)?(at\+)?jwt$/i.test(typ)
}

function keysOf(jwks: Jwks): JWTVerifyGetKey {
  const find = finderOf(jwks)
  let lastError: unknown
  return async (header, token) => {
    let key: Key | undefined
    try {
      key = await find(header, token)
    } catch (error) {
      if (isSeveralKeys(error)) throw error
      if (codeOf(error) === errors.JWKSNoMatchingKey.code) throw new errors.JWKSNoMatchingKey()
      // All requests that waited for one fetch share its error. One line in the log is enough.
      const isNew = !(error instanceof TooSoon) && error !== lastError
      lastError = error
      throw new KeysUnavailable('The keys cannot be read.', isNew ? { cause: error } : undefined)
    }
    if (key === undefined) throw new errors.JWKSNoMatchingKey()
    return key
  }
}

/** True when a token matches several keys of a set, because it does not name its key. */
function isSeveralKeys(error: unknown): error is errors.JWKSMultipleMatchingKeys {
  return codeOf(error) === errors.JWKSMultipleMatchingKeys.code
}

/** By code and not by class: the author's key function may use another copy of jose. */
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
        'bearer(): `jwks` contains a private key or a shared secret. Pass public keys only.',
      )
    }
    return createLocalJWKSet(jwks)
  } catch (cause) {
    if (cause instanceof RallyError) throw cause
    throw new RallyError('OPTION_INVALID', 'bearer(): `jwks` must be a URL, a JSON Web Key Set or a function.', {
      cause,
    })
  }
}

/** The least time between two fetches if the first one failed. After a success jose waits longer. */
const RETRY_MS = 1_000

class TooSoon extends Error {}

/** A set that is fetched when it is first needed, when it is old, and when a token names an unknown key. */
function remote(address: string | URL): KeyFunction {
  const url = secure(address)
  let triedAt: number | undefined
  return createRemoteJWKSet(url, {
    // Anybody can send a token with an unknown key. That must not cause a request to the issuer every time.
    [customFetch]: async (target, options) => {
      const now = Date.now()
      if (triedAt !== undefined && Math.abs(now - triedAt) < RETRY_MS) throw new TooSoon()
      triedAt = now
      return fetch(target, options)
    },
  })
}

const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

/** An attacker who can change the keys in transit can sign any token. */
function secure(address: string | URL): URL {
  const url = URL.canParse(String(address)) ? new URL(address) : undefined
  if (url?.protocol === 'https:' || (url?.protocol === 'http:' && LOOPBACK.has(url.hostname))) return url
  throw new RallyError(
    'OPTION_INVALID',
    `bearer(): \`jwks\` must be an https URL (http on loopback only), got ${shown(String(address))}.`,
  )
}

function digestOf(token: string): string {
  return hash('sha256', token, 'base64url')
}
