// The requests and results of 2026-07-28, hand-written. What they are made of is in the files beside this one and is
// exported from here too, so that one import brings any type of the wire.
import type { ContentBlock } from './content.ts'
import type { RequestMeta, ResultMeta } from './meta.ts'
import type { ServerCapabilities } from './peer.ts'
import type { CacheHints, RoundParams } from './rounds.ts'
import type { Tool } from './tool.ts'

export type * from './completion.ts'
export type * from './content.ts'
export type * from './elicitation.ts'
export type * from './jsonrpc.ts'
export type * from './meta.ts'
export type * from './notifications.ts'
export type * from './peer.ts'
export type * from './prompt.ts'
export type * from './resource.ts'
export type * from './roots.ts'
export type * from './rounds.ts'
export type * from './sampling.ts'
export type * from './subscriptions.ts'
export type * from './tool.ts'

export interface CallToolRequestParams extends RoundParams {
  name: string
  arguments?: Record<string, unknown>
}

export interface CallToolResult {
  resultType: 'complete'
  content: ContentBlock[]
  /** Any JSON value that fits the tool's output schema. */
  structuredContent?: unknown
  /** An error that the model is to read; the call itself went well. */
  isError?: boolean
  _meta?: ResultMeta
}

export interface ListToolsResult extends CacheHints {
  resultType: 'complete'
  tools: Tool[]
  nextCursor?: string
  _meta?: ResultMeta
}

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
