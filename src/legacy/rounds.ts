// Rounds in a session whose revision lets the client carry the call: sealed, opened, run and handed over just as with clients
// of 2026-07-28. What the client can do is what the session says, and nothing is asked on a stream.
import { Cancel } from '../protocol/cancel.ts'
import { derivedUuid } from '../flow/derive.ts'
import type { InputRequests, RequestId } from '../protocol/messages.ts'
import type { OlderRevision } from '../protocol/revisions/older.ts'
import type { Result } from '../protocol/revisions/rounds.ts'
import { callTool, getPrompt, readResource } from '../server/carry.ts'
import type { Context } from '../server/context.ts'
import type { RequestInfo } from '../server/request.ts'
import type { LegacyHost, Outlet } from './host.ts'
import type { Session } from './session.ts'

export interface RoundIn {
  readonly id: RequestId
  readonly method: string
  /** With what the request brings of the round before, in the form of 2026-07-28. */
  readonly params: Record<string, unknown>
  readonly info: RequestInfo
}

/** The text of the result, final or not; nothing where the client has cancelled. Throws what is to be told as an error. */
export async function serveRoundIn(
  { app }: LegacyHost,
  session: Session,
  { id, method, params, info }: RoundIn,
  outlet: Outlet,
  principal: string | undefined,
): Promise<string | undefined> {
  const cancel = new Cancel()
  const context: Context = { principal, cancel, notify: (text) => outlet.notify(text), overHttp: outlet.overHttp }
  // Interrupted, it is handed over with all others that a client carries.
  session.enter(id, { cancel, interrupt: () => {} })
  try {
    switch (method) {
      case 'prompts/get':
        return await getPrompt(app, params, info, context)
      case 'resources/read':
        return await readResource(app, params, info, context)
      default:
        return await callTool(app, params, info, context)
    }
  } finally {
    session.calls.delete(id)
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
