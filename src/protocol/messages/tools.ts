// tools/list and tools/call.
import type { ContentBlock } from './content.ts'
import type { CacheHints, Icon, Meta, ResultMeta } from './meta.ts'

/** An entry in the list of tools. */
export interface Tool {
  name: string
  title?: string
  description?: string
  inputSchema: { $schema?: string; type: 'object'; [keyword: string]: unknown }
  outputSchema?: { $schema?: string; [keyword: string]: unknown }
  annotations?: ToolAnnotations
  icons?: Icon[]
  _meta?: Meta
}

/** Hints only. Do not rely on them if the server is not trusted. */
export interface ToolAnnotations {
  title?: string
  readOnlyHint?: boolean
  destructiveHint?: boolean
  idempotentHint?: boolean
  openWorldHint?: boolean
}

export interface ListToolsResult extends CacheHints {
  resultType: 'complete'
  tools: Tool[]
  nextCursor?: string
  _meta?: ResultMeta
}

/** The result of a tool. */
export interface CallToolResult {
  resultType: 'complete'
  content: ContentBlock[]
  /** Any JSON value that matches the tool's output schema. */
  structuredContent?: unknown
  /** The tool failed, and `content` tells the model why. */
  isError?: boolean
  _meta?: ResultMeta
}
