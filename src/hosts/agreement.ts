// Whether the headers of a request say what its body says: proxies route by the one, the server acts on the other.
import { HEADER_MISMATCH, ProtocolError } from '../protocol/errors.ts'
import { META_VERSION } from '../protocol/messages.ts'

export interface RequestHeaders {
  version: string | undefined
  method: string | undefined
  name: string | undefined
}

/** Which property of the params the Mcp-Name header repeats. */
const NAMED: Readonly<Record<string, 'name' | 'uri'>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
}

/** Throws -32020. Says nothing of what is wrong in the body itself: dispatch does. */
export function checkAgreement(message: unknown, headers: RequestHeaders): void {
  if (!isRecord(message) || typeof message['method'] !== 'string') return
  const { id, method, params } = message
  // Notifications have no header rules, and who still says `initialize` is told the revisions instead.
  if (id === undefined || method === 'initialize') return
  if (headers.version === undefined) throw mismatch('the MCP-Protocol-Version header is missing')
  if (headers.method === undefined) throw mismatch('the Mcp-Method header is missing')
  if (headers.method !== method) throw differs('Mcp-Method', headers.method, method)
  const meta = isRecord(params) ? params['_meta'] : undefined
  const version = isRecord(meta) ? meta[META_VERSION] : undefined
  if (typeof version === 'string' && headers.version !== version) {
    throw differs('MCP-Protocol-Version', headers.version, version)
  }
  if (Object.hasOwn(NAMED, method)) checkName(headers.name, isRecord(params) ? params[NAMED[method] ?? ''] : undefined)
}

function checkName(header: string | undefined, name: unknown): void {
  if (header === undefined) throw mismatch('the Mcp-Name header is missing')
  const decoded = decodeHeader(header)
  if (decoded === undefined) throw mismatch('the Mcp-Name header is not valid')
  if (typeof name === 'string' && decoded !== name) throw differs('Mcp-Name', decoded, name)
}

const SENTINEL = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/

/** Reads a header value that may be Base64 in the protocol's own brackets; `undefined` when it is neither. */
export function decodeHeader(value: string): string | undefined {
  if (value.startsWith('=?base64?') && value.endsWith('?=')) {
    const [, base64] = SENTINEL.exec(value) ?? []
    if (base64 === undefined) return undefined
    const bytes = Buffer.from(base64, 'base64')
    return bytes.toString('base64') === base64 ? bytes.toString('utf8') : undefined
  }
  // Visible ASCII, space and tab: anything else had to be encoded.
  return /^[\t\x20-\x7e]*$/.test(value) ? value : undefined
}

function differs(header: string, got: string, body: string): ProtocolError {
  return mismatch(`${header} header value '${got.slice(0, 128)}' does not match body value '${body.slice(0, 128)}'`)
}

function mismatch(why: string): ProtocolError {
  return new ProtocolError(HEADER_MISMATCH, `Header mismatch: ${why}`)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
