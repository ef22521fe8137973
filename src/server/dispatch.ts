// From a resolved message of 2026-07-28 to its response, whatever host received it.
import { logServing } from '../flow/failure-log.ts'
import type { Observers } from '../flow/observer.ts'
import { isPublicProtocolError, ProtocolError } from '../protocol/errors.ts'
import { plainText } from './content.ts'
import type { AppServices, RequestContext } from './context.ts'
import type { Method } from './methods.ts'
import { methodNotFound, methodOf } from './methods.ts'
import { targetNameOf } from './failure.ts'
import { aroundRequest } from './middleware.ts'
import { observeRound } from './observe.ts'
import type { Reply } from './reply.ts'
import { errorReply, internalError, resultReply } from './reply.ts'
import type { RequestInfo } from './request.ts'
import { readMeta, unsupportedVersion } from './request.ts'
import type { Resolved, ResolvedRequest } from './resolve.ts'
import { isInitialize } from './message-kind.ts'
import { RequestSource } from './source.ts'

/** `undefined` for a notification, and when the client has cancelled. Never throws. */
export async function dispatch(
  app: AppServices,
  request: Resolved,
  context: RequestContext,
): Promise<Reply | undefined> {
  // An error in the message itself is the sender's mistake, and the HTTP status says so.
  if (request.kind === 'invalid') return errorReply(request.id, request.problem, 400)
  if (request.kind === 'notification') return undefined
  const { id } = request
  let info: RequestInfo
  try {
    if (isInitialize(request)) throw unsupportedVersion(request.params?.['protocolVersion'])
    info = readMeta(request.meta)
  } catch (error) {
    return errorReply(id, error instanceof ProtocolError ? error : internalError(), 400)
  }
  try {
    const { registry, limits } = app
    const seen = registry.hides
      ? registry.seenBy(request, new RequestSource({ info, meta: request.meta, caller: context.caller }, limits))
      : request
    const result = await (app.observers === undefined
      ? serve(app, seen, info, context)
      : serveObserved(app.observers, app, seen, info, context))
    return result === undefined ? undefined : resultReply(id, result)
  } catch (error) {
    if (isPublicProtocolError(error)) return errorReply(id, error)
    const { logger, onError } = app
    logServing({ logger, onError, target: targetNameOf(request), caller: context.caller }, error)
    return errorReply(id, internalError())
  }
}

function serve(
  app: AppServices,
  request: ResolvedRequest,
  info: RequestInfo,
  context: RequestContext,
): string | undefined | Promise<string | undefined> {
  const method = app.apps?.methodOf(request, info) ?? methodOf(app, request)
  if (method === undefined) throw methodNotFound(request.method)
  if (app.middleware.length === 0 || method.isRound) return method.text(app, request, info, context)
  return serveThrough(method, app, request, info, context)
}

// These two have functions of their own: a function that holds closures allocates for them, even if it never makes one.

/** Serves a method that is no round of a flow, through the middleware. */
function serveThrough(
  method: Method,
  app: AppServices,
  request: ResolvedRequest,
  info: RequestInfo,
  context: RequestContext,
): Promise<string | undefined> {
  const from = { info, meta: request.meta, caller: context.caller }
  return aroundRequest<string | undefined>(app, request, from, {
    serve: () => method.text(app, request, info, context),
    write: (result) => plainText(result, app.serverMeta),
  })
}

function serveObserved(
  observers: Observers,
  app: AppServices,
  request: ResolvedRequest,
  info: RequestInfo,
  context: RequestContext,
): Promise<string | undefined> {
  const { caller, overHttp, overPipe } = context
  const transport = overHttp ? 'tcp' : overPipe ? 'pipe' : undefined
  return observeRound(observers, request, { revision: info.revision, caller, transport }, () =>
    serve(app, request, info, context),
  )
}
