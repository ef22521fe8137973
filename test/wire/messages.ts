// Requests as a 2026-07-28 client writes them, and the headers that go with them over HTTP.
import type { Caller } from '../../src/flow/caller.ts'
import type {
  ClientCapabilities,
  ElicitResult,
  InputRequiredResult,
  JSONRPCErrorObject,
  JSONRPCRequest,
} from '../../src/protocol/messages.ts'
import { META_CAPABILITIES, META_CLIENT_INFO, META_VERSION } from '../../src/protocol/revisions/2026-07-28.ts'

export const REVISION = '2026-07-28'

export const EVERYTHING: ClientCapabilities = {
  elicitation: { form: {}, url: {} },
  sampling: { tools: {}, context: {} },
  roots: {},
}

/** What a client says on every request. */
export const META: Readonly<Record<string, unknown>> = {
  [META_VERSION]: REVISION,
  [META_CAPABILITIES]: EVERYTHING,
  [META_CLIENT_INFO]: { name: 'wire-tests', version: '1.0.0' },
}

export interface Round {
  inputResponses?: unknown
  requestState?: unknown
}

export interface WireRequest extends JSONRPCRequest {
  params: Record<string, unknown>
}

let lastId = 0

export function request(method: string, params: object = {}, meta: object = {}): WireRequest {
  lastId += 1
  return { jsonrpc: '2.0', id: lastId, method, params: { ...params, _meta: { ...META, ...meta } } }
}

export function call(name: string, args: object = {}, round: Round = {}, meta: object = {}): WireRequest {
  return request('tools/call', { name, arguments: args, ...round }, meta)
}

export function accept(content: ElicitResult['content'] = {}): ElicitResult {
  return { action: 'accept', content }
}

/** What HTTP says of a message a second time. What a header cannot hold is encoded; what is no string is left out. */
export function headersOf(message: unknown): Record<string, string> {
  const method = at(message, 'method')
  const params = at(message, 'params')
  const version = at(at(params, '_meta'), META_VERSION)
  const name = at(params, 'name')
  return {
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    'MCP-Protocol-Version': typeof version === 'string' ? encoded(version) : REVISION,
    ...(typeof method === 'string' && { 'Mcp-Method': encoded(method) }),
    ...(typeof name === 'string' && { 'Mcp-Name': encoded(name) }),
  }
}

export function encoded(value: string): string {
  const plain = /^[\x21-\x7e]+$/.test(value) && !value.startsWith('=?')
  return plain ? value : `=?base64?${Buffer.from(value, 'utf8').toString('base64')}?=`
}

export function resultOf(response: object | undefined): Record<string, unknown> {
  if (response === undefined || !('result' in response)) {
    throw new Error(`This should be a result: ${JSON.stringify(response)}`)
  }
  return response.result as Record<string, unknown>
}

export function errorOf(response: object | undefined): JSONRPCErrorObject {
  if (response === undefined || !('error' in response)) {
    throw new Error(`This should be an error: ${JSON.stringify(response)}`)
  }
  return response.error as JSONRPCErrorObject
}

/** The text of a result that holds one block of it. */
export function textOf(response: object | undefined): string {
  const { content } = resultOf(response) as { content?: { text: string }[] }
  if (content?.length !== 1) throw new Error(`This should hold one text: ${JSON.stringify(response)}`)
  return content[0]?.text ?? ''
}

/** A round that needs input, with the message of each of its questions. */
export function askedIn(response: object | undefined): { state: string; messages: Record<string, unknown> } {
  const result = resultOf(response) as unknown as InputRequiredResult
  if (result.resultType !== 'input_required') throw new Error(`This should ask: ${JSON.stringify(response)}`)
  const questions = Object.entries(result.inputRequests ?? {})
  return {
    state: result.requestState ?? '',
    messages: Object.fromEntries(questions.map(([key, { params }]) => [key, at(params, 'message')])),
  }
}

function at(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
}

/** A caller of whom nothing but the principal matters. */
export function callerNamed(principal: string | null | undefined): Caller | undefined {
  return principal === undefined || principal === null ? undefined : { principal, scopes: [], claims: {} }
}
