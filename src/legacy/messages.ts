// One request in a session, and the rules for batches.
import type { OlderRevision } from '../protocol/revisions/index.ts'
import type { ResolvedRequest } from '../server/resolve.ts'
import type { Response } from './asks.ts'
import type { CallState } from './carried/state.ts'
import type { Outlet } from './host.ts'
import type { Session } from './session.ts'

/** A request, the session it belongs to, and where the messages before its response go. */
export interface SessionRequest {
  readonly request: ResolvedRequest
  readonly session: Session
  readonly outlet: Outlet
  readonly principal: string | undefined
  /** Where the call continues, and the answer it continues with. Absent when the call begins. */
  readonly resumed?: { readonly state: CallState; readonly response: Response }
}

const MOST_IN_A_BATCH = 100

/** Why a batch is refused as a whole. Without a revision there was no handshake yet. */
export function problemOfBatch(batch: readonly unknown[], revision: OlderRevision | undefined): string | undefined {
  if (revision === undefined) return 'initialize first'
  if (!revision.takesBatches) return `revision ${revision.name} has no batches`
  if (batch.length > 0 && batch.length <= MOST_IN_A_BATCH) return undefined
  return `a batch holds 1 to ${MOST_IN_A_BATCH} messages, and this one ${batch.length}`
}
