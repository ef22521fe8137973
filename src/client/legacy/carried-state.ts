// The state that a server attaches to a question (SEP-1685). The client carries it: hides it from the answerer, and sends
// it back unchanged with the answer.
import { isObject } from '../../protocol/json.ts'
import { META_STATE } from '../../protocol/revisions/older.ts'
import { shown } from '../../protocol/text.ts'
import { ClientError } from '../errors.ts'
import { checkStateSize } from '../round.ts'

/** The capability that declares it. */
export const CARRIES_STATE = { state: { scopes: ['request'] } }

/** Returns the state of a question, if it has one. Throws if the state is not a string, or is too large. */
export function stateOf(params: unknown, maxBytes: number): string | undefined {
  const state = isObject(params) && isObject(params['_meta']) ? params['_meta'][META_STATE] : undefined
  if (state === undefined) return undefined
  if (typeof state !== 'string') {
    const message = `The server's question is not valid: its state must be a string, got ${shown(state)}.`
    throw new ClientError('QUESTION_INVALID', message)
  }
  checkStateSize(state, maxBytes)
  return state
}

/** The params of a question, as its answerer may see them. */
export function withoutState(params: unknown): unknown {
  if (!isObject(params) || !isObject(params['_meta']) || !(META_STATE in params['_meta'])) return params
  const { _meta, ...rest } = params as { _meta: Record<string, unknown> }
  const { [META_STATE]: _state, ...others } = _meta
  return Object.keys(others).length === 0 ? rest : { ...rest, _meta: others }
}

/** The outcome of a question: the members of its response. */
export type Outcome =
  | { readonly result: Readonly<Record<string, unknown>> }
  | { readonly error: { readonly code: number; readonly message: string } }

/** Adds the state to an outcome: to the `_meta` of a result, or to the `data` of an error. */
export function withState(outcome: Outcome, state: string | undefined): object {
  if (state === undefined) return outcome
  if ('error' in outcome) return { error: { ...outcome.error, data: { _meta: { [META_STATE]: state } } } }
  const { _meta } = outcome.result as { _meta?: object }
  return { result: { ...outcome.result, _meta: { ..._meta, [META_STATE]: state } } }
}
