// Responses as text, joined from pieces that are JSON already: text is what a host writes.
import {
  HEADER_MISMATCH,
  INTERNAL_ERROR,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  MISSING_CAPABILITY,
  PARSE_ERROR,
  ProtocolError,
  UNSUPPORTED_VERSION,
} from '../protocol/errors.ts'
import type { RequestId } from '../protocol/messages.ts'
import { Unavailable } from '../protocol/unavailable.ts'

export interface Reply {
  /** One JSON-RPC response. */
  readonly text: string
  /** The HTTP status. Other hosts ignore it. */
  readonly status: number
  /** HTTP headers beside the usual ones. */
  readonly headers?: Readonly<Record<string, string>>
  /** Sends a stream of events instead of the text. Set only together with `headers`. */
  readonly events?: (sink: EventSink) => void
}

/** One open response that takes events as text. */
export interface EventSink {
  send(event: string): void
  /** True when the reader is too far behind to receive droppable events. */
  isBehind(): boolean
  end(): void
}

export function resultReply(id: RequestId, resultText: string): Reply {
  return { text: `{"jsonrpc":"2.0","id":${idText(id)},"result":${resultText}}`, status: 200 }
}

/** The status when a request is to be sent again later. */
export const UNAVAILABLE = 503

/** An error in the request itself has a status of its own, and so has one to try again later. Another error while serving it is a 200. */
export function errorReply(id: RequestId | undefined, error: ProtocolError, status = statusOf(error.rpcCode)): Reply {
  const idPart = id === undefined ? '' : `"id":${idText(id)},`
  const text = `{"jsonrpc":"2.0",${idPart}"error":${errorText(error)}}`
  if (error instanceof Unavailable) return { text, status: UNAVAILABLE, headers: { 'Retry-After': error.retryAfter } }
  return status === UNAVAILABLE ? { text, status, headers: { 'Retry-After': '1' } } : { text, status }
}

export function internalError(): ProtocolError {
  return new ProtocolError(INTERNAL_ERROR, 'Internal error')
}

/** The data of an author's error may not be JSON. Then the error is sent without it. */
export function errorText({ rpcCode: code, message, data }: ProtocolError): string {
  try {
    return JSON.stringify({ code, message, data })
  } catch {
    return JSON.stringify({ code, message })
  }
}

function statusOf(code: number): number {
  switch (code) {
    case PARSE_ERROR:
    case INVALID_REQUEST:
    case HEADER_MISMATCH:
    case MISSING_CAPABILITY:
    case UNSUPPORTED_VERSION:
      return 400
    case METHOD_NOT_FOUND:
      return 404
    default:
      return 200
  }
}

function idText(id: RequestId): string {
  return typeof id === 'number' ? String(id) : JSON.stringify(id)
}
