// What a 2025-era client may ask for, from its request to the result in the words of its revision.
import { isObject } from '../protocol/json.ts'
import { MissingCapability, NoTask } from '../flow/errors.ts'
import { INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, ProtocolError } from '../protocol/errors.ts'
import type { LoggingLevel, ProgressToken, RequestId, DetailedTask } from '../protocol/messages.ts'
import { LOGGING_LEVELS } from '../protocol/logger.ts'
import type { Message, Result } from '../protocol/revisions/rounds.ts'
import type { OlderRevision } from '../protocol/revisions/older.ts'
import { ROUND_METHODS } from '../protocol/revisions/2026-07-28.ts'
import { olderTask } from '../protocol/revisions/older.ts'
import { completionText } from '../server/completion.ts'
import { errorText } from '../server/content.ts'
import { readRound } from '../server/params.ts'
import { LONGEST_URI } from '../server/registry.ts'
import { errorReply, internalError } from '../server/reply.ts'
import type { RequestInfo } from '../server/request.ts'
import { invalidParams } from '../server/request.ts'
import { carriedResource } from '../server/resource.ts'
import type { Target, RoundRequest } from '../server/round.ts'
import { beginTask } from '../server/round.ts'
import type { Part } from './call.ts'
import { beginning, Call } from './call.ts'
import type { LegacyHost, Outlet } from './host.ts'
import type { Request } from './messages.ts'
import { partWith, standAgain } from './carried/suspend.ts'
import { askFailed } from './questions.ts'
import { serveRoundIn, withOlderQuestions } from './rounds.ts'
import type { Session } from './session.ts'
import { hasTasks, onlyAsTask, readWish, withTasks, withTaskSupport } from './task-wish.ts'
import { serveTask } from './tasks.ts'

/** In these revisions a resource that is not there has a code of its own. */
const RESOURCE_NOT_FOUND = -32002

const MOST_URIS = 1_000

/** The text of the response; nothing where the client has cancelled. Never throws. */
export async function respond(
  host: LegacyHost,
  session: Session,
  request: Request,
  outlet: Outlet,
  principal: string | undefined,
): Promise<string | undefined> {
  const { id, method } = request
  try {
    const text = await serve(host, session, request, outlet, principal)
    if (text === undefined) return undefined
    return JSON.stringify({ jsonrpc: '2.0', id, ...inWordsOf(session.revision, method, JSON.parse(text) as Result) })
  } catch (error) {
    if (error instanceof ProtocolError) return errorReply(id, toOlderError(error, request)).text
    host.app.logger.error(`Serving ${method} failed.`, { error })
    return errorReply(id, internalError()).text
  }
}

/** What is no request is only noted. Gives the request that is cancelled, which may wait elsewhere, or nowhere. */
export function notified(session: Session, method: string, params: Record<string, unknown>): RequestId | undefined {
  const { requestId } = params
  if (method !== 'notifications/cancelled' || !isId(requestId)) return undefined
  session.calls.get(requestId)?.cancel.cancel()
  return requestId
}

function serve(
  host: LegacyHost,
  session: Session,
  request: Request,
  outlet: Outlet,
  principal: string | undefined,
): string | Promise<string | undefined> {
  const { registry, serverMeta } = host.app
  const { method, params } = request
  const { cursor } = params
  switch (method) {
    case 'ping':
      return '{}'
    case 'tools/call':
      return callTool(host, session, request, outlet, principal)
    case 'prompts/get':
      if (registry.prompts.size === 0) break
      return call(host, session, request, outlet, principal)
    case 'resources/read':
      if (!registry.hasResources) break
      return call(host, session, request, outlet, principal)
    case 'tools/list':
      return listTools(host, session, cursor, principal)
    case 'prompts/list':
      if (registry.prompts.size === 0) break
      return registry.listText('prompts', registry.prompts, cursor, principal, serverMeta)
    case 'resources/list':
      if (!registry.hasResources) break
      return registry.listText('resources', registry.resources, cursor, principal, serverMeta)
    case 'resources/templates/list':
      if (!registry.hasResources) break
      return registry.listText('resourceTemplates', registry.templates, cursor, principal, serverMeta)
    case 'resources/subscribe':
    case 'resources/unsubscribe':
      if (!registry.hasResources) break
      return subscribe(session, method === 'resources/subscribe', params['uri'])
    case 'completion/complete':
      if (!registry.hasCompletions) break
      return completionText(params, (kind, name) => registry.completionTarget(kind, name), serverMeta)
    case 'logging/setLevel':
      return setLevel(session, params['level'])
  }
  const served = method.startsWith('tasks/') ? serveTask(host, session, request, outlet, principal) : undefined
  if (served !== undefined) return served
  throw new ProtocolError(METHOD_NOT_FOUND, `Method not found: ${method.slice(0, 100)}`)
}

