// The app: its options, what is registered on it, and the way messages reach it.
import type { Asks } from '../flow/io.ts'
import type { OnceStore } from '../store/once.ts'
import type { Requirements } from '../flow/resolver.ts'
import { RallyError } from '../protocol/errors.ts'
import type { Logger } from '../protocol/logger.ts'
import type { Icon, Implementation } from '../protocol/messages.ts'
import { META_SERVER_INFO } from '../protocol/revisions/2026-07-28.ts'
import type { Output, Schema } from '../schema/standard.ts'
import type { StateCodec } from '../seal/codec.ts'
import type { KeySecret } from '../seal/keyring.ts'
import type { Seal } from '../seal/seal.ts'
import { createSeal } from '../seal/seal.ts'
import type { AppServices, RequestContext } from './context.ts'
import { dispatch } from './dispatch.ts'
import type { ShedLoad } from './handover.ts'
import { Handover } from './handover.ts'
import type { Legacy } from './legacy.ts'
import type { PromptHandler, PromptOptions } from './prompt.ts'
import { registerPrompt } from './prompt.ts'
import { Registry } from './registry.ts'
import type { Reply } from './reply.ts'
import type { Resolved } from './resolve.ts'
import { resolve } from './resolve.ts'
import type { ResourceOptions, ResourceReader, TemplateOptions, TemplateReader } from './resource.ts'
import { registerResource, registerTemplate } from './resource.ts'
import type { Tasks } from './tasks.ts'
import type { Bus, ChangeNotifier } from './subscriptions.ts'
import { inProcessBus, Subscriptions } from './subscriptions.ts'
import type { Returned, ToolHandler, ToolOptions } from './tool.ts'
import { registerTool } from './tool.ts'
import type { TemplateVariables } from './uri-template.ts'

export interface AppOptions {
  name: string
  version: string
  title?: string
  description?: string
  websiteUrl?: string
  icons?: Icon[]
  /** For the model: how to use this server. */
  instructions?: string
  /**
   * Secrets of at least 32 bytes that seal the state the client carries: the first one mints, all of them open. Share
   * them across a fleet. Default: one made at start-up, so that flows end with the process.
   */
  keys?: readonly KeySecret[]
  /** Brings its own crypto in place of `keys`, such as a KMS. */
  codec?: StateCodec
  /** Seconds that a client may take over one round. Default 600. */
  ttl?: number
  /** Seconds that a whole flow may take. Default 86 400. */
  maxAge?: number
  /** Largest sealed state, in bytes. Default 65 536. */
  maxStateBytes?: number
  /** Who the states are for. Default: `name`. */
  audience?: string
  /** Longest pass, in milliseconds. Default 300 000. */
  timeoutMs?: number
  /** Milliseconds that clients may keep lists and discovery. Default 300 000. */
  listTtlMs?: number
  /** Most entries of a list in one response; the rest follows by cursor. Default 1000. */
  pageSize?: number
  /** Makes every state single-use, as this store remembers: see SECURITY.md. Default: a state may be used again. */
  once?: OnceStore
  /** Hands flows over to other instances while this one has too much to do. Default: never for load. */
  shed?: ShedLoad
  /** Carries change notifications across a fleet. Default: to the clients of this process. */
  bus?: Bus
  /** Default: the console's error stream. */
  logger?: Logger
  /** Finds io calls inside steps at once, at the price of slower awaits. Default: in tests and development (NODE_ENV). */
  strict?: boolean
}

/** What serves an app's messages in other ways than the client as carrier. */
export interface Rooms {
  legacy?: ((host: AppServices) => Legacy) | undefined
  tasks?: ((host: AppServices) => Tasks) | undefined
}

const DEFAULT_TIMEOUT_MS = 300_000
const DEFAULT_LIST_TTL_MS = 300_000
const DEFAULT_PAGE_SIZE = 1_000

