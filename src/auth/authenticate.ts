// Who is calling: the one function an HTTP host asks before it reads a body.
import { RallyError } from '../protocol/errors.ts'
import type { Logger } from '../protocol/logger.ts'

/** What an authenticator sees of a request, whatever server it came through. */
export interface HttpRequest {
  readonly method: string
  readonly url: string
  header(name: string): string | undefined
}

/** Who is calling, and what they were granted. */
export interface AuthenticatedCaller {
  /** Stable across token refreshes. Only this string is bound to a flow's state. */
  readonly principal: string
  /** What the caller was granted. Default: nothing, so that a tool that names `scopes` is refused. */
  readonly scopes?: readonly string[]
  /** What `WWW-Authenticate` says where a call needs these scopes and not all were granted. Default: just that. */
  readonly challenge?: (scopes: readonly string[]) => string
}

/** Gives who is calling, or refuses: by giving nothing (401), or by throwing `Refused`. A plain function will do. */
export interface Authenticate {
  (request: HttpRequest): AuthenticatedCaller | undefined | null | Promise<AuthenticatedCaller | undefined | null>
  /**
   * Documents that anybody may read, as JSON text by their path: hosts serve them before they ask who is calling.
   * Whoever wraps an authenticator hands them on.
   */
  readonly documents?: ReadonlyMap<string, string>
}

/** Thrown by an authenticator to refuse with a status and headers of its own. A `cause` goes to the log alone. */
export class AuthenticationError extends RallyError {
  declare readonly code: 'AUTHENTICATION_FAILED'
  readonly status: number
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}, options?: ErrorOptions) {
    super('AUTHENTICATION_FAILED', message, options)
    if (!Number.isInteger(status) || status < 400 || status > 599) {
      throw new RallyError(
        'OPTION_INVALID',
        `A caller is refused with a status from 400 to 599, and not with ${status}.`,
      )
    }
    for (const [name, value] of Object.entries(headers)) {
      if (!FIELD_NAME.test(name) || !FIELD_VALUE.test(value)) {
        throw new RallyError('OPTION_INVALID', `The header ${JSON.stringify(name)} holds what HTTP cannot send.`)
      }
    }
    this.status = status
    this.headers = headers
  }
}

const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

export async function identify(authenticate: Authenticate, request: HttpRequest): Promise<AuthenticatedCaller> {
  const authenticated = await authenticate(request)
  if (!authenticated)
    throw new AuthenticationError(401, 'Authentication is required.', { 'WWW-Authenticate': 'Bearer' })
  const { principal, scopes } = authenticated
  if (typeof principal !== 'string' || principal === '') {
    throw new RallyError('CALLER_INVALID', 'authenticate gave no principal: it must be a string that names the caller.')
  }
  // Half of a surrogate pair has no bytes of its own: two such principals would have one digest.
  if (/\p{Surrogate}/u.test(principal)) {
    throw new RallyError('CALLER_INVALID', 'authenticate gave a principal that is not well-formed Unicode.')
  }
  if (scopes !== undefined && !Array.isArray(scopes)) {
    throw new RallyError('CALLER_INVALID', "authenticate gave scopes that are no array: write ['deploy:write'].")
  }
  return authenticated
}

/** What the caller is told when an authenticator failed. The log gets the rest. */
export function authenticationErrorOf(error: unknown, logger: Logger): AuthenticationError {
  if (!(error instanceof AuthenticationError)) {
    logger.error('authenticate() failed.', { error })
    return new AuthenticationError(500, 'Authentication failed.')
  }
  if (error.cause !== undefined) logger.error(error.message, { cause: error.cause })
  return error
}

/** The challenge to a caller who lacks some of the scopes, or nothing where all were granted. */
export function challengeOf(required: readonly string[], caller: AuthenticatedCaller | undefined): string | undefined {
  const granted = caller?.scopes ?? []
  if (required.every((scope) => granted.includes(scope))) return undefined
  const challenge = caller?.challenge?.(required) ?? `Bearer error="insufficient_scope", scope="${required.join(' ')}"`
  if (FIELD_VALUE.test(challenge)) return challenge
  throw new RallyError('CALLER_INVALID', 'authenticate gave a challenge that no header can hold.')
}
