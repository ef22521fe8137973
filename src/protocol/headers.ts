// The values of HTTP headers that repeat something of the message: plain where a header can carry them, else Base64 in the
// protocol's own brackets.

const OPENING = '=?base64?'
const CLOSING = '?='

/** Visible ASCII, space and tab. */
const PLAIN = /^[\t\x20-\x7e]*$/

/** Writes any text as a header value. */
export function encodeHeader(text: string): string {
  return isCarried(text) ? text : `${OPENING}${Buffer.from(text, 'utf8').toString('base64')}${CLOSING}`
}

/** Reads a header value; `undefined` where it is neither plain nor Base64 that was written in its one canonical way. */
export function decodeHeader(value: string): string | undefined {
  if (!isBracketed(value)) return PLAIN.test(value) ? value : undefined
  const base64 = value.slice(OPENING.length, -CLOSING.length)
  const bytes = Buffer.from(base64, 'base64')
  return bytes.toString('base64') === base64 ? bytes.toString('utf8') : undefined
}

/** Whether a header brings the text over as it is: space around it would be lost, and brackets would be read. */
function isCarried(text: string): boolean {
  return text !== '' && PLAIN.test(text) && text.trim() === text && !isBracketed(text)
}

function isBracketed(value: string): boolean {
  return value.startsWith(OPENING) && value.endsWith(CLOSING) && value.length >= OPENING.length + CLOSING.length
}
