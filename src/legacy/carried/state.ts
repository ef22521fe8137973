// What a client carries with a question: all that any instance needs to go on with the call once it is answered.
//
// It opens under the terms of every state, for the session and the principal that the question went to.
import type { Answers } from '../../flow/answering.ts'
import { isObject } from '../../protocol/json.ts'
import type { LoggingLevel, RequestId } from '../../protocol/messages.ts'
import { META_STATE } from '../../protocol/meta.ts'
import type { Binding, Claims } from '../../seal/claims.ts'
import type { Seal } from '../../seal/seal.ts'
import { InvalidState } from '../../seal/seal.ts'
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

const LAYOUT = 1

type Sealed = [
  layout: number,
  id: RequestId,
  method: string,
  params: Record<string, unknown>,
  level: LoggingLevel,
  box: string,
  leg: number,
  askId: string,
  key: string,
  answers: Answers,
  left: [string, Question['request'], boolean][],
  visits: string[],
  carry: unknown,
]

const POSITIONS = 13

export class States {
  readonly #seal: Seal

  constructor(seal: Seal) {
    this.#seal = seal.of('serverRequest')
  }

  get ephemeral(): boolean {
    return this.#seal.ephemeral
  }

  mint(state: CallState, session: Session, principal: string | undefined, largest: Largest): string | Promise<string> {
    const { id, method, params, level, box, leg, askId, key, answers, visits, flow } = state
    const left = state.left.map(({ key: each, request, isVisit }): Sealed[10][number] => [each, request, isVisit])
    const carry: Sealed = [
      LAYOUT,
      id,
      method,
      params,
      level,
      box,
      leg,
      askId,
      key,
      answers,
      left,
      [...visits],
      flow.carry,
    ]
    const { capabilities, revision } = session
    const claims = { ...flow, deferrals: 0, capabilities, revision: revision.name, carry }
    return this.#seal.mint(claims, bindingOf(session, principal), largest)
  }

  /** Takes what the client sent, whatever it is. Throws `InvalidState`. */
  async open(token: unknown, session: Session, principal: string | undefined): Promise<CallState> {
    const {
      capabilities: _bits,
      revision: _name,
      deferrals: _none,
      ...flow
    } = await this.#seal.open(token, bindingOf(session, principal))
    if (!isSealed(flow.carry)) throw new InvalidState('it has a layout that this version does not know')
    const [, id, method, params, level, box, leg, askId, key, answers, left, visits, carry] = flow.carry
    const questions = left.map(([each, request, isVisit]): Question => ({ key: each, request, isVisit }))
    return {
      id,
      method,
      params,
      level,
      box,
      leg,
      askId,
      key,
      answers,
      left: questions,
      visits,
      flow: { ...flow, carry },
    }
  }
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

function isSealed(carry: unknown): carry is Sealed {
  return Array.isArray(carry) && carry[0] === LAYOUT && carry.length === POSITIONS
}

/** No request has this method, so that a codec of the user's, which knows no purposes, opens nothing else as one. */
function bindingOf({ id }: Session, principal: string | undefined): Binding {
  return { method: 'a call in session', target: id, argumentsDigest: '', principal }
}
