// The plaintext of every token: an envelope that says who may open it and when, then the payload of its purpose.
//
// It is a JSON array, a newline, and a text that is appended unchanged. JSON escapes newlines, so the first one ends the
// array. The array starts with the ten positions of `Envelope`; the fields of the payload follow. Every position is
// checked when it is read, because a custom codec may return anything.
//
// All checks of audience, principal, binding and time are here, and nowhere else.

import { digest } from './canonical.ts'
import { SealError } from './errors.ts'
import type { Purpose } from './keyring.ts'

/** Who may open a token, and for what. Every member must be the same as when it was minted. */
export interface Binding {
  /** The method of the request. A token that belongs to no request has the purpose here: see `bindTo`. */
  readonly method: string
  /** The name of the tool or prompt, or the URI of the resource. */
  readonly target: string
  /** `digest` of the `canonical` arguments as received. */
  readonly argumentsDigest: string
  /** The authenticated caller. A caller without a principal is bound too: a named principal cannot open its tokens. */
  readonly principal: string | undefined
}

/** The limits that apply to every token of one purpose. Times are milliseconds. */
export interface Terms {
  readonly audience: string
  /** Time from minting to expiry. */
  readonly ttl: number
  /** Time from `startedAt` to expiry. */
  readonly maxAge: number
}

/** How far the clocks of two instances may differ, either way, in milliseconds. */
export const CLOCK_SKEW_MS = 60_000

/** What is sealed, in the form that every purpose has. */
export interface Payload<Fields extends readonly unknown[]> {
  /** Unguessable. Salts the digest of the principal. */
  readonly id: string
  /** When the sealed thing began, in milliseconds. Default: when the token is minted. */
  readonly startedAt?: number | undefined
  /** JSON values. */
  readonly fields: Fields
  /** Appended unchanged, so that a long text is not escaped again. */
  readonly text: string
}

/** How a value of one purpose becomes a payload, and back. */
export interface PayloadCodec<Value, Fields extends readonly unknown[]> {
  readonly purpose: Purpose
  /** What the log calls a token of this purpose. */
  readonly name: string
  /** One test for each field. */
  readonly tests: FieldTests<Fields>
  write(value: Value): Payload<Fields>
  /** Throws `SealError` if the fields have the right types but make no sense. */
  read(payload: Payload<Fields> & { readonly startedAt: number }): Value
}

export type FieldTests<Fields extends readonly unknown[]> = {
  readonly [Position in keyof Fields]: (value: unknown) => value is Fields[Position]
}

export const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
export const isText = (value: unknown): value is string => typeof value === 'string'
export const isTextOrNull = (value: unknown): value is string | null => value === null || typeof value === 'string'
export const isAnything = (_value: unknown): _value is unknown => true

/**
 * Binds a token that belongs to no request, such as the id of a session. A custom codec has no key per purpose, so the
 * purpose stands where a requestState has its method. No method has the name of a purpose.
 */
export function bindTo(purpose: Purpose, target: string, principal: string | undefined): Binding {
  return { method: purpose, target, argumentsDigest: '', principal }
}

/** What messages call a token with this binding. */
export function describe({ purpose, name }: { purpose: Purpose; name: string }, { method, target }: Binding): string {
  return method === purpose ? name : `sealed state of ${method} ${target}`
}

export function writePlaintext<Value, Fields extends readonly unknown[]>(
  codec: PayloadCodec<Value, Fields>,
  value: Value,
  binding: Binding,
  terms: Terms,
  now: number,
): string {
  const { id, startedAt = now, fields, text } = codec.write(value)
  const header = [
    LAYOUT,
    startedAt,
    now,
    Math.min(now + terms.ttl, startedAt + terms.maxAge),
    terms.audience,
    binding.method,
    binding.target,
    binding.argumentsDigest,
    principalDigest(binding.principal, id),
    id,
    ...fields,
  ]
  return `${JSON.stringify(header)}\n${text}`
}

