// The result of one round, read from an untrusted server: done, asking, deferred, or gone on with as a task.
import { isObject, isTame } from '../protocol/json.ts'
import type { InputRequests } from '../protocol/messages.ts'
import { badResponse, ClientError } from './errors.ts'
import { shown } from '../protocol/text.ts'
import type { Results, RoundMethod } from './pending.ts'
import { MAX_DEPTH } from './pending.ts'

export type RoundResult =
  | { readonly kind: 'done'; readonly result: Results[RoundMethod] }
  | { readonly kind: 'asks'; readonly requests: InputRequests; readonly state: string | undefined }
  | { readonly kind: 'deferred'; readonly state: string }
  | { readonly kind: 'task'; readonly result: Record<string, unknown> }

/** Which list each kind of final result has. */
const LISTS: Record<RoundMethod, string> = {
  'tools/call': 'content',
  'prompts/get': 'messages',
  'resources/read': 'contents',
}

export interface RoundLimits {
  readonly maxStateBytes: number
  /** Whether the server was told that the call may become a task. */
  readonly acceptsTask: boolean
}

export function readRound(result: Record<string, unknown>, method: RoundMethod, limits: RoundLimits): RoundResult {
  const { resultType = 'complete' } = result
  if (resultType === 'complete') return { kind: 'done', result: readDone(result, method) }
  if (resultType === 'task' && limits.acceptsTask) return { kind: 'task', result }
  if (resultType !== 'input_required') throw unknownType(resultType, method)
  const requests = result['inputRequests'] ?? {}
  const state = readState(result['requestState'] ?? undefined, limits.maxStateBytes)
  if (!isObject(requests)) throw badResponse('its inputRequests are no object')
  if (!isTame(requests, MAX_DEPTH))
    throw badResponse('its inputRequests are nested too deeply, or hold a number that is none')
  if (Object.keys(requests).length > 0) return { kind: 'asks', requests: requests as unknown as InputRequests, state }
  if (state === undefined) throw badResponse('it needs input, and has neither inputRequests nor a requestState')
  return { kind: 'deferred', state }
}

/** Of a request that takes one round only. */
export function checkComplete({ resultType = 'complete' }: Record<string, unknown>, method: string): void {
  if (resultType !== 'complete') throw unknownType(resultType, method)
}

export function readDone(result: Record<string, unknown>, method: RoundMethod): Results[RoundMethod] {
  const list = result[LISTS[method]]
  if (!Array.isArray(list) || !list.every(isObject)) {
    throw badResponse(`the ${LISTS[method]} of its result are no list of objects`)
  }
  // Older servers leave it out.
  result['resultType'] = 'complete'
  return result as unknown as Results[RoundMethod]
}

function readState(state: unknown, maxBytes: number): string | undefined {
  if (state === undefined) return undefined
  if (typeof state !== 'string') throw badResponse('its requestState is no text')
  const bytes = Buffer.byteLength(state)
  if (bytes <= maxBytes) return state
  throw new ClientError(
    'STATE_TOO_LARGE',
    `The server wants a state of ${bytes} bytes carried; this client carries ${maxBytes} (maxStateBytes).`,
  )
}

function unknownType(type: unknown, method: string): ClientError {
  return badResponse(`the resultType ${shown(type)} of ${method} is none that this client knows`)
}
