// The app: what is registered on it, how messages reach it, and how it drains.
import type { Caller } from '../flow/caller.ts'
import type { Asks } from '../flow/io.ts'
import type { Requirements } from '../flow/resolver.ts'
import { atCaller, RallyError } from '../protocol/errors.ts'
import type { Logger } from '../protocol/logger.ts'
import type { Implementation } from '../protocol/messages.ts'
import { META_SERVER_INFO } from '../protocol/revisions/2026-07-28.ts'
import type { ServerTypes } from '../protocol/server-types.ts'
import type { NoArguments, Output, Schema } from '../schema/standard.ts'
import { StoreOutages } from '../store/outages.ts'
import { checkToolName } from './apps.ts'
import { recordUsages } from './single-use.ts'
import type { Apps, AppServices, RequestContext } from './context.ts'
import { dispatch } from './dispatch.ts'
import { Handover } from './handover.ts'
import type { Legacy } from './legacy.ts'
import type { Middleware } from './middleware.ts'
import { checkMiddleware } from './middleware.ts'
import type { AppOptions, ResolvedOptions } from './options.ts'
import { readOptions } from './options.ts'
import type { AnswerPage } from './page.ts'
import type { MethodHandler, MethodOptions } from './own-method.ts'
import { registerMethod } from './own-method.ts'
import type { PromptHandler, PromptOptions } from './prompt.ts'
import { registerPrompt } from './prompt.ts'
import type { Readiness, ReadinessOptions } from './readiness.ts'
import { ReadinessCheck } from './readiness.ts'
import { Registry } from './registry.ts'
import type { Reply } from './reply.ts'
import { readMeta } from './request.ts'
import type { Resolved } from './resolve.ts'
import { resolve } from './resolve.ts'
import type { ResourceOptions, ResourceReader, TemplateOptions, TemplateReader } from './resource.ts'
import { registerResource, registerTemplate } from './resource.ts'
import type { SkillFolder, SkillOptions } from './skill.ts'
import { registerSkill } from './skill.ts'
import { RequestSource } from './source.ts'
import type { SignalOutcome, Tasks } from './tasks.ts'
import type { ChangeNotifier } from './subscriptions.ts'
import { inProcessBus, Subscriptions } from './subscriptions.ts'
import type { Returned, ToolHandler, ToolOptions, ToolTypes } from './tool.ts'
import { registerTool } from './tool.ts'
import type { TemplateVariables } from './uri-template.ts'

/** The parts of an app that `server/` does not know: sessions of older revisions, tasks, questions in pages. Default: the app has none. */
export interface AppParts {
  legacy?: ((app: AppServices) => Legacy) | undefined
  tasks?: ((app: AppServices) => Tasks) | undefined
  apps?: ((app: AppServices) => Apps) | undefined
}

type ListedType = 'tools' | 'prompts' | 'resources'

/** What an app has on every host: registering, serving messages, draining. `rally()` creates one. */
export class App {
  /** The name, version and other details that clients read. */
  readonly info: Implementation
  /** The option `logger`, or the default log. */
  readonly logger: Logger
  /** Notifies subscribed clients of changes. */
  readonly notify: ChangeNotifier
  /** Serves 2025-era clients. Hosts pass their messages to it. `undefined` with `legacy: false`. */
  readonly legacy: Legacy | undefined
  readonly #registry: Registry
  readonly #subscriptions: Subscriptions
  readonly #handover: Handover
  readonly #services: AppServices
  readonly #readiness: ReadinessCheck
  readonly #changes = new Set<ListedType>()
  readonly #middleware: Middleware[] = []
  #warnedEphemeral = false

