// The first draft of rounds: sessions as in 2025-11-25, but the client carries a call, beside the params of its request.
// A response that asks has no result. The draft has no revision name, so it is named by its date; no release has the suffix.
import { INVALID_PARAMS, ProtocolError } from '../errors.ts'
import { isObject } from '../json.ts'
import { quoted } from '../text.ts'
import { MOST_ANSWERS } from './2026-07-28.ts'
import { revision20251125 } from './2025-11-25.ts'
import type { Message, Result, Retry, RetryText, OptInRevision } from './rounds.ts'
import type { OlderRevision } from './older.ts'
import { META_RELATED_TASK } from './older.ts'

export const firstDraft: OlderRevision = {
  ...revision20251125,
  name: '2026-02-03-draft' satisfies OptInRevision,
  taskStatus,
  rounds: { readRetry, writeRetry, writeResponse, readResponse, readTaskInput, writeTaskInput },
}

/** The text of the draft begins all but one of them with a capital letter. */
function taskStatus(status: string): string {
  return status === 'input_required' ? status : status.charAt(0).toUpperCase() + status.slice(1)
}

/** Answers to the questions of a task are a message without a method: they go beside the name of the task in `_meta`. */
function readTaskInput(message: Message): Message | undefined {
  const { id, method, input_responses: responses, _meta } = message
  if (method !== undefined || responses === undefined) return undefined
  const { inputResponses } = readRetry(message)
  return { jsonrpc: '2.0', id, method: 'tasks/input_response', params: { inputResponses, _meta } }
}

function writeTaskInput(id: number, taskId: string, answers: Message): string {
  const meta = { [META_RELATED_TASK]: { taskId } }
  return `{"jsonrpc":"2.0","id":${id}${writeRetry(answers, undefined).beside},"_meta":${JSON.stringify(meta)}}`
}

function readRetry({ input_responses: responses, request_state: requestState }: Message): Retry {
  const isTooMuch = isObject(responses) && Object.keys(responses).length > MOST_ANSWERS
  // Left as it is: the check of the answers rejects it.
  if (!isObject(responses) || isTooMuch) return { inputResponses: responses, requestState }
  const answers = Object.entries(responses).map(([key, response]): [string, unknown] => [key, answerIn(response, key)])
  return { inputResponses: Object.fromEntries(answers), requestState }
}

function answerIn(response: unknown, key: string): unknown {
  if (!isObject(response)) return response
  if ('result' in response) return response['result']
  throw new ProtocolError(INVALID_PARAMS, `input_responses[${quoted(key)}] must have the answer under "result"`)
}

function writeRetry(answers: Message | undefined, state: string | undefined): RetryText {
  const beside = state === undefined ? '' : `,"request_state":${JSON.stringify(state)}`
  if (answers === undefined) return { inParams: '', beside }
  const responses = Object.fromEntries(Object.entries(answers).map(([key, result]) => [key, { result }]))
  return { inParams: '', beside: `,"input_responses":${JSON.stringify(responses)}${beside}` }
}

function writeResponse({ resultType, ...result }: Result): Message {
  if (resultType !== 'input_required') return { result }
  const { inputRequests, requestState, _meta } = result
  return { input_requests: inputRequests, request_state: requestState, ...(_meta !== undefined && { _meta }) }
}

/** A result is always final in this draft. */
function readResponse(message: Message): Message {
  const { result, error, input_requests: inputRequests, request_state: requestState, _meta, ...rest } = message
  if (error !== undefined) return message
  if (isObject(result)) return { ...rest, result: { ...result, resultType: 'complete' } }
  if (result !== undefined || (inputRequests === undefined && requestState === undefined)) return message
  const meta = _meta === undefined ? undefined : { _meta }
  return { ...rest, result: { resultType: 'input_required', inputRequests, requestState, ...meta } }
}
