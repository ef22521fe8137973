// The requests and results of 2026-07-28, hand-written. What they are made of is in the files beside this one and is
// exported from here too, so that one import brings any type of the wire.
import type { ContentBlock } from './content.ts'
import type { ElicitRequest, ElicitResult } from './elicitation.ts'
import type { RequestMeta, ResultMeta } from './meta.ts'
import type { ServerCapabilities } from './peer.ts'
import type { ListRootsRequest, ListRootsResult } from './roots.ts'
import type { CreateMessageRequest, CreateMessageResult } from './sampling.ts'
import type { Tool } from './tool.ts'

export type * from './content.ts'
export type * from './elicitation.ts'
export type * from './jsonrpc.ts'
export * from './meta.ts'
export type * from './notifications.ts'
export type * from './peer.ts'
export type * from './roots.ts'
export type * from './sampling.ts'
export type * from './tool.ts'

/** The result of a round that needs input, or just another round: at least one of the two properties is there. */
export interface InputRequiredResult {
  resultType: 'input_required'
  inputRequests?: InputRequests
  requestState?: string
  _meta?: ResultMeta
}

export type InputRequest = ElicitRequest | CreateMessageRequest | ListRootsRequest

export type InputRequests = Record<string, InputRequest>

export type InputResponse = ElicitResult | CreateMessageResult | ListRootsResult

export type InputResponses = Record<string, InputResponse>

/** The params of every request that may take several rounds. */
export interface RoundParams {
  _meta: RequestMeta
  inputResponses?: InputResponses
  requestState?: string
}

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

export interface ListToolsRequestParams {
  _meta: RequestMeta
  cursor?: string
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

export interface CacheHints {
  /** How long the result stays fresh, in whole milliseconds; 0 is not at all. */
  ttlMs: number
  /** `public` only where the result is the same for every caller. */
  cacheScope: 'public' | 'private'
}