  constructor(options: AppOptions, { legacy, tasks, apps }: AppParts = {}) {
    const resolved = readOptions(options)
    this.info = resolved.info
    this.logger = resolved.logger
    this.#registry = new Registry(resolved.lists, resolved.limits, this.logger, resolved.extensions)
    this.#subscriptions = new Subscriptions(options.bus ?? inProcessBus(), this.logger, {
      limits: resolved.limits,
      scopesOf: (uri) => this.#registry.scopesOf(uri),
    })
    this.#handover = new Handover(options.shed, this.logger)
    this.#services = this.#createServices(options, resolved, { tasks, apps })
    this.#readiness = new ReadinessCheck(() => this.#services.tasks?.reachStore(), this.logger)
    this.notify = notifier(this.#subscriptions)
    this.legacy = legacy?.(this.#services)
  }

  /** For the rooms above this one, such as the test kit. An app does not show its services to its users. */
  static servicesOf(app: App): AppServices {
    return app.#services
  }

  /**
   * Registers a tool. Throws here, and not at the first call, when its name or a schema is not valid. The type of the returned app
   * has the tool, for `connect<typeof app>()`.
   */
  tool<
    I extends Schema = NoArguments,
    const A extends Asks = {},
    O extends Schema = Schema,
    const N extends Requirements<Output<I>> = {},
    const R extends Returned<O, N> = Returned<O, N>,
    const Name extends string = string,
  >(
    name: Name,
    options: ToolOptions<I, A, O, N>,
    handler: ToolHandler<I, A, O, N, R>,
  ): this & ServerTypes<{ readonly [K in Name]: ToolTypes<I, O> }> {
    return this.#register('tool', 'tools', () => {
      const tool = registerTool(name, options, handler)
      if (this.#services.apps !== undefined) checkToolName(name)
      if (tool.task === 'always' && this.#services.tasks === undefined) {
        throw new RallyError(
          'STORE_REQUIRED',
          `Tool "${name}": \`task: 'always'\` needs a store. Pass one to rally({ store }).`,
        )
      }
      this.#registry.tools.add(name, tool)
    })
  }

  /** Registers a prompt. Like a tool, it may take several rounds. */
  prompt<I extends Schema = NoArguments, const A extends Asks = {}, const N extends Requirements<Output<I>> = {}>(
    name: string,
    options: PromptOptions<I, A, N>,
    handler: PromptHandler<I, A, N>,
  ): this {
    return this.#register('prompt', 'prompts', () => {
      this.#registry.prompts.add(name, registerPrompt(name, options, handler))
    })
  }

  /** Registers the resource of one URI. */
  resource<const A extends Asks = {}, const N extends Requirements = {}>(
    uri: string,
    options: ResourceOptions<A, N>,
    read: ResourceReader<A, N>,
  ): this {
    return this.#register('resource', 'resources', () => {
      this.#registry.resources.add(uri, registerResource(uri, options, read))
    })
  }

  /** Registers resources by an RFC 6570 template of their URIs. The first template that matches a URI reads it. */
  resourceTemplate<
    const T extends string,
    const A extends Asks = {},
    const N extends Requirements<TemplateVariables<T>> = {},
  >(uriTemplate: T, options: TemplateOptions<A, N>, read: TemplateReader<T, A, N>): this {
    return this.#register('resourceTemplate', 'resources', () => {
      this.#registry.resourceTemplates.add(uriTemplate, registerTemplate(uriTemplate, options, read))
    })
  }

  /**
   * Runs a function around every request of a client: see `Middleware`. The first one registered is the outermost.
   *
   * @example
   * app.use(async (call, next) => {
   *   const result = await next()
   *   console.log(call.method, call.target, result.outcome)
   *   return result
   * })
   */
  use(middleware: Middleware): this {
    this.#checked('use', () => checkMiddleware(middleware))
    this.#middleware.push(middleware)
    return this
  }

  /**
   * Registers a method of your own, such as one of an extension. Clients call it with `client.request()`. It takes one round.
   *
   * @example
   * app.method('com.example/rates', { params: z.object({ currency: z.string() }) }, ({ currency }) => ({ rate: rates[currency] }))
   */
  method<P extends Schema = NoArguments>(name: string, options: MethodOptions<P>, handler: MethodHandler<P>): this {
    return this.#register('method', undefined, () => {
      this.#registry.addMethod(registerMethod(name, options, handler))
    })
  }

  /** Registers a skill: instructions for the model, perhaps with further files, that clients load when they need them. */
  skill(path: string, options: SkillOptions, instructions: string): this
  skill(path: string, folder: SkillFolder): this
  skill(path: string, options: SkillOptions | SkillFolder, instructions?: string): this {
    return this.#register('skill', 'resources', () => {
      this.#registry.addSkill(registerSkill(path, options, instructions))
    })
  }

  /** Answers a parsed JSON-RPC message. Resolves to `undefined` when there is no response, as to a notification. Never throws. */
  dispatch(message: unknown, context: RequestContext = {}): Promise<Reply | undefined> {
    return this.serve(this.resolve(message), context)
  }

  /** Reads a parsed message, for a host that checks it before it is served. Never throws. */
  resolve(message: unknown): Resolved {
    return resolve(this.#registry, message)
  }

  /**
   * The message as it is for this caller, for a host that checks scopes: what is hidden from the caller is not found. Only for
   * messages of 2026-07-28. Never throws.
   */
  seenBy(message: Resolved, caller: Caller | undefined): Resolved {
    const { registry, limits } = this.#services
    if (!registry.hides) return message
    const { meta } = message
    try {
      return registry.seenBy(message, new RequestSource({ info: readMeta(meta), meta, caller }, limits))
    } catch {
      // It is answered with an error in any case, and must not say by its kind whether the target exists.
      return { ...message, target: undefined, completion: undefined, own: undefined, scopes: undefined }
    }
  }

  /** Answers a resolved message. Never throws. */
  serve(message: Resolved, context: RequestContext): Promise<Reply | undefined> {
    this.work()
    return dispatch(this.#services, message, context)
  }

  /** The page on which users answer who opened a link. Hosts serve it. `undefined` without the option `page`. */
  get page(): AnswerPage | undefined {
    return this.#services.apps?.page
  }

  /**
   * Sends an event to the task that waits for it with `io.event()`, or will. Works in any process that has the keys, the audience
   * (the name, by default) and the store. The first event wins; for a further one it returns 'repeated'. Throws EVENT_REFUSED if the
   * token is wrong or expired or the task has ended, and EVENT_MISMATCH if the value does not match the schema. Default value: null.
   *
   * @example
   * await app.signal(token, { approved: true })
   */
  signal(token: string, value: unknown = null): Promise<SignalOutcome> {
    const { tasks } = this.#services
    if (tasks !== undefined) return tasks.signal(token, value)
    throw new RallyError('STORE_REQUIRED', 'app.signal() needs a store. Pass one to rally({ store }).')
  }

  /** True if the app takes events from outside: it has a store. */
  get takesEvents(): boolean {
    return this.#services.tasks !== undefined
  }

  /** True once `drain()` was called: the app begins nothing new. */
  get draining(): boolean {
    return this.#handover.draining
  }

  /**
   * Whether this instance should get requests: it is not shutting down, its store answers within 0.8 s, and its event loop is not
   * late. For a probe in a server of your own; `serve()` answers `/readyz` with it. Kept for half a second. Never rejects.
   */
  readiness(options?: ReadinessOptions): Promise<Readiness> {
    return this.#readiness.read(options)
  }

  /** The instance will shut down: `readiness()` says so from now on. Everything is still served, until `drain()`. */
  failReadiness(): void {
    this.#readiness.leave()
  }

  /** Starts working on tasks, if the app has a store. Hosts call it. A second call does nothing. */
  work(): void {
    this.#services.tasks?.start()
  }

  /** Resolves when a draining app runs no task any more. */
  async idle(): Promise<void> {
    await this.#services.tasks?.idle()
  }

  /** Hands over running calls at their next step: the response is a state from which another instance continues. */
  drain(): void {
    this.failReadiness()
    this.#handover.drain()
    this.#subscriptions.end()
    this.#services.tasks?.drain()
    this.legacy?.drain()
  }

  /** Hands over the calls that still run, at once, with the steps recorded so far. A running step is told to stop. */
  interrupt(): void {
    this.drain()
    this.#handover.interrupt()
    this.#services.tasks?.interrupt()
    this.legacy?.interrupt()
  }

  /** `type` is the list that changes, if one does. */
  #register(
    method: 'tool' | 'prompt' | 'resource' | 'resourceTemplate' | 'method' | 'skill',
    type: ListedType | undefined,
    add: () => void,
  ): this {
    this.#checked(method, add)
    return type === undefined ? this : this.#changed(type)
  }

  #checked(
    method: 'tool' | 'prompt' | 'resource' | 'resourceTemplate' | 'method' | 'skill' | 'use',
    check: () => void,
  ): void {
    atCaller(this[method], check)
  }

  /** All registrations of one turn of the event loop are one notification to the clients of this instance. */
  #changed(type: ListedType): this {
    if (this.#changes.size === 0) {
      queueMicrotask(() => {
        for (const changed of this.#changes) this.#subscriptions.deliver({ type: changed })
        this.#changes.clear()
      })
    }
    this.#changes.add(type)
    return this
  }

  #createServices(
    { once, instructions, onError, steps }: AppOptions,
    { info, logger, seal, limits, timeoutMs, strict, showErrors, observers }: ResolvedOptions,
    { tasks, apps }: AppParts,
  ): AppServices {
    const outages = new StoreOutages(logger)
    const guarded = once && outages.once(once)
    const services: AppServices & { tasks: Tasks | undefined; apps: Apps | undefined } = {
      seal,
      logger,
      serverMeta: JSON.stringify({ [META_SERVER_INFO]: info }),
      info,
      limits,
      timeoutMs,
      // The request is open while a flow waits that the client carries: no wait ends the pass.
      waiting: { releaseFromMs: Infinity, askMs: seal.ttl },
      strict,
      showErrors,
      observers,
      onError,
      steps,
      once: guarded,
      recordUsages: guarded && recordUsages(guarded, limits),
      outages,
      instructions,
      handover: this.#handover,
      middleware: this.#middleware,
      registry: this.#registry,
      subscriptions: this.#subscriptions,
      now: Date.now,
      mintedEphemeral: (overHttp) => this.#warnEphemeral(overHttp),
      tasks: undefined,
      apps: undefined,
    }
    services.tasks = tasks?.(services)
    services.apps = apps?.(services)
    return services
  }

  #warnEphemeral(overHttp: boolean): void {
    if (!overHttp || this.#warnedEphemeral) return
    this.#warnedEphemeral = true
    this.logger.warn(
      'A call was suspended under a key made at start-up: it cannot resume after a restart or on another instance. Pass `keys` to rally(), with a secret of at least 32 bytes.',
    )
  }
}

function notifier(subscriptions: Subscriptions): ChangeNotifier {
  return {
    toolsChanged: () => subscriptions.publish({ type: 'tools' }),
    promptsChanged: () => subscriptions.publish({ type: 'prompts' }),
    resourcesChanged: () => subscriptions.publish({ type: 'resources' }),
    resourceUpdated: (uri) => subscriptions.publish({ type: 'updated', uri }),
  }
}
