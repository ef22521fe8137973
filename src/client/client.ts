// A client of one server.
import { assertJson, isObject } from '../protocol/json.ts'
import type {
  CallToolResult,
  CompleteResult,
  GetPromptResult,
  InputResponses,
  Prompt,
  PromptReference,
  ReadResourceResult,
  Resource,
  ResourceTemplate,
  ResourceTemplateReference,
  Tool,
} from '../protocol/messages.ts'
import type { ClientCall, ResultOf } from './call.ts'
import { readPending, targetOf, targetOfPending } from './call.ts'
import type { ServerInfo } from './discovery.ts'
import { badResponse, wrongOption } from './errors.ts'
import type { DoneRound, CallRound, TaskRound } from './flow.ts'
import { ClientFlow } from './flow.ts'
import type { ClientContext } from './context.ts'
import type { ListEntries, ListKind } from './lists.ts'
import type { CallOptions, ListOptions } from './options.ts'
import { checkComplete } from './round.ts'
import type { ServerChange, Subscription } from './subscription.ts'
import { subscribe } from './subscription.ts'
import type { PendingCall, SavedTask } from './saved.ts'
import { readSavedTask } from './tasks/state.ts'
import { ClientTask } from './tasks/task.ts'

/** A call that has its result already, or continues on the server as a task. */
export type StartedCall = DoneRound<CallToolResult> | TaskRound

export class Client {
  readonly #context: ClientContext

  /** @internal Use `connect()`. */
  constructor(host: ClientContext) {
    this.#context = host
  }

  /** The name, version and capabilities of the server, as it describes itself. */
  get server(): ServerInfo {
    return this.#context.server
  }

  /** The revision of the protocol that this connection uses. */
  get revision(): string {
    return this.#context.connection.revision
  }

  /** Returns all tools, from all pages. Over HTTP it leaves out tools whose `x-mcp-header` is not valid. */
  listTools(options?: ListOptions): Promise<Tool[]> {
    return this.#list('tools', options)
  }

  /** Returns all prompts, from all pages. */
  listPrompts(options?: ListOptions): Promise<Prompt[]> {
    return this.#list('prompts', options)
  }

  /** Returns all resources, from all pages. */
  listResources(options?: ListOptions): Promise<Resource[]> {
    return this.#list('resources', options)
  }

  /** Returns all resource templates, from all pages. */
  listResourceTemplates(options?: ListOptions): Promise<ResourceTemplate[]> {
    return this.#list('resourceTemplates', options)
  }

