// One round of a call in a session whose revision lets the client carry the flow: sealed, opened, run and handed over just as
// with clients of 2026-07-28. What the client can do is what the session says, and nothing is asked on a stream.
import { Cancel } from '../flow/cancel.ts'
import { derivedUuid } from '../flow/derive.ts'
import type { InputRequests } from '../protocol/messages.ts'
import type { OlderRevision, Result } from '../protocol/revisions/index.ts'
import type { Carried, RoundRequest } from '../server/round.ts'
import { serveRound } from '../server/round.ts'
import type { LegacyHost } from './host.ts'
import type { Stoppable } from './session.ts'

export class Round implements Stoppable {
  readonly cancel = new Cancel()
  readonly #host: LegacyHost

  constructor(host: LegacyHost) {
    this.#host = host
  }

  /** It goes on elsewhere, and is handed over with all others that do. */
  interrupt(): void {}

  /** The text of the result, final or not; nothing where the client has cancelled. Throws what is to be told as an error. */
  run(carried: Carried, request: RoundRequest): Promise<string | undefined> {
    return serveRound(this.#host.app, carried, request)
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
