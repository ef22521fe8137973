// The address of a page that a server wants the user to visit. It is looked at, and never fetched.
import { shown } from '../../protocol/text.ts'

export interface VisitAddress {
  readonly url: string
  readonly host: string
  readonly lookalike: boolean
}

const LONGEST = 8_192

/** `refuse` makes the error of an address that nobody should be sent to. */
export function readVisitAddress(given: unknown, refuse: (why: string) => Error): VisitAddress {
  if (typeof given !== 'string' || given.length > LONGEST || !URL.canParse(given)) {
    throw refuse('its url is no address')
  }
  const { protocol, username, password, host, hostname } = new URL(given)
  if (protocol !== 'http:' && protocol !== 'https:') {
    throw refuse(`its url is a ${shown(protocol)} address, and only http and https are ever opened`)
  }
  // What stands before an @ is often made to look like the host.
  if (username !== '' || password !== '') throw refuse('its url holds a name or a password')
  return { url: given, host, lookalike: hostname.split('.').some((label) => label.startsWith('xn--')) }
}
