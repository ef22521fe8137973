// Results for people to read: of a tool, a prompt, a resource.
import type { Results, RoundMethod } from '../client/pending.ts'
import type { CallToolResult, ContentBlock, GetPromptResult, ReadResourceResult } from '../protocol/messages.ts'
import { clean, cleanLine } from './clean.ts'

/** `method` is what was called. */
export function resultText(method: RoundMethod, result: Results[RoundMethod]): string {
  switch (method) {
    case 'tools/call':
      return toolText(result as CallToolResult)
    case 'prompts/get':
      return promptText(result as GetPromptResult)
    case 'resources/read':
      return resourceText(result as ReadResourceResult)
  }
}

function toolText({ content, structuredContent }: CallToolResult): string {
  const blocks = content.map((block) => blockText(block))
  if (structuredContent === undefined) return blocks.join('\n')
  const structured = cleanWhole(JSON.stringify(structuredContent, null, 2))
  // Most servers say it twice, for clients that read only one of the two.
  const others = blocks.filter((_, index) => !isSame(content[index], structuredContent))
  return [...others, structured].join('\n')
}

function promptText({ description, messages }: GetPromptResult): string {
  const said = messages.map(({ role, content }) => `${cleanLine(role)}: ${blockText(content)}`)
  return [...(description !== undefined ? [cleanWhole(description)] : []), ...said].join('\n\n')
}

function resourceText({ contents }: ReadResourceResult): string {
  return contents.map((each) => contentsText(each)).join('\n')
}

/** The bytes, where they are all there is. */
export function onlyBytes(method: RoundMethod, result: Results[RoundMethod]): Buffer | undefined {
  if (method !== 'resources/read') return undefined
  const [first, ...others] = (result as ReadResourceResult).contents as { blob?: unknown }[]
  return others.length === 0 && typeof first?.blob === 'string' ? Buffer.from(first.blob, 'base64') : undefined
}

/** Not checked any further than that it is an object: a server may say anything. */
function blockText(block: ContentBlock): string {
  switch (block?.type) {
    case 'text':
      return cleanWhole(block.text)
    case 'image':
    case 'audio':
      return `[${block.type}: ${cleanLine(block.mimeType)}, ${bytesOf(block.data)} bytes]`
    case 'resource_link':
      return `[${cleanLine(block.title ?? block.name)}: ${cleanLine(block.uri)}]`
    case 'resource':
      return contentsText(block.resource)
    default:
      return cleanWhole(block)
  }
}

function contentsText(contents: { uri: string; mimeType?: string; text?: unknown; blob?: unknown }): string {
  const { uri, mimeType, text, blob } = contents ?? {}
  if (typeof text === 'string') return cleanWhole(text)
  return `[${cleanLine(uri)}: ${cleanLine(mimeType ?? 'bytes')}, ${bytesOf(blob)} bytes]`
}

function bytesOf(base64: unknown): number {
  return typeof base64 === 'string' ? Buffer.byteLength(base64, 'base64') : 0
}

function isSame(block: ContentBlock | undefined, structured: unknown): boolean {
  if (block?.type !== 'text') return false
  try {
    return JSON.stringify(JSON.parse(block.text)) === JSON.stringify(structured)
  } catch {
    return false
  }
}

/** How much of it is shown is decided for all of a result together. */
function cleanWhole(said: unknown): string {
  return clean(said, Infinity)
}
