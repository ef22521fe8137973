// The state that a client carries with a question: everything that any instance needs to resume the call with the answer.
//
// It opens for the session and the principal that the question was sent to.
import type { Answers } from '../../flow/answering.ts'
import { isObject } from '../../protocol/json.ts'
import type { LoggingLevel, RequestId } from '../../protocol/messages.ts'
import { META_STATE } from '../../protocol/revisions/older.ts'
import type { Claims } from '../../seal/claims.ts'
import type { PayloadCodec } from '../../seal/envelope.ts'
import { bindTo, isAnything, isCount, isTextOrNull } from '../../seal/envelope.ts'
import type { Seal, SealFor } from '../../seal/seal.ts'
import type { Largest } from '../../seal/size.ts'
import type { Question } from '../questions.ts'
import type { Session } from '../session.ts'

export interface CallState {
  /** The request that began the call. */
  readonly id: RequestId
  readonly method: string
  readonly params: Record<string, unknown>
  readonly level: LoggingLevel
  /** Where the client fetches what follows its answer. Empty on a connection, which stays open. */
  readonly channel: string
  /** How many questions the call asked before this one. */
  readonly segment: number
  /** The id of the request that asked, and the key of its question. */
  readonly askId: string
  readonly key: string
  /** The answers that this round has so far. */
  readonly answers: Answers
  /** The questions of this round that are still to be asked. */
  readonly remaining: readonly Question[]
  /** The keys of the questions of this round that sent the user to a page. */
  readonly visits: readonly string[]
  /** The highest progress that the client was sent, if any. States of older versions do not have it. */
  readonly progress?: number | undefined
  readonly flow: FlowClaims
}

/** What a call needs of a requestState's claims. The id of the session holds the others. */
export type FlowClaims = Omit<Claims, 'capabilities' | 'revision' | 'deferrals'>

/** Mints and opens the states that clients carry. */
export class CallStates {
  readonly #seal: SealFor<CallState>

  constructor(seal: Seal) {
    this.#seal = seal.for(callCodec)
  }

  get ephemeral(): boolean {
    return this.#seal.ephemeral
  }

  mint(state: CallState, { id }: Session, principal: string | undefined, largest: Largest): string | Promise<string> {
    return this.#seal.mint(state, bindTo('serverRequest', id, principal), largest)
  }

  /** Takes anything that a client sent. Throws `InvalidState`. */
  async open(token: unknown, { id }: Session, principal: string | undefined): Promise<CallState> {
    return this.#seal.open(token, bindTo('serverRequest', id, principal))
  }
}

/** A change to `CallState` is a new layout, except a member that may be absent. */
const LAYOUT = 1

type CallFields = [
  layout: typeof LAYOUT,
  round: number,
  version: string | null,
  carry: unknown,
  call: Omit<CallState, 'flow'>,
]

const callCodec: PayloadCodec<CallState, CallFields> = {
  purpose: 'serverRequest',
  name: 'call state',
  tests: [
    (value) => value === LAYOUT,
    isCount,
    isTextOrNull,
    isAnything,
    (value): value is CallFields[4] => isObject(value),
  ],
  write: ({ flow: { flowId, startedAt, round, version = null, carry, journal }, ...call }) => ({
    id: flowId,
    startedAt,
    fields: [LAYOUT, round, version, carry, call],
    text: journal,
  }),
  read: ({ id: flowId, startedAt, fields: [, round, version, carry, call], text: journal }) => ({
    ...call,
    flow: { flowId, startedAt, round, version: version ?? undefined, carry, journal },
  }),
}

/** Returns the state that a response carries, of any type, or `undefined` if it carries none. */
export function stateIn({ result, error }: Record<string, unknown>): unknown {
  // An error has no `_meta`, so the state is in its `data`.
  const holder = isObject(result) ? result : isObject(error) ? error['data'] : undefined
  const meta = isObject(holder) ? holder['_meta'] : undefined
  return isObject(meta) ? meta[META_STATE] : undefined
}

/** Returns the question with the state that the client carries. */
export function withState({ method, params = {} }: Question['request'], token: string): object {
  const { _meta: meta } = params as { _meta?: object }
  return { method, params: { ...params, _meta: { ...meta, [META_STATE]: token } } }
}

/** Returns the answer without its state. */
export function withoutState(answer: Record<string, unknown>): Record<string, unknown> {
  const { _meta: meta, ...rest } = answer
  if (!isObject(meta)) return answer
  const { [META_STATE]: _state, ...others } = meta
  return Object.keys(others).length === 0 ? rest : { ...rest, _meta: others }
}
