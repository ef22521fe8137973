// Encodes text as an HTTP header value: as it is if a header can contain it, otherwise as Base64 between the markers of
// the protocol.

const OPENING = '=?base64?'
const CLOSING = '?='

/** Visible ASCII, space and tab. */
const PLAIN = /^[\t\x20-\x7e]*$/

/** Writes any text as a header value. */
export function encodeHeader(text: string): string {
  return isPlain(text) ? text : `${OPENING}${Buffer.from(text, 'utf8').toString('base64')}${CLOSING}`
}

/** Decodes a header value. `undefined` if it is neither plain text nor canonical Base64. */
export function decodeHeader(value: string): string | undefined {
  if (!isEncoded(value)) return PLAIN.test(value) ? value : undefined
  const base64 = value.slice(OPENING.length, -CLOSING.length)
  const bytes = Buffer.from(base64, 'base64')
  return bytes.toString('base64') === base64 ? bytes.toString('utf8') : undefined
}

/** True if a header keeps the text unchanged. Space around it would be trimmed, and markers would be decoded. */
function isPlain(text: string): boolean {
  return text !== '' && PLAIN.test(text) && text.trim() === text && !isEncoded(text)
}

function isEncoded(value: string): boolean {
  return value.startsWith(OPENING) && value.endsWith(CLOSING) && value.length >= OPENING.length + CLOSING.length
}
