// Tasks as a client of the extension for tasks speaks of them, with nothing but HTTP.
import { META_CAPABILITIES, TASKS_EXTENSION } from '../../src/protocol/revisions/2026-07-28.ts'
import type { Round, WireRequest } from '../wire/messages.ts'
import { call, EVERYTHING, headersOf, request, resultOf } from '../wire/messages.ts'

/** What a client that has tasks says on every request. */
const TASKS = { [META_CAPABILITIES]: { ...EVERYTHING, extensions: { [TASKS_EXTENSION]: {} } } }

export interface WireTask {
  readonly taskId: string
  readonly status: 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'
  readonly statusMessage?: string
  readonly inputRequests?: Readonly<Record<string, { readonly params: { readonly message?: string } }>>
  readonly result?: { readonly content: readonly { readonly text: string }[]; readonly isError?: boolean }
  readonly error?: { readonly code: number; readonly message: string }
}

export function taskCall(name: string, args: object, round: Round = {}): WireRequest {
  return call(name, args, round, TASKS)
}

export function getTask(taskId: string): WireRequest {
  return request('tasks/get', { taskId }, TASKS)
}

export function updateTask(taskId: string, inputResponses: object): WireRequest {
  return request('tasks/update', { taskId, inputResponses }, TASKS)
}

export function cancelTask(taskId: string): WireRequest {
  return request('tasks/cancel', { taskId }, TASKS)
}

/** Longer than any answer takes. */
const GIVE_UP_MS = 15_000

/** Posts a message and gives the response, whether that is a result or an error. */
export async function post(
  url: string,
  message: WireRequest,
  headers: Readonly<Record<string, string>> = {},
): Promise<object> {
  const { taskId } = message.params
  const response = await fetch(url, {
    method: 'POST',
    headers: { ...headersOf(message), ...(typeof taskId === 'string' && { 'Mcp-Name': taskId }), ...headers },
    body: JSON.stringify(message),
    signal: AbortSignal.timeout(GIVE_UP_MS),
  })
  return (await response.json()) as object
}

export function taskIn(response: object): WireTask {
  return resultOf(response) as unknown as WireTask
}
