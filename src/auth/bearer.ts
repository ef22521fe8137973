// Bearer access tokens: an authenticator for JWTs that an OAuth issuer signed for this resource.
import type { JWTPayload } from 'jose'
import type { CallerClaims } from '../flow/caller.ts'
import { checkedClaims } from '../flow/caller.ts'
import { atCaller, RallyError } from '../protocol/errors.ts'
import { isObject } from '../protocol/json.ts'
import { shown } from '../protocol/text.ts'
import type { Authenticate, AuthenticatedCaller, HttpRequest } from './authenticate.ts'
import { fixedCaller } from './authenticate.ts'
import type { ResourceMetadata } from './metadata.ts'
import { metadataDocuments, metadataUrl, Refusals, resourceUrl } from './metadata.ts'
import type { Jwks } from './verify.ts'
import { ALGORITHMS, VerifiedTokens, verifierOf } from './verify.ts'

/** The signature algorithms that `bearer()` accepts. All of them are asymmetric. */
export type BearerAlgorithm = (typeof ALGORITHMS)[number]

/** The options of `bearer()`. */
export interface BearerOptions {
  /** The issuer of the tokens: must equal their `iss` claim exactly. */
  issuer: string
  /** Who the tokens are for: their `aud` claim must contain one of these. Usually the URL of this server. */
  audience: string | readonly string[]
  /**
   * The issuer's public keys: a URL (https, or http on loopback), a JSON Web Key Set, or a function. Keys at a URL are
   * fetched when they are first needed and kept for 10 minutes. An unknown key has them fetched again, at most every 30
   * seconds.
   */
  jwks: Jwks
  /** The URL of this server, as clients know it. Default: the first `audience`. */
  resource?: string
  /** The scopes that every call needs. A tool adds its own with its option `scopes`. Default: none. */
  scopes?: readonly string[]
  /**
   * Scopes that include others: with `{ admin: ['deploy:write'] }`, a token with `admin` may do what needs `deploy:write`.
   * Default: no scope includes another.
   */
  implies?: Readonly<Record<string, readonly string[]>>
  /**
   * The claims of a token that handlers see in `io.caller.claims`, such as ['email', 'department']. Together 4 096 bytes at most.
   * Name none that changes with every token, such as `exp`, `iat` and `jti`. Default: none.
   */
  claims?: readonly string[]
  /** The accepted signature algorithms. Default: RSA, ECDSA and EdDSA. Shared secrets are never accepted. */
  algorithms?: readonly BearerAlgorithm[]
  /** The `typ` that the header of a token must have, such as 'at+jwt' (RFC 9068). Default: 'at+jwt', 'JWT' or no `typ`. */
  typ?: string
  /** By how many seconds the clocks of issuer and server may differ. Default 10. */
  clockTolerance?: number
  /** The longest token, in bytes. Default 8 192. */
  maxTokenBytes?: number
  /**
   * For how many seconds a verified token is cached, by its digest. 0 verifies every time. Default 60. For that long, but
   * never past its expiry, a token is still accepted after its key was removed from the issuer's set.
   */
  cacheSeconds?: number
  /** More fields for the protected-resource metadata document, or replacements for the usual ones. Default: none. */
  metadata?: Partial<Omit<ResourceMetadata, 'resource'>>
}

/**
 * An authenticator for the `authenticate` option of a host. It reads JWT access tokens from `Authorization: Bearer` and
 * from nowhere else. A refusal carries the challenge that tells a client where to get a token. The host serves the metadata
 * document that the challenge points at.
 *
 * The principal consists of the token's issuer, subject and client. So a flow continues under a refreshed token, and
 * under no other caller's. A token without `sub` is refused, unless the issuer marked it as the client's own.
 *
 * Tokens are verified locally with the issuer's keys. A revoked token is accepted until it expires, so have the issuer
 * keep lifetimes short.
 *
 * @example
 * const authenticate = bearer({
 *   issuer: 'https://login.example.com',
 *   audience: 'https://mcp.example.com/mcp',
 *   jwks: 'https://login.example.com/jwks',
 * })
 * await serve(app, { authenticate })
 */
export function bearer(options: BearerOptions): Authenticate {
  return atCaller(bearer, () => authenticateWith(options))
}

