// What a strict pass looks for when its handler has returned: calls that nothing awaits, and steps that are gone. It looks for failures
// in recorded scopes when it suspends too.
import type { Call } from './call.ts'
import { isFloating, isFloatingFailure } from './call.ts'
import type { PassInput } from './carrier.ts'
import type { FlowError } from './errors.ts'
import { notAwaited, stepGone } from './errors.ts'
import { nameOf } from './failure-log.ts'
import type { Journal } from './journal.ts'
import { isEffect } from './journal.ts'

interface Mistake {
  readonly error: FlowError
  readonly key: string
}

/**
 * The first mistake of the handler. It is not known yet if a call runs that nothing awaits, and that may still fail; with `isFinal` such
 * a call is not waited for any longer.
 */
export function mistakeOnReturn(
  { target, forms, journal, flowState }: PassInput,
  calls: ReadonlyMap<string, Call>,
  isFinal: boolean,
): Mistake | 'not known yet' | undefined {
  const name = nameOf(target)
  const failed = [...calls.values()].find(isFloatingFailure)
  if (failed !== undefined) return { error: notAwaitedError(name, failed), key: failed.key }
  if (!isFinal && [...calls.values()].some(mayFail)) return 'not known yet'
  // By hand, a pass continues from the handler's state and does not repeat the steps before it.
  const gone = flowState.byHand === undefined ? goneStep(forms, journal, calls) : undefined
  return gone === undefined ? undefined : { error: stepGone(name, gone), key: gone }
}

/** The call has failed, and nothing awaits it. */
export function notAwaitedError(name: string, { kind, key, failure, site }: Call): FlowError {
  return notAwaited(name, `the ${kind} "${key}"`, failure, site?.frames ?? [])
}

function mayFail(call: Call): boolean {
  return isFloating(call) && !call.settled && (call.kind === 'step' || call.kind === 'scope')
}

const MOST_KEYS = 10_000

/** The keys that each handler has used in this process, in any flow. */
const usedKeys = new WeakMap<object, Set<string>>()

/** `handler` is any object that lives as long as the registration of the handler. */
export function rememberKey(handler: object, key: string): void {
  let keys = usedKeys.get(handler)
  if (keys === undefined) usedKeys.set(handler, (keys = new Set()))
  if (keys.size < MOST_KEYS) keys.add(withoutIndex(key))
}

/**
 * The first recorded step or scope that the handler did not call, and has never called in this process: it was renamed or removed.
 * A key that it has called before is still in its code. It took another branch, as after a race with a timer.
 */
function goneStep(handler: object, journal: Journal, calls: { has(key: string): boolean }): string | undefined {
  const used = usedKeys.get(handler)
  if (used !== undefined && used.size >= MOST_KEYS) return undefined
  for (let i = 0; i < journal.length; i += 1) {
    const entry = journal.at(i)
    if (entry === undefined || !isEffect(entry.tag) || calls.has(entry.key)) continue
    if (used === undefined || !used.has(withoutIndex(entry.key))) return entry.key
  }
  return undefined
}

/** A loop may call fewer items than another flow did. */
function withoutIndex(key: string): string {
  return key.replaceAll(/\[[^\]]*\]/g, '[]')
}
