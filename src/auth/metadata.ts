// What a client without a sufficient token is told: the challenge of each refusal, and the protected-resource metadata document
// (RFC 9728) that the challenge points at.
import { errors } from 'jose'
import { RallyError } from '../protocol/errors.ts'
import { shown } from '../protocol/text.ts'
import { AuthenticationError } from './authenticate.ts'
import { KeysUnavailable } from './verify.ts'

/** The fields of the metadata document, spelled as on the wire. */
export interface ResourceMetadata {
  /** The URL of the resource itself. */
  readonly resource: string
  /** The issuers whose tokens are accepted. */
  readonly authorization_servers: readonly string[]
  /** The scopes that a client should ask for at least. */
  readonly scopes_supported?: readonly string[]
  /** How a token may be sent. */
  readonly bearer_methods_supported?: readonly string[]
  /** A name for people. */
  readonly resource_name?: string
  /** A page for developers. */
  readonly resource_documentation?: string
  /** A page on what may be done with the data. */
  readonly resource_policy_uri?: string
  /** The terms of service. */
  readonly resource_tos_uri?: string
}

const WELL_KNOWN = '/.well-known/oauth-protected-resource'

/** The URL of the document: the well-known path goes between the host and the path of the resource. */
export function metadataUrl(resource: URL): string {
  return `${resource.origin}${WELL_KNOWN}${resource.pathname === '/' ? '' : resource.pathname}`
}

/** The document, by each path at which clients look for it. */
export function metadataDocuments(resource: URL, metadata: ResourceMetadata): ReadonlyMap<string, string> {
  const text = JSON.stringify(metadata)
  const { pathname } = new URL(metadataUrl(resource))
  return new Map([WELL_KNOWN, pathname, pathname.replace(/\/$/, '')].map((path) => [path, text]))
}

/** The canonical URL of a resource: absolute, without query and fragment. */
export function resourceUrl(resource: string): URL {
  const url = URL.canParse(resource) ? new URL(resource) : undefined
  const isHttp = url?.protocol === 'https:' || url?.protocol === 'http:'
  if (url !== undefined && isHttp && !/[?#@]/.test(resource)) return url
  throw new RallyError(
    'OPTION_INVALID',
    `bearer(): ${shown(resource)} is not the URL of a resource, such as 'https://mcp.example.com/mcp'. ` +
      'If `audience` is not a URL, pass the URL as `resource`.',
  )
}

const MALFORMED = 'The access token is malformed or too long.'
const EXPIRED = 'The access token has expired.'
const NOT_YET = 'The access token is not valid yet.'
const NOT_FOR_US = 'The access token is not for this resource.'
const NO_SUBJECT = 'The access token names no subject.'
const INVALID = 'The access token is not valid.'

export class Refusals {
  readonly #metadataUrl: string
  readonly #required: readonly string[]

  /** Every challenge names the metadata URL, and the scopes to ask for beside those that a call needs. */
  constructor(url: string, required: readonly string[]) {
    this.#metadataUrl = url
    this.#required = required
  }

  /** Without a token there is no error to name (RFC 6750, section 3.1). */
  missing(): AuthenticationError {
    return new AuthenticationError(401, 'An access token is required.', {
      'WWW-Authenticate': this.#challenge('', this.#required),
    })
  }

  malformed(): AuthenticationError {
    return this.#invalid(MALFORMED)
  }

  noSubject(): AuthenticationError {
    return this.#invalid(NO_SUBJECT)
  }

  insufficient(): AuthenticationError {
    const message = 'The granted scopes are not sufficient.'
    return new AuthenticationError(403, message, { 'WWW-Authenticate': this.insufficientScope([]) })
  }

  /** The challenge alone, with all scopes that the call needs, so that the client asks for them at once. */
  insufficientScope = (scopes: readonly string[]): string =>
    this.#challenge('error="insufficient_scope", ', [...new Set([...this.#required, ...scopes])])

  /** The refusal for an error of verifying a token. */
  for(error: unknown): AuthenticationError {
    if (error instanceof KeysUnavailable) {
      const options = error.cause === undefined ? undefined : { cause: error.cause }
      return new AuthenticationError(
        503,
        'Access tokens cannot be verified at the moment.',
        { 'Retry-After': '1' },
        options,
      )
    }
    // Not about the token, but for example about a key that does not fit its algorithm. The operator has to know.
    if (!(error instanceof errors.JOSEError)) return this.#invalid(INVALID, { cause: error })
    return this.#invalid(descriptionOf(error))
  }

  #invalid(description: string, options?: ErrorOptions): AuthenticationError {
    const error = `error="invalid_token", error_description="${description}", `
    return new AuthenticationError(
      401,
      description,
      { 'WWW-Authenticate': this.#challenge(error, this.#required) },
      options,
    )
  }

  #challenge(error: string, scopes: readonly string[]): string {
    const scope = scopes.length === 0 ? '' : `, scope="${scopes.join(' ')}"`
    return `Bearer ${error}resource_metadata="${this.#metadataUrl}"${scope}`
  }
}

/** Only a token that the issuer signed gets a detailed description: claims are checked after the signature. */
function descriptionOf(error: errors.JOSEError): string {
  if (error instanceof errors.JWTExpired) return EXPIRED
  if (!(error instanceof errors.JWTClaimValidationFailed)) return INVALID
  if (error.claim === 'aud') return NOT_FOR_US
  return error.claim === 'nbf' ? NOT_YET : INVALID
}
