// Turns what a tool handler returned or threw into the text of a result.
import { isObject } from '../protocol/json.ts'
import { Declined } from '../flow/errors.ts'
import { INTERNAL_ERROR, ProtocolError } from '../protocol/errors.ts'
import type { CacheHints, ContentBlock } from '../protocol/messages.ts'
import { META_SERVER_INFO } from '../protocol/revisions/2026-07-28.ts'
import type { Check } from '../schema/validator.ts'

/** A whole result, for a handler that writes content and structured content itself. */
export interface ToolResult {
  /** What the model reads. */
  content: ContentBlock[]
  /** The value for programs. It must match `output`, if the tool has it. Default: none. */
  structuredContent?: unknown
  /** True if the tool failed. Default: false. */
  isError?: boolean
  /** Sent with the result. Default: none. */
  _meta?: Record<string, unknown>
}

/** What a tool without an output schema may return. */
export type ToolReturn = string | ContentBlock | ContentBlock[] | ToolResult | undefined | void

/** The result of a tool without an output schema. */
export function resultText(value: unknown, serverMeta: string): string {
  // The most common result by far, and the cheapest to write.
  if (typeof value === 'string') {
    return `{"resultType":"complete","content":[{"type":"text","text":${JSON.stringify(value)}}],"_meta":${serverMeta}}`
  }
  return writeResult(toResult(value), serverMeta)
}

/** An output schema, and whether a caller may read what the schema library says of a value. */
export interface CheckedOutput {
  readonly check: Check
  readonly showErrors: boolean
}

/** The result of a tool with an output schema: a value that matches it, or a whole result that contains one. */
export async function structuredText(value: unknown, output: CheckedOutput, serverMeta: string): Promise<string> {
  if (!isToolResult(value) || (value.isError !== true && !('structuredContent' in value))) {
    return writeResult(withText(await checked(value, output)), serverMeta)
  }
  if (value.isError === true) return writeResult(value, serverMeta)
  return writeResult({ ...value, structuredContent: await checked(value.structuredContent, output) }, serverMeta)
}

/** The response to an authenticated caller may be for that caller only. */
export function cacheHints(ttlMs: number, isForAll: boolean): CacheHints {
  return { ttlMs, cacheScope: isForAll ? 'public' : 'private' }
}

/** A result that says what went wrong, for the model to read. */
export function errorResult(message: string): ToolResult & { resultType: 'complete' } {
  return { resultType: 'complete', content: [{ type: 'text', text: message }], isError: true }
}

/** The same as text. */
export function errorText(message: string, serverMeta: string): string {
  return `{"resultType":"complete","content":[{"type":"text","text":${JSON.stringify(message)}}],"isError":true,"_meta":${serverMeta}}`
}

/** What the model reads about an error: its message, never a stack. */
export function messageOf(error: unknown): string {
  if (error instanceof Declined) return `${error.message} Nothing further was done.`
  if (error instanceof Error && typeof error.message === 'string' && error.message !== '') return error.message
  return typeof error === 'string' && error !== '' ? error : 'The tool failed.'
}

function writeResult({ content, structuredContent, isError, _meta }: ToolResult, serverMeta: string): string {
  const parts = [`"resultType":"complete","content":${JSON.stringify(content)}`]
  if (structuredContent !== undefined) parts.push(`"structuredContent":${JSON.stringify(structuredContent)}`)
  if (isError) parts.push('"isError":true')
  return `{${parts.join(',')},"_meta":${withServerMeta(_meta, serverMeta)}}`
}

const NO_META = '{}'

/** The author's `_meta`, if any, with the server's, which is the text of a JSON object. */
export function withServerMeta(meta: Record<string, unknown> | undefined, serverMeta: string): string {
  if (meta === undefined) return serverMeta
  if (serverMeta === NO_META) return JSON.stringify(meta)
  // An author cannot say that another server wrote the result.
  const own = JSON.stringify({ ...meta, [META_SERVER_INFO]: undefined })
  return own === NO_META ? serverMeta : `${own.slice(0, -1)},${serverMeta.slice(1)}`
}

/** The text of a complete result with these members. */
export function plainText(
  { resultType: _type, _meta, ...members }: Readonly<Record<string, unknown>>,
  serverMeta: string,
): string {
  const own = isObject(_meta) ? _meta : undefined
  const text = JSON.stringify({ resultType: 'complete', ...members })
  return `${text.slice(0, -1)},"_meta":${withServerMeta(own, serverMeta)}}`
}

function toResult(value: unknown): ToolResult {
  if (value === undefined || value === null) return { content: [] }
  if (Array.isArray(value) && value.every(isBlock)) return { content: value }
  if (isBlock(value)) return { content: [value] }
  if (isToolResult(value)) return value
  if (typeof value === 'object') return withText(value)
  return { content: [{ type: 'text', text: JSON.stringify(value) ?? '' }] }
}

async function checked(value: unknown, { check, showErrors }: CheckedOutput): Promise<unknown> {
  const result = await check(value)
  if ('value' in result) return result.value
  const { issues, paths = issues } = result
  const wrong = showErrors ? issues : paths.map((path) => path || 'the value itself')
  const why = `The tool's result does not match its output schema: ${wrong.join('; ')}`
  // The log shows the cause.
  throw new ProtocolError(INTERNAL_ERROR, why, undefined, { cause: new Error(issues.join('; ')) })
}

/** Clients without support for structured content read the text. */
function withText(value: unknown): ToolResult {
  return { content: [{ type: 'text', text: JSON.stringify(value) }], structuredContent: value }
}

function isToolResult(value: unknown): value is ToolResult {
  return isObject(value) && Array.isArray(value['content']) && value['content'].every(isBlock)
}

const BLOCKS: ReadonlySet<unknown> = new Set<ContentBlock['type']>([
  'text',
  'image',
  'audio',
  'resource',
  'resource_link',
])

export function isBlock(value: unknown): value is ContentBlock {
  return isObject(value) && BLOCKS.has(value['type'])
}
