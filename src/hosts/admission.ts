// The Host and Origin checks that stop DNS rebinding, before anything else of a request is read. And what a browser needs to let a
// page of another origin call (CORS). Only origins that `allowedOrigins` names get it: a page of the same origin needs none, and
// the pages that the default admits are not meant to read across origins.
import { RallyError } from '../protocol/errors.ts'
import { wrongOption } from '../protocol/options.ts'
import { shown } from '../protocol/text.ts'
import type { Reply } from '../server/reply.ts'
import type { ReadHeader } from './header-check.ts'

export interface AdmissionOptions {
  /** The host names that are served, without a port, or '*' for any. Default: the loopback names. */
  allowedHosts?: readonly string[] | '*'
  /**
   * The browser origins that may call, such as 'https://app.example.com', or '*'. Scheme and port count. Pages of these origins
   * also get what a browser needs to call across origins (CORS). Default: https pages of `allowedHosts`, and http pages of the
   * loopback names among them, without CORS.
   */
  allowedOrigins?: readonly string[] | '*'
}

/** Returns why a request is refused, or `undefined`. */
export type Admission = (host: string | undefined, origin: string | undefined) => string | undefined

const LOOPBACK: readonly string[] = ['localhost', '127.0.0.1', '[::1]']

export function admission({ allowedHosts = LOOPBACK, allowedOrigins }: AdmissionOptions): Admission {
  checkNames('allowedHosts', allowedHosts)
  checkNames('allowedOrigins', allowedOrigins)
  const hosts = allowedHosts === '*' ? undefined : new Set(allowedHosts.map((host) => host.toLowerCase()))
  const origins = allowedOrigins === '*' || allowedOrigins === undefined ? undefined : readOrigins(allowedOrigins)
  // Almost all requests have the same Host, which is then read once.
  let lastServed: string | undefined
  return (host, origin) => {
    if (hosts !== undefined && (host === undefined || host !== lastServed)) {
      if (host === undefined || !hosts.has(hostName(host))) {
        return `Host ${JSON.stringify(host ?? '')} is not served here. To serve it, add its name to \`allowedHosts\`.`
      }
      lastServed = host
    }
    if (origin === undefined || allowedOrigins === '*') return undefined
    const allowed = origins === undefined ? isPageOf(origin, hosts, host) : origins.has(normalized(origin))
    return allowed
      ? undefined
      : `Origin ${JSON.stringify(origin)} may not call. To allow it, add it to \`allowedOrigins\`.`
  }
}

/** Listening beyond loopback without `allowedHosts` would switch the protection off unnoticed. */
export function checkBinding(bindHost: string, { allowedHosts }: AdmissionOptions): void {
  if (allowedHosts !== undefined || LOOPBACK.includes(bindHost) || bindHost === '::1') return
  throw new RallyError(
    'ALLOWED_HOSTS_REQUIRED',
    `serve(): listening on ${bindHost} opens the server to the network. Pass the host names that it serves, allowedHosts: ['mcp.example.com'], or '*' for any.`,
  )
}

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

function checkNames(option: string, names: unknown): void {
  if (names === undefined || names === '*') return
  if (Array.isArray(names) && names.every((name) => typeof name === 'string')) return
  throw wrongOption(option, "an array of strings, or '*'", names)
}

function readOrigins(origins: readonly string[]): ReadonlySet<string> {
  for (const [index, origin] of origins.entries()) {
    if (ORIGIN.test(origin) || origin === 'null') continue
    throw new RallyError(
      'OPTION_INVALID',
      `\`allowedOrigins[${index}]\` must be an origin with its scheme and without a path, such as 'https://app.example.com', got ${shown(origin)}.`,
    )
  }
  return new Set(origins.map(normalized))
}

/** A scheme, a host and perhaps a port. A browser sends nothing else. */
const ORIGIN = /^[a-z][a-z\d+.-]*:\/\/[^/?#@\\\s]+$/i

/** Without the default port of its scheme, and in lower case. Anything that is not an origin stays as it is. */
function normalized(origin: string): string {
  if (!ORIGIN.test(origin) || !URL.canParse(origin)) return origin
  const url = new URL(origin)
  // Only the schemes of the web have an origin by themselves. Others, such as extensions, are compared by their text.
  return url.origin === 'null' ? origin : url.origin
}

/** A page that came over plain http may be anybody's on the way, unless it came from this machine. */
function isPageOf(origin: string, hosts: ReadonlySet<string> | undefined, host: string | undefined): boolean {
  if (!ORIGIN.test(origin) || !URL.canParse(origin)) return false
  const { hostname, protocol } = new URL(origin)
  if (protocol !== 'https:' && !(protocol === 'http:' && LOOPBACK.includes(hostname))) return false
  return hosts === undefined ? hostname === hostName(host ?? '') : hosts.has(hostname)
}

/** Without the port. An IPv6 address keeps its brackets. */
function hostName(host: string): string {
  const name = host.replace(/:\d+$/, '')
  return name.toLowerCase()
}
