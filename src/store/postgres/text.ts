// How the PostgreSQL store writes values: names short enough for an index, any text, and time spans.
//
// A text column cannot hold a NUL or half a surrogate pair, which JavaScript strings may contain. Each is written as an escape character
// and four hex digits; so is the escape character itself. Other strings are written as they are, which includes all JSON. Escaped
// texts can be concatenated, which journals need.
import { RallyError } from '../../protocol/errors.ts'

/** The limit for an id, an owner, a key or a channel. */
const MAX_NAME_BYTES = 1024
const MAX_TEXT_LENGTH = 64 * 1024 * 1024
const MAX_SPAN_MS = 1e15

/** A character for private use, which hardly any text contains. */
const ESCAPE = '\ue000'
const ESCAPED = /\ue000([0-9a-f]{4})/g
// With the u flag, a surrogate matches only if it is not part of a pair.
const UNWRITABLE = /[\0\ue000\ud800-\udfff]/gu

export function toText(what: string, text: string): string {
  if (text.length > MAX_TEXT_LENGTH)
    throw new RallyError(
      'STORE_LIMIT',
      `PostgreSQL: the ${what} must be at most ${MAX_TEXT_LENGTH} characters, got ${text.length}. Make it shorter.`,
    )
  if (text.isWellFormed() && !text.includes('\0') && !text.includes(ESCAPE)) return text
  return text.replaceAll(UNWRITABLE, (unit) => ESCAPE + unit.charCodeAt(0).toString(16).padStart(4, '0'))
}

export function fromText(written: unknown): string {
  const text = String(written)
  if (!text.includes(ESCAPE)) return text
  return text.replaceAll(ESCAPED, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
}

/** The name as it is written. `undefined` if it is too long, so that nothing can be stored under it. */
export function asName(name: string): string | undefined {
  if (name.length > MAX_NAME_BYTES) return undefined
  const written = toText('name', name)
  return Buffer.byteLength(written) <= MAX_NAME_BYTES ? written : undefined
}

export function toName(what: string, name: string): string {
  const written = asName(name)
  if (written !== undefined) return written
  throw new RallyError(
    'STORE_LIMIT',
    `PostgreSQL: the ${what} must be at most ${MAX_NAME_BYTES} bytes, got ${Buffer.byteLength(name)}. Make it shorter.`,
  )
}

/** Whole milliseconds, rounded up. */
export function toSpan(ms: number): number {
  return Math.min(Math.ceil(ms), MAX_SPAN_MS)
}
