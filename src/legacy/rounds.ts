// Rounds in a session whose revision lets the client carry the call: sealed, opened, run and handed over just as with clients
// of 2026-07-28. What the client can do is what the session says, and nothing is asked on a stream.
import { Cancel } from '../protocol/cancel.ts'
import { derivedUuid } from '../flow/derive.ts'
import type { InputRequests } from '../protocol/messages.ts'
import type { Message, OlderRevision, Result, Rounds } from '../protocol/revisions/index.ts'
import type { RequestContext } from '../server/context.ts'
import { readRound } from '../server/params.ts'
import type { RequestInfo } from '../server/request.ts'
import { targetOf } from '../server/resolve.ts'
import { serveRound } from '../server/round.ts'
import type { LegacyHost } from './host.ts'
import type { SessionRequest } from './session-request.ts'

/** The text of the result, final or not; nothing where the client has cancelled. Throws what is to be told as an error. */
export async function serveRoundIn(
  { app }: LegacyHost,
  { request, session, outlet, principal }: SessionRequest,
  rounds: Rounds,
  info: RequestInfo,
): Promise<string | undefined> {
  const cancel = new Cancel()
  const context: RequestContext = {
    principal,
    cancel,
    notify: (text) => outlet.notify(text),
    overHttp: outlet.overHttp,
  }
  // Interrupted, it is handed over with all others that a client carries.
  session.enter(request.id, { cancel, interrupt: () => {} })
  try {
    const retry = rounds.readRetry(request.message as Message)
    return await serveRound(app, targetOf(request), readRound(request, info, context, retry))
  } finally {
    session.calls.delete(request.id)
  }
}

/** The result of a round with what it asks in the words of the revision. */
export function withOlderQuestions(revision: OlderRevision, result: Result): Result {
  const { inputRequests, requestState } = result
  if (inputRequests === undefined) return result
  const asked = Object.entries(inputRequests as InputRequests).map(([key, question]) => [
    key,
    // A visit has an id in these revisions: another one each time that it is asked for, and nothing is told by it.
    revision.question(question, derivedUuid(String(requestState), `visit ${key}`)),
  ])
  return { ...result, inputRequests: Object.fromEntries(asked) as Result }
}
