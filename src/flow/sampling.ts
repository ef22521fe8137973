// A question to the client's model. Checks the prompt when the question is created, and the model's message when it arrives.
//
// The rules of the protocol's page on sampling: a user message with tool results contains nothing else, and after a message in which
// the assistant uses tools comes one with the result of each. A client without `sampling.tools` is never sent tools.
import { isObject, toJsonText } from '../protocol/json.ts'
import type { CreateMessageRequestParams, SamplingMessage } from '../protocol/messages.ts'
import { questionInvalid } from './errors.ts'
import type { Capability, Fit, Question } from './question.ts'

export class SampleQuestion implements Question {
  readonly needs: readonly Capability[]
  /** Text, so that later changes to the author's messages do not change it. */
  readonly #text: string
  readonly #mayUseTools: boolean

  constructor(params: CreateMessageRequestParams, key: string) {
    const problem = problemOfPrompt(params)
    if (problem !== undefined) throw questionInvalid(key, problem)
    this.#text = `{"method":"sampling/createMessage","params":${toJsonText(params, `the question "${key}"`)}}`
    this.#mayUseTools = params.tools !== undefined && params.toolChoice?.mode !== 'none'
    this.needs = samplingNeeds(params)
  }

  text(): string {
    return this.#text
  }

  fit(answer: Record<string, unknown>): Fit {
    return readSample(answer, this.#mayUseTools)
  }
}

/** Checks the model's message: well-formed, and uses tools only if it may. */
export function readSample(answer: Record<string, unknown>, mayUseTools: boolean): Fit {
  const { role, content, model, stopReason, _meta } = answer
  if (role !== 'assistant' && role !== 'user') return { misfit: 'role must be "assistant" or "user"' }
  if (typeof model !== 'string') return { misfit: 'model must be a string' }
  if (stopReason !== undefined && typeof stopReason !== 'string') return { misfit: 'stopReason must be a string' }
  const blocks = listOf(content)
  if (!blocks.every(isBlock)) return { misfit: 'content must be a content block or a list of them' }
  const uses = idsOf(blocks, 'tool_use')
  if (blocks.some(({ type }) => type === 'tool_result')) return { misfit: 'a model does not give tool results' }
  if (uses.length > 0 && !mayUseTools) return { misfit: 'the model was given no tools to use' }
  if (uses.length > 0 && role !== 'assistant') return { misfit: 'only the assistant uses tools' }
  if (new Set(uses).size < uses.length) return { misfit: 'every tool use must have an id of its own' }
  if (stopReason === 'toolUse' && uses.length === 0) return { misfit: 'stopReason is "toolUse", and no tool is used' }
  const value = {
    role,
    content,
    model,
    ...(stopReason !== undefined && { stopReason }),
    ...(isObject(_meta) && { _meta }),
  }
  return { action: 'accept', value }
}

type Block = Record<string, unknown> & { readonly type: string }

export function samplingNeeds({
  messages,
  tools,
  toolChoice,
  includeContext,
}: CreateMessageRequestParams): Capability[] {
  const needs: Capability[] = ['sampling']
  const used = messages.some(({ content }) => listOf(content).some((block) => isBlock(block) && isOfTool(block)))
  if (tools !== undefined || toolChoice !== undefined || used) needs.push('sampling.tools')
  if (includeContext !== undefined && includeContext !== 'none') needs.push('sampling.context')
  return needs
}

function problemOfPrompt(params: CreateMessageRequestParams): string | undefined {
  const { messages, maxTokens, modelPreferences } = params
  if (!Array.isArray(messages)) return 'its messages must be a list'
  if (!Number.isSafeInteger(maxTokens) || maxTokens < 1) return 'its maxTokens must be a whole number above 0'
  for (const priority of ['costPriority', 'speedPriority', 'intelligencePriority'] as const) {
    const value = modelPreferences?.[priority] ?? 0
    if (!(value >= 0 && value <= 1)) return `its modelPreferences.${priority} must be a number from 0 to 1`
  }
  return problemOfMessages(messages)
}

function problemOfMessages(messages: readonly SamplingMessage[]): string | undefined {
  /** Tools that the message before this one uses. */
  let open: string[] = []
  for (const [index, message] of messages.entries()) {
    const { role, content } = message
    const blocks = listOf(content)
    const here = `messages[${index}]`
    if (role !== 'user' && role !== 'assistant') return `${here}.role must be "user" or "assistant"`
    if (!blocks.every(isBlock)) return `${here}.content must be a content block or a list of them`
    const results = idsOf(blocks, 'tool_result')
    const uses = idsOf(blocks, 'tool_use')
    if (results.length > 0 && (role !== 'user' || results.length < blocks.length)) {
      return `${here} has tool results, which belong into a user message of nothing else`
    }
    if (uses.length > 0 && role !== 'assistant') return `${here} uses tools, which only the assistant does`
    if (new Set(uses).size < uses.length) return `${here} uses two tools under one id`
    const unbalanced = imbalance(open, results)
    if (unbalanced !== undefined) return `${here} ${unbalanced}`
    open = uses
  }
  return open.length > 0 ? `after its last message there ${imbalance(open, [])}` : undefined
}

function imbalance(uses: readonly string[], results: readonly string[]): string | undefined {
  const missing = uses.filter((id) => !results.includes(id))
  if (missing.length > 0) {
    return `must be a user message with nothing but a tool result for each use of a tool before it; missing: ${missing.join(', ')}`
  }
  const odd = results.find((id) => !uses.includes(id))
  if (odd !== undefined) return `has a tool result for ${odd}, which the message before it does not use`
  return new Set(results).size < results.length ? 'has two tool results under one id' : undefined
}

function listOf(content: unknown): unknown[] {
  return Array.isArray(content) ? content : [content]
}

function idsOf(blocks: readonly Block[], type: 'tool_use' | 'tool_result'): string[] {
  const id = type === 'tool_use' ? 'id' : 'toolUseId'
  return blocks.filter((block) => block.type === type).map((block) => block[id] as string)
}

function isOfTool({ type }: Block): boolean {
  return type === 'tool_use' || type === 'tool_result'
}

function isBlock(block: unknown): block is Block {
  if (!isObject(block)) return false
  const { type, text, data, mimeType, id, name, input, toolUseId, content } = block
  switch (type) {
    case 'text':
      return typeof text === 'string'
    case 'image':
    case 'audio':
      return typeof data === 'string' && typeof mimeType === 'string'
    case 'tool_use':
      return typeof id === 'string' && typeof name === 'string' && isObject(input)
    case 'tool_result':
      return typeof toolUseId === 'string' && Array.isArray(content)
    default:
      return false
  }
}
