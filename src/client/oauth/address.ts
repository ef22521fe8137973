// Which addresses the client contacts during a login. Most of them come from the server or its metadata, so they are untrusted.
import { shown } from '../../protocol/text.ts'
import { loginFailed } from './errors.ts'

const MAX_ADDRESS_LENGTH = 2_048

/**
 * Checks an address that `server` or its authorization server named. It must be https, or be on this machine. It must not lead from a
 * public server to a private network, or to this machine.
 */
export function checkAddress(text: unknown, what: string, server: URL): URL {
  if (typeof text !== 'string' || text.length > MAX_ADDRESS_LENGTH || !URL.canParse(text)) {
    throw loginFailed(`${what} must be a URL of at most ${MAX_ADDRESS_LENGTH} characters, got ${shown(text)}`)
  }
  const url = new URL(text)
  if (url.username !== '' || url.password !== '') throw loginFailed(`${what} must not contain a user name or password`)
  if (!isSecure(url)) throw loginFailed(`${what} must begin with https:, got ${shown(text)}`)
  if (DEPTH[zoneOf(url.hostname)] > DEPTH[zoneOf(server.hostname)]) {
    throw loginFailed(
      `${what} is in a private network or on this machine, and the server ${server.host} is not, got ${shown(text)}`,
    )
  }
  return url
}

/** True for https, and for http on this machine. */
export function isSecure(url: URL): boolean {
  return url.protocol === 'https:' || (url.protocol === 'http:' && zoneOf(url.hostname) === 'loopback')
}

type Zone = 'public' | 'private' | 'loopback'

/** A server may name addresses that are as deep inside as itself, and no deeper. */
const DEPTH: Readonly<Record<Zone, number>> = { public: 0, private: 1, loopback: 2 }

/** Where a host is, by its name alone. A public name that resolves to a private address is not found out. */
export function zoneOf(hostname: string): Zone {
  const host = hostname.replace(/\.$/, '').toLowerCase()
  if (host === 'localhost' || host.endsWith('.localhost')) return 'loopback'
  // URL writes every IPv4 address as four decimal numbers, and every IPv6 address in its shortest form.
  if (/^\d+\.\d+\.\d+\.\d+$/.test(host)) return zoneOfIpv4(host.split('.').map(Number))
  if (host.startsWith('[')) return zoneOfIpv6(host.slice(1, -1))
  return !host.includes('.') || /\.(local|internal|intranet|lan|home\.arpa)$/.test(host) ? 'private' : 'public'
}

function zoneOfIpv4([a = 0, b = 0]: readonly number[]): Zone {
  if (a === 127 || a === 0) return 'loopback'
  const isPrivate =
    a === 10 ||
    (a === 172 && b >= 16 && b < 32) ||
    (a === 192 && b === 168) ||
    (a === 169 && b === 254) ||
    (a === 100 && b >= 64 && b < 128)
  return isPrivate ? 'private' : 'public'
}

function zoneOfIpv6(address: string): Zone {
  if (address === '::1' || address === '::') return 'loopback'
  // An IPv4 address inside: mapped, compatible, or of NAT64.
  const inner = /^(?:::ffff:|::|64:ff9b::)([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(address)
  if (inner !== null) {
    const [, high = '0', low = '0'] = inner
    const [h, l] = [Number.parseInt(high, 16), Number.parseInt(low, 16)]
    return zoneOfIpv4([h >> 8, h & 255, l >> 8, l & 255])
  }
  return /^(f[cd]|fe[89ab])/.test(address) ? 'private' : 'public'
}
