// A prompt as a server lists it, and the messages it comes to.
import type { ContentBlock, Role } from './content.ts'
import type { Meta, ResultMeta } from './meta.ts'
import type { CacheHints, RoundParams } from './rounds.ts'
import type { Icon } from './peer.ts'

export interface Prompt {
  name: string
  title?: string
  description?: string
  arguments?: PromptArgument[]
  icons?: Icon[]
  _meta?: Meta
}

export interface PromptArgument {
  name: string
  title?: string
  description?: string
  required?: boolean
}

export interface PromptMessage {
  role: Role
  content: ContentBlock
}

export interface ListPromptsResult extends CacheHints {
  resultType: 'complete'
  prompts: Prompt[]
  nextCursor?: string
  _meta?: ResultMeta
}

export interface GetPromptRequestParams extends RoundParams {
  name: string
  /** Always strings: they are typed in by people. */
  arguments?: Record<string, string>
}

export interface GetPromptResult {
  resultType: 'complete'
  description?: string
  messages: PromptMessage[]
  _meta?: ResultMeta
}
