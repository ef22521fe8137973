// The end of a call: prints its result and returns the exit code.
import { isDeepStrictEqual } from 'node:util'
import type { Results, RoundMethod } from '../client/saved.ts'
import { isObject } from '../protocol/json.ts'
import type { CallToolResult, ContentBlock, GetPromptResult, ReadResourceResult } from '../protocol/messages.ts'
import { clean, cleanJson, cleanLine, cut } from './clean.ts'
import type { Console } from './console.ts'
import type { ExitCode } from './exit.ts'
import { EXIT } from './exit.ts'

export interface CallEnd {
  readonly method: RoundMethod
  readonly result: Results[RoundMethod]
  /** True if the user declined a question. */
  readonly hasDeclined: boolean
}

/** The most characters shown on a screen. A file or a pipe gets all. */
const MOST_ON_SCREEN = 20_000

/** `server` is the name of the server. */
export function finishCall(
  { method, result, hasDeclined }: CallEnd,
  server: string,
  isJson: boolean,
  console: Console,
): ExitCode {
  showResult(method, result, isJson, console)
  if ((result as CallToolResult).isError !== true) return EXIT.done
  if (hasDeclined) return EXIT.unanswered
  if (!isJson) console.tell(`${server} reports that the call failed.`)
  return EXIT.toolFailed
}

function showResult(method: RoundMethod, result: Results[RoundMethod], isJson: boolean, console: Console): void {
  if (isJson) return console.print(cleanJson(result))
  if (console.isResultOnScreen) return console.print(cut(resultText(method, result), MOST_ON_SCREEN))
  const bytes = onlyBytes(method, result)
  if (bytes === undefined) console.print(resultText(method, result))
  else console.printBytes(bytes)
}

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
  // Some servers wrap a plain value, because structured content must be an object. The text is easier to read then.
  if (isWrapped(content, structuredContent)) return blocks.join('\n')
  const structured = cleanWhole(JSON.stringify(structuredContent, null, 2))
  // Most servers repeat the structured content as text, for clients that read only one of them.
  const others = blocks.filter((_, index) => !isDeepStrictEqual(valueIn(content[index]), structuredContent))
  return [...others, structured].join('\n')
}

/** True for `{ "result": x }` if the blocks are x, or the items of x. */
function isWrapped(content: readonly ContentBlock[], structured: unknown): boolean {
  if (!isObject(structured) || Object.keys(structured).length !== 1 || !('result' in structured)) return false
  const values = content.map((block) => valueIn(block))
  const { result } = structured
  return content.length === 1
    ? isDeepStrictEqual(values[0], result) || isDeepStrictEqual(values, result) || textIn(content[0]) === result
    : content.length > 1 && isDeepStrictEqual(values, result)
}

function promptText({ description, messages }: GetPromptResult): string {
  const said = messages.map(({ role, content }) => `${cleanLine(role)}: ${blockText(content)}`)
  return [...(description !== undefined ? [cleanWhole(description)] : []), ...said].join('\n\n')
}

function resourceText({ contents }: ReadResourceResult): string {
  return contents.map((each) => contentsText(each)).join('\n')
}

/** The bytes of a resource that is a single blob. */
export function onlyBytes(method: RoundMethod, result: Results[RoundMethod]): Buffer | undefined {
  if (method !== 'resources/read') return undefined
  const [first, ...others] = (result as ReadResourceResult).contents as { blob?: unknown }[]
  return others.length === 0 && typeof first?.blob === 'string' ? Buffer.from(first.blob, 'base64') : undefined
}

/** The client has only checked that a block is an object, so it may contain anything. */
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

/** The value that a text block has as JSON, or else its text. */
function valueIn(block: ContentBlock | undefined): unknown {
  const text = textIn(block)
  if (text === undefined) return undefined
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

function textIn(block: ContentBlock | undefined): string | undefined {
  return block?.type === 'text' ? block.text : undefined
}

/** Not cut here: `MOST_ON_SCREEN` limits the result as a whole. */
function cleanWhole(said: unknown): string {
  return clean(said, Infinity)
}
