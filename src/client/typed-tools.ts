// `client.tools`: the server's tools as functions. The types say which there are; at run time any name is a function.
import type { CallToolResult } from '../protocol/messages.ts'
import { shown } from '../protocol/text.ts'
import type { ClientContext } from './context.ts'
import { ClientError } from './errors.ts'
import type { CallOptions, ListOptions } from './options.ts'

/** The tools of a server as functions, by its type. Empty if the type has no tools. */
export type TypedTools<S> = S extends { readonly '~types'?: { readonly tools: infer T } }
  ? { readonly [Name in keyof T]: TypedTool<T[Name]> }
  : {}

/** A tool as a function. The arguments may be left out if none is required. */
export type TypedTool<T> = T extends { readonly input: infer In }
  ? {} extends In
    ? (args?: In, options?: CallOptions) => Promise<TypedResult<T>>
    : (args: In, options?: CallOptions) => Promise<TypedResult<T>>
  : never

/** The structured content of a tool with an output schema, and else the whole result. */
export type TypedResult<T> = T extends { readonly output: infer Out } ? Out : CallToolResult

/** The part of a client that calls and lists tools. */
interface ToolClient {
  callTool(name: string, args?: Readonly<Record<string, unknown>>, options?: CallOptions): Promise<CallToolResult>
  listTools(options: ListOptions): Promise<unknown>
}

/** Reads the list of tools before the first call, so that every result is checked against its schema. */
export function typedTools<S>(client: ToolClient, context: ClientContext): TypedTools<S> {
  const { tools, connection, limits } = context
  let reading: Promise<unknown> | undefined
  /** Calls that begin together read the list once. */
  const readList = (): Promise<unknown> =>
    (reading ??= client.listTools({ refresh: true }).finally(() => {
      reading = undefined
    }))
  const call = async (name: string, args?: Readonly<Record<string, unknown>>, options: CallOptions = {}) => {
    const { timeoutMs = limits.timeoutMs, signal } = options
    const learn = async (): Promise<number> => {
      const deadline = connection.openDeadline('The list of tools', timeoutMs, signal)
      await connection.withDeadline(deadline, () =>
        deadline.wait((resolve, reject) => {
          readList().then(resolve, reject)
          return () => {}
        }),
      )
      return deadline.leftMs
    }
    const leftMs = tools.knows(name) ? timeoutMs : await learn()
    const result = await client.callTool(name, args, { ...options, timeoutMs: leftMs })
    if (result.isError === true) throw failed(name, result)
    // The call may have got scopes without which the server does not list the tool.
    if (!tools.knows(name)) await learn()
    return tools.hasOutput(name) ? result.structuredContent : result
  }
  return new Proxy({} as TypedTools<S> & object, {
    // `await client.tools` must not find a `then`.
    get: (_, name) => (typeof name === 'symbol' || name === 'then' ? undefined : call.bind(undefined, name)),
  })
}

function failed(name: string, result: CallToolResult): ClientError {
  const text = result.content.map((block) => (block.type === 'text' ? block.text : '')).join('\n')
  const error = new ClientError('TOOL_FAILED', `Tool ${shown(name)} failed: ${text.trim() || 'it does not say why'}`)
  error.result = result
  return error
}
