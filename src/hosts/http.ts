// What the HTTP hosts share: options, limits, and from a body's text to a reply.
import { isObject } from '../protocol/json.ts'
import { Cancel } from '../protocol/cancel.ts'
import { HEADER_MISMATCH, INVALID_REQUEST, PARSE_ERROR, ProtocolError } from '../protocol/errors.ts'
import { decodeHeader } from '../protocol/headers.ts'
import type { Logger } from '../protocol/logger.ts'
import type { RequestId } from '../protocol/messages.ts'
import type { App } from '../server/app.ts'
import type { RequestContext } from '../server/context.ts'
import type { Legacy, LegacyRequest } from '../server/legacy.ts'
import { isOlder } from '../server/legacy.ts'
import type { Reply } from '../server/reply.ts'
import { errorReply, internalError } from '../server/reply.ts'
import type { Resolved } from '../server/resolve.ts'
import type { AdmissionOptions } from './admission.ts'
import type { Headers } from './agreement.ts'
import { checkAgreement } from './agreement.ts'
import type { Authenticate, AuthenticatedCaller } from '../auth/authenticate.ts'
import { challengeOf, AuthenticationError } from '../auth/authenticate.ts'

export interface HttpOptions extends AdmissionOptions {
  /** Says who is calling. Default: nobody is known, and states are bound to that. */
  authenticate?: Authenticate
  /** Largest body, in bytes. Default 4 194 304. */
  maxBodyBytes?: number
  /** How often a quiet event stream gets a comment, in milliseconds. Default 15 000. */
  keepAliveMs?: number
}

export const DEFAULT_KEEP_ALIVE_MS = 15_000

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
  header: Headers,
  context: RequestContext,
  caller: AuthenticatedCaller | undefined,
): Reply | Promise<Reply | undefined> {
  let message: unknown
  try {
    message = JSON.parse(body)
  } catch {
    return errorReply(undefined, new ProtocolError(PARSE_ERROR, 'Parse error: the body is not JSON'))
  }
  const request = app.resolve(message)
  if (app.legacy !== undefined && isOlder(request, header)) {
    return answerOlder(app, app.legacy, request, header, context, caller)
  }
  try {
    checkAgreement(request, header)
  } catch (error) {
    if (error instanceof ProtocolError) return errorReply(request.id, error)
    return errorReply(request.id, new ProtocolError(HEADER_MISMATCH, 'Header mismatch'))
  }
  return refuseUnscoped(app, request, caller, request.id) ?? app.serve(request, context)
}

/** Of an older revision: a message, or a batch of them, each of which must be allowed. */
async function answerOlder(
  app: App,
  legacy: Legacy,
  request: Resolved,
  header: Headers,
  { principal, notify, cancel: peer = new Cancel() }: RequestContext,
  caller: AuthenticatedCaller | undefined,
): Promise<Reply | undefined> {
  if (contradicts(request, header)) {
    const mismatch = new ProtocolError(HEADER_MISMATCH, 'Header mismatch: the headers say something else than the body')
    return errorReply(request.id, mismatch)
  }
  const refuse: LegacyRequest['refuse'] = (call, id) => refuseUnscoped(app, call, caller, id)
  const batch = Array.isArray(request.message) ? request.message.map((each) => app.resolve(each)) : undefined
  for (const each of batch ?? [request]) {
    const refusal = refuse(each, each.id)
    if (refusal !== undefined) return refusal
  }
  try {
    const takesStream = notify !== undefined
    return await legacy.post(batch ?? request, { header, principal, takesEvents: takesStream, peer, refuse })
  } catch (error) {
    app.logger.error('Serving a 2025-era request failed.', { error })
    return errorReply(request.id, internalError(), 500)
  }
}

/** Older revisions have no headers for this. Where they come all the same, somebody on the way may have acted on them. */
function contradicts({ message, method: stated, params = {} }: Resolved, header: Headers): boolean {
  const method = header('mcp-method')
  const name = header('mcp-name')
  if (method === undefined && name === undefined) return false
  if (!isObject(message)) return true
  return (
    (method !== undefined && method !== stated) ||
    (name !== undefined && decodeHeader(name) !== (params['name'] ?? params['uri']))
  )
}

/** Answers a GET that names a session of an older revision: with a stream of events, or with a refusal. */
export async function answerGet(
  app: App,
  legacy: Legacy,
  header: Headers,
  peer: Cancel,
  caller: AuthenticatedCaller | undefined,
): Promise<Reply> {
  try {
    const takesStream = takesEvents(header('accept'))
    return await legacy.get({ header, principal: caller?.principal, takesEvents: takesStream, peer })
  } catch (error) {
    app.logger.error('Opening a stream failed.', { error })
    return errorReply(undefined, internalError(), 500)
  }
}

/** The methods that a request may have: one that names a session may read its events. */
export function allowedMethods(app: App, header: Headers): readonly string[] {
  return app.legacy !== undefined && header('mcp-session-id') !== undefined ? WITH_SESSION : WITHOUT_SESSION
}

const WITHOUT_SESSION = ['POST']
const WITH_SESSION = ['GET', 'POST']

/** The refusal of a caller who was not granted all that the message needs. */
function refuseUnscoped(
  app: App,
  { scopes: required }: Resolved,
  caller: AuthenticatedCaller | undefined,
  id: RequestId | undefined,
): Reply | undefined {
  if (required === undefined) return undefined
  try {
    const challenge = challengeOf(required, caller)
    if (challenge === undefined) return undefined
    const error = new ProtocolError(INVALID_REQUEST, 'The scopes that were granted do not suffice for this call.')
    return { ...errorReply(id, error, 403), headers: { 'WWW-Authenticate': challenge } }
  } catch (error) {
    const { message: why, status } = refusalOf(error, app.logger)
    return errorReply(id, new ProtocolError(INVALID_REQUEST, why), status)
  }
}

/** What the failure of an authenticator is told as. The log has the rest. */
export function refusalOf(error: unknown, logger: Logger): AuthenticationError {
  if (!(error instanceof AuthenticationError)) {
    logger.error('authenticate failed.', { error })
    return new AuthenticationError(500, 'Authentication failed.')
  }
  if (error.cause !== undefined) logger.error(error.message, { cause: error.cause })
  return error
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
