// The result of one round, read from an untrusted server: done, asking, deferred, or continued as a task.
import { isObject, isTame } from '../protocol/json.ts'
import type { InputRequests } from '../protocol/messages.ts'
import { shown } from '../protocol/text.ts'
import { deferralReason, type DeferralReason } from './deferrals.ts'
import { badResponse, type ClientError, stateTooLarge } from './errors.ts'
import type { Results, RoundMethod } from './saved.ts'
import { MAX_DEPTH } from './saved.ts'

export type RoundResult =
  | { readonly kind: 'done'; readonly result: Results[RoundMethod] }
  | { readonly kind: 'asks'; readonly requests: InputRequests; readonly state: string | undefined }
  /** The server wants to be called again, and asks nothing. */
  | { readonly kind: 'deferred'; readonly state: string; readonly reason: DeferralReason }
  | { readonly kind: 'task'; readonly result: Record<string, unknown> }

/** The list that each kind of final result has. */
const LISTS: Record<RoundMethod, string> = {
  'tools/call': 'content',
  'prompts/get': 'messages',
  'resources/read': 'contents',
}

export interface RoundLimits {
  readonly maxStateBytes: number
  /** True if the request said that the call may become a task. */
  readonly acceptsTask: boolean
}

export function readRound(result: Record<string, unknown>, method: RoundMethod, limits: RoundLimits): RoundResult {
  const { resultType = 'complete' } = result
  if (resultType === 'complete') return { kind: 'done', result: readDone(result, method) }
  if (resultType === 'task' && limits.acceptsTask) return { kind: 'task', result }
  if (resultType !== 'input_required') throw unknownType(resultType, method)
  const state = readState(result['requestState'] ?? undefined, limits.maxStateBytes)
  const requests = readInputRequests(result['inputRequests'] ?? {})
  if (Object.keys(requests).length > 0) return { kind: 'asks', requests, state }
  if (state === undefined) throw badResponse('it needs input, and has neither inputRequests nor a requestState')
  return { kind: 'deferred', state, reason: deferralReason(result['_meta']) }
}

/** For a request that takes one round only. */
export function checkComplete({ resultType = 'complete' }: Record<string, unknown>, method: string): void {
  if (resultType !== 'complete') throw unknownType(resultType, method)
}

export function readDone(result: Record<string, unknown>, method: RoundMethod): Results[RoundMethod] {
  const list = result[LISTS[method]]
  if (!Array.isArray(list) || !list.every(isObject)) {
    throw badResponse(`the ${LISTS[method]} of ${method} must be a list of objects`)
  }
  // Legacy servers do not send it.
  result['resultType'] = 'complete'
  return result as unknown as Results[RoundMethod]
}

export function readInputRequests(requests: unknown): InputRequests {
  if (!isObject(requests)) throw badResponse(`its inputRequests must be an object, got ${shown(requests)}`)
  if (!isTame(requests, MAX_DEPTH)) {
    throw badResponse(
      `its inputRequests are nested more than ${MAX_DEPTH} levels deep, or contain a number that is not finite`,
    )
  }
  return requests as unknown as InputRequests
}

/** Throws `STATE_TOO_LARGE` if the state has more bytes than the client carries. */
export function checkStateSize(state: string, maxBytes: number): void {
  // A character takes at most three bytes per UTF-16 unit, so most states need not be counted.
  if (state.length * 3 <= maxBytes) return
  const bytes = new TextEncoder().encode(state).byteLength
  if (bytes > maxBytes) throw stateTooLarge(bytes, maxBytes)
}

function readState(state: unknown, maxBytes: number): string | undefined {
  if (state === undefined) return undefined
  if (typeof state !== 'string') throw badResponse(`its requestState must be a string, got ${shown(state)}`)
  checkStateSize(state, maxBytes)
  return state
}

function unknownType(type: unknown, method: string): ClientError {
  return badResponse(`the resultType of ${method} is unknown, got ${shown(type)}`)
}
