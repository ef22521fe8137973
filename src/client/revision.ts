// The revisions of the protocol that this client speaks, and the choice of one that the server speaks too.
import type { Rounds } from '../protocol/revisions/rounds.ts'
import { OPT_IN } from '../protocol/revisions/rounds.ts'
import { REVISION, writeRetry } from '../protocol/revisions/2026-07-28.ts'
import { ClientError } from './errors.ts'

/** The best first. */
export const REVISIONS: readonly string[] = [REVISION]

/** Those in which the client carries a call, and so can save it. */
export const RESUMABLE_REVISIONS: readonly string[] = [...REVISIONS, ...OPT_IN]

/** How a request brings the round before to servers of `REVISIONS`. */
export const RETRY_FORMAT: RetryFormat = { writeRetry }

export type RetryFormat = Pick<Rounds, 'writeRetry'>

/** `supported` is untrusted; `cause` is the error that it came with, if it did. */
export function chooseRevision(supported: unknown, cause?: Error): string {
  const theirs: unknown[] = Array.isArray(supported) ? supported : []
  const common = REVISIONS.find((revision) => theirs.includes(revision))
  if (common !== undefined) return common
  const named = theirs.filter((revision) => typeof revision === 'string').slice(0, MOST_NAMED)
  throw new ClientError(
    'REVISION',
    `The server speaks ${named.join(', ') || 'no revision that it names'}, and this client ${REVISIONS.join(', ')}.`,
    cause === undefined ? {} : { cause },
  )
}

const MOST_NAMED = 10
