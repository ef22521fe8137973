// The requests that may take several rounds, and the result that asks for another round.
import type { RequestMeta, ResultMeta } from './meta.ts'
import type {
  CreateMessageRequest,
  CreateMessageResult,
  ElicitRequest,
  ElicitResult,
  ListRootsRequest,
  ListRootsResult,
} from './questions.ts'

/** The result of a round that needs input, or only another round. At least one of the two properties is present. */
export interface InputRequiredResult {
  resultType: 'input_required'
  inputRequests?: InputRequests
  requestState?: string
  _meta?: ResultMeta
}

export type InputRequest = ElicitRequest | CreateMessageRequest | ListRootsRequest

export type InputRequests = Record<string, InputRequest>

export type InputResponse = ElicitResult | CreateMessageResult | ListRootsResult

/** The answers of a round, by the keys of their questions. */
export type InputResponses = Record<string, InputResponse>

/** The params of every request that may take several rounds. */
export interface RoundParams {
  _meta: RequestMeta
  inputResponses?: InputResponses
  requestState?: string
}

export interface CallToolRequestParams extends RoundParams {
  name: string
  arguments?: Record<string, unknown>
}

export interface GetPromptRequestParams extends RoundParams {
  name: string
  /** Always strings: people type them. */
  arguments?: Record<string, string>
}

export interface ReadResourceRequestParams extends RoundParams {
  uri: string
}