function listTools(host: LegacyHost, session: Session, cursor: unknown, principal: string | undefined): string {
  const { registry, serverMeta } = host.app
  const text = registry.listText('tools', registry.tools, cursor, principal, serverMeta)
  return hasTasks(host, session) ? withTaskSupport(host, text) : text
}

/** These revisions have no error for what the client lacks, and a result is what the model can do something about. */
async function callTool(
  host: LegacyHost,
  session: Session,
  request: Request,
  outlet: Outlet,
  principal: string | undefined,
): Promise<string | undefined> {
  try {
    return await call(host, session, request, outlet, principal)
  } catch (error) {
    const { serverMeta } = host.app
    if (error instanceof MissingCapability) return errorText(error.message, serverMeta)
    if (!(error instanceof NoTask)) throw error
    if (hasTasks(host, session)) throw onlyAsTask()
    return errorText(`This goes on as a task only. Revision ${session.revision.name} has none.`, serverMeta)
  }
}

async function call(
  host: LegacyHost,
  session: Session,
  { id, method, params, message, resumed }: Request,
  outlet: Outlet,
  principal: string | undefined,
): Promise<string | undefined> {
  const carried = carriedBy(host, method, params)
  const { revision, capabilities } = session
  const { rounds } = revision
  const level = resumed?.state.level ?? session.level
  if (carried.task === 'always' && !hasTasks(host, session)) throw new NoTask()
  const wish = method === 'tools/call' && hasTasks(host, session) ? readWish(carried, params) : undefined
  const info: RequestInfo = {
    revision: revision.name,
    capabilities: wish === undefined ? capabilities : withTasks(capabilities),
    logLevel: level,
    progressToken: progressTokenOf(params),
    taskTtlMs: wish?.ttlMs,
  }
  if (rounds !== undefined) {
    const { inputResponses, requestState } = rounds.readRetry(message as Message)
    const round = { id, method, params: { ...params, inputResponses, requestState }, info }
    return serveRoundIn(host, session, round, outlet, principal)
  }
  const underway = new Call(host, session, outlet)
  const args = method === 'resources/read' ? {} : params['arguments']
  const notify = (text: string): boolean => outlet.notify(text)
  // There is no way to be a task only later on: whoever asks for one has one from the start.
  if (wish !== undefined) return beginTask(host.app, carried, readRound({ arguments: args }, info, { principal }))
  const request = readRound({ arguments: args }, info, { principal, cancel: underway.cancel, notify })
  if (method === 'prompts/get' && !Object.values(request.args).every((value) => typeof value === 'string')) {
    throw invalidParams('the arguments of a prompt must be strings')
  }
  const { version } = carried
  const own = { id, method, params: carriedParams(method, params), level, version, principal }
  const part = outlet.parting && partWith(host, session, outlet.parting, own)
  // Where it goes on, what asked is about to end.
  session.enter(id, underway, resumed !== undefined)
  try {
    if (resumed === undefined) return await underway.run(carried, request, beginning(host.app.now()), part)
    return await goOnFrom(host, carried, resumed, underway, request, part)
  } finally {
    if (session.calls.get(id) === underway) session.calls.delete(id)
  }
}

async function goOnFrom(
  host: LegacyHost,
  carried: Target,
  { state, response }: NonNullable<Request['resumed']>,
  underway: Call,
  request: RoundRequest,
  part: Part | undefined,
): Promise<string | undefined> {
  if ('error' in response) return carried.failureText(askFailed(state.key, response.error), host.app)
  const standing = standAgain(host, carried, state, response.result)
  if (state.left.length === 0 || part === undefined) return underway.run(carried, request, standing, part)
  try {
    await part(state.left, standing)
    return undefined
  } catch (error) {
    return carried.failureText(error, host.app)
  }
}

