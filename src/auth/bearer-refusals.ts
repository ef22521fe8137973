// What a caller is told whose access token is missing, wrong or too weak: statuses, fixed texts and challenges.
import { errors } from 'jose'
import { AuthenticationError } from './authenticate.ts'
import { KeysUnavailable } from './bearer-keys.ts'

const MALFORMED = 'The access token is malformed or too long.'
const EXPIRED = 'The access token has expired.'
const NOT_YET = 'The access token is not valid yet.'
const NOT_FOR_US = 'The access token is not for this resource.'
const NAMES_NOBODY = 'The access token names no subject.'
const INVALID = 'The access token is not valid.'

export class Refusals {
  readonly #metadataUrl: string
  readonly #required: readonly string[]

  /** Every challenge says where the metadata is, and which scopes to ask for beside those that a call needs. */
  constructor(metadataUrl: string, required: readonly string[]) {
    this.#metadataUrl = metadataUrl
    this.#required = required
  }

  /** A request that brings no token is not told that one is wrong. */
  missing(): AuthenticationError {
    return new AuthenticationError(401, 'An access token is required.', {
      'WWW-Authenticate': this.#challenge('', this.#required),
    })
  }

  malformed(): AuthenticationError {
    return this.#invalid(MALFORMED)
  }

  namesNobody(): AuthenticationError {
    return this.#invalid(NAMES_NOBODY)
  }

  insufficient(): AuthenticationError {
    const message = 'The scopes that were granted do not suffice.'
    return new AuthenticationError(403, message, { 'WWW-Authenticate': this.insufficientScope([]) })
  }

  /** The challenge alone, with all that the call needs: the client does not have to come back for the rest. */
  insufficientScope = (scopes: readonly string[]): string =>
    this.#challenge('error="insufficient_scope", ', [...new Set([...this.#required, ...scopes])])

  /** What came of verifying a token. */
  because(error: unknown): AuthenticationError {
    if (error instanceof KeysUnavailable) {
      const options = error.cause === undefined ? undefined : { cause: error.cause }
      return new AuthenticationError(
        503,
        'Access tokens cannot be verified right now.',
        { 'Retry-After': '1' },
        options,
      )
    }
    // Not about the token: a key that does not fit its algorithm, say. The operator has to know.
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

/** Says more only of tokens that the issuer did sign: claims are looked at after the signature. */
function descriptionOf(error: errors.JOSEError): string {
  if (error instanceof errors.JWTExpired) return EXPIRED
  if (!(error instanceof errors.JWTClaimValidationFailed)) return INVALID
  if (error.claim === 'aud') return NOT_FOR_US
  return error.claim === 'nbf' ? NOT_YET : INVALID
}
