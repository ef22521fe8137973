// The revisions with sessions, and the one that a handshake agrees on.
import { revision20241105 } from './2024-11-05.ts'
import { revision20250326 } from './2025-03-26.ts'
import { revision20250618 } from './2025-06-18.ts'
import { revision20251125 } from './2025-11-25.ts'
import { revision202606XX } from './2026-06-XX.ts'
import { firstDraft } from './2026-02-03-draft.ts'
import type { OlderRevision } from './older.ts'

export type { Message, Result, Rounds } from './rounds.ts'
export type { OlderRevision } from './older.ts'

/** Released, the latest first. */
const OLDER: readonly [OlderRevision, ...OlderRevision[]] = [
  revision20251125,
  revision20250618,
  revision20250326,
  revision20241105,
]

const OPT_IN: readonly OlderRevision[] = [revision202606XX, firstDraft]

export const OLDER_NAMES: readonly string[] = [...OLDER, ...OPT_IN].map(({ name }) => name)

/** The revision with this name, if it is released or in `optedIn`. */
export function olderRevision(name: unknown, optedIn: readonly string[] = []): OlderRevision | undefined {
  const isIt = (revision: OlderRevision): boolean => revision.name === name
  return OLDER.find(isIt) ?? OPT_IN.filter((revision) => optedIn.includes(revision.name)).find(isIt)
}

/** The revision that the client proposes, or else the latest release, which the client may accept or refuse. */
export function negotiated(proposed: string, optedIn?: readonly string[]): OlderRevision {
  return olderRevision(proposed, optedIn) ?? OLDER[0]
}