/** All of the params that a later pass needs. */
function carriedParams(
  method: string,
  { name, arguments: args, uri, _meta: meta }: Request['params'],
): Request['params'] {
  const _meta =
    isObject(meta) && meta['progressToken'] !== undefined ? { progressToken: meta['progressToken'] } : undefined
  return method === 'resources/read' ? { uri, _meta } : { name, arguments: args, _meta }
}

function carriedBy({ app: { registry } }: LegacyHost, method: string, { name, uri }: Record<string, unknown>): Target {
  if (method === 'resources/read') {
    if (typeof uri !== 'string' || uri.length > LONGEST_URI) throw invalidUri()
    const found = registry.findResource(uri)
    if (found === undefined) throw invalidParams(`Resource not found: ${uri}`, { uri })
    return carriedResource(uri, found.resource, found.variables)
  }
  if (typeof name !== 'string') throw invalidParams('name must be a string')
  const carried = method === 'tools/call' ? registry.tools.get(name) : registry.prompts.get(name)
  if (carried !== undefined) return carried
  throw invalidParams(`Unknown ${method === 'tools/call' ? 'tool' : 'prompt'}: ${name.slice(0, 128)}`)
}

function subscribe(session: Session, wanted: boolean, uri: unknown): string {
  if (typeof uri !== 'string' || uri.length > LONGEST_URI) throw invalidUri()
  if (!wanted) session.uris.delete(uri)
  else if (session.uris.size < MOST_URIS || session.uris.has(uri)) session.uris.add(uri)
  else throw invalidParams(`a session may subscribe to at most ${MOST_URIS} resources`)
  return '{}'
}

function setLevel(session: Session, level: unknown): string {
  const known = LOGGING_LEVELS.find((each): each is LoggingLevel => each === level)
  if (known === undefined) throw invalidParams(`level must be one of ${LOGGING_LEVELS.join(', ')}`)
  session.level = known
  return '{}'
}

function progressTokenOf({ _meta: meta }: Record<string, unknown>): ProgressToken | undefined {
  const token = isObject(meta) ? meta['progressToken'] : undefined
  if (token === undefined || isId(token)) return token
  throw invalidParams('progressToken must be a string or an integer')
}

/** The members of the response, beside its id. */
function inWordsOf(revision: OlderRevision, method: string, neutral: Result): Result {
  const { resultType } = neutral
  if (resultType === 'task') return { result: { task: olderTask(neutral as unknown as DetailedTask) } }
  // A task comes to what its call would have come to.
  const ofTask = method === 'tasks/result'
  const result = revision.result(ofTask ? 'tools/call' : method, plain(neutral))
  const { rounds } = revision
  if (rounds === undefined || !(ofTask || ROUND_METHODS.has(method))) return { result }
  return rounds.writeResponse({ resultType, ...(ofTask ? result : withOlderQuestions(revision, result)) })
}

/** The result without what came with 2026-07-28. */
function plain({ resultType: _type, ttlMs: _ttl, cacheScope: _scope, _meta, ...result }: Result): Result {
  return isObject(_meta) && Object.keys(_meta).length > 0 ? { ...result, _meta } : result
}

function toOlderError(error: ProtocolError, { method, params: { uri } }: Request): ProtocolError {
  const { rpcCode, message, data } = error
  if (error instanceof MissingCapability) return new ProtocolError(INTERNAL_ERROR, message, data)
  if (method !== 'resources/read' || rpcCode !== INVALID_PARAMS) return error
  return isObject(data) && data['uri'] === uri ? new ProtocolError(RESOURCE_NOT_FOUND, message, data) : error
}

function invalidUri(): ProtocolError {
  return invalidParams(`uri must be a string of at most ${LONGEST_URI} characters`)
}

function isId(value: unknown): value is RequestId {
  return typeof value === 'string' || Number.isSafeInteger(value)
}
