// What a pass writes to the log: failures that nothing records, questions that have changed, calls that were dropped.
import type { Asking, Call } from './call.ts'
import { isFloating, isFloatingFailure, lineOfUnsettled, unsettledKeys } from './call.ts'
import type { PassInput } from './carrier.ts'
import { visitToken } from './derive.ts'
import type { FailurePlace } from './failure-log.ts'
import { detailsOf, logFailure, nameOf } from './failure-log.ts'
import { CallSite, textOf } from './strict.ts'

export function placeOf({ target, flow, logger, onError, source }: PassInput): FailurePlace {
  return { target, flow, caller: source?.caller, logger, onError }
}

/** Logs a failure that nothing records, because the pass has ended. An abort that the end of the pass caused is not a failure. */
export function logLost(input: PassInput, { key }: Call, thrown: unknown, isDone: boolean): void {
  const isStopped = !isDone && thrown instanceof Error && thrown.name === 'AbortError'
  if (thrown !== undefined && !isStopped) logFailure(placeOf(input), thrown, key)
}

/** A function that was given to `io.onSuspend` failed. Nothing else fails for it. */
export function logCleanUp(input: PassInput, error: unknown): void {
  input.logger.error(
    `${nameOf(input.target)}: a function given to io.onSuspend threw an error.`,
    detailsOf(placeOf(input), error),
  )
}

/** Logs both texts, which strict passes remember. In production nothing keeps the first one, and questions may be personal. */
export function warnOfChange(input: PassInput, key: string, pin: string, { question }: Asking): void {
  const { target, flow, logger, strict } = input
  const withoutToken = (text: string): string => text.replaceAll(visitToken(flow.id, key), '(token)')
  const before = strict ? textOf(pin) : undefined
  logger.warn(
    `${nameOf(target)}: the question "${key}" has changed since it was asked, so its answer is not used. Build questions from arguments and recorded values only: io.now(), io.random() and io.uuid() are the same in every pass.`,
    {
      ...detailsOf(placeOf(input), undefined, key),
      ...(before !== undefined && { before: withoutToken(before), after: withoutToken(question.text()) }),
    },
  )
}

/** The handler made an io call after its pass had ended. */
export function lateCall(input: PassInput, key: string, isDone: boolean): void {
  const line = input.strict ? new CallSite().line : undefined
  const hint = isDone ? ' Did you forget `await`?' : ''
  const at = line === undefined ? '' : ` The call was made at ${line}.`
  input.logger.warn(
    `${nameOf(input.target)}: "${key}" was called after its pass ended. The call never settles.${hint}${at}`,
    detailsOf(placeOf(input), undefined, key),
  )
}

/** The journal has an entry that the handler does not call. */
export function warnOfSkipped(input: PassInput, key: string): void {
  input.logger.warn(
    `${nameOf(input.target)}: the handler did not call "${key}", which is in the journal. The flow continues without it.`,
    detailsOf(placeOf(input), undefined, key),
  )
}

/** The handler has returned although these calls have not settled, or have failed and it does not know. */
export function warnOfDropped(input: PassInput, calls: ReadonlyMap<string, Call>): void {
  if (calls.size === 0) return
  for (const call of calls.values()) if (call.settled && isFloatingFailure(call)) warnOfFloating(input, call)
  const dropped = [...calls.values()].filter(isDropped)
  const keys = unsettledKeys(dropped)
  if (keys === '') return
  const line = lineOfUnsettled(dropped)
  const at = line === undefined ? '' : ` The first was called at ${line}.`
  input.logger.warn(
    `${nameOf(input.target)}: the handler returned before ${keys} settled. The results are dropped. Did you forget \`await\`?${at}`,
    detailsOf(placeOf(input)),
  )
}

/** A question, a sleep or a scope that something awaits has lost a race. A step goes on, and has its effect all the same. */
function isDropped(call: Call): boolean {
  return call.kind === 'step' || isFloating(call)
}

/** The call has failed, and the handler does not know. */
export function warnOfFloating(input: PassInput, { key, failure }: Call): void {
  input.logger.warn(
    `${nameOf(input.target)}: "${key}" failed, and the handler did not await it. Did you forget \`await\`?`,
    detailsOf(placeOf(input), failure, key),
  )
}

export function warnOfEvent(input: PassInput, key: string, why: string): void {
  input.logger.warn(
    `${nameOf(input.target)}: the value of the event "${key}" does not match its schema (${why}). It is not used, and the event is still open.`,
    detailsOf(placeOf(input), undefined, key),
  )
}
