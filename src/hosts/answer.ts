// From the text of a body to the reply: whether the headers agree with it, whether the caller has the scopes, and who serves it.
import type { IdentifiedCaller } from '../auth/authenticate.ts'
import { authenticationErrorOf, challengeOf } from '../auth/authenticate.ts'
import { Cancel } from '../protocol/cancel.ts'
import { HEADER_MISMATCH, INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, ProtocolError } from '../protocol/errors.ts'
import type { RequestId } from '../protocol/messages.ts'
import type { App } from '../server/app.ts'
import type { RequestContext } from '../server/context.ts'
import type { Legacy } from '../server/legacy.ts'
import { isOlder } from '../server/legacy.ts'
import { isWaiting } from '../server/message-kind.ts'
import type { Reply } from '../server/reply.ts'
import { errorReply, internalError } from '../server/reply.ts'
import type { Resolved } from '../server/resolve.ts'
import type { ReadHeader } from './header-check.ts'
import { checkHeaders, checkOlderHeaders, checkOlderParams } from './header-check.ts'
import type { Served } from './load.ts'
import { load } from './load.ts'

/** What a body alone does not say about who sent it. */
export interface Sender extends Served {
  readonly header: ReadHeader
  readonly caller: IdentifiedCaller | undefined
}

/** `undefined` is a 202 without a body, or a client that waits for no response any more. Never throws. */
export function answerBody(
  app: App,
  body: string,
  sender: Sender,
  context: RequestContext,
): Reply | Promise<Reply | undefined> {
  let message: unknown
  try {
    message = JSON.parse(body)
  } catch {
    return errorReply(undefined, new ProtocolError(PARSE_ERROR, 'Parse error: the body is not JSON'))
  }
  const request = app.resolve(message)
  const { header, caller } = sender
  if (app.legacy !== undefined && isOlder(request, header)) {
    return answerOlder(app, app.legacy, request, sender, context)
  }
  // First, because a tool that is hidden must not show by the headers that it asks for.
  const seen = app.seenBy(request, caller)
  const refused =
    refuseMismatch(seen, header, request.id, checkHeaders) ?? refuseUnscoped(app, seen, caller, request.id)
  if (refused !== undefined) return refused
  return isWaiting(request) ? answerWaiting(app, seen, sender, context) : app.serve(seen, context)
}

async function answerWaiting(
  app: App,
  request: Resolved,
  sender: Sender,
  context: RequestContext,
): Promise<Reply | undefined> {
  const noRoom = load.hold(sender)
  if (noRoom !== undefined) return errorReply(request.id, new ProtocolError(INTERNAL_ERROR, noRoom))
  return app.serve(request, context).finally(() => load.release(sender))
}

/** A message of an older revision, or a batch. The session is looked up before any other work is spent on it. */
async function answerOlder(
  app: App,
  legacy: Legacy,
  request: Resolved,
  sender: Sender,
  { notify, cancel: peer = new Cancel() }: RequestContext,
): Promise<Reply | undefined> {
  const { header, caller } = sender
  const mismatch = refuseMismatch(request, header, request.id, checkOlderHeaders)
  if (mismatch !== undefined) return mismatch
  const refuse = (call: Resolved, id: RequestId | undefined): Reply | undefined =>
    refuseMismatch(call, header, id, checkOlderParams) ?? refuseUnscoped(app, call, caller, id)
  try {
    const takesEvents = notify !== undefined
    app.work()
    const hold = (): string | undefined => load.hold(sender)
    const keep = (bytes: number): string | undefined => load.keep(sender, bytes)
    const release = (): void => load.release(sender)
    return await legacy.post(request, { header, caller, takesEvents, peer, refuse, hold, keep, release })
  } catch (error) {
    app.logger.error('Serving a 2025-era request failed.', { error })
    return errorReply(request.id, internalError(), 500)
  }
}

/** The refusal of a message that its headers do not agree with. */
function refuseMismatch(
  message: Resolved,
  header: ReadHeader,
  id: RequestId | undefined,
  check: (message: Resolved, header: ReadHeader) => void,
): Reply | undefined {
  try {
    check(message, header)
    return undefined
  } catch (error) {
    const mismatch = error instanceof ProtocolError ? error : new ProtocolError(HEADER_MISMATCH, 'Header mismatch')
    return errorReply(id, mismatch)
  }
}

/** The refusal of a caller who was not granted all scopes that the request needs. `id` is that of the message to answer. */
function refuseUnscoped(
  app: App,
  { scopes: required }: Resolved,
  caller: IdentifiedCaller | undefined,
  id: RequestId | undefined,
): Reply | undefined {
  if (required === undefined) return undefined
  try {
    const challenge = challengeOf(required, caller)
    if (challenge === undefined) return undefined
    const error = new ProtocolError(INVALID_REQUEST, 'The granted scopes are not sufficient for this call.')
    return { ...errorReply(id, error, 403), headers: { 'WWW-Authenticate': challenge } }
  } catch (error) {
    const { message: why, status } = authenticationErrorOf(error, app.logger)
    return errorReply(id, new ProtocolError(INVALID_REQUEST, why), status)
  }
}
