// A client of one server.
import { isObject, toJsonText } from '../protocol/json.ts'
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
import { targetOf, targetOfPending } from './call.ts'
import type { ServerInfo } from './discovery.ts'
import { badResponse, wrongOption } from './errors.ts'
import type { DoneRound, CallRound, TaskRound } from './flow.ts'
import { ClientFlow } from './flow.ts'
import type { ClientContext } from './context.ts'
import type { ListEntries, ListKind } from './lists.ts'
import type { CallOptions, ListOptions } from './options.ts'
import type { PendingCall } from './pending.ts'
import { readPending } from './read-pending.ts'
import { checkComplete } from './round.ts'
import type { ServerChange, Subscription } from './subscription.ts'
import { subscribe } from './subscription.ts'
import { ClientTask } from './tasks/task.ts'
import { readSavedTask } from './tasks/read.ts'
import type { SavedTask } from './tasks/saved.ts'

/** A call that has its result already, or goes on at the server as a task. */
export type StartedCall = DoneRound<CallToolResult> | TaskRound

export class Client {
  readonly #context: ClientContext

  /** @internal `connect` makes one. */
  constructor(host: ClientContext) {
    this.#context = host
  }

  /** Who the server says it is, and what it says it can do. */
  get server(): ServerInfo {
    return this.#context.server
  }

  /** The revision of the protocol that is spoken with it. */
  get revision(): string {
    return this.#context.connection.revision
  }

  /** All tools, on however many pages. Over HTTP without those whose `x-mcp-header` is not valid. */
  listTools(options?: ListOptions): Promise<Tool[]> {
    return this.#list('tools', options)
  }

  listPrompts(options?: ListOptions): Promise<Prompt[]> {
    return this.#list('prompts', options)
  }

  listResources(options?: ListOptions): Promise<Resource[]> {
    return this.#list('resources', options)
  }

  listResourceTemplates(options?: ListOptions): Promise<ResourceTemplate[]> {
    return this.#list('resourceTemplates', options)
  }

