// Rounds in a session of a draft revision in which the client carries the call. They run exactly as for clients of 2026-07-28;
// only the capabilities come from the session. Nothing is asked on a stream.
import { Cancel } from '../protocol/cancel.ts'
import { derivedUuid } from '../flow/derive.ts'
import { ProtocolError } from '../protocol/errors.ts'
import { isObject } from '../protocol/json.ts'
import type { InputRequests } from '../protocol/messages.ts'
import type { Message, OlderRevision, Result, Rounds } from '../protocol/revisions/index.ts'
import type { RequestContext } from '../server/context.ts'
import { readRound } from '../server/params.ts'
import type { RequestInfo } from '../server/request.ts'
import type { Resolved } from '../server/resolve.ts'
import { resolve, targetOf } from '../server/resolve.ts'
import { serveRound } from '../server/round.ts'
import type { LegacyHost } from './host.ts'
import type { SessionRequest } from './session-request.ts'

/** Returns the text of the result, final or not; `undefined` if the client cancelled the call. Throws the error to respond with. */
export async function serveSessionRound(
  { app }: LegacyHost,
  { request, session, outlet, caller }: SessionRequest,
  rounds: Rounds,
  info: RequestInfo,
): Promise<string | undefined> {
  const cancel = new Cancel()
  const context: RequestContext = {
    caller,
    cancel,
    notify: (text) => outlet.notify(text),
    overHttp: outlet.overHttp,
  }
  // Nothing to interrupt here: at shutdown it is handed over with all other calls that clients carry.
  session.enter(request.id, { cancel, interrupt: () => {} })
  try {
    const retry = rounds.readRetry(request.message as Message)
    return await serveRound(app, targetOf(request), readRound(request, info, context, retry))
  } finally {
    session.calls.delete(request.id)
  }
}

/** The message as a request, if the revision sends the answers to a task without a method. Never throws a ProtocolError. */
export function withMethod({ app }: LegacyHost, revision: OlderRevision | undefined, given: Resolved): Resolved {
  const { kind, message } = given
  if (kind !== 'invalid' || !isObject(message)) return given
  try {
    const request = revision?.rounds?.readTaskInput?.(message)
    return request === undefined ? given : resolve(app.registry, request)
  } catch (error) {
    if (error instanceof ProtocolError) return { ...given, problem: error }
    throw error
  }
}

/** Returns the result of a round with its questions in the words of the revision. */
export function withOlderQuestions(revision: OlderRevision, result: Result): Result {
  const { inputRequests, requestState } = result
  if (inputRequests === undefined) return result
  // With the state as seed, a visit gets a new id each time it is asked for. No notification refers to it.
  return { ...result, inputRequests: olderQuestions(revision, inputRequests as InputRequests, String(requestState)) }
}

/** Writes the questions in the words of the revision. `seed` is what the ids of visits derive from. */
export function olderQuestions(revision: OlderRevision, questions: InputRequests, seed: string): Result {
  const written = Object.entries(questions).map(([key, question]) => [
    key,
    revision.question(question, derivedUuid(seed, `visit ${key}`)),
  ])
  return Object.fromEntries(written) as Result
}
