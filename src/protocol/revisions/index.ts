// The older revisions that are spoken, and which one a handshake comes to.
import { revision20250326 } from './2025-03-26.ts'
import { revision20250618 } from './2025-06-18.ts'
import { revision20251125 } from './2025-11-25.ts'
import type { OlderRevision } from './older.ts'

export type { OlderRevision, Result } from './older.ts'

/** The latest one first. */
const OLDER: readonly [OlderRevision, ...OlderRevision[]] = [revision20251125, revision20250618, revision20250326]

export function olderRevision(name: unknown): OlderRevision | undefined {
  return OLDER.find((revision) => revision.name === name)
}

/** The one that the client proposes, or the latest there is: it is the client's to go on with that or to leave. */
export function negotiated(proposed: string): OlderRevision {
  return olderRevision(proposed) ?? OLDER[0]
}
