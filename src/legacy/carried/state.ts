// What a client carries with a question: all that any instance needs to go on with the call once it is answered.
//
// It opens under the terms of every state, for the session and the principal that the question went to.
import type { Answers } from '../../flow/answering.ts'
import { isObject } from '../../protocol/json.ts'
import type { LoggingLevel, RequestId } from '../../protocol/messages.ts'
import { META_STATE } from '../../protocol/revisions/older.ts'
import type { Claims } from '../../seal/claims.ts'
import type { PayloadCodec } from '../../seal/envelope.ts'
import { bindTo, isAnything, isCount, isTextOrNull } from '../../seal/envelope.ts'
import type { Seal, SealFor } from '../../seal/seal.ts'
import type { Largest } from '../../seal/size.ts'
import type { Question } from '../question.ts'
import type { Session } from '../session.ts'

export interface CallState {
  /** The request that the call began with. */
  readonly id: RequestId
  readonly method: string
  readonly params: Record<string, unknown>
  readonly level: LoggingLevel
  /** Where the client looks for what comes next, empty on a connection; and how many questions went out before. */
  readonly box: string
  readonly leg: number
  /** The id and the key that were asked under. */
  readonly askId: string
  readonly key: string
  /** What this round has brought so far. */
  readonly answers: Answers
  /** Its questions that are still to be asked. */
  readonly left: readonly Question[]
  /** Those of its questions that are pages to visit. */
  readonly visits: readonly string[]
  readonly flow: FlowClaims
}

/** The flow's own. What the session's id holds need not be carried twice. */
export type FlowClaims = Omit<Claims, 'capabilities' | 'revision' | 'deferrals'>

/** Mints and opens the states that clients carry. */
export class States {
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

/** A change to `CallState` is a new layout. */
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

/** The state that a response carries, whatever it is; `undefined` where it carries none. */
export function stateIn({ result, error }: Record<string, unknown>): unknown {
  // An error has no `_meta`; what it has for anything beyond its message is `data`.
  const holder = isObject(result) ? result : isObject(error) ? error['data'] : undefined
  const meta = isObject(holder) ? holder['_meta'] : undefined
  return isObject(meta) ? meta[META_STATE] : undefined
}

/** The question with what the client is to carry. */
export function withState({ method, params = {} }: Question['request'], token: string): object {
  const { _meta: meta } = params as { _meta?: object }
  return { method, params: { ...params, _meta: { ...meta, [META_STATE]: token } } }
}

/** An answer as it would have come without. */
export function withoutState(answer: Record<string, unknown>): Record<string, unknown> {
  const { _meta: meta, ...rest } = answer
  if (!isObject(meta)) return answer
  const { [META_STATE]: _state, ...others } = meta
  return Object.keys(others).length === 0 ? rest : { ...rest, _meta: others }
}
