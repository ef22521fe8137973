// prompts/list, prompts/get and completion/complete, which completes arguments of prompts and variables of templates.
import type { ContentBlock, Role } from './content.ts'
import type { CacheHints, Icon, Meta, RequestMeta, ResultMeta } from './meta.ts'

/** An entry in the list of prompts. */
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

/** One message of a prompt. */
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

/** The messages of a prompt, as the server sent them. */
export interface GetPromptResult {
  resultType: 'complete'
  description?: string
  messages: PromptMessage[]
  _meta?: ResultMeta
}

export interface PromptReference {
  type: 'ref/prompt'
  name: string
  title?: string
}

export interface ResourceTemplateReference {
  type: 'ref/resource'
  /** A URI, or the text of a URI template. */
  uri: string
}

export interface CompleteRequestParams {
  _meta: RequestMeta
  ref: PromptReference | ResourceTemplateReference
  argument: { name: string; value: string }
  context?: { arguments?: Record<string, string> }
}

export interface CompleteResult {
  resultType: 'complete'
  /** At most 100 values. */
  completion: { values: string[]; total?: number; hasMore?: boolean }
  _meta?: ResultMeta
}
