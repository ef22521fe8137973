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
  /** Without it the server sends no log notifications for this request. */
  [META_LOG_LEVEL]?: LoggingLevel
  /** With it the caller asks for progress notifications that carry it. */
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
  /** For the model: how to use this server. */
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
  /** `48x48`, or `any` for a scalable picture. */
  sizes?: string[]
  theme?: 'light' | 'dark'
}

/** What the client can do for this one request; it says so on every request. */
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
  /** How long the result stays fresh, in whole milliseconds; 0 is not at all. */
  ttlMs: number
  /** `public` only where the result is the same for every caller. */
  cacheScope: 'public' | 'private'
}
