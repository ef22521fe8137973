// What a test runs: a handler as it was written, or a tool as it is registered on an app.
import type { PassInput } from '../flow/carrier.ts'
import { noTask } from '../flow/errors.ts'
import { isExpected } from '../flow/failure-log.ts'
import type { Asks } from '../flow/io.ts'
import type { Capability, Form } from '../flow/question.ts'
import { prepareForm } from '../flow/question.ts'
import type { Requirements } from '../flow/resolver.ts'
import { isPublicProtocolError, RallyError } from '../protocol/errors.ts'
import { toJsonText } from '../protocol/json.ts'
import type { CallToolResult } from '../protocol/messages.ts'
import { META_SERVER_INFO } from '../protocol/revisions/2026-07-28.ts'
import { shown } from '../protocol/text.ts'
import { App } from '../server/app.ts'
import type { RegisteredTool } from '../server/tool.ts'
import type { TestCaller } from './callers.ts'
import { sourceOf } from './callers.ts'
import type { Handler, Report, RunOptions } from './report.ts'
import { toRun } from './report.ts'
import type { Run, TaskKind } from './rounds.ts'

export interface Subject<R = unknown> {
  readonly run: Run
  readonly forms: ReadonlyMap<string, Form>
  readonly capabilities: readonly Capability[] | undefined
  /** What a pass gets beside what every test has. */
  readonly input: Partial<PassInput>
  readonly task: TaskKind
  /** The same for a pass of a task. Default: that of a test. */
  readonly taskInput?: Partial<PassInput> | undefined
  /** Turns the report of a run into the one for the author. */
  readonly conclude: (report: Report) => Report<R> | Promise<Report<R>>
}

/** How a test calls a registered tool. */
export interface ToolCallOptions {
  /** The arguments, as a client sends them. Default: `{}`. */
  args?: Readonly<Record<string, unknown>>
  /** Who is calling. Scopes and claims default to none. Default: an anonymous caller. */
  caller?: TestCaller
  /** The capabilities that the client declares. Without 'tasks' it gets none. Default: all. */
  capabilities?: readonly Capability[]
}

export function handlerSubject<Args, A extends Asks, N extends Requirements>(
  handler: Handler<Args, A, unknown, N>,
  options: RunOptions<Args, A, N>,
): Subject {
  const { capabilities, caller } = options
  const input: Partial<PassInput> = caller === undefined ? {} : { source: sourceOf(caller) }
  const asks: Asks = options.asks ?? {}
  const forms = new Map(Object.entries(asks).map(([key, schema]) => [key, prepareForm(schema, `asks.${key}`)]))
  return { run: toRun(handler, options), forms, capabilities, input, task: 'never', conclude: (report) => report }
}

/** A tool with everything that its app declares for it: schemas, defaults, needs, retries, limits, and how it becomes a task. */
export function toolSubject(
  app: App,
  name: string,
  { args = {}, caller, capabilities }: ToolCallOptions,
): Subject<CallToolResult> {
  const services = App.servicesOf(app)
  const tool = services.registry.tools.get(name)
  if (tool === undefined) {
    throw new RallyError('TOOL_INVALID', `The app has no tool ${shown(name)}. Register it with app.tool() first.`)
  }
  const { forms, method, timeoutMs, task = 'never' } = tool
  const { limits } = services.tasks ?? {}
  const input: Partial<PassInput> = {
    target: { method, target: name, task },
    limits: { journalBytes: services.seal.maxPlaintextBytes, passMs: timeoutMs ?? services.timeoutMs },
    waiting: services.waiting,
    steps: services.steps,
    source: sourceOf(caller),
    hasStore: services.tasks !== undefined,
  }
  const argsText = toJsonText(args, `The arguments of ${name}`)
  const canHaveTasks = capabilities?.includes('tasks') ?? true
  return {
    run: (io) => {
      if (task === 'always' && !canHaveTasks) throw noTask()
      return tool.run(JSON.parse(argsText), io)
    },
    forms,
    capabilities,
    input,
    taskInput: limits && {
      limits: { journalBytes: limits.maxJournalBytes, passMs: timeoutMs ?? limits.timeoutMs },
      waiting: limits.waiting,
    },
    task: taskKind(tool, services.tasks !== undefined && canHaveTasks),
    conclude: async (report) => {
      const { error } = report
      if (error === undefined) return { ...report, result: readResult(await tool.resultText(report.result, services)) }
      // A test that does not look at `error` would pass over it.
      if (!isAnswer(error)) throw error
      // Of a protocol error, a client gets no result.
      if (isPublicProtocolError(error)) return { ...report, result: undefined }
      return { ...report, result: readResult(tool.failureText(error, services)) }
    },
  }
}

/** True if the author wrote the failure for the caller. A `StepFailed` is expected in a log, but it is an answer only of a `ToolError`. */
function isAnswer(error: unknown): boolean {
  return isExpected(error) && error instanceof RallyError && error.isPublic
}

/** The result in the text of a reply, without what every reply has. */
function readResult(text: string): CallToolResult {
  const { _meta, resultType: _type, ...result } = JSON.parse(text) as CallToolResult & { resultType: unknown }
  const { [META_SERVER_INFO]: _server, ...meta } = _meta ?? {}
  return (Object.keys(meta).length === 0 ? result : { ...result, _meta: meta }) as CallToolResult
}

/** How the call becomes a task for this client. */
function taskKind({ task = 'never' }: RegisteredTool, hasTasks: boolean): TaskKind {
  if (!hasTasks || task === 'never') return 'never'
  return task === 'detach' ? 'detach' : 'always'
}
