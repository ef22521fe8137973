// Suspends a call at a question: the question carries the state of the call, and the call ends here.
import { writeFlowState } from '../../flow/flow-state.ts'
import type { Params, ResolvedRequest } from '../../server/resolve.ts'
import { newAskId } from '../asks.ts'
import { noStream } from '../questions.ts'
import type { Session } from '../session.ts'
import type { Suspender } from '../session-request.ts'
import type { CarriedHost } from './host.ts'
import type { CallState } from './state.ts'
import { withState } from './state.ts'

/** Where the next question of a call is sent. */
export interface QuestionOutlet {
  /** Where the client fetches what follows its answer; `undefined` on a connection, which stays open. */
  readonly channel: string | undefined
  /** How many questions the call asked before. */
  readonly segment: number
  /** Why a question cannot be sent, if a limit is the reason. */
  readonly refusal?: () => string | undefined
  /** Returns false if the question was not sent. */
  readonly ask: (text: string) => Promise<boolean>
}

/** A client is sent one question at a time: the state holds the other questions of the round. */
export function suspenderTo(
  { app, states }: CarriedHost,
  session: Session,
  principal: string | undefined,
  outlet: QuestionOutlet,
): Suspender {
  const { channel, segment, ask } = outlet
  return {
    segment,
    suspend: ({ request, level, version, progress }) => {
      const { id, method } = request
      return async (
        [question, ...remaining],
        { flowId, startedAt, round, journal, flowState, answers = {}, visits },
      ) => {
        if (question === undefined) return
        const askId = newAskId()
        const state: CallState = {
          id,
          method,
          params: savedParams(request),
          level,
          channel: channel ?? '',
          segment,
          askId,
          key: question.key,
          answers,
          remaining,
          visits,
          progress: progress.highest,
          flow: { flowId, startedAt, round, version, carry: writeFlowState(flowState), journal: journal.text() },
        }
        const token = await states.mint(state, session, principal, () => journal.largest(3))
        if (states.ephemeral) app.mintedEphemeral(channel !== undefined)
        const text = JSON.stringify({ jsonrpc: '2.0', id: askId, ...withState(question.request, token) })
        if (!(await ask(text))) throw noStream(question.key, { refusal: outlet.refusal?.() })
      }
    },
  }
}

/** The params that a later pass needs. */
function savedParams({ method, params = {}, meta }: ResolvedRequest): Params {
  const { name, arguments: args, uri } = params
  const _meta = meta?.['progressToken'] === undefined ? undefined : { progressToken: meta['progressToken'] }
  return method === 'resources/read' ? { uri, _meta } : { name, arguments: args, _meta }
}
