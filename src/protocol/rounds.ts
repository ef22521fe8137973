// What requests and results of every kind share: rounds that need input, lists in pages, hints for caches.
import type { ElicitRequest, ElicitResult } from './elicitation.ts'
import type { RequestMeta, ResultMeta } from './meta.ts'
import type { ListRootsRequest, ListRootsResult } from './roots.ts'
import type { CreateMessageRequest, CreateMessageResult } from './sampling.ts'

/** The result of a round that needs input, or just another round: at least one of the two properties is there. */
export interface InputRequiredResult {
  resultType: 'input_required'
  inputRequests?: InputRequests
  requestState?: string
  _meta?: ResultMeta
}

export type InputRequest = ElicitRequest | CreateMessageRequest | ListRootsRequest

export type InputRequests = Record<string, InputRequest>

export type InputResponse = ElicitResult | CreateMessageResult | ListRootsResult

/** In one round. */
export const MOST_ANSWERS = 1_000

export type InputResponses = Record<string, InputResponse>

/** The params of every request that may take several rounds. */
export interface RoundParams {
  _meta: RequestMeta
  inputResponses?: InputResponses
  requestState?: string
}

/** What a retry adds to the params of its request, as JSON text that begins with a comma. `answers` is the text of an object. */
export function retryText(answers: string | undefined, state: string | undefined): string {
  const responses = answers === undefined ? '' : `,"inputResponses":${answers}`
  return responses + (state === undefined ? '' : `,"requestState":${JSON.stringify(state)}`)
}

export interface ListRequestParams {
  _meta: RequestMeta
  cursor?: string
}

export interface CacheHints {
  /** How long the result stays fresh, in whole milliseconds; 0 is not at all. */
  ttlMs: number
  /** `public` only where the result is the same for every caller. */
  cacheScope: 'public' | 'private'
}
