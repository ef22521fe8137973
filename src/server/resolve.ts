// Reads a parsed message once: its envelope, its method and what it names. The header check, the scope check, dispatch and
// the sessions of older revisions all work on the result. Whatever can name a target is looked up here.
import { INVALID_REQUEST, ProtocolError } from '../protocol/errors.ts'
import { isObject } from '../protocol/json.ts'
import type { RequestId } from '../protocol/messages.ts'
import type { ParamHeader } from '../schema/param-headers.ts'
import type { CompletionTarget } from './completion.ts'
import { readReference } from './completion.ts'
import type { Limits } from './limits.ts'
import { fits } from './limits.ts'
import type { RegisteredMethod } from './own-method.ts'
import type { AnsweredTool, Registry } from './registry.ts'
import { invalidParams, isId } from './request.ts'
import type { Target } from './round.ts'
import type { RegisteredSkill, SkillDirectory } from './skill.ts'
import type { Guarded } from './visibility.ts'
import { scopesOfSubscription } from './subscriptions.ts'

export type Params = Record<string, unknown>

export type Resolved = ResolvedRequest | ResolvedNotification | InvalidMessage

/** A tool, a prompt or a resource, with what a caller needs to reach it. */
export interface ResolvedTarget extends Target, Guarded {
  /** Arguments that an HTTP request repeats in its headers. */
  readonly headers?: readonly ParamHeader[]
}

interface ResolvedMessage {
  /** The whole message, as parsed. */
  readonly message: unknown
  /** Empty when the message has no method. */
  readonly method: string
  readonly params: Params | undefined
  readonly meta: Params | undefined
  /** What `tools/call`, `prompts/get` or `resources/read` names. Absent when nothing of that name is registered. */
  readonly target: ResolvedTarget | undefined
  /** What `completion/complete` names. */
  readonly completion: CompletionTarget | undefined
  /** What other methods name: a method of the app's own, a skill or one of its folders. Or the tool that a page of the client answers. */
  readonly own: RegisteredMethod | RegisteredSkill | SkillDirectory | AnsweredTool | undefined
  /** The scopes that the caller must have been granted. */
  readonly scopes: readonly string[] | undefined
}

export interface ResolvedRequest extends ResolvedMessage {
  readonly kind: 'request'
  readonly id: RequestId
  readonly problem: undefined
}

export interface ResolvedNotification extends ResolvedMessage {
  readonly kind: 'notification'
  readonly id: undefined
  readonly problem: undefined
}

/** Not a JSON-RPC request or notification. The other fields hold what could be read all the same. */
export interface InvalidMessage extends ResolvedMessage {
  readonly kind: 'invalid'
  /** The id for the error response, if the message has a valid one. */
  readonly id: RequestId | undefined
  readonly problem: ProtocolError
}

/** Never throws: a message that is not valid has `kind: 'invalid'`. */
export function resolve(registry: Registry, message: unknown): Resolved {
  const { jsonrpc, id, method, params: given } = isObject(message) ? message : NO_MEMBERS
  const params = isObject(given) ? given : undefined
  const meta = params?.['_meta']
  let target: ResolvedTarget | undefined
  let completion: CompletionTarget | undefined
  let own: ResolvedMessage['own']
  let scopes: readonly string[] | undefined
  if (params !== undefined) {
    if (method === 'completion/complete') {
      completion = findCompletion(registry, params['ref'])
      scopes = completion?.scopes
    } else {
      target = findTarget(registry, method, params)
      scopes =
        target === undefined ? scopesOfSubscription(method, params, (uri) => registry.scopesOf(uri)) : target.scopes
    }
  }
  if (target === undefined && completion === undefined && typeof method === 'string') {
    own = findOwn(registry, method, params)
    scopes ??= own?.scopes
  }
  const metaRead = isObject(meta) ? meta : undefined
  const problem = problemOf(message, jsonrpc, method, id, given) ?? tooLong(registry.limits, id, params, metaRead)
  // One literal for all three kinds: every request takes this path, and one shape is the fastest to read.
  return {
    kind: problem !== undefined ? 'invalid' : id === undefined ? 'notification' : 'request',
    id: isId(id) && !isLongId(id, registry.limits) ? id : undefined,
    message,
    method: typeof method === 'string' ? method : '',
    params,
    meta: metaRead,
    target,
    completion,
    own,
    scopes,
    problem,
  } as Resolved
}

