// Reads the untrusted JSON-RPC envelope of what a server sends.
import type { JSONRPCErrorObject, RequestId } from '../../protocol/messages.ts'
import { badResponse } from '../errors.ts'
import { isObject } from '../../protocol/json.ts'
import type { RpcResponse, ResponseCallbacks } from './transport.ts'

/** A JSON text that should be a message; throws where it is none. */
export function parseMessage(text: string): Record<string, unknown> {
  let message: unknown
  try {
    message = JSON.parse(text)
  } catch (cause) {
    throw badResponse('it is not JSON', { cause })
  }
  if (!isObject(message) || message['jsonrpc'] !== '2.0') throw badResponse('it is no JSON-RPC 2.0 message')
  return message
}

export function isResponse(message: Record<string, unknown>): boolean {
  return !('method' in message)
}

/** Reads a response to the request of this id. An error without an id is one to a request that the server could not read. */
export function readResponse(
  message: Record<string, unknown>,
  id: RequestId,
  bytes: number,
  read: ResponseCallbacks['normalize'] = asItIs,
): RpcResponse {
  const { id: got, result, error } = read(message)
  const isUnnamed = (got === undefined || got === null) && error !== undefined
  if (got !== id && !isUnnamed) throw badResponse('it is to a request that was not made')
  if (error !== undefined) return { result: undefined, error: readError(error), bytes }
  if (!isObject(result)) throw badResponse('it has neither a result nor an error')
  return { result, error: undefined, bytes }
}

function asItIs(message: Record<string, unknown>): Record<string, unknown> {
  return message
}

/** Throws where it is none. */
export function readError(error: unknown): JSONRPCErrorObject {
  if (!isObject(error)) throw badResponse('its error is no object')
  const { code, message, data } = error
  if (!Number.isSafeInteger(code) || typeof message !== 'string') throw badResponse('its error has no code and message')
  return { code: code as number, message, data }
}
