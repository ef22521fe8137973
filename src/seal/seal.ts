// The sealed requestState, as the server uses it: mints one from the claims of a flow, and opens one that a client sent.
// States of other purposes are sealed by its siblings, under keys of their own.
//
// 1. A token opens only as what it was sealed for, under a key of the ring, and with no character changed.
// 2. A state opens only for its audience, method, target, arguments and principal; having no principal is one too.
// 3. A state opens only in its time: one round's ttl, and maxAge for the whole flow.
// 4. Every refusal, whatever its cause, is the same error to the caller.
// 5. The log learns the reason, and nothing of the token or of what is sealed in it.
// 6. The size is checked before any work, and no larger token is minted.
// 7. Rotating the keys loses no flow; a key out of the ring opens nothing.
// 8. A sub-key mints a bounded number of tokens for a bounded time; a bounded number is kept for opening.
// 9. A later version opens what this one sealed.

import { INVALID_PARAMS, ProtocolError, RallyError } from '../protocol/errors.ts'
import type { Logger } from '../protocol/logger.ts'
import { readClaims, writeClaims, type Binding, type Claims, type Terms } from './claims.ts'
import { openWith, sealWith, type StateCodec } from './codec.ts'
import { defaults } from './defaults.ts'
import { ephemeral, keyring, type Keyring, type Purpose, type KeySecret } from './keyring.ts'
import { SealError } from './seal-error.ts'
import { sizeLimit, type Largest } from './size.ts'
import { plaintextRoom, tokens } from './token.ts'

/** A state that did not open. It says the same whatever the cause, which `cause` keeps for the log. */
export class InvalidState extends ProtocolError {
  constructor(cause: unknown) {
    super(INVALID_PARAMS, 'Invalid or expired requestState', undefined, { cause })
  }
}

export interface SealOptions {
  /** Who the states are for, such as the server's name: no other audience opens them, even under the same keys. */
  audience: string
  /** `[mint, ...open]`: the secrets, or a ring made of them. Default: one made at start-up, for this process alone. */
  keys?: readonly KeySecret[] | Keyring | undefined
  /** Brings its own crypto, in place of `keys`. */
  codec?: StateCodec | undefined
  /** Milliseconds that one round may take. Default 600 000 (ten minutes). */
  ttl?: number | undefined
  /** Milliseconds that a whole flow may take. Default 86 400 000 (a day). */
  maxAge?: number | undefined
  /** The largest token minted or looked at. Default 65 536. */
  maxBytes?: number | undefined
  /** Default: none. */
  logger?: Logger | undefined
  /** Default `Date.now`. */
  now?: (() => number) | undefined
}

/** Synchronous unless the codec is not. */
export interface Seal {
  /** Sealed under a key that no other process has. */
  readonly ephemeral: boolean
  /** Milliseconds that one round may take. */
  readonly ttl: number
  readonly maxBytes: number
  /** The most plaintext, header and journal together, whose token fits `maxBytes`. With a codec, an estimate. */
  readonly maxPlaintextBytes: number
  /** `largest` names the largest entries of the journal; it is called only to say why a token is too large. */
  mint(claims: Claims, binding: Binding, largest?: Largest): string | Promise<string>
  /** Takes what the client sent, whatever it is. Throws `InvalidState`. */
  open(token: unknown, binding: Binding): Claims | Promise<Claims>
  /** The same terms for another purpose. With a codec, only what it is bound to tells one purpose from another. */
  of(purpose: Purpose): Seal
}

export function createSeal(options: SealOptions, purpose: Purpose = 'requestState'): Seal {
  const { logger, now = Date.now } = options
  const maxBytes = positive('maxBytes', options.maxBytes, defaults.maxTokenBytes)
  const terms = termsOf(options)
  const { codec, ring } = codecOf(options, purpose, now)
  const size = sizeLimit(maxBytes, logger)

  return {
    ephemeral: ring?.ephemeral ?? false,
    ttl: terms.ttl,
    maxBytes,
    maxPlaintextBytes: plaintextRoom(maxBytes),
    mint(claims, binding, largest) {
      const token = sealWith(codec, writeClaims(claims, binding, terms, now()))
      if (typeof token === 'string') return size.minted(token, binding, largest)
      return token.then((later) => size.minted(later, binding, largest))
    },
    open(token, binding) {
      const read = (plaintext: string): Claims => readClaims(plaintext, binding, terms, now())
      const refuse = (error: unknown): never => {
        const reason = error instanceof SealError ? error.reason : 'an unexpected failure'
        logger?.warn(`A ${NAMES[purpose] ?? purpose} was refused.`, {
          reason,
          method: binding.method,
          target: binding.target,
        })
        throw new InvalidState(error)
      }
      try {
        const plaintext = openWith(codec, size.received(token))
        return typeof plaintext === 'string' ? read(plaintext) : plaintext.then(read).catch(refuse)
      } catch (error) {
        return refuse(error)
      }
    },
    of: (other) => createSeal({ ...options, now, ...(ring && { keys: ring }) }, other),
  }
}

/** For the log. */
const NAMES: Partial<Record<Purpose, string>> = { serverRequest: "server request's state", event: 'Last-Event-ID' }

function termsOf({ audience, ttl, maxAge }: SealOptions): Terms {
  if (typeof audience !== 'string' || audience === '') {
    throw new RallyError('OPTION_INVALID', 'audience is empty: name who the states are for, such as the server.')
  }
  return { audience, ttl: positive('ttl', ttl, defaults.ttl), maxAge: positive('maxAge', maxAge, defaults.maxAge) }
}

function positive(name: string, given: number | undefined, otherwise: number): number {
  if (given === undefined) return otherwise
  if (Number.isSafeInteger(given) && given > 0) return given
  throw new RallyError('OPTION_INVALID', `${name} is ${String(given)}: it must be a whole number above 0.`)
}

function codecOf(
  { keys, codec }: SealOptions,
  purpose: Purpose,
  now: () => number,
): { codec: StateCodec; ring: Keyring | undefined } {
  if (!codec) {
    const ring = keys === undefined ? ephemeral() : isKeyring(keys) ? keys : keyring(keys)
    return { codec: tokens(ring, purpose, { now }), ring }
  }
  if (keys !== undefined)
    throw new RallyError('OPTION_INVALID', 'Give keys or codec, not both: a codec has its own keys.')
  if (typeof codec.seal !== 'function' || typeof codec.open !== 'function') {
    throw new RallyError('OPTION_INVALID', 'codec needs the two functions seal(plaintext) and open(token).')
  }
  return { codec, ring: undefined }
}

function isKeyring(keys: readonly KeySecret[] | Keyring): keys is Keyring {
  return typeof keys === 'object' && 'byId' in keys
}
