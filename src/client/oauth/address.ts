// Which addresses the client contacts during a login. Most of them come from the server or its metadata, so they are untrusted.
import { shown } from '../../protocol/text.ts'
import { loginFailed } from './errors.ts'
import type { Zone } from './zones.ts'
import { isSecure, zoneOf } from './zones.ts'

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

/** A server may name addresses that are as deep inside as itself, and no deeper. */
const DEPTH: Readonly<Record<Zone, number>> = { public: 0, private: 1, loopback: 2 }
