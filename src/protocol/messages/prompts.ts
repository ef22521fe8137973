// prompts/list, prompts/get and completion/complete, which completes arguments of prompts and variables of templates.
import type { ContentBlock, Role } from './content.ts'
import type { CacheHints, Icon, Meta, RequestMeta, ResultMeta } from './meta.ts'

/** An entry in the list of prompts. */
export interface Prompt {
  /** The name to call it by. */
  name: string
  /** The name that people see. */
  title?: string
  /** What the prompt is for. */
  description?: string
  /** The arguments that it takes. */
  arguments?: PromptArgument[]
  /** Icons to show. */
  icons?: Icon[]
  /** What the server adds for programs. */
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
  /** Who speaks: the user or the assistant. */
  role: Role
  /** What is said. */
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
  /** Says that this is the result, and not a question. */
  resultType: 'complete'
  /** What the messages are for. */
  description?: string
  /** The messages, in their order. */
  messages: PromptMessage[]
  /** What the server adds for programs. */
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
