// What the HTTP hosts share: options, limits, and from a body's text to a reply.
import { HEADER_MISMATCH, PARSE_ERROR, ProtocolError } from '../protocol/errors.ts'
import type { App } from '../server/app.ts'
import type { Context } from '../server/dispatch.ts'
import type { Reply } from '../server/reply.ts'
import { errorReply } from '../server/reply.ts'
import { idOf } from '../server/request.ts'
import type { AdmissionOptions } from './admission.ts'
import type { RequestHeaders } from './agreement.ts'
import { checkAgreement } from './agreement.ts'
import type { Authenticate } from './authenticate.ts'

export interface HttpOptions extends AdmissionOptions {
  /** Says who is calling. Default: nobody is known, and states are bound to that. */
  authenticate?: Authenticate
  /** Largest body, in bytes. Default 4 194 304. */
  maxBodyBytes?: number
}

export const DEFAULT_MAX_BODY_BYTES = 4 * 1024 * 1024

/** Bytes of notifications that may wait for a slow reader; further ones are dropped. */
export const MAX_WAITING_BYTES = 1024 * 1024

export const SSE_HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache',
  'X-Accel-Buffering': 'no',
} as const

export function sseEvent(text: string): string {
  return `event: message\ndata: ${text}\n\n`
}

/** Answers a body; `undefined` is a 202 with nothing in it, or nobody waiting for an answer any more. */
export function answerBody(
  app: App,
  body: string,
  headers: RequestHeaders,
  context: Context,
): Reply | Promise<Reply | undefined> {
  let message: unknown
  try {
    message = JSON.parse(body)
  } catch {
    return errorReply(undefined, new ProtocolError(PARSE_ERROR, 'Parse error: the body is not JSON'))
  }
  try {
    checkAgreement(message, headers)
  } catch (error) {
    if (error instanceof ProtocolError) return errorReply(idOf(message), error)
    return errorReply(idOf(message), new ProtocolError(HEADER_MISMATCH, 'Header mismatch'))
  }
  return app.dispatch(message, context)
}

/** The body of a refusal that comes before any message was read. */
export function refusalText(message: string): string {
  return errorReply(undefined, new ProtocolError(-32600, message)).text
}

export function isJson(contentType: string | undefined): boolean {
  return contentType !== undefined && /^application\/json\s*(;|$)/i.test(contentType)
}

/** A client must take both kinds of answer; one that says it cannot read events gets none. */
export function takesEvents(accept: string | undefined): boolean {
  return accept === undefined || accept.includes('text/event-stream') || accept.includes('*/*')
}
