// The id of a session: a sealed token that holds the result of `initialize`, so that any instance serves any request of it.
//
// 1. It opens only as a session id, under a key of the ring, for its audience and principal, and for a day.
// 2. Every refusal looks the same to the client. The log gets the reason, and no text of the token.
// 3. It is visible ASCII and has at most 3 KiB, however long the client's name is.
import { randomBytes } from 'node:crypto'
import { RallyError } from '../protocol/errors.ts'
import type { OlderRevision } from '../protocol/revisions/older.ts'
import { olderRevision } from '../protocol/revisions/index.ts'
import type { PayloadCodec } from '../seal/envelope.ts'
import { bindTo, isCount, isText } from '../seal/envelope.ts'
import { InvalidState, SealError } from '../seal/errors.ts'
import type { Seal, SealFor } from '../seal/seal.ts'

/** The result of `initialize`. */
export interface SessionClaims {
  /** Tells sessions apart on an instance. The client knows only the token. */
  readonly id: string
  readonly revision: OlderRevision
  /** What the client declared, as bits. */
  readonly capabilities: number
  /** True if the client returns a state with each answer (SEP-1685). */
  readonly carriesState: boolean
  readonly clientName: string
  readonly clientVersion: string
  /** Those that the client declared. At most 512 bytes of JSON. Default: none. */
  readonly extensions?: Readonly<Record<string, object>>
}

const SESSION_MS = 86_400_000
const MAX_BYTES = 3_072
const MAX_NAME_LENGTH = 64

/** Mints and opens the ids of sessions. */
export class SessionIds {
  readonly #seal: SealFor<SessionClaims>

  /** `optedIn` are draft revisions that are served beside the released ones. */
  constructor(seal: Seal, optedIn: readonly string[]) {
    this.#seal = seal.for(sessionCodec(optedIn), { ttl: SESSION_MS, maxAge: SESSION_MS, maxBytes: MAX_BYTES })
  }

  async mint(claims: Omit<SessionClaims, 'id'>, principal: string | undefined): Promise<string> {
    const token = await this.#seal.mint({ ...claims, id: newSessionId() }, bindingOf(principal))
    if (/^[\x21-\x7e]+$/.test(token)) return token
    throw new RallyError(
      'CODEC_INVALID',
      'codec.seal: returned a session id that a header cannot hold. It must consist of visible ASCII characters.',
    )
  }

  /** Takes anything that a client sent. Returns `undefined` if it is not a session of this caller. */
  async open(token: string, principal: string | undefined): Promise<SessionClaims | undefined> {
    try {
      return await this.#seal.open(token, bindingOf(principal))
    } catch (error) {
      if (error instanceof InvalidState) return undefined
      throw error
    }
  }
}

export function newSessionId(): string {
  return randomBytes(12).toString('base64url')
}

type SessionFields = [
  revision: string,
  capabilities: number,
  carriesState: boolean,
  clientName: string,
  clientVersion: string,
]

function sessionCodec(optedIn: readonly string[]): PayloadCodec<SessionClaims, SessionFields> {
  return {
    purpose: 'session',
    name: 'session id',
    tests: [isText, isCount, (value) => typeof value === 'boolean', isText, isText],
    write: ({ id, revision, capabilities, carriesState, clientName, clientVersion, extensions = {} }) => ({
      id,
      fields: [revision.name, capabilities, carriesState, shortened(clientName), shortened(clientVersion)],
      // Most clients declare none, and older versions of this package wrote no text.
      text: Object.keys(extensions).length === 0 ? '' : JSON.stringify(extensions),
    }),
    read({ id, fields: [name, capabilities, carriesState, clientName, clientVersion], text }) {
      const revision = olderRevision(name, optedIn)
      if (revision === undefined) throw new SealError('of a revision that is not served any more')
      const claims = { id, revision, capabilities, carriesState, clientName, clientVersion }
      return text === '' ? claims : { ...claims, extensions: JSON.parse(text) as Record<string, object> }
    },
  }
}

function bindingOf(principal: string | undefined): ReturnType<typeof bindTo> {
  return bindTo('session', '', principal)
}

function shortened(name: string): string {
  return name.slice(0, MAX_NAME_LENGTH)
}
