// A question to the client's model, and what it said. Deprecated by the protocol, and supported in full.
import type { AudioContent, ContentBlock, ImageContent, Role, TextContent } from './content.ts'
import type { Meta } from './meta.ts'
import type { JSONObject } from './peer.ts'
import type { Tool } from './tool.ts'

export interface CreateMessageRequest {
  method: 'sampling/createMessage'
  params: CreateMessageRequestParams
}

export interface CreateMessageRequestParams {
  messages: SamplingMessage[]
  maxTokens: number
  systemPrompt?: string
  modelPreferences?: ModelPreferences
  temperature?: number
  stopSequences?: string[]
  /** Other than `none` only where the client declared `sampling.context`. */
  includeContext?: 'none' | 'thisServer' | 'allServers'
  /** Only where the client declared `sampling.tools`. */
  tools?: Tool[]
  toolChoice?: ToolChoice
  metadata?: JSONObject
}

export interface CreateMessageResult extends SamplingMessage {
  model: string
  /** `endTurn`, `stopSequence`, `maxTokens`, `toolUse`, or the provider's own word. */
  stopReason?: string
}

export interface SamplingMessage {
  role: Role
  content: SamplingMessageContentBlock | SamplingMessageContentBlock[]
  _meta?: Meta
}

export type SamplingMessageContentBlock = TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent

export interface ToolUseContent {
  type: 'tool_use'
  id: string
  name: string
  input: Record<string, unknown>
  _meta?: Meta
}

export interface ToolResultContent {
  type: 'tool_result'
  toolUseId: string
  content: ContentBlock[]
  structuredContent?: unknown
  isError?: boolean
  _meta?: Meta
}

/** Every priority goes from 0, of no importance, to 1. */
export interface ModelPreferences {
  hints?: ModelHint[]
  costPriority?: number
  speedPriority?: number
  intelligencePriority?: number
}

export interface ModelHint {
  name?: string
}

export interface ToolChoice {
  mode?: 'auto' | 'required' | 'none'
}
