// What a server has this client carry with a question (SEP-1685): kept from whoever answers it, and echoed to the letter.
import { isObject } from '../../protocol/json.ts'
import { META_STATE } from '../../protocol/revisions/older.ts'
import { ClientError } from '../errors.ts'

/** How this client says that it does. */
export const CARRIES_STATE = { state: { scopes: ['request'] } }

/** `undefined` where there is nothing to carry. Throws where that is none, or too large. */
export function stateIn(params: unknown, maxBytes: number): string | undefined {
  const state = isObject(params) && isObject(params['_meta']) ? params['_meta'][META_STATE] : undefined
  if (state === undefined) return undefined
  if (typeof state !== 'string')
    throw new ClientError('QUESTION_INVALID', "The state of the server's question is no text.")
  const bytes = Buffer.byteLength(state)
  if (bytes <= maxBytes) return state
  throw new ClientError(
    'STATE_TOO_LARGE',
    `The server wants a state of ${bytes} bytes carried; this client carries ${maxBytes} (maxStateBytes).`,
  )
}

/** The question as whoever answers it may see it. */
export function withoutState(params: unknown): unknown {
  if (!isObject(params) || !isObject(params['_meta']) || !(META_STATE in params['_meta'])) return params
  const { _meta, ...rest } = params as { _meta: Record<string, unknown> }
  const { [META_STATE]: _state, ...others } = _meta
  return Object.keys(others).length === 0 ? rest : { ...rest, _meta: others }
}

/** The members of a response that has this result. */
export function resultMembers(text: string, state: string | undefined): string {
  if (state === undefined) return `"result":${text}`
  const result = JSON.parse(text) as { _meta?: object }
  return `"result":${JSON.stringify({ ...result, _meta: { ...result._meta, [META_STATE]: state } })}`
}

/** The members of one that has an error. What an error has beyond its message is in its `data`. */
export function errorMembers(code: number, message: string, state?: string): string {
  const data = state === undefined ? {} : { data: { _meta: { [META_STATE]: state } } }
  return `"error":${JSON.stringify({ code, message, ...data })}`
}
