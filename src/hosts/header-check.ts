// The headers of a request must agree with its body: proxies route by the headers, the server acts on the body.
import { HEADER_MISMATCH, ProtocolError } from '../protocol/errors.ts'
import { decodeHeader } from '../protocol/headers.ts'
import { isObject } from '../protocol/json.ts'
import { META_VERSION, NAME_PARAMS } from '../protocol/revisions/2026-07-28.ts'
import type { ParamHeader } from '../schema/param-headers.ts'
import { valueAt } from '../schema/param-headers.ts'
import type { Resolved } from '../server/resolve.ts'
import { expectsResponse } from '../server/message-kind.ts'

/** Reads one header by its name in lower case. */
export type ReadHeader = (name: string) => string | undefined

/** Throws -32020. Ignores what is wrong with the body itself: dispatch answers that. */
export function checkHeaders(request: Resolved, header: ReadHeader): void {
  const { method, params, meta, target } = request
  // Notifications have no header rules. A client that sends `initialize` is told the supported revisions instead.
  if (!expectsResponse(request) || method === '' || method === 'initialize') return
  const version = header('mcp-protocol-version')
  if (version === undefined) throw mismatch('the MCP-Protocol-Version header is missing')
  const named = header('mcp-method')
  if (named === undefined) throw mismatch('the Mcp-Method header is missing')
  if (named !== method) throw differs('Mcp-Method', named, method)
  if (params === undefined) return
  const stated = meta?.[META_VERSION]
  if (typeof stated === 'string' && version !== stated) throw differs('MCP-Protocol-Version', version, stated)
  const nameParam = Object.hasOwn(NAME_PARAMS, method) ? NAME_PARAMS[method] : undefined
  // With other methods the header has no meaning here. An extension may give it one, and Mcp-Method says which method it is.
  if (nameParam === undefined) return
  checkName(header('mcp-name'), params[nameParam])
  for (const param of target?.headers ?? []) checkParam(header(param.header), param, params['arguments'])
}

/**
 * Older revisions do not define these headers, so none of them is required. If they are sent all the same, a proxy may have
 * acted on them, and they must agree with the body.
 */
export function checkOlderHeaders({ message, method, params = {} }: Resolved, header: ReadHeader): void {
  const statedMethod = header('mcp-method')
  const statedName = header('mcp-name')
  // They speak of one message. Which of a batch, nobody can tell.
  if (!isObject(message) && (statedMethod ?? statedName) !== undefined) throw mismatch('a batch has no such headers')
  if (statedMethod !== undefined && statedMethod !== method) throw differs('Mcp-Method', statedMethod, method)
  if (statedName !== undefined) {
    // Mcp-Method may be absent, so a proxy cannot know that the header has no meaning.
    const nameParam = Object.hasOwn(OLDER_NAME_PARAMS, method) ? OLDER_NAME_PARAMS[method] : undefined
    const name = nameParam === undefined ? undefined : params[nameParam]
    if (typeof name !== 'string') throw mismatch('the Mcp-Name header is set, but the body names nothing')
    checkName(statedName, name)
  }
}

/** The same for the arguments of one message, as its caller sees it: once the session is known, and for each of a batch. */
export function checkOlderParams({ params = {}, target }: Resolved, header: ReadHeader): void {
  for (const param of target?.headers ?? []) {
    const given = header(param.header)
    if (given !== undefined) checkParam(given, param, params['arguments'])
  }
}

/** The property of `params` that names what a request is about, by method: the same one that serving it reads. */
const OLDER_NAME_PARAMS: Readonly<Record<string, string>> = {
  ...NAME_PARAMS,
  'resources/subscribe': 'uri',
  'resources/unsubscribe': 'uri',
  'tasks/result': 'taskId',
}

function checkName(header: string | undefined, name: unknown): void {
  if (header === undefined) throw mismatch('the Mcp-Name header is missing')
  const decoded = decodeHeader(header)
  if (decoded === undefined) throw mismatch('the Mcp-Name header is not valid')
  if (typeof name === 'string' && decoded !== name) throw differs('Mcp-Name', decoded, name)
}

/** An argument that is absent or null must have no header. Any other must have one. */
function checkParam(given: string | undefined, { header, path }: ParamHeader, args: unknown): void {
  const value = valueAt(args, path)
  if (value === undefined || value === null) {
    if (given !== undefined) throw mismatch(`the ${header} header is set, but the body has no such argument`)
    return
  }
  if (given === undefined) throw mismatch(`the ${header} header is missing`)
  const decoded = decodeHeader(given)
  if (decoded === undefined) throw mismatch(`the ${header} header is not valid`)
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  const same = typeof value === 'number' ? isNumber(decoded, value) : decoded === text
  if (!same) throw differs(header, decoded, text)
}

function isNumber(text: string, value: number): boolean {
  return /^-?\d+(\.\d+)?$/.test(text) && Number(text) === value
}

function differs(header: string, got: string, body: string): ProtocolError {
  return mismatch(`${header} header value '${got.slice(0, 128)}' does not match body value '${body.slice(0, 128)}'`)
}

function mismatch(why: string): ProtocolError {
  return new ProtocolError(HEADER_MISMATCH, `Header mismatch: ${why}`)
}
