// The methods of a session: those that every revision has, and what is added for 2025-era clients. Results are written in the
// words of the session's revision.
import type { Caller } from '../flow/caller.ts'
import { MissingCapability, NoTask } from '../flow/errors.ts'
import { logServing } from '../flow/failure-log.ts'
import { Cancel } from '../protocol/cancel.ts'
import { INTERNAL_ERROR, INVALID_PARAMS, isPublicProtocolError, ProtocolError } from '../protocol/errors.ts'
import { isObject } from '../protocol/json.ts'
import type { DetailedTask, LoggingLevel, RequestId } from '../protocol/messages.ts'
import { LOGGING_LEVELS } from '../protocol/logger.ts'
import { ROUND_METHODS } from '../protocol/revisions/2026-07-28.ts'
import type { OlderRevision } from '../protocol/revisions/older.ts'
import { olderTask } from '../protocol/revisions/older.ts'
import type { Message, Result } from '../protocol/revisions/rounds.ts'
import { errorResult } from '../server/content.ts'
import type { AppsMethod } from '../server/context.ts'
import { noRoomError } from '../server/limits.ts'
import { METHODS, methodNotFound, ownResult } from '../server/methods.ts'
import type { Served } from '../server/middleware.ts'
import { targetNameOf } from '../server/failure.ts'
import { aroundRequest, aroundRound } from '../server/middleware.ts'
import { readRound } from '../server/params.ts'
import { observeRound } from '../server/observe.ts'
import type { Reply } from '../server/reply.ts'
import { errorReply, internalError } from '../server/reply.ts'
import type { RequestInfo } from '../server/request.ts'
import { invalidParams, isId } from '../server/request.ts'
import type { Resolved, ResolvedNotification, ResolvedRequest } from '../server/resolve.ts'
import { checkUri, targetOf } from '../server/resolve.ts'
import type { SourceRequest } from '../server/source.ts'
import { RequestSource } from '../server/source.ts'
import { bytesOfUris, MOST_URIS } from '../server/subscriptions.ts'
import { Call, startingPoint } from './call.ts'
import type { LegacyHost } from './host.ts'
import type { LiveFlow, SessionRequest } from './session-request.ts'
import { progressTokenOf } from './session-request.ts'
import { serveSessionRound, withOlderQuestions } from './rounds.ts'
import type { Session } from './session.ts'
import { createTask, hasTasks, taskRequired, readRequestedTask, withTasks, withTaskSupport } from './tasks/support.ts'
import { serveTask } from './tasks/methods.ts'
import { tellProgress } from './tasks/progress.ts'

/** In these revisions a resource that does not exist has a code of its own. */
const RESOURCE_NOT_FOUND = -32002

/**
 * The response; `undefined` when the client has cancelled. Never throws. In a session an error has the status 200, except one that says
 * to try again later.
 */
export async function respond(host: LegacyHost, incoming: SessionRequest): Promise<Reply | undefined> {
  const { request, session } = incoming
  const { id, method } = request
  try {
    const seen = seenBy(host, request, senderOf(incoming))
    const served = await serveObserved(host, seen === request ? incoming : { ...incoming, request: seen })
    if (served === undefined) return undefined
    if (request.own?.kind === 'method') {
      return { text: JSON.stringify({ jsonrpc: '2.0', id, result: served }), status: 200 }
    }
    // A handler's result is text already: the flow ends only when its result has proven to be JSON.
    const neutral = typeof served === 'string' ? (JSON.parse(served) as Result) : served
    return {
      text: JSON.stringify({ jsonrpc: '2.0', id, ...inWordsOf(session.revision, method, neutral) }),
      status: 200,
    }
  } catch (error) {
    if (isPublicProtocolError(error)) return errorReply(id, toOlderError(error, request), 200)
    const { logger, onError } = host.app
    logServing({ logger, onError, target: targetNameOf(request), caller: incoming.caller }, error)
    return errorReply(id, internalError(), 200)
  }
}

/** The message as it is for its caller: what is hidden is not found. */
export function seenBy<T extends Resolved>({ app }: LegacyHost, message: T, sender: SessionSender): T {
  const { registry, limits } = app
  return registry.hides ? registry.seenBy(message, new RequestSource(sourceOf(message, sender), limits)) : message
}

