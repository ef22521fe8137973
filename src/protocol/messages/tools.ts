// tools/list and tools/call.
import type { ContentBlock } from './content.ts'
import type { CacheHints, Icon, Meta, ResultMeta } from './meta.ts'

/** An entry in the list of tools. */
export interface Tool {
  /** The name to call it by. */
  name: string
  /** The name that people see. */
  title?: string
  /** What the tool does, for the model. */
  description?: string
  /** The JSON Schema of the arguments. */
  inputSchema: { $schema?: string; type: 'object'; [keyword: string]: unknown }
  /** The JSON Schema of the structured content. */
  outputSchema?: { $schema?: string; [keyword: string]: unknown }
  /** Hints of the protocol, such as `readOnlyHint`. */
  annotations?: ToolAnnotations
  /** Icons to show. */
  icons?: Icon[]
  /** What the server adds for programs. */
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
  /** Says that this is the result, and not a question. */
  resultType: 'complete'
  /** What the model reads. */
  content: ContentBlock[]
  /** Any JSON value that matches the tool's output schema. */
  structuredContent?: unknown
  /** The tool failed, and `content` tells the model why. */
  isError?: boolean
  /** What the server adds for programs. */
  _meta?: ResultMeta
}
