// The operator's secrets as keys: one per secret and purpose, so that a token of one purpose never opens as another.
// The first secret mints and all of them open; a secret left out of the ring is revoked.

import { createSecretKey, hkdfSync, randomBytes, type KeyObject } from 'node:crypto'
import { RallyError } from '../protocol/errors.ts'

/** What a token is for begins it. A new layout or algorithm is a new prefix; no token names its own. All of one length. */
export const prefixes = {
  requestState: 'rs1.',
  serverRequest: 'sr1.',
  session: 'se1.',
  event: 'ev1.',
  cursor: 'cu1.',
} as const

export const prefixBytes = 4

export type Purpose = keyof typeof prefixes

/** At least 32 bytes from a random source. A string counts as its UTF-8 bytes. */
export type KeySecret = string | Uint8Array

export interface Keyring {
  /** Made at start-up: no other instance, and no later start of this one, opens what it sealed. */
  readonly ephemeral: boolean
  readonly minting: RingKey
  /** Every key of the ring by its id, as latin1 text. */
  readonly byId: ReadonlyMap<string, RingKey>
}

export interface RingKey {
  readonly id: Buffer
  readonly of: Readonly<Record<Purpose, KeyObject>>
}

export const keyIdBytes = 8

/**
 * `[mint, ...open]`. Rotate with `[old, new]`, then `[new, old]`, and a `ttl` after every instance has that, `[new]`: no
 * flow is lost on the way.
 */
export function keyring(secrets: readonly KeySecret[]): Keyring {
  if (!Array.isArray(secrets))
    throw new RallyError('SECRET_INVALID', 'keys must be an array of secrets: [mint, ...open].')
  return ring(secrets, false)
}

/** A ring of one random secret, for a server that was given none. */
export function ephemeral(): Keyring {
  return ring([randomBytes(secretBytes)], true)
}

const secretBytes = 32

function ring(secrets: readonly KeySecret[], isEphemeral: boolean): Keyring {
  const byId = new Map<string, RingKey>()
  const indexes = new Map<string, number>()
  for (const [index, secret] of secrets.entries()) {
    const key = ringKey(secret, index)
    const id = key.id.toString('latin1')
    const first = indexes.get(id)
    if (first !== undefined) {
      throw new RallyError('SECRET_INVALID', `keys[${index}] is the same secret as keys[${first}]: remove one of them.`)
    }
    byId.set(id, key)
    indexes.set(id, index)
  }
  const [minting] = byId.values()
  if (!minting) throw new RallyError('SECRET_INVALID', 'keys is empty: give at least one secret, or leave keys out.')
  return { ephemeral: isEphemeral, minting, byId }
}

function ringKey(secret: KeySecret, index: number): RingKey {
  const bytes = secretAsBytes(secret, index)
  if (bytes.length < secretBytes) {
    throw new RallyError(
      'SECRET_INVALID',
      `keys[${index}] is ${bytes.length} bytes and at least ${secretBytes} are needed: ` +
        `make one with \`openssl rand -base64 32\`.`,
    )
  }
  const key = (purpose: Purpose): KeyObject => createSecretKey(stretch(bytes, `purpose ${purpose}`, 32))
  return {
    id: stretch(bytes, 'key id', keyIdBytes),
    of: {
      requestState: key('requestState'),
      serverRequest: key('serverRequest'),
      session: key('session'),
      event: key('event'),
      cursor: key('cursor'),
    },
  }
}

function secretAsBytes(secret: unknown, index: number): Uint8Array {
  if (typeof secret === 'string') return Buffer.from(secret, 'utf8')
  if (secret instanceof Uint8Array) return secret
  throw new RallyError('SECRET_INVALID', `keys[${index}] is neither a string nor a Uint8Array: is its variable set?`)
}

function stretch(secret: Uint8Array, label: string, size: number): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', `mcp-rally seal 1 ${label}`, size))
}
