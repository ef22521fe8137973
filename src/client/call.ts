// What is called: a tool, a prompt or a resource. Either a new call, or one that is read from a saved round.
import { isObject, isTame, toJsonText } from '../protocol/json.ts'
import { shown } from '../protocol/text.ts'
import { RESUMABLE_REVISIONS } from './discovery.ts'
import { ClientError, wrongOption } from './errors.ts'
import type { PendingCall, Results, RoundMethod } from './saved.ts'
import { MAX_DEPTH } from './saved.ts'

/** A call: of a tool, a prompt or a resource. */
export type ClientCall = ToolCall | PromptCall | ResourceCall

/** A call of a tool. */
export interface ToolCall {
  /** The name of the tool. */
  readonly tool: string
  /** The arguments. Default: none. */
  readonly arguments?: Readonly<Record<string, unknown>>
}

/** A call of a prompt. */
export interface PromptCall {
  /** The name of the prompt. */
  readonly prompt: string
  /** The arguments. Default: none. */
  readonly arguments?: Readonly<Record<string, string>>
}

/** A call that reads a resource. */
export interface ResourceCall {
  /** The URI. */
  readonly resource: string
}

/** The result of a call, or of a pending round. */
export type ResultOf<C extends ClientCall | PendingCall> = C extends ToolCall
  ? Results['tools/call']
  : C extends PromptCall
    ? Results['prompts/get']
    : C extends ResourceCall
      ? Results['resources/read']
      : C extends PendingCall
        ? Results[C['method']]
        : never

/** A call, ready to be sent. Every round sends the same params, even if the caller changes the arguments meanwhile. */
export interface CallTarget {
  readonly call: ClientCall
  readonly method: RoundMethod
  /** The name of the tool or prompt, or the URI of the resource. */
  readonly name: string
  /** A copy of the arguments. */
  readonly arguments: Readonly<Record<string, unknown>> | undefined
  /** The params as JSON text without braces, written once for all rounds. */
  readonly paramsText: string
}

export function targetOf(call: ClientCall): CallTarget {
  if ('tool' in call) return namedTarget('tools/call', call.tool, call)
  if ('prompt' in call) return namedTarget('prompts/get', call.prompt, call)
  const { resource: uri } = call
  if (typeof uri !== 'string') throw wrongOption('A call must have one of `tool`, `prompt` and `resource`.')
  const paramsText = `"uri":${JSON.stringify(uri)}`
  return { call, method: 'resources/read', name: uri, arguments: undefined, paramsText }
}

export function targetOfPending({ method, params }: PendingCall): CallTarget {
  if (method === 'resources/read') return targetOf({ resource: params.uri })
  const { name, arguments: args } = params
  const given = args === undefined ? {} : { arguments: args }
  return targetOf(method === 'tools/call' ? { tool: name, ...given } : { prompt: name, ...(given as PromptArguments) })
}

/** The params of a call without those of the round, as a saved round holds them. */
export function paramsOf({ method, name, arguments: args }: CallTarget): PendingCall['params'] {
  if (method === 'resources/read') return { uri: name }
  return args === undefined ? { name } : { name, arguments: args }
}

/** Checks a pending round that was saved. Throws `PENDING_INVALID` if it is damaged. */
export function readPending(saved: unknown): PendingCall {
  if (!isObject(saved)) throw invalid(`it must be an object, got ${shown(saved)}. Pass the result of JSON.parse`)
  const { version, revision, method, params, inputRequests, requestState } = saved
  if (version !== 1) throw invalid(`its version must be 1, got ${shown(version)}`)
  if (!RESUMABLE_REVISIONS.includes(revision as string)) {
    throw invalid(`its revision must be one of ${RESUMABLE_REVISIONS.join(', ')}, got ${shown(revision)}`)
  }
  if (!isObject(params)) throw invalid('its params must be an object')
  checkParams(method, params)
  if (requestState !== undefined && typeof requestState !== 'string') {
    throw invalid('its requestState must be a string')
  }
  if (inputRequests !== undefined && !isObject(inputRequests)) throw invalid('its inputRequests must be an object')
  if (requestState === undefined && inputRequests === undefined) {
    throw invalid('it has neither inputRequests nor a requestState')
  }
  if (!isTame(saved, MAX_DEPTH)) {
    throw invalid(`it is nested more than ${MAX_DEPTH} levels deep, or contains a number that is not finite`)
  }
  return saved as unknown as PendingCall
}

function checkParams(method: unknown, params: Record<string, unknown>): void {
  const { name, uri, arguments: args = {} } = params
  switch (method) {
    case 'tools/call':
    case 'prompts/get':
      if (typeof name !== 'string') throw invalid('its params.name must be a string')
      if (!isObject(args)) throw invalid('its params.arguments must be an object')
      return
    case 'resources/read':
      if (typeof uri !== 'string') throw invalid('its params.uri must be a string')
      return
    default:
      throw invalid(`its method must be tools/call, prompts/get or resources/read, got ${shown(method)}`)
  }
}

function invalid(why: string): ClientError {
  return new ClientError('PENDING_INVALID', `Cannot resume the pending call: ${why}.`)
}

type PromptArguments = Pick<PromptCall, 'arguments'>

function namedTarget(method: 'tools/call' | 'prompts/get', name: string, call: ToolCall | PromptCall): CallTarget {
  const { arguments: args } = call
  if (typeof name !== 'string') throw wrongOption(`${method}: the name must be a string, got ${shown(name)}.`)
  if (args !== undefined && !isObject(args)) {
    throw wrongOption(`${method} ${shown(name)}: the arguments must be an object, got ${shown(args)}.`)
  }
  const nameText = `"name":${JSON.stringify(name)}`
  if (args === undefined) return { call, method, name, arguments: undefined, paramsText: nameText }
  const paramsText = `${nameText},"arguments":${toJsonText(args, `The arguments of ${name}`)}`
  return { call, method, name, arguments: copyOf(args) as Record<string, unknown>, paramsText }
}

/** Copies a value that `toJsonText` has accepted: plain objects and arrays of bounded depth. */
function copyOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copyOf)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, child]) => child !== undefined)
      .map(([key, child]) => [key, copyOf(child)]),
  )
}
