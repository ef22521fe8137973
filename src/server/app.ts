// The app: its options, what is registered on it, and the way messages reach it.
import type { Asks } from '../flow/io.ts'
import { RallyError } from '../protocol/errors.ts'
import type { Logger } from '../protocol/logger.ts'
import type { DiscoverResult, Icon, Implementation } from '../protocol/messages.ts'
import { META_SERVER_INFO } from '../protocol/messages.ts'
import type { Schema } from '../protocol/standard.ts'
import type { Codec } from '../seal/codec.ts'
import type { Secret } from '../seal/keyring.ts'
import type { Seal } from '../seal/seal.ts'
import { createSeal } from '../seal/seal.ts'
import type { Context, DispatchHost } from './dispatch.ts'
import { dispatch } from './dispatch.ts'
import type { Reply } from './reply.ts'
import { SUPPORTED_REVISIONS } from './request.ts'
import type { RegisteredTool, ToolHandler, ToolOptions } from './tool.ts'
import { registerTool } from './tool.ts'

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
  keys?: readonly Secret[]
  /** Brings its own crypto in place of `keys`, such as a KMS. */
  codec?: Codec
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
  /** Default: the console's error stream. */
  logger?: Logger
  /** Finds io calls inside steps at once, at the price of slower awaits. Default: in tests and development (NODE_ENV). */
  strict?: boolean
}

const DEFAULT_TIMEOUT_MS = 300_000
const DEFAULT_LIST_TTL_MS = 300_000

export class App {
  readonly info: Implementation
  readonly logger: Logger
  readonly #options: AppOptions
  readonly #host: DispatchHost
  readonly #tools = new Map<string, RegisteredTool>()
  #toolsText: string | undefined
  #warnedEphemeral = false

  constructor(options: AppOptions) {
    this.info = readInfo(options)
    this.#options = options
    this.logger = options.logger ?? consoleLogger
    this.#host = this.#dispatchHost(toSeal(options, this.info.name, this.logger))
  }

  /** Registers a tool. Whatever is wrong with its schemas or name is an error here, not when somebody calls it. */
  tool<
    I extends Schema = Record<string, never>,
    const A extends Asks = Record<never, never>,
    O extends Schema = Schema,
  >(name: string, options: ToolOptions<I, A, O>, handler: ToolHandler<I, A, O>): this {
    const tool = registerTool(name, options, handler)
    if (this.#tools.has(name)) throw new RallyError('TOOL', `There is a tool "${name}" already; names are unique.`)
    this.#tools.set(name, tool)
    this.#toolsText = undefined
    return this
  }

  /** From a parsed JSON-RPC message to its response; `undefined` where none is due. Never throws. */
  dispatch(message: unknown, context: Context = {}): Promise<Reply | undefined> {
    return dispatch(this.#host, message, context)
  }

  #dispatchHost(seal: Seal): DispatchHost {
    const { timeoutMs = DEFAULT_TIMEOUT_MS, strict = isDevelopment() } = this.#options
    const serverMeta = JSON.stringify({ [META_SERVER_INFO]: this.info })
    return {
      seal,
      logger: this.logger,
      serverMeta,
      timeoutMs,
      strict,
      now: Date.now,
      tool: (name) => this.#tools.get(name),
      listToolsText: (principal) => {
        this.#toolsText ??= [...this.#tools.values()].map(({ listing }) => listing).join(',')
        return `{"resultType":"complete","tools":[${this.#toolsText}],${this.#cacheHints(principal)},"_meta":${serverMeta}}`
      },
      discoverText: (principal) => this.#discoverText(principal, serverMeta),
      mintedEphemeral: (overHttp) => this.#warnEphemeral(overHttp),
    }
  }

  #discoverText(principal: string | undefined, serverMeta: string): string {
    const { instructions } = this.#options
    const discovered: Pick<DiscoverResult, 'supportedVersions' | 'capabilities' | 'instructions'> = {
      supportedVersions: [...SUPPORTED_REVISIONS],
      capabilities: { tools: {}, logging: {} },
      ...(instructions !== undefined && { instructions }),
    }
    const inside = JSON.stringify(discovered).slice(1, -1)
    return `{"resultType":"complete",${inside},${this.#cacheHints(principal)},"_meta":${serverMeta}}`
  }

  /** What a known caller sees may be for that caller only. */
  #cacheHints(principal: string | undefined): string {
    const { listTtlMs = DEFAULT_LIST_TTL_MS } = this.#options
    return `"ttlMs":${listTtlMs},"cacheScope":"${principal === undefined ? 'public' : 'private'}"`
  }

  #warnEphemeral(overHttp: boolean): void {
    if (!overHttp || this.#warnedEphemeral) return
    this.#warnedEphemeral = true
    this.logger.warn(
      'A call was suspended under a key made at start-up: it cannot go on after a restart or on another instance. Give rally() the option keys: [a secret of 32 bytes or more].',
    )
  }
}

function readInfo(options: AppOptions): Implementation {
  const { name, version, title, description, websiteUrl, icons } = options
  if (typeof name !== 'string' || name === '' || typeof version !== 'string' || version === '') {
    throw new RallyError('APP', "An app needs a name and a version: rally({ name: 'deployer', version: '1.0.0' }).")
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
