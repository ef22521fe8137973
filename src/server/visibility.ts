// Which tools, prompts and resources a caller may know of. A hidden one does not exist for the caller: not in lists, not by name,
// and not in a later round of its call.
import type { CallSource } from '../flow/caller.ts'
import { callSafely } from '../protocol/call-safely.ts'
import type { Logger } from '../protocol/logger.ts'

/**
 * Returns whether this caller may know of the tool, prompt, resource or template. Must be synchronous and quick: lists call it for
 * every entry. If it throws, or returns anything but true, the entry is hidden.
 *
 * @example
 * app.tool('refund', { visible: ({ caller }) => caller?.claims['department'] === 'support' }, refund)
 */
export type Visible = (who: Pick<CallSource, 'caller' | 'client'>) => boolean

/** What decides whether a caller may know of an entry, and use it. */
export interface Guarded {
  readonly scopes: readonly string[] | undefined
  readonly visible: VisibilityTest | undefined
}

/** The `visible` of a tool, prompt, resource or template. */
export interface VisibilityTest {
  /** Whose it is, such as `Tool "deploy"`. Log entries begin with it. */
  readonly where: string
  readonly test: Visible
}

/** The parts of a message that name something. */
export interface Naming {
  readonly method: string
  readonly params: Record<string, unknown> | undefined
  readonly target: Guarded | undefined
  readonly completion: Guarded | undefined
  readonly own: Guarded | undefined
  readonly scopes: readonly string[] | undefined
}

/** The caller for whom a list is made. */
export interface Viewer extends CallSource {
  /** True if the host authenticates: only then are scopes checked at all. */
  readonly checksScopes: boolean
}

export function isVisible({ visible }: Pick<Guarded, 'visible'>, source: CallSource, logger: Logger): boolean {
  if (visible === undefined) return true
  const isShown: unknown = callSafely(
    () => checkedAnswer(visible, source, logger),
    (error) => {
      const { caller } = source
      const details = { ...(caller && { principal: caller.principal }), error }
      logger.error(`${visible.where}: visible() failed. It is hidden from the caller.`, details)
    },
  )
  return isShown === true
}

/** What `visible` returned. A value that is not a boolean is logged once: lists call it for every entry. */
function checkedAnswer(visible: VisibilityTest, source: CallSource, logger: Logger): unknown {
  const answer: unknown = visible.test(source)
  if (typeof answer !== 'boolean' && !warned.has(visible)) {
    warned.add(visible)
    const got = answer instanceof Promise ? 'a promise' : `a value of type ${typeof answer}`
    const rule = 'visible() must be synchronous and return true or false'
    logger.error(`${visible.where}: ${rule}, got ${got}. It is hidden from the caller.`)
  }
  return answer
}

/** Those whose wrong value was logged. */
const warned = new WeakSet<VisibilityTest>()

/** True if a list shows the entry. A caller without its scopes may still call it, and learns then which scopes it lacks. */
export function isListed(entry: Guarded, viewer: Viewer, logger: Logger): boolean {
  const { scopes } = entry
  if (scopes !== undefined && viewer.checksScopes) {
    const granted = viewer.caller?.scopes ?? []
    if (!scopes.every((scope) => granted.includes(scope))) return false
  }
  return isVisible(entry, viewer, logger)
}