/** Stops the call that a cancellation names. Returns its id, because the call may be suspended or run on another instance. */
export function notified(session: Session, { method, params = {} }: ResolvedNotification): RequestId | undefined {
  const { requestId } = params
  if (method !== 'notifications/cancelled' || !isId(requestId)) return undefined
  session.calls.get(requestId)?.cancel.cancel()
  return requestId
}

/** Returns the result in the form of 2026-07-28; `undefined` when the client has cancelled. */
type Serve = (host: LegacyHost, incoming: SessionRequest) => Served | Promise<Served>

/** What sessions add to the methods that all revisions share, or serve in another way. */
const SESSION_METHODS: ReadonlyMap<string, Serve> = new Map<string, Serve>([
  ['ping', () => ({})],
  ['tools/call', callTool],
  ['prompts/get', call],
  ['resources/read', call],
  ['tools/list', listTools],
  ['resources/subscribe', subscribe],
  ['resources/unsubscribe', unsubscribe],
  ['logging/setLevel', setLevel],
])

function serveObserved(host: LegacyHost, incoming: SessionRequest): Served | Promise<Served> {
  const { observers } = host.app
  if (observers === undefined) return serve(host, incoming)
  const { request, session, outlet, caller } = incoming
  const origin = { revision: session.revision.name, caller, transport: outlet.overHttp ? 'tcp' : 'pipe' } as const
  return observeRound(observers, request, origin, () => serve(host, incoming))
}

function serve(host: LegacyHost, incoming: SessionRequest): Served | Promise<Served> {
  const { app } = host
  const { request } = incoming
  const { method } = request
  const inApps = app.apps?.methodOf(request, sourceOf(request, senderOf(incoming)).info)
  if (inApps !== undefined && (app.middleware.length === 0 || inApps.isRound)) return callInApps(host, incoming, inApps)
  const shared = METHODS.get(method)
  if (inApps === undefined && shared?.isOffered?.(app) === false) throw methodNotFound(method)
  if (app.middleware.length === 0 || (inApps === undefined && shared?.isRound)) return serveMethod(host, incoming)
  return aroundRequest<Served>(app, request, sourceOf(request, senderOf(incoming)), {
    serve: () => (inApps === undefined ? serveMethod(host, incoming) : callInApps(host, incoming, inApps)),
    write: (result) => result,
  })
}

function serveMethod(host: LegacyHost, incoming: SessionRequest): Served | Promise<Served> {
  const { app } = host
  const { request } = incoming
  const { method } = request
  if (request.own?.kind === 'method') return callOwn(host, incoming)
  const own = method.startsWith('tasks/') ? serveTask : SESSION_METHODS.get(method)
  const served =
    own === undefined
      ? METHODS.get(method)?.value?.(app, request, new RequestSource(sourceOf(request, senderOf(incoming)), app.limits))
      : own(host, incoming)
  if (served === undefined) throw methodNotFound(method)
  return served
}

/** For a client that is asked in a page of its host. The page carries the call, so nothing is asked on a stream. */
async function callInApps({ app }: LegacyHost, incoming: SessionRequest, { text }: AppsMethod): Promise<Served> {
  const { request, session, outlet, caller } = incoming
  const cancel = new Cancel()
  const info = { ...infoOf(session), logLevel: session.level, progressToken: progressTokenOf(request) }
  const notify = (notification: string): boolean => outlet.notify(notification)
  // Nothing to interrupt here: at shutdown it is handed over with all other calls that clients carry.
  session.enter(request.id, { cancel, interrupt: () => {} })
  try {
    const { mailboxOwner } = session
    return await text(app, request, info, { caller, cancel, notify, mailboxOwner, overHttp: outlet.overHttp })
  } finally {
    session.calls.delete(request.id)
  }
}

/** A method that the app itself brings. The client may cancel it, as it may cancel a call. */
async function callOwn({ app }: LegacyHost, incoming: SessionRequest): Promise<Served> {
  const { request, session } = incoming
  const cancel = new Cancel()
  session.enter(request.id, { cancel, interrupt: () => cancel.cancel() })
  try {
    const source = new RequestSource(sourceOf(request, senderOf(incoming)), app.limits)
    return await ownResult(app, request, source, cancel)
  } finally {
    session.calls.delete(request.id)
  }
}

