// What a message is before anybody looks into it: a response, or a batch that may be one.
import { isObject } from '../protocol/json.ts'
import type { RequestId } from '../protocol/messages.ts'
import type { OlderRevision } from '../protocol/revisions/older.ts'
import type { Response } from './asks.ts'
import type { CallState } from './carried/state.ts'

export interface Request {
  readonly id: RequestId
  readonly method: string
  readonly params: Record<string, unknown>
  /** All of it, as it came: an object. */
  readonly message: unknown
  /** The call goes on from here. */
  readonly resumed?: { readonly state: CallState; readonly response: Response }
}

const MOST_IN_A_BATCH = 100

export function isResponse(message: unknown): message is Record<string, unknown> {
  return isObject(message) && !('method' in message) && ('result' in message || 'error' in message)
}

/** Why a batch is refused as a whole. Without a revision there was no handshake yet. */
export function problemOfBatch(batch: readonly unknown[], revision: OlderRevision | undefined): string | undefined {
  if (revision === undefined) return 'initialize first'
  if (!revision.takesBatches) return `revision ${revision.name} has no batches`
  if (batch.length > 0 && batch.length <= MOST_IN_A_BATCH) return undefined
  return `a batch holds 1 to ${MOST_IN_A_BATCH} messages, and this one ${batch.length}`
}
