// The messages in what an older server sends: one, or in 2025-03-26 several at once.
import { parseMessage } from '../transports/message.ts'
import { badResponse } from '../errors.ts'
import { isObject } from '../../protocol/json.ts'

/** Throws where there is anything else. */
export function messagesIn(text: string): Record<string, unknown>[] {
  if (!text.trimStart().startsWith('[')) return [parseMessage(text)]
  let batch: unknown
  try {
    batch = JSON.parse(text)
  } catch (cause) {
    throw badResponse('it is not JSON', { cause })
  }
  if (!Array.isArray(batch) || !batch.every(isMessage)) throw badResponse('it is no batch of JSON-RPC 2.0 messages')
  return batch
}

function isMessage(message: unknown): message is Record<string, unknown> {
  return isObject(message) && message['jsonrpc'] === '2.0'
}
