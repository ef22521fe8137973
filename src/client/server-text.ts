// How long the texts of an untrusted server may be that the client keeps or sends back. A count alone is no limit: one id
// can be as long as a whole response.
import { isObject, isTame } from '../protocol/json.ts'

/** The longest texts, in bytes. */
export const MAX_BYTES = {
  /** Of a request that the server sends. It is repeated in the response. */
  requestId: 1_024,
  /** Of a question. It is repeated with the answer. */
  key: 4_096,
  /** Of a tool, a prompt or a resource. */
  name: 1_024,
  uri: 8_192,
  /** Of the next page. It is repeated in the request for it. */
  cursor: 16_384,
  taskId: 2_048,
  /** What a server says about itself. */
  capabilities: 65_536,
  /** It may be a picture as a data: URI. */
  icon: 65_536,
} as const

/** The longest texts for people, in characters. A longer one is cut. */
export const MAX_LENGTH = {
  /** A name, a title or a version. */
  label: 1_024,
  /** A description, a message or the message of an error. */
  message: 8_192,
  /** How to use the server, for the model. */
  instructions: 65_536,
} as const

export function fits(text: string, maxBytes: number): boolean {
  // A UTF-16 unit takes one to three bytes, so most texts need not be counted.
  if (text.length * 3 <= maxBytes) return true
  return text.length <= maxBytes && encoder.encode(text).byteLength <= maxBytes
}

/** True for a string of 1 to `maxBytes` bytes. */
export function isText(value: unknown, maxBytes: number): value is string {
  return typeof value === 'string' && value !== '' && fits(value, maxBytes)
}

/** The beginning of a text that is kept. A copy: what `slice` returns would hold the whole text in memory. */
export function shortened(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : decoder.decode(encoder.encode(text.slice(0, maxLength)))
}

/** True if a JSON value takes at most `maxBytes`, and is not nested deeply. */
export function isSmall(value: unknown, maxBytes: number): boolean {
  return (
    (!isObject(value) && !Array.isArray(value)) || (isTame(value, MAX_DEPTH) && fits(JSON.stringify(value), maxBytes))
  )
}

const MAX_DEPTH = 100

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
