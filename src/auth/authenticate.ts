// Who is calling: the function that an HTTP host calls before it reads a body.
import type { Caller, CallerClaims } from '../flow/caller.ts'
import { RallyError } from '../protocol/errors.ts'
import { frozenCopy } from '../protocol/json.ts'
import type { Logger } from '../protocol/logger.ts'
import { wrongOption } from '../protocol/options.ts'
import { shown } from '../protocol/text.ts'

/** What an authenticator sees of a request. It is the same on every host. */
export interface HttpRequest {
  /** The HTTP method, in capitals. */
  readonly method: string
  /** As the host got it: the path and the query on Node, the whole URL with the Fetch API. */
  readonly url: string
  /** Returns the value of a header. The name may be in any case. */
  header(name: string): string | undefined
}

/** The caller, and the scopes that the caller was granted. Handlers see all but `challenge` as `io.caller`. */
export interface AuthenticatedCaller {
  /** Names the caller. Must not change when a token is refreshed: this string is bound to the state of a flow. */
  readonly principal: string
  /** The granted scopes. Default: none, so that a tool with `scopes` refuses the caller. */
  readonly scopes?: readonly string[]
  /** More about the caller for handlers, such as a department: JSON, 4 096 bytes at most. Default: nothing. Never put a token into it. */
  readonly claims?: CallerClaims
  /** Returns `WWW-Authenticate` for a call that needs more scopes than were granted. Default: `insufficient_scope` with these scopes. */
  readonly challenge?: (scopes: readonly string[]) => string
}

/** A caller whose properties are checked, and all there. */
export interface IdentifiedCaller extends Caller {
  readonly challenge?: ((scopes: readonly string[]) => string) | undefined
}

/** Returns the caller. Refuses by returning nothing (401) or by throwing an `AuthenticationError`. A plain function is enough. */
export interface Authenticate {
  (request: HttpRequest): AuthenticatedCaller | undefined | null | Promise<AuthenticatedCaller | undefined | null>
  /**
   * Public documents: JSON text by path. Hosts serve them without authentication. Default: none. If you wrap an
   * authenticator, copy its `documents` to your function.
   */
  readonly documents?: ReadonlyMap<string, string>
}

/** Throw it from an authenticator to refuse with a status and headers of your own. Its `cause` goes to the log only. */
export class AuthenticationError extends RallyError {
  declare readonly code: 'AUTHENTICATION_FAILED'
  /** The HTTP status of the response. */
  readonly status: number
  /** Headers of the response. */
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}, options?: ErrorOptions) {
    super('AUTHENTICATION_FAILED', message, options)
    if (!Number.isInteger(status) || status < 400 || status > 599) {
      throw new RallyError(
        'OPTION_INVALID',
        `AuthenticationError: \`status\` must be between 400 and 599, got ${status}.`,
      )
    }
    for (const [name, value] of Object.entries(headers)) {
      if (!FIELD_NAME.test(name) || !FIELD_VALUE.test(value)) {
        throw new RallyError(
          'OPTION_INVALID',
          `AuthenticationError: the header ${shown(name)} contains characters that HTTP cannot send.`,
        )
      }
    }
    this.status = status
    this.headers = headers
  }
}

const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Throws if it is not a function, such as a promise of one: then no request could be served. */
export function checkAuthenticate(authenticate: unknown): void {
  if (authenticate === undefined || typeof authenticate === 'function') return
  throw wrongOption(
    'authenticate',
    'a function',
    authenticate,
    'Pass one of your own, or bearer() of mcp-rally/bearer.',
  )
}

export async function identify(authenticate: Authenticate, request: HttpRequest): Promise<IdentifiedCaller> {
  const authenticated = await authenticate(request)
  if (!authenticated)
    throw new AuthenticationError(401, 'Authentication is required.', { 'WWW-Authenticate': 'Bearer' })
  return callerOf(authenticated, 'authenticate()')
}

/** Checks who the caller is said to be, and fills in what is missing. `where` is for the error. */
export function callerOf(given: AuthenticatedCaller, where: string): IdentifiedCaller {
  const { principal, scopes, claims, challenge } = given
  if (typeof principal !== 'string' || principal === '') {
    throw new RallyError('CALLER_INVALID', `${where}: \`principal\` must be a string that names the caller.`)
  }
  // A lone surrogate has no bytes of its own: two such principals would have the same digest.
  if (/\p{Surrogate}/u.test(principal)) {
    throw new RallyError('CALLER_INVALID', `${where}: \`principal\` is not well-formed Unicode.`)
  }
  if (scopes !== undefined && !Array.isArray(scopes)) {
    throw new RallyError('CALLER_INVALID', `${where}: \`scopes\` must be an array, such as ['deploy:write'].`)
  }
  if (claims !== undefined && (typeof claims !== 'object' || claims === null || Array.isArray(claims))) {
    throw new RallyError('CALLER_INVALID', `${where}: \`claims\` must be an object, such as { department: 'sales' }.`)
  }
  return { principal, scopes: scopes ?? NO_SCOPES, claims: claims ?? NO_CLAIMS, challenge }
}

// Frozen, because all callers without them share these.
const NO_SCOPES: readonly string[] = Object.freeze([])
const NO_CLAIMS: CallerClaims = Object.freeze({})

/** For a caller that is kept for many requests: nothing that a handler does to it changes it for the others. */
export function fixedCaller<T extends Caller>(caller: T): T {
  return Object.freeze({ ...caller, scopes: frozenCopy(caller.scopes), claims: frozenCopy(caller.claims) })
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

/** The challenge to a caller who lacks some of the scopes; `undefined` when all were granted. */
export function challengeOf(required: readonly string[], caller: IdentifiedCaller | undefined): string | undefined {
  const granted = caller?.scopes ?? []
  if (required.every((scope) => granted.includes(scope))) return undefined
  const challenge = caller?.challenge?.(required) ?? `Bearer error="insufficient_scope", scope="${required.join(' ')}"`
  if (FIELD_VALUE.test(challenge)) return challenge
  throw new RallyError('CALLER_INVALID', 'authenticate(): `challenge` returned characters that HTTP cannot send.')
}