/** What the request runs. Throws -32602 when it names nothing that is registered. `hasState` is for revisions with another form. */
export function targetOf(
  request: ResolvedRequest,
  hasState: (request: ResolvedRequest) => boolean = hasRequestState,
): ResolvedTarget {
  const { method, params = NO_MEMBERS, target } = request
  if (target !== undefined) return target
  const { name, uri } = params
  // With a state, the call began on an instance that has it: a new version is being rolled out, and our client tries other instances.
  const data = hasState(request) ? { code: 'VERSION_CHANGED' } : undefined
  if (method === 'resources/read') throw invalidParams(`Resource not found: ${checkUri(uri)}`, { uri, ...data })
  if (typeof name !== 'string') throw invalidParams('name must be a string')
  throw invalidParams(`Unknown ${method === 'tools/call' ? 'tool' : 'prompt'}: ${name.slice(0, 128)}`, data)
}

function hasRequestState({ params }: ResolvedRequest): boolean {
  return params?.['requestState'] !== undefined
}

export function checkUri(uri: unknown): string {
  if (typeof uri === 'string') return uri
  throw invalidParams('uri must be a string')
}

const NO_MEMBERS: Params = {}

function findTarget(registry: Registry, method: unknown, { name, uri }: Params): ResolvedTarget | undefined {
  switch (method) {
    case 'tools/call':
      return typeof name === 'string' ? registry.tools.get(name) : undefined
    case 'prompts/get':
      return typeof name === 'string' ? registry.prompts.get(name) : undefined
    case 'resources/read':
      return typeof uri === 'string' ? registry.findResource(uri) : undefined
    default:
      return undefined
  }
}

function findOwn(registry: Registry, method: string, params: Params = NO_MEMBERS): ResolvedMessage['own'] {
  const { uri } = params
  switch (method) {
    case 'tools/call':
      return registry.findAnswered?.(params)
    case 'skills/get':
      return typeof uri === 'string' ? registry.skills.get(uri) : undefined
    case 'resources/directory/read':
      return typeof uri === 'string' ? registry.findDirectory(uri) : undefined
    default:
      return registry.findMethod(method)
  }
}

function findCompletion(
  { prompts, resourceTemplates, resources }: Registry,
  ref: unknown,
): CompletionTarget | undefined {
  const { prompt, uri } = readReference(ref)
  if (prompt !== undefined) return prompts.get(prompt)
  if (uri === undefined) return undefined
  const template = resourceTemplates.get(uri)
  if (template !== undefined) return template
  const resource = resources.get(uri)
  return resource && { ...NOTHING_TO_COMPLETE, scopes: resource.scopes, visible: resource.visible }
}

/** A fixed resource has no variables. */
const NOTHING_TO_COMPLETE = { arguments: [], completers: new Map() }

function problemOf(
  message: unknown,
  jsonrpc: unknown,
  method: unknown,
  id: unknown,
  params: unknown,
): ProtocolError | undefined {
  if (!isObject(message)) return invalidRequest('a message must be one JSON object; batches are not supported')
  if (jsonrpc !== '2.0') return invalidRequest('jsonrpc must be "2.0"')
  if (typeof method !== 'string') return invalidRequest('method must be a string; a server takes no responses')
  if (id !== undefined && !isId(id)) return invalidRequest('id must be a string or an integer')
  if (params !== undefined && !isObject(params)) return invalidRequest('params must be an object')
  return undefined
}

/** Strings that a request makes the server keep or send back. The error does not repeat them. */
function tooLong(
  limits: Limits,
  id: unknown,
  params: Params | undefined,
  meta: Params | undefined,
): ProtocolError | undefined {
  const { maxIdBytes, maxUriBytes } = limits
  if (isLongId(id, limits)) return invalidRequest(`id must be at most ${maxIdBytes} bytes long (limits.maxIdBytes)`)
  const uri = params?.['uri']
  if (typeof uri === 'string' && !fits(uri, maxUriBytes)) {
    return invalidParams(`uri must be at most ${maxUriBytes} bytes long (limits.maxUriBytes)`)
  }
  if (isLongId(meta?.['progressToken'], limits)) {
    return invalidParams(`progressToken must be at most ${maxIdBytes} bytes long (limits.maxIdBytes)`)
  }
  return undefined
}

function isLongId(id: unknown, { maxIdBytes }: Limits): boolean {
  return typeof id === 'string' && !fits(id, maxIdBytes)
}

function invalidRequest(why: string): ProtocolError {
  return new ProtocolError(INVALID_REQUEST, `Invalid request: ${why}`)
}
