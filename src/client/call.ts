// What is called: a tool, a prompt or a resource, and how that is written on the wire.
import { isObject, toJsonText } from '../protocol/json.ts'
import { wrongOption } from './errors.ts'
import type { PendingCall, Results, RoundMethod } from './pending.ts'

export type ClientCall = ToolCall | PromptCall | ResourceCall

export interface ToolCall {
  readonly tool: string
  readonly arguments?: Readonly<Record<string, unknown>>
}

export interface PromptCall {
  readonly prompt: string
  readonly arguments?: Readonly<Record<string, string>>
}

export interface ResourceCall {
  /** The URI. */
  readonly resource: string
}

/** What a call, or the pending round of one, comes to. */
export type ResultOf<C extends ClientCall | PendingCall> = C extends ToolCall
  ? Results['tools/call']
  : C extends PromptCall
    ? Results['prompts/get']
    : C extends ResourceCall
      ? Results['resources/read']
      : C extends PendingCall
        ? Results[C['method']]
        : never

/** A call made ready to be sent, however many rounds it takes. */
export interface CallTarget {
  readonly call: ClientCall
  readonly method: RoundMethod
  /** The name of the tool or prompt, or the URI of the resource. */
  readonly name: string
  /** Its members of `params`, as JSON text: written once, so that every round sends exactly the same. */
  readonly members: string
}

export function targetOf(call: ClientCall): CallTarget {
  if ('tool' in call) return named('tools/call', call.tool, call.arguments, call)
  if ('prompt' in call) return named('prompts/get', call.prompt, call.arguments, call)
  const { resource: uri } = call
  if (typeof uri !== 'string') throw wrongOption('A call names one of tool, prompt and resource.')
  return { call, method: 'resources/read', name: uri, members: `"uri":${JSON.stringify(uri)}` }
}

export function targetOfPending({ method, params }: PendingCall): CallTarget {
  if (method === 'resources/read') return targetOf({ resource: params.uri })
  const { name, arguments: args } = params
  const given = args === undefined ? {} : { arguments: args }
  return targetOf(method === 'tools/call' ? { tool: name, ...given } : { prompt: name, ...(given as PromptArguments) })
}

type PromptArguments = Pick<PromptCall, 'arguments'>

/** The params that every round of a call sends, as they were when it began. */
export function paramsOf(target: CallTarget): Record<string, unknown> {
  return JSON.parse(`{${target.members}}`)
}

function named(
  method: 'tools/call' | 'prompts/get',
  name: string,
  args: Readonly<Record<string, unknown>> | undefined,
  call: ClientCall,
): CallTarget {
  if (typeof name !== 'string') throw wrongOption(`A call of ${method} needs the name of what is called.`)
  if (args !== undefined && !isObject(args)) throw wrongOption(`The arguments of ${name} must be an object.`)
  const argsText = args === undefined ? '' : `,"arguments":${toJsonText(args, `The arguments of ${name}`)}`
  return { call, method, name, members: `"name":${JSON.stringify(name)}${argsText}` }
}