export class App {
  readonly info: Implementation
  readonly logger: Logger
  /** Tells clients that have subscribed what has changed. */
  readonly notify: ChangeNotifier
  /** Serves 2025-era clients, where that is wanted: hosts hand over to it what is theirs. */
  readonly legacy: Legacy | undefined
  readonly #registry: Registry
  readonly #subscriptions: Subscriptions
  readonly #handover: Handover
  readonly #host: AppServices
  readonly #changes = new Set<'tools' | 'prompts' | 'resources'>()
  #warnedEphemeral = false

  /** The rooms are given what serves the app's messages. */
  constructor(options: AppOptions, { legacy, tasks }: Rooms = {}) {
    this.info = readInfo(options)
    this.logger = options.logger ?? consoleLogger
    const { listTtlMs: ttlMs = DEFAULT_LIST_TTL_MS, pageSize = DEFAULT_PAGE_SIZE, bus = inProcessBus() } = options
    if (!Number.isSafeInteger(pageSize) || pageSize < 1) {
      throw new RallyError('OPTION_INVALID', `pageSize is ${pageSize}; it must be a whole number above 0.`)
    }
    if (!Number.isSafeInteger(ttlMs) || ttlMs < 0) {
      throw new RallyError(
        'OPTION_INVALID',
        `listTtlMs is ${ttlMs}; it must be a whole number of milliseconds, 0 or more.`,
      )
    }
    this.#registry = new Registry({ ttlMs, pageSize })
    this.#subscriptions = new Subscriptions(bus, this.logger)
    this.#handover = new Handover(options.shed, this.logger)
    this.#host = this.#dispatchHost(options, tasks)
    this.notify = notifier(this.#subscriptions)
    this.legacy = legacy?.(this.#host)
  }

  /** Registers a tool. Whatever is wrong with its schemas or name is an error here, not when somebody calls it. */
  tool<
    I extends Schema = Record<string, never>,
    const A extends Asks = Record<never, never>,
    O extends Schema = Schema,
    const N extends Requirements<Output<I>> = Record<never, never>,
    const R extends Returned<O> = Returned<O>,
  >(name: string, options: ToolOptions<I, A, O, N>, handler: ToolHandler<I, A, O, N, R>): this {
    const tool = registerTool(name, options, handler)
    if (tool.task === 'always' && this.#host.tasks === undefined) {
      throw new RallyError(
        'STORE_REQUIRED',
        `The tool "${name}" is always a task, which needs a store: rally({ store }).`,
      )
    }
    this.#registry.tools.add(name, tool)
    return this.#changed('tools')
  }

  /** Registers a prompt, which may take several rounds as a tool may. */
  prompt<
    I extends Schema = Record<string, never>,
    const A extends Asks = Record<never, never>,
    const N extends Requirements<Output<I>> = Record<never, never>,
  >(name: string, options: PromptOptions<I, A, N>, handler: PromptHandler<I, A, N>): this {
    this.#registry.prompts.add(name, registerPrompt(name, options, handler))
    return this.#changed('prompts')
  }

  /** Registers the resource of one URI. */
  resource<const A extends Asks = Record<never, never>, const N extends Requirements = Record<never, never>>(
    uri: string,
    options: ResourceOptions<A, N>,
    read: ResourceReader<A, N>,
  ): this {
    this.#registry.resources.add(uri, registerResource(uri, options, read))
    return this.#changed('resources')
  }

  /** Registers resources by an RFC 6570 template of their URIs. The first template that a URI fits reads it. */
  resourceTemplate<
    const T extends string,
    const A extends Asks = Record<never, never>,
    const N extends Requirements<TemplateVariables<T>> = Record<never, never>,
  >(uriTemplate: T, options: TemplateOptions<A, N>, read: TemplateReader<T, A, N>): this {
    this.#registry.resourceTemplates.add(uriTemplate, registerTemplate(uriTemplate, options, read))
    return this.#changed('resources')
  }

  /** From a parsed JSON-RPC message to its response; `undefined` where none is due. Never throws. */
  dispatch(message: unknown, context: RequestContext = {}): Promise<Reply | undefined> {
    return this.serve(this.resolve(message), context)
  }

  /** Reads a parsed message, for a host that checks it before it is served. Never throws. */
  resolve(message: unknown): Resolved {
    return resolve(this.#registry, message)
  }

  /** Serves a message that was resolved. Never throws. */
  serve(message: Resolved, context: RequestContext): Promise<Reply | undefined> {
    this.work()
    return dispatch(this.#host, message, context)
  }

  get draining(): boolean {
    return this.#handover.draining
  }

  /** Begins to work on tasks, where the app has a store for them. Hosts call it. */
  work(): void {
    this.#host.tasks?.start()
  }

  /** Resolves once an app that drains works on no task any more. */
  async idle(): Promise<void> {
    await this.#host.tasks?.idle()
  }

  /** Calls under way are handed over at their next step: each is answered with a state that goes on elsewhere. */
  drain(): void {
    this.#handover.drain()
    this.#subscriptions.end()
    this.#host.tasks?.drain()
    this.legacy?.drain()
  }

  /** Calls still under way are handed over now, with what they have recorded. A step that runs is told to stop. */
  interrupt(): void {
    this.drain()
    this.#handover.interrupt()
    this.#host.tasks?.interrupt()
    this.legacy?.interrupt()
  }

  /** Registered at run time, by whatever number, is one change for who listens to this instance. */
  #changed(type: 'tools' | 'prompts' | 'resources'): this {
    if (this.#changes.size === 0) {
      queueMicrotask(() => {
        for (const changed of this.#changes) this.#subscriptions.deliver({ type: changed })
        this.#changes.clear()
      })
    }
    this.#changes.add(type)
    return this
  }

  #dispatchHost(options: AppOptions, tasks: Rooms['tasks']): AppServices {
    const { timeoutMs = DEFAULT_TIMEOUT_MS, strict = isDevelopment(), once, instructions } = options
    const host: AppServices & { tasks: Tasks | undefined } = {
      seal: toSeal(options, this.info.name, this.logger),
      logger: this.logger,
      serverMeta: JSON.stringify({ [META_SERVER_INFO]: this.info }),
      info: this.info,
      timeoutMs,
      strict,
      once,
      instructions,
      handover: this.#handover,
      registry: this.#registry,
      subscriptions: this.#subscriptions,
      now: Date.now,
      mintedEphemeral: (overHttp) => this.#warnEphemeral(overHttp),
      tasks: undefined,
    }
    host.tasks = tasks?.(host)
    return host
  }

  #warnEphemeral(overHttp: boolean): void {
    if (!overHttp || this.#warnedEphemeral) return
    this.#warnedEphemeral = true
    this.logger.warn(
      'A call was suspended under a key made at start-up: it cannot go on after a restart or on another instance. Give rally() the option keys: [a secret of 32 bytes or more].',
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

function readInfo(options: AppOptions): Implementation {
  const { name, version, title, description, websiteUrl, icons } = options
  if (typeof name !== 'string' || name === '' || typeof version !== 'string' || version === '') {
    throw new RallyError(
      'OPTION_INVALID',
      "An app needs a name and a version: rally({ name: 'deployer', version: '1.0.0' }).",
    )
  }
  return {
    name,
    version,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    ...(websiteUrl !== undefined && { websiteUrl }),
    ...(icons !== undefined && { icons }),
  }
}

function toSeal({ keys, codec, ttl, maxAge, maxStateBytes, audience }: AppOptions, name: string, logger: Logger): Seal {
  return createSeal({
    audience: audience ?? name,
    keys,
    codec,
    ttl: ttl === undefined ? undefined : Math.round(ttl * 1000),
    maxAge: maxAge === undefined ? undefined : Math.round(maxAge * 1000),
    maxBytes: maxStateBytes,
    logger,
  })
}

function isDevelopment(): boolean {
  return process.env['NODE_ENV'] === 'development' || process.env['NODE_ENV'] === 'test'
}

/** Everything to the error stream: on stdio the other one carries the protocol. */
const consoleLogger: Logger = {
  warn: (message, details) => (details === undefined ? console.error(message) : console.error(message, details)),
  error: (message, details) => (details === undefined ? console.error(message) : console.error(message, details)),
}