  /**
   * Calls a tool, in as many rounds as it takes, and waits if the call becomes a task. A failure that the model should
   * read is a result with `isError`.
   */
  async callTool(
    name: string,
    args?: Readonly<Record<string, unknown>>,
    options: CallOptions = {},
  ): Promise<CallToolResult> {
    const call = { tool: name, ...(args !== undefined && { arguments: args }) }
    return new ClientFlow<CallToolResult>(this.#context, targetOf(call), options).finish()
  }

  /** Calls a tool, and returns as soon as the call becomes a task. `signal` and the limits apply until then. */
  async startTool(
    name: string,
    args?: Readonly<Record<string, unknown>>,
    options: CallOptions = {},
  ): Promise<StartedCall> {
    const call = { tool: name, ...(args !== undefined && { arguments: args }) }
    return new ClientFlow<CallToolResult>(this.#context, targetOf(call), options).start()
  }

  /** Returns a handle on a task, by its id or its saved JSON. Sends nothing to the server yet. */
  task(saved: SavedTask | string): ClientTask {
    const { taskId: id, tool, pollIntervalMs } = readSavedTask(saved)
    return new ClientTask(this.#context, { id, pollIntervalMs, call: tool === undefined ? undefined : { tool } })
  }

  /** Gets a prompt, in as many rounds as it takes. */
  async getPrompt(
    name: string,
    args?: Readonly<Record<string, string>>,
    options: CallOptions = {},
  ): Promise<GetPromptResult> {
    const call = { prompt: name, ...(args !== undefined && { arguments: args }) }
    return new ClientFlow<GetPromptResult>(this.#context, targetOf(call), options).finish()
  }

  /** Reads a resource, in as many rounds as it takes. */
  async readResource(uri: string, options: CallOptions = {}): Promise<ReadResourceResult> {
    return new ClientFlow<ReadResourceResult>(this.#context, targetOf({ resource: uri }), options).finish()
  }

  /** Returns suggestions for an argument of a prompt or a variable of a resource template. */
  async complete(
    ref: PromptReference | ResourceTemplateReference,
    argument: { readonly name: string; readonly value: string },
    context?: Readonly<Record<string, string>>,
    options: Pick<CallOptions, 'signal' | 'timeoutMs'> = {},
  ): Promise<CompleteResult['completion']> {
    const params = { ref, argument, ...(context !== undefined && { context: { arguments: context } }) }
    assertJson(params, 'The completion')
    const { connection, limits } = this.#context
    const method = 'completion/complete'
    const deadline = connection.openDeadline(method, options.timeoutMs ?? limits.timeoutMs, options.signal)
    const { result } = await connection.withDeadline(deadline, () =>
      connection.request({ method, params, isIdempotent: true }, deadline),
    )
    checkComplete(result, method)
    return readCompletion(result['completion'])
  }

  /**
   * Runs a call, or resumes a pending round, one round at a time. Questions that the loop does not answer go to the
   * client's answerers. Leaving the loop leaves the call as it is: its `pending` can be resumed.
   */
  async *rounds<C extends ClientCall | PendingCall>(
    call: C,
    options: CallOptions = {},
  ): AsyncGenerator<CallRound<ResultOf<C>>, void, undefined> {
    const pending = 'method' in call ? readPending(call) : undefined
    const target = pending === undefined ? targetOf(call as ClientCall) : targetOfPending(pending)
    yield* new ClientFlow<ResultOf<C>>(this.#context, target, options, pending).rounds()
  }

  /** Resumes a call from its pending round and runs it to its result. Questions without an answer go to the client's answerers. */
  async resume<P extends PendingCall>(
    pending: P,
    answers?: InputResponses,
    options: CallOptions = {},
  ): Promise<ResultOf<P>> {
    const read = readPending(pending)
    return new ClientFlow<ResultOf<P>>(this.#context, targetOfPending(read), options, read).finish(answers)
  }

  /** Yields changes on the server as they happen. Ends with the signal, with `close()`, or when the loop is left. */
  subscribe(
    wish: Subscription,
    options: Pick<CallOptions, 'signal'> = {},
  ): AsyncGenerator<ServerChange, void, undefined> {
    const { connection, lists, limits } = this.#context
    return subscribe({ connection, lists, timeoutMs: limits.timeoutMs }, wish, options.signal)
  }

  /**
   * Tells the server that the roots have changed. Servers of 2025 revisions cache them and then ask again. A server of
   * 2026-07-28 asks in every call that needs them, so nothing is sent to it.
   */
  async rootsChanged(): Promise<void> {
    const { can, connection } = this.#context
    if (!can.has('roots'))
      throw wrongOption('rootsChanged(): this client does not declare roots. Pass onRoots to connect().')
    await connection.notify('notifications/roots/list_changed')
  }

  /** Ends all calls and closes the connection. Tasks keep running on the server. */
  async close(): Promise<void> {
    const { tasks, connection } = this.#context
    const cancellations = tasks?.cancellationsSent()
    if (cancellations !== undefined) await cancellations
    await connection.close()
  }

  async #list<K extends ListKind>(kind: K, options: ListOptions = {}): Promise<ListEntries[K][]> {
    const { connection, lists, limits } = this.#context
    const { refresh = false, timeoutMs = limits.timeoutMs, signal } = options
    const cached = refresh || connection.isClosed ? undefined : lists.cached(kind)
    if (cached !== undefined) return cached
    const deadline = connection.openDeadline(`The list of ${kind}`, timeoutMs, signal)
    return connection.withDeadline(deadline, () => lists.fetch(kind, deadline))
  }
}

/** As many as the protocol allows. */
const MAX_VALUES = 100

function readCompletion(completion: unknown): CompleteResult['completion'] {
  const { values, total, hasMore } = isObject(completion) ? completion : {}
  if (!Array.isArray(values) || !values.every((value) => typeof value === 'string')) {
    throw badResponse('completion/complete: completion.values must be a list of strings')
  }
  return {
    values: values.slice(0, MAX_VALUES),
    ...(typeof total === 'number' && { total }),
    ...(typeof hasMore === 'boolean' && { hasMore }),
  }
}