function listTools(host: LegacyHost, incoming: SessionRequest): Result {
  const { request, session } = incoming
  const { registry, limits } = host.app
  const viewer = new RequestSource(sourceOf(request, senderOf(incoming)), limits)
  const page = registry.list('tools', request.params?.['cursor'], viewer)
  return hasTasks(host, session) ? withTaskSupport(host, page) : page
}

/** These revisions have no error for a capability that the client lacks. The model can act on a result that says so. */
async function callTool(host: LegacyHost, incoming: SessionRequest): Promise<Served> {
  const { app } = host
  const { request, session } = incoming
  try {
    return await call(host, incoming)
  } catch (error) {
    if (!(error instanceof MissingCapability) && !(error instanceof NoTask)) throw error
    if (error instanceof NoTask && hasTasks(host, session)) throw taskRequired()
    const unlinked = app.apps?.unlinkedText(request, sourceOf(request, senderOf(incoming)).info)
    return { ...errorResult(unlinked ?? error.message) }
  }
}

/** In a live call the server asks on the stream, so the request brings nothing back from an earlier round. */
const NO_RETRY = {}

async function call(host: LegacyHost, incoming: SessionRequest): Promise<Served> {
  const { request, session, outlet, caller, suspender, resumed } = incoming
  const { id, method, params = {} } = request
  const { rounds } = session.revision
  const target = targetOf(request, ({ message }) =>
    rounds === undefined ? resumed !== undefined : rounds.readRetry(message as Message).requestState !== undefined,
  )
  const level = resumed?.level ?? session.level
  if (target.task === 'always' && !hasTasks(host, session)) throw new NoTask()
  const wish = method === 'tools/call' && hasTasks(host, session) ? readRequestedTask(target, params) : undefined
  const known: RequestInfo = { ...infoOf(session), logLevel: level, progressToken: progressTokenOf(request) }
  const info =
    wish === undefined ? known : { ...known, capabilities: withTasks(known.capabilities), taskTtlMs: wish.ttlMs }
  if (rounds !== undefined) {
    const text = await serveSessionRound(host, incoming, rounds, info)
    return text === undefined || wish === undefined ? text : tellingProgress(host, incoming, JSON.parse(text) as Result)
  }
  // This revision cannot make a task of a running call. A client that asks for a task gets one from the start.
  if (wish !== undefined) {
    const result = await createTask(host, target, readRound(request, info, { caller }, NO_RETRY))
    return typeof result === 'string' ? result : tellingProgress(host, incoming, result)
  }
  const running = new Call(host, session, outlet, suspender?.segment)
  const notify = (text: string): boolean => outlet.notify(text)
  const progress = { highest: resumed?.progress }
  const round = readRound(request, info, { caller, cancel: running.cancel, notify, progress }, NO_RETRY)
  const suspend = suspender?.suspend({ request, level, version: target.version, progress })
  // A resumed call takes the place of the segment that asked, which is about to end.
  session.enter(id, running, resumed !== undefined)
  try {
    const { app } = host
    const live = resumed ?? startingCall(app.now())
    if (app.middleware.length === 0) return await live.run({ running, target, round, suspend })
    const carrier = suspender === undefined ? 'connection' : 'client'
    return await aroundRound(app, { target, request: round, flow: live.flow, carrier }, () =>
      live.run({ running, target, round, suspend }),
    )
  } finally {
    if (session.calls.get(id) === running) session.calls.delete(id)
  }
}

/** Returns the result. If the call has a token and has become a task, the client is told the progress of the task. */
function tellingProgress(host: LegacyHost, { request, session, outlet }: SessionRequest, result: Result): Result {
  const token = progressTokenOf(request)
  const { resultType, taskId } = result
  if (token !== undefined && resultType === 'task' && typeof taskId === 'string') {
    tellProgress(host, { session, outlet, token, taskId })
  }
  return result
}

function startingCall(now: number): LiveFlow {
  const point = startingPoint(now)
  return {
    flow: { id: point.flowId, round: point.round },
    run: ({ running, target, round, suspend }) => running.run(target, round, point, suspend),
  }
}

