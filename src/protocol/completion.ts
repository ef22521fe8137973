// Completion of the arguments of prompts and the variables of resource templates.
import type { RequestMeta, ResultMeta } from './meta.ts'

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