  /** Calls a tool, however many rounds it takes, and waits for the task that it may become. A failure that the model is to read is a result with `isError`. */
  async callTool(
    name: string,
    args?: Readonly<Record<string, unknown>>,
    options: CallOptions = {},
  ): Promise<CallToolResult> {
    const call = { tool: name, ...(args !== undefined && { arguments: args }) }
    return new ClientFlow<CallToolResult>(this.#context, targetOf(call), options).finish()
  }

  /** Calls a tool, and does not wait for the task that it may become: `signal` and the limits are of the call until then. */
  async startTool(
    name: string,
    args?: Readonly<Record<string, unknown>>,
    options: CallOptions = {},
  ): Promise<StartedCall> {
    const call = { tool: name, ...(args !== undefined && { arguments: args }) }
    return new ClientFlow<CallToolResult>(this.#context, targetOf(call), options).start()
  }

  /** Takes up a task, by its id or what `JSON.stringify` made of it. Nothing is asked of the server yet. */
  task(saved: SavedTask | string): ClientTask {
    const { taskId: id, tool, pollIntervalMs } = readSavedTask(saved)
    return new ClientTask(this.#context, { id, pollIntervalMs, call: tool === undefined ? undefined : { tool } })
  }

  async getPrompt(
    name: string,
    args?: Readonly<Record<string, string>>,
    options: CallOptions = {},
  ): Promise<GetPromptResult> {
    const call = { prompt: name, ...(args !== undefined && { arguments: args }) }
    return new ClientFlow<GetPromptResult>(this.#context, targetOf(call), options).finish()
  }

  async readResource(uri: string, options: CallOptions = {}): Promise<ReadResourceResult> {
    return new ClientFlow<ReadResourceResult>(this.#context, targetOf({ resource: uri }), options).finish()
  }

  /** Values that an argument of a prompt, or a variable of a resource template, may have. */
  async complete(
    ref: PromptReference | ResourceTemplateReference,
    argument: { readonly name: string; readonly value: string },
    context?: Readonly<Record<string, string>>,
    options: Pick<CallOptions, 'signal' | 'timeoutMs'> = {},
  ): Promise<CompleteResult['completion']> {
    const params = { ref, argument, ...(context !== undefined && { context: { arguments: context } }) }
    const members = toJsonText(params, 'The completion').slice(1, -1)
    const { connection, limits } = this.#context
    const method = 'completion/complete'
    const deadline = connection.openDeadline(method, options.timeoutMs ?? limits.timeoutMs, options.signal)
    const { result } = await connection.withDeadline(deadline, () =>
      connection.request({ method, members, isIdempotent: true }, deadline),
    )
    checkComplete(result, method)
    return readCompletion(result['completion'])
  }

  /**
   * A call, or the pending round of one, a round at a time. Going on without having answered lets the client's answerers
   * answer; leaving the loop leaves the call where it is, with its `pending` to go on from.
   */
  async *rounds<C extends ClientCall | PendingCall>(
    call: C,
    options: CallOptions = {},
  ): AsyncGenerator<CallRound<ResultOf<C>>, void, undefined> {
    const pending = 'method' in call ? readPending(call) : undefined
    const target = pending === undefined ? targetOf(call as ClientCall) : targetOfPending(pending)
    yield* new ClientFlow<ResultOf<C>>(this.#context, target, options, pending).rounds()
  }

  /** Goes on with a call from its pending round, and to its end. Without an answer, the client's answerers are asked. */
  async resume<P extends PendingCall>(
    pending: P,
    answers?: InputResponses,
    options: CallOptions = {},
  ): Promise<ResultOf<P>> {
    const read = readPending(pending)
    return new ClientFlow<ResultOf<P>>(this.#context, targetOfPending(read), options, read).finish(answers)
  }

  /** Changes as they happen, until the signal or `close` ends it; leaving the loop ends it too. */
  subscribe(
    wish: Subscription,
    options: Pick<CallOptions, 'signal'> = {},
  ): AsyncGenerator<ServerChange, void, undefined> {
    const { connection, lists, limits } = this.#context
    return subscribe({ connection, lists, timeoutMs: limits.timeoutMs }, wish, options.signal)
  }

  /**
   * Tells the server that `onRoots` would now list others. Servers of older revisions keep what it listed, and ask again;
   * those of 2026-07-28 ask in every call that needs them, and are told nothing.
   */
  async rootsChanged(): Promise<void> {
    const { can, connection } = this.#context
    if (!can.has('roots')) throw wrongOption('This client lists no roots that could change: give connect onRoots.')
    await connection.notify('notifications/roots/list_changed')
  }

  /** Ends what is under way, and lets go of the server. Tasks go on there. */
  async close(): Promise<void> {
    const { tasks, connection } = this.#context
    const words = tasks?.cancellationsSent()
    if (words !== undefined) await words
    await connection.close()
  }

  async #list<K extends ListKind>(kind: K, options: ListOptions = {}): Promise<ListEntries[K][]> {
    const { connection, lists, limits } = this.#context
    const { refresh = false, timeoutMs = limits.timeoutMs, signal } = options
    const kept = refresh || connection.isClosed ? undefined : lists.fresh(kind)
    if (kept !== undefined) return kept
    const deadline = connection.openDeadline(`The list of ${kind}`, timeoutMs, signal)
    return connection.withDeadline(deadline, () => lists.fetch(kind, deadline))
  }
}

/** At most as many as the protocol allows. */
const MOST_VALUES = 100

function readCompletion(completion: unknown): CompleteResult['completion'] {
  const { values, total, hasMore } = isObject(completion) ? completion : {}
  if (!Array.isArray(values) || !values.every((value) => typeof value === 'string')) {
    throw badResponse('its completion has no list of values')
  }
  return {
    values: values.slice(0, MOST_VALUES),
    ...(typeof total === 'number' && { total }),
    ...(typeof hasMore === 'boolean' && { hasMore }),
  }
}