/** What a client of 2026-07-28 says in every request, from what this one said when its session began. */
function infoOf({
  revision,
  capabilities,
  client,
  extensions,
}: Session): Omit<RequestInfo, 'logLevel' | 'progressToken'> {
  return { revision: revision.name, capabilities, clientInfo: client, extensions }
}

/** Who sends the messages of a session. */
interface SessionSender {
  readonly session: Session
  readonly caller: Caller | undefined
  readonly overHttp: boolean | undefined
}

function senderOf({ session, caller, outlet: { overHttp } }: SessionRequest): SessionSender {
  return { session, caller, overHttp }
}

function sourceOf({ meta }: Resolved, { session, caller, overHttp }: SessionSender): SourceRequest {
  return { info: { ...infoOf(session), logLevel: undefined, progressToken: undefined }, meta, caller, overHttp }
}

function subscribe({ app, subscribed }: LegacyHost, incoming: SessionRequest): Served {
  const { request, session } = incoming
  if (!app.registry.hasResources) return undefined
  const { params, scopes = [] } = request
  const uri = checkUri(params?.['uri'])
  if (!session.uris.has(uri)) {
    const { maxSubscriptionBytes } = app.limits
    const bytes = bytesOfUris([uri])
    if (session.uris.size >= MOST_URIS) throw invalidParams(`a session may subscribe to at most ${MOST_URIS} resources`)
    if (session.uriBytes + bytes > maxSubscriptionBytes) {
      throw invalidParams(
        `the URIs that a session subscribes to may use ${maxSubscriptionBytes} bytes (limits.maxSubscriptionBytes)`,
      )
    }
    const noRoom = subscribed.makeRoom(session.owner, bytes)
    if (noRoom !== undefined) throw noRoomError(noRoom, 'bytes of URIs', 'maxSubscribedBytes', subscribed)
  }
  // Without `_meta`, which is not bounded and which no `visible` reads: the source is kept as long as the subscription.
  const source = new RequestSource({ ...sourceOf(request, senderOf(incoming)), meta: undefined }, app.limits)
  session.subscribe(uri, { scopes, sees: () => app.registry.sees(uri, source) })
  subscribed.set(session.owner, session, session.uriBytes)
  return {}
}

function unsubscribe({ app, subscribed }: LegacyHost, { request: { params }, session }: SessionRequest): Served {
  if (!app.registry.hasResources) return undefined
  session.unsubscribe(checkUri(params?.['uri']))
  if (session.uris.size === 0) subscribed.delete(session.owner, session)
  else subscribed.set(session.owner, session, session.uriBytes)
  return {}
}

function setLevel(_host: LegacyHost, { request: { params }, session }: SessionRequest): Served {
  const known = LOGGING_LEVELS.find((each): each is LoggingLevel => each === params?.['level'])
  if (known === undefined) throw invalidParams(`level must be one of ${LOGGING_LEVELS.join(', ')}`)
  session.level = known
  return {}
}

/** The members of the response beside its id. */
function inWordsOf(revision: OlderRevision, method: string, neutral: Result): Result {
  const { resultType } = neutral
  if (resultType === 'task') return { result: { task: olderTask(neutral as unknown as DetailedTask, revision) } }
  // The result of a task is the result of its call.
  const ofTask = method === 'tasks/result'
  const result = revision.result(ofTask ? 'tools/call' : method, plain(neutral))
  const { rounds } = revision
  if (rounds === undefined || !(ofTask || ROUND_METHODS.has(method))) return { result }
  return rounds.writeResponse({ resultType, ...(ofTask ? result : withOlderQuestions(revision, result)) })
}

/** The result without the fields that came with 2026-07-28. */
function plain({ resultType: _type, ttlMs: _ttl, cacheScope: _scope, _meta, ...result }: Result): Result {
  return isObject(_meta) && Object.keys(_meta).length > 0 ? { ...result, _meta } : result
}

function toOlderError(error: ProtocolError, { method, params }: ResolvedRequest): ProtocolError {
  const { rpcCode, message, data } = error
  if (error instanceof MissingCapability) return new ProtocolError(INTERNAL_ERROR, message, data)
  if (method !== 'resources/read' || rpcCode !== INVALID_PARAMS) return error
  return isObject(data) && data['uri'] === params?.['uri']
    ? new ProtocolError(RESOURCE_NOT_FOUND, message, data)
    : error
}
