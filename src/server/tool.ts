// Registers a tool: everything is checked and converted once, when the app is built.
import type { Asks, Io } from '../flow/io.ts'
import type { Requirements, ResolvedNeeds } from '../flow/resolver.ts'
import { toCheck } from '../schema/validator.ts'
import { RallyError } from '../protocol/errors.ts'
import type { Icon, Meta, Tool, ToolAnnotations } from '../protocol/messages.ts'
import type { Input, Output, Schema } from '../schema/standard.ts'
import { jsonSchemaOf } from '../schema/standard.ts'
import type { ToolResult, ToolReturn } from './content.ts'
import { errorText, messageOf, resultText, structuredText } from './content.ts'
import type { AnotherRound, Handled, HandlerOptions, ReturnWithNeeds, Unchanged } from './handler.ts'
import { checkedRun, checkNone, NO_ARGUMENTS, pick, prepareHandler } from './handler.ts'
import type { ParamHeader } from '../schema/param-headers.ts'
import { paramHeaders } from '../schema/param-headers.ts'
import type { Target, RoundServices } from './round.ts'
import { protocolErrorOf } from './failure.ts'
import { isObject } from '../protocol/json.ts'
import { shown } from '../protocol/text.ts'
import type { TaskGroupOf } from './task-group.ts'
import { readTaskGroup } from './task-group.ts'
import type { TaskMode, ToolTaskOptions } from './tasks.ts'

/** Options of `app.tool()`. */
export interface ToolOptions<I extends Schema, A extends Asks, O extends Schema, N> extends HandlerOptions<A, N> {
  /** Tells the model what the tool does, and when to use it. Default: none. */
  description?: string
  /** The name for people. Default: clients show the name. */
  title?: string
  /** The schema of the arguments. HTTP clients repeat a property with `x-mcp-header` in that header. Default: no arguments. */
  input?: I
  /** The schema of the structured content. Default: none, and the handler returns content. */
  output?: O
  /** Hints of the protocol, such as `readOnlyHint`. Default: none. */
  annotations?: ToolAnnotations
  /** When a call becomes a task, which needs a `store`, and how many run at a time. Default: when the handler calls `io.detach()`. */
  task?: TaskMode | ToolTaskOptions<Output<I>>
  /**
   * Whether the tool has a page for its questions, in apps with the option `apps`. Default: true if it has `asks` or `needs`, and no
   * page of its own in `_meta.ui`.
   */
  apps?: boolean
  /** Icons for clients to show. Default: none. */
  icons?: Icon[]
  /** Sent with the tool in `tools/list`. Default: none. */
  _meta?: Meta
}

/** `R` is the type of the returned value as written, so that literals stay literals: the `type` of a block, an enum value. */
export type ToolHandler<
  I extends Schema,
  A extends Asks,
  O extends Schema,
  N,
  R extends Returned<O, N> = Returned<O, N>,
> = (args: Output<I>, io: Io<A>, needs: ResolvedNeeds<N>) => R | Promise<R>

export type Returned<O extends Schema, N = {}> =
  | Unchanged<Schema extends O ? ToolReturn : Input<O> | ToolResult>
  | ReturnWithNeeds<AnotherRound, N>

/** A tool as its clients know it: the arguments before they are validated, and the structured content if the tool has an output schema. */
export type ToolTypes<I extends Schema, O extends Schema> = Schema extends O
  ? { readonly input: Input<I> }
  : { readonly input: Input<I>; readonly output: Output<O> }

export interface RegisteredTool extends Handled, Target {
  readonly resultText: (value: unknown, host: RoundServices) => string | Promise<string>
  /** The arguments that an HTTP request must repeat in its headers. */
  readonly headers: readonly ParamHeader[]
  /** Which of its tasks may not all run at a time. `undefined` if there is no limit. */
  readonly taskGroup: TaskGroupOf | undefined
  /** True if it may ask in a page of the client's host. */
  readonly apps: boolean
  /** Its entry in `tools/list`. */
  readonly listing: Tool
}

const NAME = /^[A-Za-z0-9_.-]{1,128}$/

