// What a caller may know of. A thing that is hidden from a caller does not exist for it: in lists, on every path, in every round.
import type { CallSource } from '../flow/caller.ts'
import type { Logger } from '../protocol/logger.ts'

/**
 * Returns whether this caller may know of the tool, prompt, resource or template. Must be synchronous and quick: lists call it for
 * every entry. One that throws hides it.
 *
 * @example
 * app.tool('refund', { visible: ({ caller }) => caller?.claims['department'] === 'support' }, refund)
 */
export type Visible = (who: Pick<CallSource, 'caller' | 'client'>) => boolean

/** What has to be known of an entry before a caller is told of it. */
export interface Guarded {
  readonly scopes: readonly string[] | undefined
  readonly visible: Visible | undefined
}

/** A message as far as it names something. */
export interface Naming {
  readonly method: string
  readonly params: Record<string, unknown> | undefined
  readonly target: Guarded | undefined
  readonly completion: Guarded | undefined
  readonly scopes: readonly string[] | undefined
}

/** Who is looking. */
export interface Viewer extends CallSource {
  /** True if the host authenticates: only then are scopes checked at all. */
  readonly checksScopes: boolean
}

export function isVisible({ visible }: Pick<Guarded, 'visible'>, source: CallSource, logger: Logger): boolean {
  if (visible === undefined) return true
  try {
    // A promise is no answer: what is not clearly visible is hidden.
    const answer: unknown = visible(source)
    return answer === true
  } catch (error) {
    logger.error('visible() failed. What it is for is hidden from the caller.', { error })
    return false
  }
}

/** True if a list shows the entry. A caller without its scopes may still call it, and learns then which scopes it lacks. */
export function isListed(entry: Guarded, viewer: Viewer, logger: Logger): boolean {
  const { scopes } = entry
  if (scopes !== undefined && viewer.checksScopes) {
    const granted = viewer.caller?.scopes ?? []
    if (!scopes.every((scope) => granted.includes(scope))) return false
  }
  return isVisible(entry, viewer, logger)
}
