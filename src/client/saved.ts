// What a user can save as plain JSON, to continue another day in another process: a pending round, and a task.
import type { CallToolResult, GetPromptResult, InputRequests, ReadResourceResult } from '../protocol/messages.ts'

/** The result of each request that may take several rounds. */
export interface Results {
  'tools/call': CallToolResult
  'prompts/get': GetPromptResult
  'resources/read': ReadResourceResult
}

export type RoundMethod = keyof Results

/** The deepest nesting of a saved round, its arguments and its questions. */
export const MAX_DEPTH = 100

/** A round that waits for answers. `client.resume()` continues from it. */
export type PendingCall = PendingTool | PendingPrompt | PendingResource

/** A call of a tool that waits for answers, as JSON that can be saved. */
export interface PendingTool extends PendingRound {
  /** The method of the request. */
  readonly method: 'tools/call'
  /** The name and the arguments of the tool. */
  readonly params: { readonly name: string; readonly arguments?: Readonly<Record<string, unknown>> }
}

/** A prompt that waits for answers, as JSON that can be saved. */
export interface PendingPrompt extends PendingRound {
  /** The method of the request. */
  readonly method: 'prompts/get'
  /** The name and the arguments of the prompt. */
  readonly params: { readonly name: string; readonly arguments?: Readonly<Record<string, string>> }
}

/** A resource that waits for answers, as JSON that can be saved. */
export interface PendingResource extends PendingRound {
  /** The method of the request. */
  readonly method: 'resources/read'
  /** The URI of the resource. */
  readonly params: { readonly uri: string }
}

interface PendingRound {
  /** The version of this format. */
  readonly version: 1
  /** The revision of the protocol. */
  readonly revision: string
  /** The questions as the server asked them. Missing if the server only wants to be called again. */
  readonly inputRequests?: InputRequests
  /** The server's own state, to be sent back unchanged. */
  readonly requestState?: string
}

/** All that `client.task()` needs. It contains no secret, but the id may be enough to read and answer the task. */
export interface SavedTask {
  /** The version of this format. */
  readonly version: 1
  /** The revision of the protocol. */
  readonly revision: string
  /** The id of the task. */
  readonly taskId: string
  /** The tool that was called, if known. */
  readonly tool?: string
  /** How often the server wants to be polled, as it said last. */
  readonly pollIntervalMs?: number
}
