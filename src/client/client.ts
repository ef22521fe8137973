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
import { isOwnMethod } from '../protocol/own-methods.ts'
import { META_SERVER_INFO } from '../protocol/revisions/2026-07-28.ts'
import type { Skill } from '../protocol/skills.ts'
import { SKILL_FILE } from '../protocol/skills.ts'
import { shown } from '../protocol/text.ts'
import type { ClientCall, ResultOf } from './call.ts'
import { readPending, targetOf, targetOfPending } from './call.ts'
import type { ServerInfo } from './discovery.ts'
import { badResponse, wrongOption } from './errors.ts'
import type { DoneRound, CallRound, TaskRound } from './flow.ts'
import { ClientFlow } from './flow.ts'
import type { ClientContext } from './context.ts'
import type { ListEntries, ListKind } from './lists.ts'
import type { CallOptions, ListOptions, ReadOptions, RequestOptions } from './options.ts'
import { checkComplete } from './round.ts'
import type { SkillFile } from './skills.ts'
import { checkSkill, fileOf, verifiedFile } from './skills.ts'
import type { ServerChange, Subscription } from './subscription.ts'
import { subscribe } from './subscription.ts'
import type { PendingCall, SavedTask } from './saved.ts'
import { readSavedTask } from './tasks/state.ts'
import { ClientTask } from './tasks/task.ts'
import type { TypedTools } from './typed-tools.ts'
import { typedTools } from './typed-tools.ts'

/** A call that has its result already, or continues on the server as a task. */
export type StartedCall = DoneRound<CallToolResult> | TaskRound

/** A connection to a server. `connect()` creates one. `S` is the type of the server: `typeof app`, or what `rally types` writes. Default: none, and `tools` is empty. */
export class Client<out S = unknown> {
  readonly #context: ClientContext
  #tools: TypedTools<S> | undefined

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

  /**
   * The tools of the server as functions, with the types of `connect<typeof app>()`. A tool with an output schema returns its
   * structured content, checked, and others return the whole result. A tool that failed throws `TOOL_FAILED`.
   *
   * @example
   * const { url } = await client.tools.deploy({ env: 'prod' })
   */
  get tools(): TypedTools<S> {
    return (this.#tools ??= typedTools<S>(this, this.#context))
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

  /** Returns all skills, from all pages. None of their files is read. */
  listSkills(options?: ListOptions): Promise<Skill[]> {
    return this.#list('skills', options)
  }

  /** Returns the skill with this SKILL.md, also if the server does not list it. */
  async getSkill(uri: string, options: RequestOptions = {}): Promise<Skill> {
    const { skill } = await this.#request('skills/get', { uri }, { ...options, isIdempotent: true })
    return checkSkill(skill, uri)
  }

  /**
   * Reads a file of a skill, and verifies it: it must be in the entry of the skill, with this size and digest. The frontmatter of
   * SKILL.md must be that of the entry. Throws `SKILL_UNVERIFIED` otherwise: then do not use the skill.
   */
  async readSkill(skill: Skill, path: string = SKILL_FILE, options: CallOptions = {}): Promise<SkillFile> {
    const file = fileOf(skill, path)
    return verifiedFile(skill, file, await this.readResource(file.uri, options))
  }

  /**
   * Sends a request for a method that the protocol does not have, such as one of an extension. Returns the result as the method
   * returned it: check it before you use it. It is sent once, except with `isIdempotent`.
   *
   * @example
   * const { rate } = await client.request('com.example/rates', { currency: 'EUR' })
   */
  async request(
    method: string,
    params: Readonly<Record<string, unknown>> = {},
    options: RequestOptions = {},
  ): Promise<Record<string, unknown>> {
    if (!isOwnMethod(method)) {
      throw wrongOption(
        `request(): the method must be a name such as com.example/thing, got ${shown(method)}. The protocol's own methods have functions of their own.`,
      )
    }
    if (!isObject(params) || Object.hasOwn(params, '_meta')) {
      throw wrongOption('request(): the params must be an object without _meta.')
    }
    assertJson(params, `The params of ${method}`)
    return withoutFrame(await this.#request(method, params, options))
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
    return new ClientFlow<CallToolResult>(this.#context, targetOf(call), options, { wantsTask: true }).start()
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

  /** Reads a resource, in as many rounds as it takes. A result that is still fresh, as the server says, comes from the cache. */
  async readResource(uri: string, options: ReadOptions = {}): Promise<ReadResourceResult> {
    const { lists, connection, callerKey } = this.#context
    const { refresh = false, meta } = options
    // What the server makes of `meta` is not known here.
    const mayCache = meta === undefined && !connection.isClosed
    const caller = mayCache ? await callerKey?.() : undefined
    const cached = mayCache && !refresh ? lists.reads.find(uri, caller) : undefined
    if (cached !== undefined) return cached
    const { changes } = lists.reads
    const since = performance.now()
    const flow = new ClientFlow<ReadResourceResult>(this.#context, targetOf({ resource: uri }), options)
    const result = await flow.finish()
    // The result of a read that asked the user belongs to the answers.
    if (mayCache && flow.isOneRound && changes === lists.reads.changes) lists.reads.keep(uri, result, caller, since)
    return result
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
    const { completion } = await this.#request('completion/complete', params, { ...options, isIdempotent: true })
    return readCompletion(completion)
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
    yield* new ClientFlow<ResultOf<C>>(
      this.#context,
      target,
      options,
      pending === undefined ? {} : { pending },
    ).rounds()
  }

  /** Resumes a call from its pending round and runs it to its result. Questions without an answer go to the client's answerers. */
  async resume<P extends PendingCall>(
    pending: P,
    answers?: InputResponses,
    options: CallOptions = {},
  ): Promise<ResultOf<P>> {
    const read = readPending(pending)
    return new ClientFlow<ResultOf<P>>(this.#context, targetOfPending(read), options, { pending: read }).finish(answers)
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

  /** A request that takes one round. */
  async #request(
    method: string,
    params: Readonly<Record<string, unknown>>,
    { timeoutMs, signal, isIdempotent = false, onProgress }: RequestOptions,
  ): Promise<Record<string, unknown>> {
    const { connection, limits } = this.#context
    const deadline = connection.openDeadline(method, timeoutMs ?? limits.timeoutMs, signal)
    const { result } = await connection.withDeadline(deadline, () =>
      connection.request({ method, params, isIdempotent, onProgress }, deadline),
    )
    checkComplete(result, method)
    return result
  }

  async #list<K extends ListKind>(kind: K, options: ListOptions = {}): Promise<ListEntries[K][]> {
    const { connection, lists, limits, callerKey } = this.#context
    const { refresh = false, timeoutMs = limits.timeoutMs, signal } = options
    const caller = callerKey === undefined ? undefined : await callerKey()
    const cached = refresh || connection.isClosed ? undefined : lists.cached(kind, caller)
    if (cached !== undefined) return cached
    const deadline = connection.openDeadline(`The list of ${kind}`, timeoutMs, signal)
    return connection.withDeadline(deadline, () => lists.fetch(kind, deadline, caller))
  }
}

/** The result without what every result of the protocol has. */
function withoutFrame({ resultType: _type, _meta, ...result }: Record<string, unknown>): Record<string, unknown> {
  const { [META_SERVER_INFO]: _server, ...meta } = isObject(_meta) ? _meta : {}
  return Object.keys(meta).length === 0 ? result : { ...result, _meta: meta }
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
