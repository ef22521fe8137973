// Encodes text as an HTTP header value: as it is if a header can contain it, otherwise as Base64 between the markers of
// the protocol.

const OPENING = '=?base64?'
const CLOSING = '?='

/** Visible ASCII, space and tab. */
const PLAIN = /^[\t\x20-\x7e]*$/

/** Writes any text as a header value. */
export function encodeHeader(text: string): string {
  return isPlain(text) ? text : `${OPENING}${base64Of(new TextEncoder().encode(text))}${CLOSING}`
}

/** Decodes a header value. `undefined` if it is neither plain text nor canonical Base64. */
export function decodeHeader(value: string): string | undefined {
  if (!isEncoded(value)) return PLAIN.test(value) ? value : undefined
  const base64 = value.slice(OPENING.length, -CLOSING.length)
  if (!BASE64.test(base64)) return undefined
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
  return base64Of(bytes) === base64 ? new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes) : undefined
}

/** `atob` throws on anything else, and accepts spaces. */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

function base64Of(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
}

/** True if a header keeps the text unchanged. Space around it would be trimmed, and markers would be decoded. */
function isPlain(text: string): boolean {
  return text !== '' && PLAIN.test(text) && text.trim() === text && !isEncoded(text)
}

function isEncoded(value: string): boolean {
  return value.startsWith(OPENING) && value.endsWith(CLOSING) && value.length >= OPENING.length + CLOSING.length
}
