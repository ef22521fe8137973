// A call that its client carries: asks one question at a time, each with the state to go on from, and stands again where
// it stood once an answer brings that back.
import { writeFlowState } from '../../flow/flow-state.ts'
import type { Target } from '../../server/round.ts'
import { readClaims } from '../../server/round.ts'
import { newAskId } from '../asks.ts'
import type { SuspendCall, ResumePoint } from '../call.ts'
import type { LegacyHost, Parting } from '../host.ts'
import { answerIn, noStream } from '../questions.ts'
import type { Session } from '../session.ts'
import type { CallState } from './state.ts'
import { withoutState, withState } from './state.ts'

export interface PartingCall extends Pick<CallState, 'id' | 'method' | 'params' | 'level'> {
  readonly version: string | undefined
  readonly principal: string | undefined
}

/** Asks the first of the questions; the state holds the others. */
export function partWith(host: LegacyHost, session: Session, parting: Parting, call: PartingCall): SuspendCall {
  const { version, principal, ...request } = call
  return async (asked, standing) => {
    const [question, ...left] = asked
    if (question === undefined) return
    const { flowId, startedAt, round, journal, flowState, answers = {}, visits } = standing
    const askId = newAskId()
    const { box = '', leg } = parting
    const flow = { flowId, startedAt, round, version, carry: writeFlowState(flowState), journal: journal.text() }
    const state = { ...request, box, leg, askId, key: question.key, answers, left, visits, flow }
    const token = await host.states.mint(state, session, principal, () => journal.largest(3))
    if (host.states.ephemeral) host.app.mintedEphemeral(parting.box !== undefined)
    const text = JSON.stringify({ jsonrpc: '2.0', id: askId, ...withState(question.request, token) })
    if (!(await parting.ask(text))) throw noStream(question.key)
  }
}

/** Where the call stands with this answer. Throws where there is no going on. */
export function standAgain(
  { app }: LegacyHost,
  carried: Target,
  { flow, key, answers, visits }: CallState,
  answer: unknown,
): ResumePoint {
  const { flowId, startedAt, round } = flow
  const { journal, flowState } = readClaims(app, carried, { ...flow, deferrals: 0, capabilities: 0, revision: '' })
  const all = Object.assign(Object.create(null) as Record<string, Record<string, unknown>>, answers)
  all[key] = withoutState(answerIn(answer))
  return { flowId, startedAt, round, journal, flowState, answers: all, visits }
}
