// States that a test can read: what they say of their flow, and whether a round was handed over with one.
import type { AppOptions } from 'mcp-rally'
import { resultOf } from '../wire/messages.ts'

/** Seals nothing, so that the engine's counts can be read. */
const codec: NonNullable<AppOptions['codec']> = {
  seal: (plaintext) => Buffer.from(plaintext).toString('base64url'),
  open: (token) => Buffer.from(token, 'base64url').toString(),
}

export const OPTIONS: AppOptions = {
  name: 'drained',
  version: '1.0.0',
  codec,
  logger: { warn() {}, error() {} },
}

export function countsOf(state: string): { round: number; deferrals: number } {
  const [header = ''] = Buffer.from(state, 'base64url').toString().split('\n')
  const [round, deferrals] = (JSON.parse(header) as unknown[]).slice(10)
  if (typeof round !== 'number' || typeof deferrals !== 'number') throw new Error(`This is not a state: ${header}`)
  return { round, deferrals }
}

/** The state of a round that was handed over; an error where it asked something, or was the last one. */
export function deferredState(response: object | undefined): string {
  const { requestState } = resultOf(response)
  if (isDeferred(response) && typeof requestState === 'string') return requestState
  throw new Error(`This should be a deferred round: ${JSON.stringify(response)}`)
}

export function isDeferred(response: object | undefined): boolean {
  const { resultType, inputRequests } = resultOf(response)
  return resultType === 'input_required' && inputRequests === undefined
}
