// What a handler can learn about its call beside the arguments: who is calling, with which client, and the request's `_meta`.
import { RallyError } from '../protocol/errors.ts'
import type { ClientCapabilities } from '../protocol/messages.ts'

/**
 * What an authenticator says about a caller beside the principal, such as a department. Plain JSON. Declare the claims of your
 * app once, and both `authenticate` and `io.caller` have their types.
 *
 * @example
 * declare module 'mcp-rally' {
 *   interface CallerClaims {
 *     department?: string
 *   }
 * }
 */
export interface CallerClaims {
  /** Claims that no declaration names. */
  readonly [name: string]: unknown
}

/** The caller, as the host authenticated it. */
export interface Caller {
  /** Names the caller. The same in every round of a flow. */
  readonly principal: string
  /** What the caller was granted. */
  readonly scopes: readonly string[]
  /** What else the authenticator said about the caller. */
  readonly claims: CallerClaims
}

/** The program that speaks to the server, as it describes itself. Nothing of it is verified. */
export interface ClientInfo {
  /** The name of the program, if it sent one. */
  readonly name: string | undefined
  /** The version of the program, if it sent one. */
  readonly version: string | undefined
  /** The protocol revision that it speaks, such as '2026-07-28'. */
  readonly revision: string
  /** What the client can do, as it declared it. */
  readonly capabilities: ClientCapabilities
  /** The extensions that it declared, each with its settings. */
  readonly extensions: Readonly<Record<string, object>>
}

/** Where a request came from. The members may be computed when they are read. */
export interface CallSource {
  /** The caller. `undefined` if it was not authenticated. */
  readonly caller: Caller | undefined
  /** The program that sent the request. */
  readonly client: ClientInfo
  /** Throws if it is larger than the limit. */
  readonly meta: Readonly<Record<string, unknown>>
}

/** They are stored with every task of the caller. */
const MAX_CLAIM_BYTES = 4_096

/** Returns the claims if they are JSON that is small enough. */
export function checkedClaims(claims: CallerClaims): CallerClaims {
  let text: string | undefined
  try {
    text = JSON.stringify(claims)
  } catch {
    // Such as a cycle.
  }
  if (text !== undefined && Buffer.byteLength(text) <= MAX_CLAIM_BYTES) return claims
  throw new RallyError(
    'CALLER_INVALID',
    `authenticate(): \`claims\` must be JSON of at most ${MAX_CLAIM_BYTES} bytes. Return only what handlers need.`,
  )
}
