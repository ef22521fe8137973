// Bearer access tokens: an authenticator for JWTs that an OAuth issuer signed for this very resource.
import { RallyError } from '../protocol/errors.ts'
import type { Authenticate, AuthenticatedCaller, HttpRequest } from './authenticate.ts'
import { VerifiedTokens } from './bearer-cache.ts'
import { principalOf, scopesOf } from './bearer-claims.ts'
import type { Jwks } from './bearer-keys.ts'
import { Refusals } from './bearer-refusals.ts'
import { ALGORITHMS, verifierOf } from './bearer-verify.ts'
import type { ResourceMetadata } from './metadata.ts'
import { metadataDocuments, metadataUrl, resourceUrl } from './metadata.ts'

/** The signature algorithms that may be taken. All of them are asymmetric. */
export type BearerAlgorithm = (typeof ALGORITHMS)[number]

/** What `bearer` takes. */
export interface BearerOptions {
  /** Who signs the tokens: their `iss`, exactly. */
  issuer: string
  /** Whom they are for: their `aud` holds one of these. The server's address, unless the issuer names it otherwise. */
  audience: string | readonly string[]
  /**
   * Where the issuer's public keys are: an address (https, or http on loopback), a JSON Web Key Set, or a function.
   * From an address they are fetched when first needed, kept for 10 minutes, and fetched again for a key that is not
   * there, at most every 30 seconds.
   */
  jwks: Jwks
  /** The server's own address, as clients know it. Default: the first `audience`. */
  resource?: string
  /** Scopes that every call needs. A tool names further ones in its own `scopes`. Default: none. */
  scopes?: readonly string[]
  /**
   * Scopes that others contain: `{ admin: ['deploy:write'] }` lets a token with `admin` do what needs `deploy:write`.
   * Default: none does.
   */
  implies?: Readonly<Record<string, readonly string[]>>
  /** Signature algorithms that are taken. Default: RSA, ECDSA and EdDSA. Shared secrets are never taken. */
  algorithms?: readonly BearerAlgorithm[]
  /** The `typ` that a token's header must have, such as 'at+jwt' (RFC 9068). Default: 'at+jwt', 'JWT' or none. */
  typ?: string
  /** Seconds by which the clocks of issuer and server may differ. Default 10. */
  clockTolerance?: number
  /** Longest token, in bytes. Default 8 192. */
  maxTokenBytes?: number
  /**
   * Seconds for which a verified token is remembered, by its digest; 0 verifies every time. Default 60. For that long,
   * and never past its expiry, a token is still taken after its key has left the issuer's set.
   */
  cacheSeconds?: number
  /** Further fields of the protected-resource metadata, or others in place of the usual ones. Default: none. */
  metadata?: Partial<Omit<ResourceMetadata, 'resource'>>
}

/**
 * An authenticator for the `authenticate` option of a host. It takes JWT access tokens from `Authorization: Bearer`,
 * and from nowhere else. It refuses with the challenge that tells a client where to get one, and serves the document
 * that the challenge leads to.
 *
 * The principal is made of the token's issuer, subject and client: a flow goes on under a refreshed token, and under
 * nobody else's. A token without `sub` is refused, unless the issuer marked it as a client's own.
 *
 * Tokens are verified here, with the issuer's keys, and nobody is asked about them. One that was revoked is taken until
 * it expires: have the issuer keep them short.
 */
export function bearer(options: BearerOptions): Authenticate {
  check(options)
  const { maxTokenBytes = 8_192, cacheSeconds = 60, clockTolerance = 10, scopes: required = [] } = options
  const resource = resourceUrl(options.resource ?? first(options.audience))
  const refusals = new Refusals(metadataUrl(resource), required)
  const verify = verifierOf({ ...options, clockTolerance })
  const implied = new Map(Object.entries(options.implies ?? {}))
  const verified = new VerifiedTokens(cacheSeconds * 1_000)

  const callerOf = async (token: string): Promise<AuthenticatedCaller> => {
    const claims = await verify(token).catch((error: unknown) => {
      throw refusals.because(error)
    })
    const principal = principalOf(claims)
    if (principal === undefined) throw refusals.namesNobody()
    const scopes = scopesOf(claims, implied)
    if (!required.every((scope) => scopes.includes(scope))) throw refusals.insufficient()
    const caller = { principal, scopes, challenge: refusals.insufficientScope }
    verified.remember(token, caller, ((claims.exp ?? 0) + clockTolerance) * 1_000)
    return caller
  }

  const authenticate = (request: HttpRequest): AuthenticatedCaller | Promise<AuthenticatedCaller> => {
    const credentials = request.header('authorization')
    if (credentials === undefined || !/^bearer( |$)/i.test(credentials)) throw refusals.missing()
    const token = tokenIn(credentials, maxTokenBytes)
    if (token === undefined) throw refusals.malformed()
    return verified.find(token) ?? callerOf(token)
  }
  return Object.assign(authenticate, { documents: metadataDocuments(resource, metadataOf(options)) })
}

/** Bounded before it is looked at. */
function tokenIn(credentials: string, maxBytes: number): string | undefined {
  if (credentials.length > 'Bearer '.length + maxBytes) return undefined
  const [, token] = /^bearer +([\w.-]+)$/i.exec(credentials) ?? []
  return token
}

function metadataOf({ issuer, audience, resource, scopes = [], metadata }: BearerOptions): ResourceMetadata {
  const { authorization_servers: servers = [issuer] } = metadata ?? {}
  if (servers.length === 0 || !servers.every((address) => URL.canParse(address))) {
    throw wrong(`issuer is ${JSON.stringify(issuer)}, no address: give metadata.authorization_servers, where it is`)
  }
  return {
    ...(scopes.length > 0 && { scopes_supported: scopes }),
    bearer_methods_supported: ['header'],
    ...metadata,
    authorization_servers: servers,
    resource: resource ?? first(audience),
  }
}

function first(audience: string | readonly string[]): string {
  const [name = ''] = [audience].flat()
  return name
}

/** No space, quote or backslash: scopes are joined by spaces and quoted in a header (RFC 6749, section 3.3). */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+$/

function check(options: BearerOptions): void {
  const { issuer, audience, jwks, scopes = [], algorithms = ALGORITHMS } = options
  if (typeof issuer !== 'string' || issuer === '') throw wrong('issuer must be the iss of the tokens, a string')
  const audiences: readonly unknown[] = [audience].flat()
  if (audiences.length === 0 || !audiences.every((name) => typeof name === 'string' && name !== '')) {
    throw wrong('audience must be the aud of the tokens, a string or several')
  }
  if (jwks === undefined || jwks === null) throw wrong("jwks is missing: give the address of the issuer's keys")
  if (!Array.isArray(scopes) || !scopes.every((scope) => SCOPE.test(scope))) {
    throw wrong(`scopes must be an array of scopes, and is ${JSON.stringify(scopes)}`)
  }
  const known: readonly string[] = ALGORITHMS
  if (algorithms.length === 0 || !algorithms.every((algorithm) => known.includes(algorithm))) {
    throw wrong(`algorithms must be some of ${known.join(', ')}, and is ${JSON.stringify(algorithms)}`)
  }
  for (const key of ['clockTolerance', 'maxTokenBytes', 'cacheSeconds'] as const) {
    const value = options[key] ?? 0
    if (!Number.isFinite(value) || value < 0) throw wrong(`${key} is ${value}; it must be a number from 0 on`)
  }
}

function wrong(why: string): RallyError {
  return new RallyError('OPTION_INVALID', `bearer: ${why}.`)
}