export function registerTool<I extends Schema, A extends Asks, O extends Schema, N extends Requirements<Output<I>>>(
  name: string,
  options: ToolOptions<I, A, O, N>,
  handler: ToolHandler<I, A, O, N>,
): RegisteredTool {
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw new RallyError(
      'TOOL_INVALID',
      `The tool name ${JSON.stringify(name)} is not valid. Use 1 to 128 characters of A-Z a-z 0-9 _ - .`,
    )
  }
  if (typeof options !== 'object' || options === null || typeof handler !== 'function') {
    throw new RallyError(
      'TOOL_INVALID',
      `Tool "${name}" needs options and a handler. Write app.tool(name, options, handler).`,
    )
  }
  const { input, output } = options
  const schema = inputSchema(input ?? NO_ARGUMENTS, name)
  const listing: Tool = {
    name,
    ...pick(options, ['title', 'description', 'annotations', 'icons', '_meta']),
    inputSchema: schema,
    ...(output && { outputSchema: jsonSchemaOf(output, 'output', `The output of tool "${name}"`) }),
  }
  checkHints(options.annotations, name)
  const handled = prepareHandler(`Tool "${name}"`, options, handler)
  const checkInput = input === undefined ? checkNone : toCheck(input, `The input of tool "${name}"`)
  const checkOutput = output && toCheck(output, `The output of tool "${name}"`)
  const task = readTask(options.task)
  // Becomes a result and not a protocol error, so that the model can read it and try again.
  const invalid = (issues: string[]): Error =>
    new RallyError('ARGUMENTS_INVALID', `Invalid arguments for ${name}: ${issues.join('; ')}`)
  return {
    ...handled,
    method: 'tools/call',
    target: name,
    task: readMode(task.mode, name),
    taskGroup: task.concurrency && readTaskGroup(name, task.concurrency, checkInput),
    run: checkedRun(handled.run, checkInput, invalid),
    resultText: (value, { serverMeta, showErrors }) =>
      checkOutput === undefined
        ? resultText(value, serverMeta)
        : structuredText(value, { check: checkOutput, showErrors }, serverMeta),
    failureText: (error, { serverMeta }) => {
      const protocolError = protocolErrorOf(error)
      if (protocolError === undefined) return errorText(messageOf(error), serverMeta)
      throw protocolError
    },
    headers: paramHeaders(schema, name),
    apps: readApps(options, name),
    listing,
  }
}

/** Clients that read 'false' take it for true. */
function checkHints(annotations: object | undefined, name: string): void {
  for (const [hint, value] of Object.entries(annotations ?? {})) {
    if (!hint.endsWith('Hint') || value === undefined || typeof value === 'boolean') continue
    throw new RallyError('TOOL_INVALID', `Tool "${name}": \`${hint}\` must be true or false, got ${shown(value)}.`)
  }
}

function readTask<Args>(task: TaskMode | ToolTaskOptions<Args> | undefined): ToolTaskOptions<Args> {
  return isObject(task) ? task : { ...(task !== undefined && { mode: task as TaskMode }) }
}

function readMode(mode: unknown, name: string): TaskMode | 'detach' {
  if (mode === undefined) return 'detach'
  if (mode === 'always' || mode === 'optional' || mode === 'never') return mode
  throw new RallyError(
    'TOOL_INVALID',
    `Tool "${name}": \`task\` must be 'always', 'optional' or 'never', or an object with it as \`mode\`, got ${shown(mode)}.`,
  )
}

function readApps(
  { apps, asks = {}, needs = {}, _meta }: ToolOptions<Schema, Asks, Schema, object>,
  name: string,
): boolean {
  if (typeof apps === 'boolean') return apps
  if (apps !== undefined) {
    throw new RallyError('TOOL_INVALID', `Tool "${name}": \`apps\` must be true or false, got ${shown(apps)}.`)
  }
  const ui = _meta?.['ui']
  if (isObject(ui) && ui['resourceUri'] !== undefined) return false
  return Object.keys(asks).length + Object.keys(needs).length > 0
}

function inputSchema(input: Schema, name: string): Tool['inputSchema'] {
  const schema = jsonSchemaOf(input, 'input', `The input of tool "${name}"`)
  if (schema['type'] !== 'object') {
    throw new RallyError(
      'SCHEMA_INVALID',
      `The input of tool "${name}" must be an object schema, because arguments have names.`,
    )
  }
  return schema as Tool['inputSchema']
}
