// Reads the untrusted JSON-RPC messages that a server sends.
import type { JSONRPCErrorObject, RequestId } from '../../protocol/messages.ts'
import { badResponse } from '../errors.ts'
import { MAX_LENGTH, shortened } from '../server-text.ts'
import { isObject } from '../../protocol/json.ts'
import type { ResponseCallbacks, RpcResponse } from './transport.ts'

/** Throws `BAD_RESPONSE` if the text is not one JSON-RPC 2.0 message. */
export function parseMessage(text: string): Record<string, unknown> {
  const message = parseJson(text)
  if (!isMessage(message)) throw badResponse('it is not a JSON-RPC 2.0 message')
  return message
}

/** The same for text that may be a batch, as in revision 2025-03-26. */
export function parseMessages(text: string): Record<string, unknown>[] {
  if (!text.trimStart().startsWith('[')) return [parseMessage(text)]
  const batch = parseJson(text)
  if (!Array.isArray(batch)) throw badResponse('it is not a batch of JSON-RPC 2.0 messages')
  if (batch.length > MAX_BATCH)
    throw badResponse(`its batch must have at most ${MAX_BATCH} messages, got ${batch.length}`)
  if (!batch.every(isMessage)) throw badResponse('it is not a batch of JSON-RPC 2.0 messages')
  return batch
}

/** Each may be a request that the client has to answer. */
const MAX_BATCH = 1_000

export function isResponse(message: Record<string, unknown>): boolean {
  return !('method' in message)
}

/** Reads the response to the request with this id. An error without an id answers a request that the server could not parse. */
export function readResponse(
  message: Record<string, unknown>,
  id: RequestId,
  bytes: number,
  normalize: ResponseCallbacks['normalize'] = unchanged,
): RpcResponse {
  const { id: got, result, error } = normalize(message)
  const isErrorWithoutId = (got === undefined || got === null) && error !== undefined
  if (got !== id && !isErrorWithoutId) throw badResponse('its id is not the id of the request')
  if (error !== undefined) return { result: undefined, error: readError(error), bytes }
  if (!isObject(result)) throw badResponse('it has neither a result nor an error')
  return { result, error: undefined, bytes }
}

/** Throws `BAD_RESPONSE` if it is not a JSON-RPC error object. */
export function readError(error: unknown): JSONRPCErrorObject {
  if (!isObject(error)) throw badResponse('its error is not an object')
  const { code, message, data } = error
  if (!Number.isSafeInteger(code) || typeof message !== 'string') throw badResponse('its error has no code and message')
  return { code: code as number, message: shortened(message, MAX_LENGTH.message), data }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw badResponse('it is not JSON', { cause })
  }
}

function isMessage(message: unknown): message is Record<string, unknown> {
  return isObject(message) && message['jsonrpc'] === '2.0'
}

function unchanged(message: Record<string, unknown>): Record<string, unknown> {
  return message
}
