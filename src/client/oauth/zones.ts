// Where a host is: on this machine, in a private network, or elsewhere. Loaded without the rest of OAuth.

/** True for https, and for http on this machine. */
export function isSecure(url: URL): boolean {
  return url.protocol === 'https:' || (url.protocol === 'http:' && zoneOf(url.hostname) === 'loopback')
}

export type Zone = 'public' | 'private' | 'loopback'

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