/**
 * Throws `SealError` unless the plaintext has this binding and audience, and has not expired.
 *
 * The comparisons need not take constant time. A caller can neither see nor choose the sealed side, and the other side
 * is the caller's own request. The principal is compared first, so that another principal's token reveals nothing else.
 * Only the tag of GCM could be attacked by timing, and OpenSSL compares it in constant time.
 */
export function readPlaintext<Value, Fields extends readonly unknown[]>(
  codec: PayloadCodec<Value, Fields>,
  plaintext: string,
  binding: Binding,
  terms: Terms,
  now: number,
): Value {
  const end = plaintext.indexOf('\n')
  if (end < 0) throw new SealError('no header')
  const header = parseHeader(plaintext.slice(0, end), codec.tests)
  checkBinding(header, binding, terms)
  checkTime(header, terms, now)
  const [, startedAt, , , , , , , , id] = header
  const fields = header.slice(ENVELOPE.length) as unknown as Fields
  return codec.read({ id, startedAt, fields, text: plaintext.slice(end + 1) })
}

type Envelope = [
  layout: number,
  startedAt: number,
  issuedAt: number,
  expiresAt: number,
  audience: string,
  method: string,
  target: string,
  argumentsDigest: string,
  principalDigest: string,
  id: string,
]

/** In the order of `Envelope`. */
const ENVELOPE: FieldTests<Envelope> = [
  isCount,
  isCount,
  isCount,
  isCount,
  isText,
  isText,
  isText,
  isText,
  isText,
  isText,
]

/** A change to the positions is a new layout. This one must stay readable for as long as its tokens may live. */
const LAYOUT = 1

function parseHeader(text: string, tests: FieldTests<readonly unknown[]>): [...Envelope, ...unknown[]] {
  let header: unknown
  try {
    header = JSON.parse(text)
  } catch {
    // Without its cause: the parser quotes the text.
    throw new SealError('the header is not JSON')
  }
  if (!Array.isArray(header)) throw new SealError('the header is not an array')
  if (header[0] !== LAYOUT) throw new SealError('the header has a layout that this version does not know')
  if (header.length !== ENVELOPE.length + tests.length) {
    throw new SealError(`the header has ${header.length} positions`)
  }
  checkPositions(header, ENVELOPE, 0)
  checkPositions(header, tests, ENVELOPE.length)
  return header as [...Envelope, ...unknown[]]
}

function checkPositions(header: readonly unknown[], tests: FieldTests<readonly unknown[]>, from: number): void {
  for (let i = 0; i < tests.length; i += 1) {
    if (tests[i]?.(header[from + i]) !== true) throw new SealError(`the header is wrong at position ${from + i}`)
  }
}

function checkBinding(header: readonly [...Envelope, ...unknown[]], binding: Binding, terms: Terms): void {
  const [, , , , audience, method, target, argumentsDigest, principal, id] = header
  if (principal !== principalDigest(binding.principal, id)) throw new SealError('minted for another principal')
  if (audience !== terms.audience) throw new SealError('minted for another audience')
  if (method !== binding.method) throw new SealError('minted for another method')
  if (target !== binding.target) throw new SealError('minted for another target')
  if (argumentsDigest !== binding.argumentsDigest) throw new SealError('minted for other arguments')
}

function checkTime(header: readonly [...Envelope, ...unknown[]], { maxAge }: Terms, now: number): void {
  const [, startedAt, issuedAt, expiresAt] = header
  if (now < issuedAt - CLOCK_SKEW_MS) throw new SealError('minted in the future: do the clocks of the instances agree?')
  if (now > expiresAt + CLOCK_SKEW_MS) throw new SealError('expired')
  // The sealed expiry follows the maxAge of the instance that minted it. Ours may have been lowered since.
  if (now > startedAt + maxAge + CLOCK_SKEW_MS) throw new SealError('the flow is older than maxAge')
}

/** Salted, so that tokens do not show which of them have the same principal. No principal is an empty text, which is not a digest. */
function principalDigest(principal: string | undefined, id: string): string {
  return principal === undefined ? '' : digest(`${id}\n${principal}`)
}
