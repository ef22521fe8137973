// The options of an app: what each means, its default, and the checks when the app is built.
import type { RetryOptions } from '../flow/retry.ts'
import { checkRetryOptions } from '../flow/retry.ts'
import type { OnError } from '../flow/failure-log.ts'
import { RallyError } from '../protocol/errors.ts'
import type { Logger, LoggerLevel } from '../protocol/logger.ts'
import { isLogger, LOG_LEVELS, toLogger } from '../protocol/logger.ts'
import type { Icon, Implementation } from '../protocol/messages.ts'
import { ObserverLog } from '../protocol/observer-log.ts'
import { extensionsProblem } from '../protocol/extensions.ts'
import { isObject } from '../protocol/json.ts'
import {
  checkBooleans,
  checkFunctions,
  checkGroups,
  checkLimits,
  isAboveZero,
  wrongOption,
} from '../protocol/options.ts'
import { shown } from '../protocol/text.ts'
import type { StateCodec } from '../seal/codec.ts'
import type { KeySecret } from '../seal/keyring.ts'
import type { Seal } from '../seal/seal.ts'
import { createSeal } from '../seal/seal.ts'
import type { OnceStore } from '../store/once.ts'
import { consoleLogger, defaultLogOptions } from './console-logger.ts'
import type { ShedLoad } from './handover.ts'
import type { Observer } from '../flow/observer.ts'
import { Observers } from '../flow/observer.ts'
import type { LimitOptions, Limits } from './limits.ts'
import { readLimits } from './limits.ts'
import type { Extensions, ListOptions } from './registry.ts'
import type { Bus } from './subscriptions.ts'

/** What an app is, how it seals state, and its limits. */
export interface AppOptions {
  /** The name of the server, for clients and logs. */
  name: string
  /** The version of the server, for clients and logs. */
  version: string
  /** The name for people. Default: clients show `name`. */
  title?: string
  /** What the server is for, for people. Default: none. */
  description?: string
  /** A page about the server. Default: none. */
  websiteUrl?: string
  /** Default: none. */
  icons?: Icon[]
  /** Tells the model how to use this server. Default: none. */
  instructions?: string
  /**
   * Secrets of at least 32 bytes that seal the state which the client carries. The first one mints, all of them open. Every
   * instance of a fleet needs the same. Default: a secret made at start-up, so that flows end with the process.
   */
  keys?: readonly KeySecret[]
  /** Your own encryption instead of `keys`, such as a KMS. Default: `keys` are used. */
  codec?: StateCodec
  /** How long a client may take to answer one round, in seconds. Clocks may differ by 60 s more. Default 600. */
  ttl?: number
  /** How long a whole flow may take, in seconds. Default 86 400. */
  maxAge?: number
  /** The largest sealed state, in bytes. Default 65 536. */
  maxStateBytes?: number
  /** Who may open a state: only apps with the same audience. Default: `name`. */
  audience?: string
  /** The longest pass, in milliseconds. Default 300 000. */
  timeoutMs?: number
  /** How steps are retried that do not say it themselves: `{ retries, backoff, timeoutMs }`. Default: one attempt. */
  steps?: RetryOptions
  /** How long clients may cache lists and discovery, in milliseconds. Default 300 000. */
  listTtlMs?: number
  /** The most entries of a list in one response. Clients get the rest by cursor. Default 1000. */
  pageSize?: number
  /**
   * Records every state that was used, so that each works once, and the responses of first rounds with an idempotency key: see
   * SECURITY.md. Default: a state may be used again, and a first round that is repeated runs again.
   */
  once?: OnceStore
  /**
   * Receives what fails in requests and tasks, with where it happened: once each, and never on a replay. The author's own answers to
   * the caller are not failures. For error trackers. Default: failures go to `logger` alone.
   */
  onError?: OnError
  /**
   * Lets callers read the messages of all errors. Otherwise they read a reference to the log, except for `ToolError`, `Declined`,
   * `ProtocolError` and Rally's own errors. Default: only if NODE_ENV is `development` or `test`.
   */
  showErrors?: boolean
  /** Watch requests, flows, steps, questions, waits and tasks: see `Observer`, and mcp-rally/otel. Default: none. */
  observers?: readonly Observer[]
  /** Hands flows over to other instances while this one is overloaded. Default: load never causes a handover. */
  shed?: ShedLoad
  /**
   * Extensions of the protocol that this server has, each with its settings, such as `{ 'com.example/rates': {} }`. Handlers see
   * those of the client in `io.client.extensions`. Default: none.
   */
  extensions?: Readonly<Record<string, object>>
  /** Carries change notifications to every instance of a fleet. Default: only this process notifies its clients. */
  bus?: Bus
  /** Limits on what callers make this server keep, and the share of one caller. Default: `{}`. */
  limits?: LimitOptions
  /**
   * Where the log goes: `console`, pino, or an object with `warn` and `error`, and perhaps `debug` and `info`. With `stdio()` it must
   * not write to standard output: `pino(pino.destination(2))`. Default: the error stream, as JSON lines if NODE_ENV is `production`
   * and it is not a terminal, and else as lines for people.
   */
  logger?: Logger
  /** The lowest level of the default log; a `logger` of your own has its own level. Default: `info` if NODE_ENV is `production`, and else `warn`. */
  logLevel?: LoggerLevel
  /** Finds mistakes in handlers: `io` calls inside steps or without `await`, steps that are gone. Makes awaits slower. Default: true, except if NODE_ENV is 'production'. */
  strict?: boolean
}

