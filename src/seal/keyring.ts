// The keys that the operator's secrets become: one per secret and purpose, so that a token of one purpose never opens as
// another. The first secret mints, all of them open. A secret that is removed from the ring is revoked.

import { createSecretKey, hkdfSync, randomBytes, type KeyObject } from 'node:crypto'
import { RallyError } from '../protocol/errors.ts'
import { weaknessOf } from './weak.ts'

/** A token starts with the prefix of its purpose. A new algorithm gets a new prefix. All have the same length. */
export const prefixes = {
  requestState: 'rs1.',
  serverRequest: 'sr1.',
  session: 'se1.',
  event: 'ev1.',
  cursor: 'cu1.',
  appState: 'as1.',
  appPage: 'ap1.',
  signal: 'sg1.',
} as const

export const prefixBytes = 4

export type Purpose = keyof typeof prefixes

/** At least 32 bytes from a random source. A string counts as its UTF-8 bytes. One that is easy to guess is refused. */
export type KeySecret = string | Uint8Array

export interface Keyring {
  /** Generated at start-up: other instances and later starts of this one cannot open its tokens. */
  readonly ephemeral: boolean
  readonly minting: RingKey
  /** Every key of the ring by its id, as latin1 text. */
  readonly byId: ReadonlyMap<string, RingKey>
}

export interface RingKey {
  readonly id: Buffer
  readonly of: Readonly<Record<Purpose, KeyObject>>
  /** Derives the ids of flows from idempotency keys. It seals nothing. */
  readonly flowIds: KeyObject
}

export const keyIdBytes = 8

/**
 * `[mint, ...open]`. To rotate without losing a flow, deploy `[old, new]`, then `[new, old]`. Deploy `[new]` once every
 * instance has had that for one `ttl`.
 */
export function keyring(secrets: readonly KeySecret[]): Keyring {
  if (!Array.isArray(secrets))
    throw new RallyError('SECRET_INVALID', '`keys` must be an array of secrets: [mint, ...open].')
  return ring(secrets, false)
}

/** A ring of one random secret, for a server without `keys`. Made when it is first used: a Worker has no random numbers before a request. */
export function ephemeral(): Keyring {
  let made: Keyring | undefined
  const own = (): Keyring => (made ??= ring([randomBytes(secretBytes)], true))
  return {
    ephemeral: true,
    get minting() {
      return own().minting
    },
    get byId() {
      return own().byId
    },
  }
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
      throw new RallyError('SECRET_INVALID', `keys[${index}] is the same secret as keys[${first}]. Remove one of them.`)
    }
    byId.set(id, key)
    indexes.set(id, index)
  }
  const [minting] = byId.values()
  if (!minting) throw new RallyError('SECRET_INVALID', '`keys` is empty. Pass at least one secret, or omit `keys`.')
  return { ephemeral: isEphemeral, minting, byId }
}

/** With Node alone: not every system has openssl. */
const HOW_TO_MAKE_ONE = `Create one with \`node -p "crypto.randomBytes(32).toString('base64url')"\`.`

function ringKey(secret: KeySecret, index: number): RingKey {
  const bytes = secretAsBytes(secret, index)
  if (bytes.length < secretBytes) {
    throw new RallyError(
      'SECRET_INVALID',
      `keys[${index}] must have at least ${secretBytes} bytes, got ${bytes.length}. ${HOW_TO_MAKE_ONE}`,
    )
  }
  const weakness = weaknessOf(bytes, secretBytes) ?? weaknessOfText(secret)
  if (weakness !== undefined) {
    throw new RallyError('SECRET_INVALID', `keys[${index}] is easy to guess: ${weakness}. ${HOW_TO_MAKE_ONE}`)
  }
  const key = (purpose: Purpose | 'flowIds'): KeyObject => createSecretKey(derive(bytes, `purpose ${purpose}`, 32))
  return {
    id: derive(bytes, 'key id', keyIdBytes),
    of: {
      requestState: key('requestState'),
      serverRequest: key('serverRequest'),
      session: key('session'),
      event: key('event'),
      cursor: key('cursor'),
      appState: key('appState'),
      appPage: key('appPage'),
      signal: key('signal'),
    },
    flowIds: key('flowIds'),
  }
}

/** Spaces around a text are no part of a secret, and of several spaces one counts: they come from a file or a template. */
function weaknessOfText(secret: KeySecret): string | undefined {
  if (typeof secret !== 'string') return undefined
  const bytes = Buffer.from(secret.trim().replaceAll(/\s+/g, ' '))
  if (bytes.length < secretBytes) return `it has only ${bytes.length} bytes without extra spaces`
  return weaknessOf(bytes, secretBytes)
}

function secretAsBytes(secret: unknown, index: number): Uint8Array {
  if (typeof secret === 'string') return Buffer.from(secret, 'utf8')
  if (secret instanceof Uint8Array) return secret
  throw new RallyError(
    'SECRET_INVALID',
    `keys[${index}] must be a string or a Uint8Array, got ${typeof secret}. Is its environment variable set?`,
  )
}

function derive(secret: Uint8Array, label: string, size: number): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', `mcp-rally seal 1 ${label}`, size))
}
