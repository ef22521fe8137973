// The revisions that have sessions, and which one a handshake comes to.
import { revision20250326 } from './2025-03-26.ts'
import { revision20250618 } from './2025-06-18.ts'
import { revision20251125 } from './2025-11-25.ts'
import { revision202606XX } from './2026-06-XX.ts'
import { firstDraft } from './2026-02-03-draft.ts'
import type { OlderRevision } from './older.ts'

export { ROUND_METHODS } from './2026-07-28.ts'
export type { Message, Result, Rounds } from './rounds.ts'
export type { OlderRevision } from './older.ts'

/** The latest one first. */
const OLDER: readonly [OlderRevision, ...OlderRevision[]] = [revision20251125, revision20250618, revision20250326]

const OPT_IN: readonly OlderRevision[] = [revision202606XX, firstDraft]

export const OLDER_NAMES: readonly string[] = [...OLDER, ...OPT_IN].map(({ name }) => name)

/** `optedIn` names those that are spoken beside the released ones. */
export function olderRevision(name: unknown, optedIn: readonly string[] = []): OlderRevision | undefined {
  const isIt = (revision: OlderRevision): boolean => revision.name === name
  return OLDER.find(isIt) ?? OPT_IN.filter((revision) => optedIn.includes(revision.name)).find(isIt)
}

/** The one that the client proposes, or the latest release: it is the client's to go on with that or to leave. */
export function negotiated(proposed: string, optedIn?: readonly string[]): OlderRevision {
  return olderRevision(proposed, optedIn) ?? OLDER[0]
}
