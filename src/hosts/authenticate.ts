// Who is calling: the one function an HTTP host asks before it reads a body.
import { RallyError } from '../protocol/errors.ts'

/** What an authenticator sees of a request, whatever server it came through. */
export interface HttpRequest {
  readonly method: string
  readonly url: string
  header(name: string): string | undefined
}

export interface Authenticated {
  /** Stable across token refreshes. Only this string is bound to a flow's state. */
  readonly principal: string
}

/** Gives who is calling, or refuses: by giving nothing (401), or by throwing `Refused`. */
export type Authenticate = (
  request: HttpRequest,
) => Authenticated | undefined | null | Promise<Authenticated | undefined | null>

/** Thrown by an authenticator to refuse with a status and headers of its own. */
export class Refused extends RallyError {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super('REFUSED', message)
    this.status = status
    this.headers = headers
  }
}

export async function principalOf(authenticate: Authenticate, request: HttpRequest): Promise<string> {
  const authenticated = await authenticate(request)
  if (!authenticated) throw new Refused(401, 'Authentication is required.', { 'WWW-Authenticate': 'Bearer' })
  if (typeof authenticated.principal !== 'string' || authenticated.principal === '') {
    throw new RallyError('AUTHENTICATE', 'authenticate gave no principal: it must be a string that names the caller.')
  }
  return authenticated.principal
}