const DEFAULT_TIMEOUT_MS = 300_000
const DEFAULT_LIST_TTL_MS = 300_000
const DEFAULT_PAGE_SIZE = 1_000

/** The options with their defaults. */
export interface ResolvedOptions {
  readonly info: Implementation
  readonly logger: Logger
  readonly seal: Seal
  readonly lists: ListOptions
  readonly limits: Limits
  readonly extensions: Extensions
  readonly timeoutMs: number
  readonly strict: boolean
  readonly showErrors: boolean
  readonly observers: Observers | undefined
}

/** Throws when an option is not valid. */
export function readOptions(options: AppOptions): ResolvedOptions {
  const { steps, onError, bus, once } = options
  refuseAuthenticate(options)
  checkGroups({ steps, limits: options.limits })
  const { listTtlMs = DEFAULT_LIST_TTL_MS, pageSize = DEFAULT_PAGE_SIZE } = options
  const logger = readLogger(options)
  const mode = process.env['NODE_ENV'] ?? ''
  const { timeoutMs = DEFAULT_TIMEOUT_MS, strict = mode !== 'production' } = options
  const { showErrors = mode === 'development' || mode === 'test' } = options
  if (steps !== undefined) checkRetryOptions(steps, '`steps`')
  checkLimits({ timeoutMs })
  checkBooleans({ strict, showErrors })
  if (onError !== undefined && typeof onError !== 'function') throw wrongOption('onError', 'a function', onError)
  checkShed(options.shed)
  checkFunctions('bus', bus, 'a Bus', ['publish', 'subscribe'])
  checkFunctions('once', once, '`once` of a store, or one', ['claim', 'renew', 'settle', 'release'])
  const info = readInfo(options)
  if (!Number.isSafeInteger(pageSize) || pageSize < 1) {
    throw new RallyError('OPTION_INVALID', `\`pageSize\` must be a whole number above 0, got ${pageSize}.`)
  }
  if (!Number.isSafeInteger(listTtlMs) || listTtlMs < 0) {
    throw new RallyError('OPTION_INVALID', `\`listTtlMs\` must be a whole number of 0 or more, got ${listTtlMs}.`)
  }
  const lists = { ttlMs: listTtlMs, pageSize }
  const limits = readLimits(options.limits)
  const extensions = readExtensions(options.extensions)
  const seal = toSeal(options, info.name, logger)
  const observers = readObservers(options.observers, logger)
  return { info, logger, seal, lists, limits, extensions, timeoutMs, strict, showErrors, observers }
}

/** In the wrong place it would leave the server open to everybody. */
function refuseAuthenticate(options: object): void {
  if (!('authenticate' in options)) return
  const advice = 'Pass it to serve(), to nodeHandler(), or to rally() as `http: { authenticate }` for app.fetch.'
  throw new RallyError('OPTION_INVALID', `\`authenticate\` is an option of the host, not of rally(). ${advice}`)
}

function checkShed(shed: unknown): void {
  if (shed === undefined || typeof shed === 'function' || (isObject(shed) && isAboveZero(shed['lagMs']))) return
  throw wrongOption('shed', 'a function, or { lagMs } with a number above 0', shed)
}

function readExtensions(extensions: AppOptions['extensions'] = {}): Extensions {
  const problem = extensionsProblem(extensions)
  if (problem === undefined) return extensions
  throw new RallyError('OPTION_INVALID', `\`extensions\`: ${problem}.`)
}

function readObservers(given: readonly Observer[] | undefined, logger: Logger): Observers | undefined {
  if (given === undefined) return undefined
  if (!Array.isArray(given) || !given.every((each) => typeof each === 'object' && each !== null)) {
    throw new RallyError('OPTION_INVALID', `\`observers\` must be an array of observers, got ${shown(given)}.`)
  }
  return given.length === 0 ? undefined : new Observers([...given], new ObserverLog(logger))
}

function readInfo(options: AppOptions): Implementation {
  const { name, version, title, description, websiteUrl, icons } = options
  if (typeof name !== 'string' || name === '' || typeof version !== 'string' || version === '') {
    throw new RallyError(
      'OPTION_INVALID',
      `\`name\` and \`version\` must be strings that are not empty, got ${shown(name)} and ${shown(version)}. Pass them to rally({ name, version }).`,
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

function readLogger({ logger, logLevel }: AppOptions): Logger {
  if (logLevel !== undefined && !LOG_LEVELS.includes(logLevel)) {
    throw new RallyError(
      'OPTION_INVALID',
      `\`logLevel\` must be one of ${LOG_LEVELS.join(', ')}, got ${shown(logLevel)}.`,
    )
  }
  if (logger === undefined) return consoleLogger(defaultLogOptions(logLevel))
  if (isLogger(logger)) return toLogger(logger)
  throw new RallyError(
    'OPTION_INVALID',
    `\`logger\` must have the functions warn and error, got ${shown(logger)}. Pass console or a logger of pino.`,
  )
}
