// What a browser needs to let a page of another origin call (CORS). Only origins that `allowedOrigins` names get it: a page of
// the same origin needs none, and the pages that the default admits are not meant to read across origins.
import type { Reply } from '../server/reply.ts'
import type { ReadHeader } from './header-check.ts'

/** The headers of a response that a page may read. Without this list it sees neither its session nor why it was refused. */
const EXPOSED = 'Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate, Retry-After'

/** How long a browser need not ask again, in seconds. Browsers cap it at 2 hours or less. */
const MAX_AGE_S = '7200'

/** Cookies are never allowed: a caller is known by the headers that its own code sends. */
export function corsHeaders(origin: string, isAny: boolean): Readonly<Record<string, string>> {
  return {
    'Access-Control-Allow-Origin': isAny ? '*' : origin,
    'Access-Control-Expose-Headers': EXPOSED,
    Vary: 'Origin',
  }
}

/** Answers what a browser asks before it sends a request. It has no credentials yet, so it comes before authentication. */
export function preflight(header: ReadHeader): Reply {
  const wanted = header('access-control-request-headers')
  return {
    status: 204,
    text: '',
    headers: {
      'Access-Control-Allow-Methods': 'POST, GET, DELETE',
      // As asked for, because tools have headers of their own (`Mcp-Param-*`), and '*' does not stand for Authorization.
      ...(wanted !== undefined && NAMES.test(wanted) && { 'Access-Control-Allow-Headers': wanted }),
      'Access-Control-Max-Age': MAX_AGE_S,
    },
  }
}

const NAMES = /^[\w!#$%&'*+.^`|~-]+( *, *[\w!#$%&'*+.^`|~-]+)*$/