function authenticateWith(options: BearerOptions): Authenticate {
  check(options)
  const { maxTokenBytes = 8_192, cacheSeconds = 60, clockTolerance = 10 } = options
  const { scopes: required = [], claims: passedOn = [] } = options
  const resource = resourceUrl(options.resource ?? first(options.audience))
  const refusals = new Refusals(metadataUrl(resource), required)
  const verify = verifierOf({ ...options, clockTolerance })
  const implied = new Map(Object.entries(options.implies ?? {}))
  const verified = new VerifiedTokens(cacheSeconds * 1_000)

  const callerOf = async (token: string): Promise<AuthenticatedCaller> => {
    const claims = await verify(token).catch((error: unknown) => {
      throw refusals.for(error)
    })
    const principal = principalOf(claims)
    if (principal === undefined) throw refusals.noSubject()
    const scopes = scopesOf(claims, implied)
    if (!required.every((scope) => scopes.includes(scope))) throw refusals.insufficient()
    const claimed = pick(claims, passedOn)
    const caller = fixedCaller({ principal, scopes, claims: claimed, challenge: refusals.insufficientScope })
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

function pick(claims: JWTPayload, names: readonly string[]): CallerClaims {
  return checkedClaims(
    Object.fromEntries(names.filter((name) => Object.hasOwn(claims, name)).map((name) => [name, claims[name]])),
  )
}

/** Checks the length before anything else. */
function tokenIn(credentials: string, maxBytes: number): string | undefined {
  if (credentials.length > 'Bearer '.length + maxBytes) return undefined
  const [, token] = /^bearer +([\w.-]+)$/i.exec(credentials) ?? []
  return token
}

function metadataOf({ issuer, audience, resource, scopes = [], metadata }: BearerOptions): ResourceMetadata {
  const { authorization_servers: servers = [issuer] } = metadata ?? {}
  if (servers.length === 0 || !servers.every((server) => URL.canParse(server))) {
    throw invalid(`\`issuer\` is not a URL, got ${shown(issuer)}. Pass its URL as \`metadata.authorization_servers\``)
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
  if (!isObject(options)) throw invalid(`options are missing, got ${shown(options)}. Pass issuer, audience and jwks`)
  const { issuer, audience, jwks, scopes = [], algorithms = ALGORITHMS } = options
  if (typeof issuer !== 'string' || issuer === '')
    throw invalid('`issuer` must be a string, the `iss` claim of the tokens')
  const audiences: readonly unknown[] = [audience].flat()
  if (audiences.length === 0 || !audiences.every((name) => typeof name === 'string' && name !== '')) {
    throw invalid('`audience` must be a string or a list of strings, the `aud` claim of the tokens')
  }
  if (jwks === undefined || jwks === null) throw invalid("`jwks` is missing. Pass the URL of the issuer's keys")
  if (!Array.isArray(scopes) || !scopes.every((scope) => SCOPE.test(scope))) {
    throw invalid(`\`scopes\` must be an array of scopes, got ${JSON.stringify(scopes)}`)
  }
  const { claims = [] } = options
  if (!Array.isArray(claims) || !claims.every((name) => typeof name === 'string' && name !== '')) {
    throw invalid(`\`claims\` must be an array of the names of claims, got ${JSON.stringify(claims)}`)
  }
  const known: readonly string[] = ALGORITHMS
  if (
    !Array.isArray(algorithms) ||
    algorithms.length === 0 ||
    !algorithms.every((algorithm) => known.includes(algorithm))
  ) {
    throw invalid(`\`algorithms\` must be a list of ${known.join(', ')}, got ${JSON.stringify(algorithms)}`)
  }
  for (const key of ['clockTolerance', 'maxTokenBytes', 'cacheSeconds'] as const) {
    const value = options[key] ?? 0
    if (!Number.isFinite(value) || value < 0) throw invalid(`\`${key}\` must be a number of 0 or more, got ${value}`)
  }
}

function invalid(why: string): RallyError {
  return new RallyError('OPTION_INVALID', `bearer(): ${why}.`)
}

/**
 * Issuer, subject and client as JSON, so that no two callers share a principal and a refreshed token keeps it. `undefined`
 * when the claims name nobody. For a client that acts for itself the subject is `null`, which no user can be.
 */
function principalOf(claims: JWTPayload): string | undefined {
  const client = nameIn(claims['client_id']) ?? nameIn(claims['azp']) ?? null
  const subject = nameIn(claims.sub)
  if (subject !== undefined) return JSON.stringify([claims.iss, subject, client])
  // A user's token may lack `sub` too. With the client as the caller, all its users would share one principal.
  return client !== null && actsForItself(claims) ? JSON.stringify([claims.iss, null, client]) : undefined
}

/** The scopes in `scope` and `scp`, each a string or an array, with all scopes that they imply. */
function scopesOf(claims: JWTPayload, implied: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const scopes = new Set([...namesIn(claims['scope']), ...namesIn(claims['scp'])])
  // Iterating a set reaches what is added meanwhile, so this is transitive, and it ends.
  for (const scope of scopes) for (const further of implied.get(scope) ?? []) scopes.add(further)
  return [...scopes]
}

/** How issuers mark a token of the client-credentials grant that names no subject. */
function actsForItself(claims: JWTPayload): boolean {
  return (
    claims['gty'] === 'client-credentials' || claims['grant_type'] === 'client_credentials' || claims['idtyp'] === 'app'
  )
}

function namesIn(claim: unknown): string[] {
  const names: unknown[] = typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : []
  return names.flatMap((name) => nameIn(name) ?? [])
}

function nameIn(claim: unknown): string | undefined {
  return typeof claim === 'string' && claim !== '' ? claim : undefined
}
