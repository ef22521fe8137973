// An answer that carries its call: opened, and gone on with from there alone, on whichever instance it has reached.
import { useOnce } from '../../store/once.ts'
import type { RequestId } from '../../protocol/messages.ts'
import { canonical, digest } from '../../seal/canonical.ts'
import { CLOCK_SKEW_MS } from '../../seal/envelope.ts'
import { InvalidState } from '../../seal/errors.ts'
import type { ResolvedRequest } from '../../server/resolve.ts'
import { resolve } from '../../server/resolve.ts'
import type { Response } from '../asks.ts'
import { responseIn } from '../asks.ts'
import type { LegacyHost, Outlet } from '../host.ts'
import { respond } from '../methods.ts'
import { answerIn } from '../questions.ts'
import type { Session } from '../session.ts'
import type { CallState } from './state.ts'
import { stateIn } from './state.ts'

/** A question's answer, with the call that asked. */
export interface Answered {
  /** The request of the call, as the client first sent it. */
  readonly request: ResolvedRequest
  readonly state: CallState
  readonly response: Response
}

/** Throws `InvalidState`. */
export async function openAnswer(
  { states, app }: LegacyHost,
  session: Session,
  message: Record<string, unknown>,
  principal: string | undefined,
): Promise<Answered> {
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
 * Goes on with the call. `say` is given its response, should it come to one here. Does nothing where that is done, or
 * under way, or cancelled. Throws `InvalidState` where the state is good for one use only and that was another one.
 */
export async function goOn(
  host: LegacyHost,
  session: Session,
  { request, state, response }: Answered,
  outlet: Outlet,
  principal: string | undefined,
  say: (text: string) => void | Promise<void>,
): Promise<void> {
  const { id } = state
  if (await isCancelled(host, session, state)) return
  const run = async (): Promise<string> => {
    const text = await respond(host, { request, session, outlet, principal, resumed: { state, response } })
    if (text !== undefined) await say(text)
    return ''
  }
  // The same answer once more. An earlier leg has asked, and is about to end.
  if ((session.calls.get(id)?.leg ?? 0) > state.leg) return
  const { once, seal } = host.app
  if (once === undefined) return void (await run())
  const options = {
    note: digest(canonical('error' in response ? response : answerIn(response.result))),
    keepMs: seal.lifetimeMs,
    gaveUp: () => false,
  }
  const used = await useOnce(once, `state:${digest(`${state.flow.flowId}\nleg ${state.leg}`)}`, options, run)
  if (used === 'refused') throw new InvalidState('it has been used with another answer')
}

/** The client is not interested any more in a call that waits nowhere. Whoever takes up an answer to it later knows. */
export async function noteCancelled(
  { mailbox, app, lettersMs }: LegacyHost,
  session: Session,
  id: RequestId,
): Promise<void> {
  try {
    await mailbox.leave(noteBox(session, id), 1, String(app.now()), lettersMs)
  } catch (error) {
    app.logger.warn('A cancellation could not be noted.', { error })
  }
}

async function isCancelled({ mailbox }: LegacyHost, session: Session, { id, flow }: CallState): Promise<boolean> {
  const notes = await mailbox.after(noteBox(session, id), 0)
  // Not one of an earlier call, should the client use an id twice.
  return notes.some(({ text }) => Number(text) + CLOCK_SKEW_MS >= flow.startedAt)
}

function noteBox(session: Session, id: RequestId): string {
  return `cancelled:${digest(`${session.id}\n${JSON.stringify(id)}`)}`
}
