// What the PostgreSQL store takes: names short enough for an index, any text, and spans of time.
//
// A column holds no NUL and no half of a surrogate pair, which JavaScript's texts may have: they are written as an escape
// character and four digits, and so is that character itself. Other texts, which is all that is JSON, are written as they are.
import { RallyError } from '../../protocol/errors.ts'

/** Of what is looked up by: an id, an owner, a key, a box. */
const MOST_NAME_BYTES = 1024
const MOST_TEXT_LENGTH = 64 * 1024 * 1024
const LONGEST_MS = 1e15

/** For private use: hardly anybody's text has it. */
const ESCAPE = '\ue000'
const ESCAPED = /\ue000([0-9a-f]{4})/g
// With the u flag, a surrogate is matched only where it is not one of a pair.
const UNWRITABLE = /[\0\ue000\ud800-\udfff]/gu

export function toText(what: string, text: string): string {
  if (text.length > MOST_TEXT_LENGTH)
    throw new RallyError(
      'STORE_LIMIT',
      `The ${what} of ${text.length} characters is too long for the store, which takes ${MOST_TEXT_LENGTH}: make it shorter.`,
    )
  if (text.isWellFormed() && !text.includes('\0') && !text.includes(ESCAPE)) return text
  return text.replaceAll(UNWRITABLE, (unit) => ESCAPE + unit.charCodeAt(0).toString(16).padStart(4, '0'))
}

export function fromText(written: unknown): string {
  const text = String(written)
  if (!text.includes(ESCAPE)) return text
  return text.replaceAll(ESCAPED, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
}

/** Nothing where nothing of so long a name can have been kept. */
export function asName(name: string): string | undefined {
  if (name.length > MOST_NAME_BYTES) return undefined
  const written = toText('name', name)
  return Buffer.byteLength(written) <= MOST_NAME_BYTES ? written : undefined
}

export function toName(what: string, name: string): string {
  const written = asName(name)
  if (written !== undefined) return written
  throw new RallyError(
    'STORE_LIMIT',
    `The ${what} is too long for the store, which looks things up by at most ${MOST_NAME_BYTES} bytes: make it shorter.`,
  )
}

/** Whole milliseconds, never fewer than asked for. */
export function toSpan(ms: number): number {
  return Math.min(Math.ceil(ms), LONGEST_MS)
}
