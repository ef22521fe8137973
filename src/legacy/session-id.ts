// The id of a session: a sealed token that holds what `initialize` came to, so that any instance serves any request of it.
//
// 1. It opens only as a session id, under a key of the ring, for its audience and principal, and for a day.
// 2. Every refusal looks the same to the client; the log learns the reason and nothing of the content.
// 3. It is visible ASCII and has at most 2 KiB, whatever the client called itself.
import { randomBytes } from 'node:crypto'
import { RallyError } from '../protocol/errors.ts'
import type { Logger } from '../protocol/logger.ts'
import type { OlderRevision } from '../protocol/revisions/index.ts'
import { olderRevision } from '../protocol/revisions/index.ts'
import { digest } from '../seal/canonical.ts'
import type { StateCodec } from '../seal/codec.ts'
import { openWith, sealWith } from '../seal/codec.ts'
import { defaults } from '../seal/defaults.ts'
import type { KeySecret } from '../seal/keyring.ts'
import { ephemeral, keyring } from '../seal/keyring.ts'
import { SealError } from '../seal/seal-error.ts'
import { tokens } from '../seal/token.ts'

/** What `initialize` came to. */
export interface SessionClaims {
  /** Tells sessions apart on an instance; the token is what the client knows. */
  readonly id: string
  readonly revision: OlderRevision
  /** What the client declared, as bits. */
  readonly capabilities: number
  /** Whether it carries a state with each question (SEP-1685). */
  readonly carriesState: boolean
  readonly clientName: string
  readonly clientVersion: string
}

export interface SessionIdOptions {
  readonly audience: string
  readonly keys: readonly KeySecret[] | undefined
  readonly codec: StateCodec | undefined
  /** The revisions that are spoken beside the released ones. Default: none. */
  readonly optedIn?: readonly string[]
  readonly logger: Logger
  readonly now: () => number
}

const SESSION_MS = 86_400_000
const MOST_BYTES = 2_048
const LONGEST_NAME = 64
const LAYOUT = 1

/** Beside the capabilities, whose bits grow from the other end. */
const CARRIES_STATE = 2 ** 30

/** Begins the plaintext, so that a codec of the user's, which knows no purposes, opens nothing else as a session. */
const LABEL = 'session\n'

export class SessionIds {
  readonly #options: SessionIdOptions
  readonly #codec: StateCodec

  constructor(options: SessionIdOptions) {
    const { keys, codec, now } = options
    this.#options = options
    this.#codec = codec ?? tokens(keys === undefined ? ephemeral() : keyring(keys), 'session', { now })
  }

  async mint(claims: Omit<SessionClaims, 'id'>, principal: string | undefined): Promise<string> {
    const { audience, now } = this.#options
    const { revision, capabilities, carriesState, clientName, clientVersion } = claims
    const id = newSessionId()
    const sealed = [
      LAYOUT,
      id,
      now(),
      digest(audience),
      principalDigest(principal, id),
      revision.name,
      carriesState ? capabilities | CARRIES_STATE : capabilities,
      bounded(clientName),
      bounded(clientVersion),
    ]
    const token = await sealWith(this.#codec, LABEL + JSON.stringify(sealed))
    if (token.length <= MOST_BYTES && /^[\x21-\x7e]+$/.test(token)) return token
    throw new RallyError(
      'CODEC_INVALID',
      `The codec gave a session id that a header cannot hold: it must be at most ${MOST_BYTES} visible ASCII characters.`,
    )
  }

  /** Takes whatever the client sent; `undefined` when it is no session of this caller. */
  async open(token: string, principal: string | undefined): Promise<SessionClaims | undefined> {
    try {
      if (token.length > MOST_BYTES) throw new SealError(`the session id has ${token.length} characters`)
      return this.#read(await openWith(this.#codec, token), principal)
    } catch (error) {
      const reason = error instanceof SealError ? error.reason : 'an unexpected failure'
      this.#options.logger.warn('A session id was refused.', { reason })
      return undefined
    }
  }

  #read(plaintext: string, principal: string | undefined): SessionClaims {
    const { audience, optedIn, now } = this.#options
    const [id, issuedAt, sealedFor, sealedPrincipal, name, flags, clientName, clientVersion] = parse(plaintext)
    if (sealedPrincipal !== principalDigest(principal, id)) throw new SealError('minted for another principal')
    if (sealedFor !== digest(audience)) throw new SealError('minted for another audience')
    if (now() < issuedAt - defaults.skew) throw new SealError('minted in the future')
    if (now() > issuedAt + SESSION_MS + defaults.skew) throw new SealError('expired')
    const revision = olderRevision(name, optedIn)
    if (revision === undefined) throw new SealError('of a revision that is not spoken any more')
    const carriesState = (flags & CARRIES_STATE) !== 0
    return { id, revision, capabilities: flags & ~CARRIES_STATE, carriesState, clientName, clientVersion }
  }
}

export function newSessionId(): string {
  return randomBytes(12).toString('base64url')
}

type Sealed = [
  id: string,
  issuedAt: number,
  audience: string,
  principal: string,
  revision: string,
  flags: number,
  clientName: string,
  clientVersion: string,
]

const TYPES = ['string', 'number', 'string', 'string', 'string', 'number', 'string', 'string']

function parse(plaintext: string): Sealed {
  if (!plaintext.startsWith(LABEL)) throw new SealError('not a session')
  let sealed: unknown
  try {
    sealed = JSON.parse(plaintext.slice(LABEL.length))
  } catch {
    throw new SealError('the session is not JSON')
  }
  if (!Array.isArray(sealed) || sealed[0] !== LAYOUT) throw new SealError('the session has an unknown layout')
  const [, ...rest] = sealed as unknown[]
  if (rest.length !== TYPES.length || !rest.every((value, index) => typeof value === TYPES[index])) {
    throw new SealError('the session has an unknown form')
  }
  return rest as Sealed
}

/** Salted with the session's own id. Nobody is bound as the empty text, which is no digest. */
function principalDigest(principal: string | undefined, id: string): string {
  return principal === undefined ? '' : digest(`${id}\n${principal}`)
}

function bounded(name: string): string {
  return name.slice(0, LONGEST_NAME)
}
