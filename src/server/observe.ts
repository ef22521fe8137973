// Tells the observers of an app about the requests of its clients. An app without observers does not enter this file.
import type { ObservedRound, Observers, RoundEnd } from '../flow/observer.ts'
import { INTERNAL_ERROR, isPublicProtocolError } from '../protocol/errors.ts'
import type { Served } from './middleware.ts'
import type { ResolvedRequest } from './resolve.ts'

/** How a request came in. */
export type RoundOrigin = Pick<ObservedRound, 'revision' | 'caller' | 'transport'>

/** Serves a request inside of what observers want to be active for it. Throws what `serve` throws. */
export async function observeRound<T extends Served>(
  observers: Observers,
  { method, target, id, params, meta }: ResolvedRequest,
  { revision, caller, transport }: RoundOrigin,
  serve: () => T | Promise<T>,
): Promise<T> {
  const begun = observers.round({ method, target: target?.target, id, params, meta, revision, caller, transport })
  try {
    const served = await begun.run(serve)
    begun.end({ outcome: outcomeOf(served) })
    return served
  } catch (error) {
    begun.end({ outcome: 'error', error: shownOf(error) })
    throw error
  }
}

/** What a client is told about it. */
function shownOf(error: unknown): { code: number; message: string } {
  if (isPublicProtocolError(error)) return { code: error.rpcCode, message: error.message }
  return { code: INTERNAL_ERROR, message: 'Internal error' }
}

function outcomeOf(served: Served): RoundEnd['outcome'] {
  if (served === undefined) return 'cancelled'
  // Most results are neither: reading them would cost more than serving them did.
  if (typeof served === 'string' && served.startsWith(COMPLETE) && !served.includes(IS_ERROR)) return 'complete'
  const { resultType, isError } =
    typeof served === 'string' ? ((JSON.parse(served) as Exclude<Served, string>) ?? {}) : served
  if (resultType === 'input_required' || resultType === 'task') return resultType
  return isError === true ? 'tool_error' : 'complete'
}

const COMPLETE = '{"resultType":"complete"'
const IS_ERROR = '"isError":true'
