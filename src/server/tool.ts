// A tool as it is registered: checked and converted once, when the app is built.
import type { Asks, Io } from '../flow/io.ts'
import type { Form } from '../flow/question.ts'
import { prepareForm } from '../flow/question.ts'
import { RallyError } from '../protocol/errors.ts'
import type { Icon, Meta, Tool, ToolAnnotations } from '../protocol/messages.ts'
import type { Input, Output, Schema } from '../protocol/standard.ts'
import { jsonSchemaOf } from '../protocol/standard.ts'
import type { Check } from '../protocol/check.ts'
import { toCheck } from '../protocol/check.ts'
import type { ToolResult, ToolReturn } from './content.ts'

export interface ToolOptions<I extends Schema, A extends Asks, O extends Schema> {
  /** For the model: what it does, and when to use it. */
  description?: string
  /** For people. */
  title?: string
  /** What it takes. Default: no arguments. */
  input?: I
  /** What it gives as structured content. Default: whatever content the handler returns. */
  output?: O
  /** Schemas of the questions it asks, by key. */
  asks?: A
  /** The same string is compatible: a flow that has recorded steps goes on only under the version that recorded them. */
  version?: string
  annotations?: ToolAnnotations
  icons?: Icon[]
  /** Longest pass, in milliseconds. Default: the app's. */
  timeoutMs?: number
  _meta?: Meta
}

export type ToolHandler<I extends Schema, A extends Asks, O extends Schema> = (
  args: Output<I>,
  io: Io<A>,
) => Returned<O> | Promise<Returned<O>>

type Returned<O extends Schema> = Schema extends O ? ToolReturn : Input<O> | ToolResult

export interface RegisteredTool {
  readonly name: string
  readonly version: string | undefined
  readonly timeoutMs: number | undefined
  readonly checkInput: Check
  readonly checkOutput: Check | undefined
  readonly forms: ReadonlyMap<string, Form>
  /** Its entry in `tools/list`, as JSON text. */
  readonly listing: string
  readonly run: (args: unknown, io: Io) => unknown
}

const NAME = /^[A-Za-z0-9_.-]{1,128}$/

export function registerTool<I extends Schema, A extends Asks, O extends Schema>(
  name: string,
  options: ToolOptions<I, A, O>,
  handler: ToolHandler<I, A, O>,
): RegisteredTool {
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw new RallyError(
      'TOOL',
      `The tool name ${JSON.stringify(name)} is not valid: use 1 to 128 of A-Z a-z 0-9 _ - .`,
    )
  }
  if (typeof options !== 'object' || options === null || typeof handler !== 'function') {
    throw new RallyError('TOOL', `The tool "${name}" needs options and a handler: app.tool(name, options, handler).`)
  }
  const { input = NO_ARGUMENTS, output, asks = {}, version, timeoutMs } = options
  if (timeoutMs !== undefined && !(timeoutMs > 0)) {
    throw new RallyError('TOOL', `The tool "${name}" has a timeoutMs of ${timeoutMs}; it must be above 0.`)
  }
  const listing: Tool = {
    name,
    ...pick(options, ['title', 'description', 'annotations', 'icons', '_meta']),
    inputSchema: inputSchema(input, name),
    ...(output && { outputSchema: jsonSchemaOf(output, 'output', `The output of tool "${name}"`) }),
  }
  return {
    name,
    version,
    timeoutMs,
    checkInput: toCheck(input, `The input of tool "${name}"`),
    checkOutput: output && toCheck(output, `The output of tool "${name}"`),
    forms: new Map(Object.entries(asks as Asks).map(([key, ask]) => [key, prepareForm(ask, `${name}: asks.${key}`)])),
    listing: JSON.stringify(listing),
    run: handler as unknown as RegisteredTool['run'],
  }
}

const NO_ARGUMENTS = { type: 'object', additionalProperties: false } as const

function inputSchema(input: Schema, name: string): Tool['inputSchema'] {
  const schema = jsonSchemaOf(input, 'input', `The input of tool "${name}"`)
  if (schema['type'] !== 'object') {
    throw new RallyError('SCHEMA', `The input of tool "${name}" must be an object schema; arguments have names.`)
  }
  return schema as Tool['inputSchema']
}

function pick<T extends object, K extends keyof T>(from: T, keys: readonly K[]): Pick<T, K> {
  return Object.fromEntries(keys.filter((key) => from[key] !== undefined).map((key) => [key, from[key]])) as Pick<T, K>
}
