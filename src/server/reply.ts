// Responses as text. They are put together from pieces that are already JSON, because that is what a host writes.
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

export interface Reply {
  /** One JSON-RPC response. */
  readonly text: string
  /** The HTTP status for a host that has one. */
  readonly status: number
  /** Headers beside the usual ones, for a host that has any. */
  readonly headers?: Readonly<Record<string, string>>
  /** In place of the text: a stream of events, for a host that can send one. There are headers beside it. */
  readonly events?: (sink: EventSink) => void
}

/** One open response that takes events, each as text. */
export interface EventSink {
  send(event: string): void
  /** Whether so much waits for the reader already that it had better not be sent what may be left out. */
  isBehind(): boolean
  end(): void
}

export function resultReply(id: RequestId, resultText: string): Reply {
  return { text: `{"jsonrpc":"2.0","id":${idText(id)},"result":${resultText}}`, status: 200 }
}

/** An error that was found in the request itself has a status of its own; one that came of serving it is a 200. */
export function errorReply(id: RequestId | undefined, error: ProtocolError, status = statusOf(error.rpcCode)): Reply {
  const idPart = id === undefined ? '' : `"id":${idText(id)},`
  return { text: `{"jsonrpc":"2.0",${idPart}"error":${errorText(error)}}`, status }
}

export function internalError(): ProtocolError {
  return new ProtocolError(INTERNAL_ERROR, 'Internal error')
}

/** An author's error may hold data that is no JSON; the rest of it is told all the same. */
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
