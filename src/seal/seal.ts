// Seals what a client carries, and opens what a client sent: the requestState, and every other purpose under the same keys.
//
// 1. A token opens only for the purpose it was sealed for, under a key of the ring, and with no character changed.
// 2. A token opens only for its audience, method, target, arguments and principal. No principal is a principal too.
// 3. A token opens only in its time: `ttl` after it was minted, and `maxAge` for the whole flow.
// 4. Every refusal is the same error to the caller.
// 5. The log gets the reason, and no text of the token or of its plaintext.
// 6. The size is checked before any work, and no larger token is minted.
// 7. Rotating the keys loses no flow. A key that was removed from the ring opens nothing.
// 8. A sub-key mints a bounded number of tokens for a bounded time. A bounded number is cached for opening.
// 9. A later version opens the requestStates that this one sealed.

import { createHmac, type KeyObject } from 'node:crypto'
import { RallyError } from '../protocol/errors.ts'
import type { Logger } from '../protocol/logger.ts'
import { digest } from './canonical.ts'
import { requestState, type Claims } from './claims.ts'
import { openWith, sealWith, type StateCodec } from './codec.ts'
import {
  CLOCK_SKEW_MS,
  describe,
  readPlaintext,
  writePlaintext,
  type Binding,
  type PayloadCodec,
  type Terms,
} from './envelope.ts'
import { InvalidState, SealError } from './errors.ts'
import { ephemeral, keyring, type Keyring, type KeySecret, type Purpose } from './keyring.ts'
import { sizeLimit, type Largest } from './size.ts'
import { DEFAULT_MAX_BYTES, plaintextRoom, tokens } from './token.ts'

export interface SealOptions extends SealLimits {
  /** Who the tokens are for, such as the server's name. Another audience cannot open them, even under the same keys. */
  audience: string
  /** `[mint, ...open]`: the secrets, or a ring made of them. Default: a random one, for this process alone. */
  keys?: readonly KeySecret[] | Keyring | undefined
  /** Custom encryption, in place of `keys`. Default: none. */
  codec?: StateCodec | undefined
  /** Default: none. */
  logger?: Logger | undefined
  /** Default `Date.now`. */
  now?: (() => number) | undefined
}

export interface SealLimits {
  /** Milliseconds from minting to expiry: the time that one round may take. Default 600 000 (ten minutes). */
  ttl?: number | undefined
  /** Milliseconds that a whole flow may take. Default 86 400 000 (a day). */
  maxAge?: number | undefined
  /** The largest token to mint or open. Default 65 536. */
  maxBytes?: number | undefined
}

/** Seals the values of one purpose. Synchronous unless the codec is asynchronous. */
export interface SealFor<Value> {
  /** Sealed under a key that no other process has. */
  readonly ephemeral: boolean
  /** Milliseconds from minting to expiry. */
  readonly ttl: number
  /** Milliseconds in which a token may be opened, with clocks that differ. Records of used tokens must live this long. */
  readonly lifetimeMs: number
  readonly maxBytes: number
  /** The largest plaintext, header and text together, whose token fits `maxBytes`. With a custom codec, an estimate. */
  readonly maxPlaintextBytes: number
  /** `largest` returns the keys of the largest journal entries; it is called only to explain why a token is too large. */
  mint(value: Value, binding: Binding, largest?: Largest): string | Promise<string>
  /** Takes anything that a client sent. Throws `InvalidState`. */
  open(token: unknown, binding: Binding): Value | Promise<Value>
}

/** The seal of the requestState. */
export interface Seal extends SealFor<Claims> {
  /** The id of the flow that a request with this idempotency key starts. Undefined with a custom codec, which has no key for it. */
  readonly keyedFlowId: ((idempotencyKey: string, binding: Binding) => string) | undefined
  /** The seal of another purpose, under a key of its own. `limits` default to those of this seal. */
  for<Value, Fields extends readonly unknown[]>(codec: PayloadCodec<Value, Fields>, limits?: SealLimits): SealFor<Value>
}

const DEFAULT_TTL_MS = 600_000
const DEFAULT_MAX_AGE_MS = 86_400_000

export function createSeal(options: SealOptions): Seal {
  const { audience, logger, now = Date.now } = options
  if (typeof audience !== 'string' || audience === '') {
    throw new RallyError(
      'OPTION_INVALID',
      '`audience` must not be empty. Name who the states are for, such as the server.',
    )
  }
  const encryption = readEncryption(options, now)
  const terms = { ...readLimits(options), audience }
  return {
    ...sealFor({ encryption, terms, logger, now }, requestState),
    keyedFlowId: encryption.flowIds && keyedFlowId(encryption.flowIds, audience),
    for: (codec, limits) => {
      // A digest, so that a long audience does not make session ids too long for a header.
      const others = { ...readLimits({ ...options, ...limits }), audience: digest(audience) }
      return sealFor({ encryption, terms: others, logger, now }, codec)
    },
  }
}

