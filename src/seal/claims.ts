// What a sealed requestState says, and to whom: a header in JSON, a newline, then the journal's text as the flow engine
// gave it. JSON escapes newlines, so the first one ends the header.

import { digest } from './canonical.ts'
import { defaults } from './defaults.ts'
import { layout, parseHeader, type Header } from './header.ts'
import { SealError } from './seal-error.ts'

/** The request that a state belongs to. It opens for no other. */
export interface Binding {
  readonly method: string
  /** The name of the tool or prompt, or the URI of the resource. */
  readonly target: string
  /** `digest` of the `canonical` arguments as received. */
  readonly argumentsDigest: string
  /** Who is calling. Undefined, for nobody the host knows, is bound like any other. */
  readonly principal: string | undefined
}

/** What the flow engine puts in and gets back. The numbers are whole and not negative. */
export interface Claims {
  /** When the flow began, in milliseconds. */
  readonly startedAt: number
  readonly flowId: string
  readonly round: number
  readonly deferrals: number
  /** The tool's version, where it declares one. */
  readonly version: string | undefined
  /** What the client declared in the first round, as bits. */
  readonly capabilities: number
  readonly revision: string
  /** The engine's own JSON value: open questions, held answers. */
  readonly carry: unknown
  /** The engine's own JSON text, kept to the letter. */
  readonly journal: string
}

/** What one server holds every state to. */
export interface Terms {
  readonly audience: string
  readonly ttl: number
  readonly maxAge: number
}

export function writeClaims(claims: Claims, binding: Binding, terms: Terms, now: number): string {
  const { startedAt, flowId, round, deferrals, version = null, capabilities, revision, carry } = claims
  const header: Header = [
    layout,
    startedAt,
    now,
    Math.min(now + terms.ttl, startedAt + terms.maxAge),
    terms.audience,
    binding.method,
    binding.target,
    binding.argumentsDigest,
    principalDigest(binding.principal, flowId),
    flowId,
    round,
    deferrals,
    version,
    capabilities,
    revision,
    carry,
  ]
  return `${JSON.stringify(header)}\n${claims.journal}`
}

/**
 * Throws `SealError` unless the text is a state of this request, audience and time.
 *
 * The comparisons are plain ones. What they compare was sealed, so a caller can neither see nor choose it, and the other
 * side is the caller's own request; the principal comes first, so that somebody else's state tells nothing of the rest.
 * The one comparison that a forger could time is that of GCM's tag, and OpenSSL makes it in constant time.
 */
export function readClaims(plaintext: string, binding: Binding, terms: Terms, now: number): Claims {
  const end = plaintext.indexOf('\n')
  if (end < 0) throw new SealError('no header')
  const header = parseHeader(plaintext.slice(0, end))
  checkBinding(header, binding, terms)
  checkTime(header, terms, now)
  const [, startedAt, , , , , , , , flowId, round, deferrals, version, capabilities, revision, carry] = header
  const journal = plaintext.slice(end + 1)
  return {
    startedAt,
    flowId,
    round,
    deferrals,
    version: version ?? undefined,
    capabilities,
    revision,
    carry,
    journal,
  }
}

function checkBinding(header: Header, binding: Binding, terms: Terms): void {
  const [, , , , audience, method, target, argumentsDigest, principal, flowId] = header
  if (principal !== principalDigest(binding.principal, flowId)) throw new SealError('minted for another principal')
  if (audience !== terms.audience) throw new SealError('minted for another audience')
  if (method !== binding.method) throw new SealError('minted for another method')
  if (target !== binding.target) throw new SealError('minted for another target')
  if (argumentsDigest !== binding.argumentsDigest) throw new SealError('minted for other arguments')
}

function checkTime([, startedAt, issuedAt, expiresAt]: Header, { maxAge }: Terms, now: number): void {
  if (now < issuedAt - defaults.skew) throw new SealError('minted in the future: do the clocks of the instances agree?')
  if (now > expiresAt + defaults.skew) throw new SealError('expired')
  // The sealed expiry knows the limit of whoever minted it; this is ours, should it have been lowered since.
  if (now > startedAt + maxAge + defaults.skew) throw new SealError('the flow is older than maxAge')
}

/** Salted, so that it does not show which flows are of one principal. None is bound as the empty text, no digest is. */
function principalDigest(principal: string | undefined, flowId: string): string {
  return principal === undefined ? '' : digest(`${flowId}\n${principal}`)
}
