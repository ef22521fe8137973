// Resumes a call from the state that came with an answer, on any instance.
import { failureText } from '../../flow/run.ts'
import type { RequestId } from '../../protocol/messages.ts'
import { canonical, digest } from '../../seal/canonical.ts'
import { CLOCK_SKEW_MS } from '../../seal/envelope.ts'
import { InvalidState } from '../../seal/errors.ts'
import type { ResolvedRequest } from '../../server/resolve.ts'
import { resolve } from '../../server/resolve.ts'
import type { Target } from '../../server/round.ts'
import { readClaims } from '../../server/round.ts'
import { useCounted } from '../../server/single-use.ts'
import { RequestSource } from '../../server/source.ts'
import { logUnlessOutage } from '../../store/outages.ts'
import type { Response } from '../asks.ts'
import { responseIn } from '../asks.ts'
import type { ResumePoint } from '../call.ts'
import { answerIn, askFailed } from '../questions.ts'
import type { Session } from '../session.ts'
import type { ResumedCall } from '../session-request.ts'
import { isMailboxFull } from './channel.ts'
import type { CarriedHost } from './host.ts'
import type { CallState } from './state.ts'
import { stateIn, withoutState } from './state.ts'

/** The answer to a question, with the call that asked it. */
export interface CarriedAnswer {
  /** The request that began the call. */
  readonly request: ResolvedRequest
  readonly state: CallState
  readonly response: Response
}

/** Throws `InvalidState`. */
export async function openAnswer(
  { states, app }: CarriedHost,
  session: Session,
  message: Record<string, unknown>,
  principal: string | undefined,
): Promise<CarriedAnswer> {
  const state = await states.open(stateIn(message), session, principal)
  const { id, method, params } = state
  const request = resolve(app.registry, { jsonrpc: '2.0', id, method, params })
  if (message['id'] === state.askId && request.kind === 'request') {
    return { request, state, response: responseIn(message) }
  }
  const reason = 'it came with an answer to another question'
  app.logger.warn('A call state was refused.', { reason })
  throw new InvalidState(reason)
}

/**
 * Runs the next segment of the call, unless it has run, runs already or was cancelled. Throws `InvalidState` if states are
 * single-use and this one was used with another answer.
 */
export async function resumeOnce(
  host: CarriedHost,
  session: Session,
  { state, response }: CarriedAnswer,
  run: () => Promise<void>,
): Promise<void> {
  if (await isCancelled(host, session, state)) return
  // A later segment runs: the client sent the same answer again. The segment that asked may still be in `calls`, about to end.
  if ((session.calls.get(state.id)?.segment ?? 0) > state.segment) return
  const { once, recordUsages: usages, seal } = host.app
  if (once === undefined) return run()
  const options = {
    note: digest(canonical('error' in response ? response : answerIn(response.result))),
    keepMs: seal.lifetimeMs,
    gaveUp: () => false,
  }
  const key = `state:${digest(`${state.flow.flowId}\nsegment ${state.segment}`)}`
  const used = await useCounted({ store: once, usages, principal: session.principal }, key, options, async () => {
    await run()
    return ''
  })
  if (used === 'refused') throw new InvalidState('it has been used with another answer')
}

/** The call of an answer, for the method that runs it. */
export function resumedCall({ app }: CarriedHost, { state, response }: CarriedAnswer): ResumedCall {
  const flow = { id: state.flow.flowId, round: state.flow.round }
  return {
    level: state.level,
    progress: state.progress,
    flow,
    async run({ running, target, round, suspend }) {
      const ended = { host: app, flow, source: new RequestSource(round, app.limits) }
      if ('error' in response) return failureText(target, askFailed(state.key, response.error), ended, state.key)
      const point = resumePoint(app, target, state, response.result)
      if (state.remaining.length === 0 || suspend === undefined) return running.run(target, round, point, suspend)
      try {
        await suspend(state.remaining, point)
        return undefined
      } catch (error) {
        return failureText(target, error, ended)
      }
    },
  }
}

/** Records that the client cancelled a call. A suspended call runs nowhere, so this stops it when its answer arrives. */
export async function recordCancelled(
  { mailbox, app, eventsMs }: CarriedHost,
  session: Session,
  id: RequestId,
): Promise<void> {
  try {
    await mailbox.leave(cancellationName(session, id), 1, String(app.now()), eventsMs, session.mailboxOwner)
  } catch (error) {
    // A caller that has used its share could fill the log too.
    if (isMailboxFull(error)) return
    logUnlessOutage(app.logger, 'A cancellation could not be stored in the mailbox.', { error })
  }
}

async function isCancelled({ mailbox }: CarriedHost, session: Session, { id, flow }: CallState): Promise<boolean> {
  const cancellations = await mailbox.after(cancellationName(session, id), 0)
  // A client may use an id twice: a cancellation from before the call belongs to an earlier one.
  return cancellations.some(({ text }) => Number(text) + CLOCK_SKEW_MS >= flow.startedAt)
}

function cancellationName(session: Session, id: RequestId): string {
  return `cancelled:${digest(`${session.id}\n${JSON.stringify(id)}`)}`
}

/** Throws if this version of the handler cannot resume from the state. */
function resumePoint(
  app: CarriedHost['app'],
  target: Target,
  { flow, key, answers, visits }: CallState,
  answer: unknown,
): ResumePoint {
  const { flowId, startedAt, round } = flow
  const { journal, flowState } = readClaims(app, target, { ...flow, deferrals: 0, capabilities: 0, revision: '' })
  const all = Object.assign(Object.create(null) as Record<string, Record<string, unknown>>, answers)
  all[key] = withoutState(answerIn(answer))
  return { flowId, startedAt, round, journal, flowState, answers: all, visits }
}
