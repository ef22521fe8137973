// A round that waits for its answers, as plain JSON: another process can take it up another day.
import type { CallToolResult, GetPromptResult, InputRequests, ReadResourceResult } from '../protocol/messages.ts'

/** What each request that may take several rounds comes to. */
export interface Results {
  'tools/call': CallToolResult
  'prompts/get': GetPromptResult
  'resources/read': ReadResourceResult
}

export type RoundMethod = keyof Results

export type PendingCall = PendingTool | PendingPrompt | PendingResource

export interface PendingTool extends PendingRound {
  readonly method: 'tools/call'
  readonly params: { readonly name: string; readonly arguments?: Readonly<Record<string, unknown>> }
}

export interface PendingPrompt extends PendingRound {
  readonly method: 'prompts/get'
  readonly params: { readonly name: string; readonly arguments?: Readonly<Record<string, string>> }
}

export interface PendingResource extends PendingRound {
  readonly method: 'resources/read'
  readonly params: { readonly uri: string }
}

interface PendingRound {
  /** Of this format. */
  readonly version: 1
  /** Of the protocol. */
  readonly revision: string
  /** As the server asked them; absent where it only wants to be called again. */
  readonly inputRequests?: InputRequests
  /** The server's, to be given back as it is. */
  readonly requestState?: string
}

/** Deepest nesting of arguments and questions. */
export const MAX_DEPTH = 100
