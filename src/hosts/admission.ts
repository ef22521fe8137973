// Whom an HTTP host lets in before it reads anything: the Host and Origin checks that stop DNS rebinding.
import { RallyError } from '../protocol/errors.ts'

export interface AdmissionOptions {
  /** Host names that are served, without a port, or '*' for any. Default: the loopback names. */
  allowedHosts?: readonly string[] | '*'
  /** Browser origins that may call, such as 'https://app.example.com', or '*'. Default: pages of the allowed hosts. */
  allowedOrigins?: readonly string[] | '*'
}

/** Gives why a request is refused, or nothing. */
export type Admission = (host: string | undefined, origin: string | undefined) => string | undefined

const LOOPBACK: readonly string[] = ['localhost', '127.0.0.1', '[::1]']

export function admission({ allowedHosts = LOOPBACK, allowedOrigins }: AdmissionOptions): Admission {
  const hosts = allowedHosts === '*' ? undefined : new Set(allowedHosts.map((host) => host.toLowerCase()))
  const origins = allowedOrigins === '*' || allowedOrigins === undefined ? undefined : new Set(allowedOrigins)
  return (host, origin) => {
    if (hosts !== undefined && (host === undefined || !hosts.has(hostName(host)))) {
      return `Host ${JSON.stringify(host ?? '')} is not served here. To serve it, add its name to allowedHosts.`
    }
    if (origin === undefined || allowedOrigins === '*') return undefined
    const allowed = origins === undefined ? isPageOf(origin, hosts, host) : origins.has(origin)
    return allowed ? undefined : `Origin ${JSON.stringify(origin)} may not call. To let it, add it to allowedOrigins.`
  }
}

/** Binding beyond loopback without saying which names are served would switch the protection off unnoticed. */
export function checkBinding(bindHost: string, { allowedHosts }: AdmissionOptions): void {
  if (allowedHosts !== undefined || LOOPBACK.includes(bindHost) || bindHost === '::1') return
  throw new RallyError(
    'ALLOWED_HOSTS_REQUIRED',
    `Listening on ${bindHost} opens the server to the network: say which host names it serves, allowedHosts: ['mcp.example.com'], or '*' for any.`,
  )
}

function isPageOf(origin: string, hosts: ReadonlySet<string> | undefined, host: string | undefined): boolean {
  if (!URL.canParse(origin)) return false
  const { hostname } = new URL(origin)
  return hosts === undefined ? hostname === hostName(host ?? '') : hosts.has(hostname)
}

/** Without the port; what is between brackets is an IPv6 address. */
function hostName(host: string): string {
  const name = host.replace(/:\d+$/, '')
  return name.toLowerCase()
}