/**
 * A client cannot choose the id, and gets the same one only for the same request: another principal, method, target or argument makes
 * another id, as another key does. All instances that mint with the same secret agree on it.
 */
function keyedFlowId(secret: () => KeyObject, audience: string): NonNullable<Seal['keyedFlowId']> {
  return (idempotencyKey, { method, target, argumentsDigest, principal = null }) =>
    createHmac('sha256', secret())
      .update(JSON.stringify([audience, method, target, argumentsDigest, principal, idempotencyKey]))
      .digest('base64url')
      .slice(0, FLOW_ID_LENGTH)
}

/** 128 bits and a little more, as long as a random id. */
const FLOW_ID_LENGTH = 22

interface Encryption {
  readonly ephemeral: boolean
  /** A function, because a Worker has no random numbers for an ephemeral key before its first request. */
  readonly flowIds: (() => KeyObject) | undefined
  for(purpose: Purpose): StateCodec
}

interface SealParts {
  readonly encryption: Encryption
  readonly terms: Terms & { readonly maxBytes: number }
  readonly logger: Logger | undefined
  readonly now: () => number
}

function sealFor<Value, Fields extends readonly unknown[]>(
  { encryption, terms, logger, now }: SealParts,
  codec: PayloadCodec<Value, Fields>,
): SealFor<Value> {
  const tokensOfPurpose = encryption.for(codec.purpose)
  const { ttl, maxBytes } = terms
  const size = sizeLimit(maxBytes, logger, (binding) => describe(codec, binding))
  return {
    ephemeral: encryption.ephemeral,
    ttl,
    lifetimeMs: ttl + 2 * CLOCK_SKEW_MS,
    maxBytes,
    maxPlaintextBytes: plaintextRoom(maxBytes),
    mint(value, binding, largest) {
      const token = sealWith(tokensOfPurpose, writePlaintext(codec, value, binding, terms, now()))
      if (typeof token === 'string') return size.minted(token, binding, largest)
      return token.then((later) => size.minted(later, binding, largest))
    },
    open(token, binding) {
      const read = (plaintext: string): Value => readPlaintext(codec, plaintext, binding, terms, now())
      const refuse = (error: unknown): never => {
        const reason = error instanceof SealError ? error.reason : 'an unexpected failure'
        const { method, target } = binding
        logger?.warn(`A ${codec.name} was refused.`, { reason, method, target })
        throw new InvalidState(error)
      }
      try {
        const plaintext = openWith(tokensOfPurpose, size.received(token))
        return typeof plaintext === 'string' ? read(plaintext) : plaintext.then(read).catch(refuse)
      } catch (error) {
        return refuse(error)
      }
    },
  }
}

function readLimits({ ttl, maxAge, maxBytes }: SealLimits): Required<{ [Name in keyof SealLimits]: number }> {
  return {
    ttl: positive('ttl', ttl, DEFAULT_TTL_MS),
    maxAge: positive('maxAge', maxAge, DEFAULT_MAX_AGE_MS),
    maxBytes: positive('maxBytes', maxBytes, DEFAULT_MAX_BYTES),
  }
}

function positive(name: string, value: number | undefined, fallback: number): number {
  if (value === undefined) return fallback
  if (Number.isSafeInteger(value) && value > 0) return value
  throw new RallyError('OPTION_INVALID', `\`${name}\` must be a whole number above 0, got ${String(value)}.`)
}

function readEncryption({ keys, codec }: SealOptions, now: () => number): Encryption {
  if (!codec) {
    const ring = keys === undefined ? ephemeral() : isKeyring(keys) ? keys : keyring(keys)
    return {
      ephemeral: ring.ephemeral,
      flowIds: () => ring.minting.flowIds,
      for: (purpose) => tokens(ring, purpose, { now }),
    }
  }
  if (keys !== undefined) {
    throw new RallyError('OPTION_INVALID', 'Pass `keys` or `codec`, not both: a codec has its own keys.')
  }
  if (typeof codec.seal !== 'function' || typeof codec.open !== 'function') {
    throw new RallyError('OPTION_INVALID', '`codec` must have the two functions seal(plaintext) and open(token).')
  }
  return { ephemeral: false, flowIds: undefined, for: () => codec }
}

function isKeyring(keys: readonly KeySecret[] | Keyring): keys is Keyring {
  return typeof keys === 'object' && keys !== null && 'byId' in keys
}
