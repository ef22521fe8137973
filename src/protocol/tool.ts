// A tool as a server lists it.
import type { Meta } from './meta.ts'
import type { Icon } from './peer.ts'

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

/** Hints, and nothing to rely on where the server is not trusted. */
export interface ToolAnnotations {
  title?: string
  readOnlyHint?: boolean
  destructiveHint?: boolean
  idempotentHint?: boolean
  openWorldHint?: boolean
}
