// What every message has in common: `_meta`, the two peers and their capabilities (server/discover), pages and cache hints.
import type { LoggingLevel } from '../logger.ts'
import type {
  META_CAPABILITIES,
  META_CLIENT_INFO,
  META_LOG_LEVEL,
  META_SERVER_INFO,
  META_SUBSCRIPTION,
  META_VERSION,
} from '../revisions/2026-07-28.ts'
import type { RequestId } from './jsonrpc.ts'

export interface Meta {
  [key: string]: unknown
}

export interface RequestMeta extends Meta {
  [META_VERSION]: string
  [META_CAPABILITIES]: ClientCapabilities
  [META_CLIENT_INFO]?: Implementation
  /** The lowest level to send. Without it the server sends no log notifications for this request. */
  [META_LOG_LEVEL]?: LoggingLevel
  /** Asks for progress notifications, which repeat it. */
  progressToken?: ProgressToken
}

export interface ResultMeta extends Meta {
  [META_SERVER_INFO]?: Implementation
}

export interface NotificationMeta extends Meta {
  [META_SUBSCRIPTION]?: RequestId
}

export type ProgressToken = string | number

export interface DiscoverRequestParams {
  _meta: RequestMeta
}

export interface DiscoverResult extends CacheHints {
  resultType: 'complete'
  supportedVersions: string[]
  capabilities: ServerCapabilities
  /** Tells the model how to use this server. */
  instructions?: string
  _meta?: ResultMeta
}

export interface Implementation {
  name: string
  version: string
  title?: string
  description?: string
  websiteUrl?: string
  icons?: Icon[]
}

export interface Icon {
  /** An `https:` or `data:` URI. */
  src: string
  mimeType?: string
  /** `48x48`, or `any` for a scalable image. */
  sizes?: string[]
  theme?: 'light' | 'dark'
}

/** What the client supports. It is sent with every request. */
export interface ClientCapabilities {
  elicitation?: { form?: JSONObject; url?: JSONObject }
  sampling?: { context?: JSONObject; tools?: JSONObject }
  roots?: JSONObject
  experimental?: Record<string, JSONObject>
  extensions?: Record<string, JSONObject>
}

export interface ServerCapabilities {
  tools?: { listChanged?: boolean }
  prompts?: { listChanged?: boolean }
  resources?: { listChanged?: boolean; subscribe?: boolean }
  completions?: JSONObject
  logging?: JSONObject
  experimental?: Record<string, JSONObject>
  extensions?: Record<string, JSONObject>
}

export type JSONValue = string | number | boolean | null | JSONObject | JSONValue[]

export interface JSONObject {
  [key: string]: JSONValue
}

export interface ListRequestParams {
  _meta: RequestMeta
  cursor?: string
}

export interface CacheHints {
  /** How long the result stays fresh, in whole milliseconds. 0: do not cache. */
  ttlMs: number
  /** `public` only if the result is the same for every caller. */
  cacheScope: 'public' | 'private'
}
