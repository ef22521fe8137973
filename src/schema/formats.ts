// The four formats of text in a form. The text is untrusted, so every check takes linear time.
import type { StringFormat } from '../protocol/messages.ts'

export function hasFormat(format: StringFormat, text: string): boolean {
  return CHECKS[format](text)
}

const CHECKS: Record<StringFormat, (text: string) => boolean> = {
  email: isEmail,
  uri: isUri,
  date: isDate,
  'date-time': isDateTime,
}

const LONGEST_EMAIL = 320
const EMAIL_LOCAL = /^[^\s@"(),:;<>[\]\\\p{Cc}]+$/u
const DOMAIN_LABEL = /^[\p{L}\p{N}\p{M}-]{1,63}$/u

/** Accepts letters of every language, unlike the RFC. Does not accept its quoted and bracketed forms. */
function isEmail(text: string): boolean {
  const at = text.lastIndexOf('@')
  if (at < 1 || text.length > LONGEST_EMAIL) return false
  const labels = text.slice(at + 1).split('.')
  return (
    EMAIL_LOCAL.test(text.slice(0, at)) &&
    labels.every((label) => DOMAIN_LABEL.test(label) && !label.startsWith('-') && !label.endsWith('-'))
  )
}

const SCHEME = /^[A-Za-z][A-Za-z0-9+.-]*:/
const NEVER_IN_URI = /[\s<>"{}|\\^`\p{Cc}]/u

/** An absolute URI as a browser accepts it, with letters of every language. */
function isUri(text: string): boolean {
  return SCHEME.test(text) && !NEVER_IN_URI.test(text) && URL.canParse(text)
}

const DATE = /^(\d{4})-(\d{2})-(\d{2})$/

function isDate(text: string): boolean {
  const [, year, month, day] = DATE.exec(text) ?? []
  const date = new Date(`${year}-${month}-${day}T00:00:00Z`)
  // A day past the end of its month is parsed as a day of the next month.
  return date.getUTCDate() === Number(day)
}

const TIME = /^(\d{2}):(\d{2}):(\d{2})(?:\.\d{1,20})?(?:[Zz]|[+-](\d{2}):(\d{2}))$/

/** RFC 3339. */
function isDateTime(text: string): boolean {
  if (!/^[Tt]$/.test(text.charAt(10)) || !isDate(text.slice(0, 10))) return false
  const [whole, hour, minute, second, offsetHour = '0', offsetMinute = '0'] = TIME.exec(text.slice(11)) ?? []
  if (whole === undefined) return false
  const isLeapSecond = Number(second) === 60
  return (
    Number(hour) < 24 &&
    Number(minute) < 60 &&
    (Number(second) < 60 || isLeapSecond) &&
    Number(offsetHour) < 24 &&
    Number(offsetMinute) < 60
  )
}
