// Reads the untrusted `_meta` that every request of 2026-07-28 carries.
import { INVALID_PARAMS, ProtocolError, UNSUPPORTED_VERSION } from '../protocol/errors.ts'
import type { LoggingLevel, ProgressToken, RequestId } from '../protocol/messages.ts'
import { LOGGING_LEVELS } from '../protocol/logger.ts'
import {
  META_CAPABILITIES,
  META_CLIENT_INFO,
  META_IDEMPOTENCY_KEY,
  META_LOG_LEVEL,
  META_VERSION,
  REVISION,
} from '../protocol/revisions/2026-07-28.ts'
import { readCapabilities } from './capabilities.ts'
import { isObject } from '../protocol/json.ts'
import { cut } from '../protocol/text.ts'

/** How deep arguments, answers and other params may be nested. */
export const DEEPEST = 100

export const SUPPORTED_REVISIONS: readonly string[] = [REVISION]

export interface RequestInfo {
  revision: string
  capabilities: number
  logLevel: LoggingLevel | undefined
  progressToken: ProgressToken | undefined
  /** The same for every attempt to send the request. */
  idempotencyKey?: string | undefined
  /** As the client sent it: its name and version. */
  clientInfo: unknown
  /** As the client sent it. */
  extensions: unknown
  /** How long the client wants a task of this request to be kept, in milliseconds. Default: the server decides. */
  taskTtlMs?: number | undefined
}

export function readMeta(meta: Record<string, unknown> | undefined): RequestInfo {
  if (meta === undefined) throw invalidMeta(`params._meta is required, with ${META_VERSION} and ${META_CAPABILITIES}`)
  const revision = meta[META_VERSION]
  if (typeof revision !== 'string') throw invalidMeta(`${META_VERSION} must be a string`)
  if (!SUPPORTED_REVISIONS.includes(revision)) throw unsupportedVersion(revision)
  const capabilities = meta[META_CAPABILITIES]
  if (!isObject(capabilities)) throw invalidMeta(`${META_CAPABILITIES} must be an object`)
  const clientInfo = meta[META_CLIENT_INFO]
  if (clientInfo !== undefined && !isImplementation(clientInfo)) {
    throw invalidMeta(`${META_CLIENT_INFO} must have a name and a version`)
  }
  const logLevel = meta[META_LOG_LEVEL]
  if (logLevel !== undefined && !isLevel(logLevel)) {
    throw invalidMeta(`${META_LOG_LEVEL} must be one of ${LOGGING_LEVELS.join(', ')}`)
  }
  const { progressToken } = meta
  if (progressToken !== undefined && !isId(progressToken)) {
    throw invalidMeta('progressToken must be a string or an integer')
  }
  const idempotencyKey = meta[META_IDEMPOTENCY_KEY]
  if (idempotencyKey !== undefined && !isIdempotencyKey(idempotencyKey)) {
    throw invalidMeta(`${META_IDEMPOTENCY_KEY} must be a string of 22 to 64 letters, digits, hyphens and underscores`)
  }
  return {
    revision,
    capabilities: readCapabilities(capabilities),
    logLevel,
    progressToken,
    idempotencyKey,
    clientInfo,
    extensions: capabilities['extensions'],
  }
}

export function unsupportedVersion(requested: unknown): ProtocolError {
  return new ProtocolError(
    UNSUPPORTED_VERSION,
    `Unsupported protocol version. This server speaks ${SUPPORTED_REVISIONS.join(', ')}.`,
    { supported: SUPPORTED_REVISIONS, requested: typeof requested === 'string' ? cut(requested) : 'unknown' },
  )
}

export function isId(value: unknown): value is RequestId {
  return typeof value === 'string' || Number.isSafeInteger(value)
}

/** Long enough for 128 random bits. */
const IDEMPOTENCY_KEY = /^[\w-]{22,64}$/

function isIdempotencyKey(value: unknown): value is string {
  return typeof value === 'string' && IDEMPOTENCY_KEY.test(value)
}

function isLevel(value: unknown): value is LoggingLevel {
  return (LOGGING_LEVELS as readonly unknown[]).includes(value)
}

function isImplementation(value: unknown): boolean {
  return isObject(value) && typeof value['name'] === 'string' && typeof value['version'] === 'string'
}

export function invalidParams(why: string, data?: unknown): ProtocolError {
  return new ProtocolError(INVALID_PARAMS, why, data)
}

function invalidMeta(why: string): ProtocolError {
  return new ProtocolError(INVALID_PARAMS, `Invalid params: ${why}`)
}
