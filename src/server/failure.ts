// How a failure is reported: as a protocol error, or as a result that the model reads.
import type { Caller } from '../flow/caller.ts'
import { newReference } from '../flow/derive.ts'
import { Declined, FlowError } from '../flow/errors.ts'
import type { FailurePlace, TargetName } from '../flow/failure-log.ts'
import { logServing, maskedError } from '../flow/failure-log.ts'
import { INTERNAL_ERROR, isPublicProtocolError, ProtocolError, RallyError } from '../protocol/errors.ts'
import { isOwnMethod } from '../protocol/own-methods.ts'
import { cut } from '../protocol/text.ts'
import { readReference } from './completion.ts'
import { messageOf } from './content.ts'

/** The protocol error to respond with; `undefined` if the failure is a result that the model reads. */
export function protocolErrorOf(error: unknown): ProtocolError | undefined {
  if (isPublicProtocolError(error)) return error
  if (error instanceof Declined) return undefined
  if (error instanceof FlowError && error.code !== 'ASKED_TOO_OFTEN') {
    return new ProtocolError(INTERNAL_ERROR, error.message, { code: error.code })
  }
  return undefined
}

/** What reports the failures of requests outside of a flow. */
export interface ServingHost extends Pick<FailurePlace, 'logger' | 'onError'> {
  readonly showErrors: boolean
}

/** Logs and reports a failure outside of a flow: what the author threw in a completion, a method of the app's own or a middleware. */
export function failServing(host: ServingHost, error: unknown, target: TargetName, caller: Caller | undefined): never {
  const { logger, onError, showErrors } = host
  const reference = newReference()
  logServing({ logger, onError, target, caller, reference }, error)
  const mayRead = showErrors || (error instanceof RallyError && error.isPublic)
  return tellFailure(mayRead ? error : maskedError(target.method, reference))
}

/** What a request names, for the log: of a completion that is its prompt or template. */
export function targetNameOf({ method, params, target }: ServedRequest): TargetName {
  if (target !== undefined) return { method, target: target.target }
  if (isOwnMethod(method)) return { method, target: method }
  const { prompt, uri } = method === 'completion/complete' ? readReference(params?.['ref']) : {}
  return { method, target: cut(prompt ?? uri ?? '', MAX_NAME) }
}

/** The parts of a request that name something. */
interface ServedRequest {
  readonly method: string
  readonly params: Readonly<Record<string, unknown>> | undefined
  readonly target?: { readonly target: string } | undefined
}

/** The client wrote it, and nobody has looked it up yet. */
const MAX_NAME = 256

/** Reports a failure as a protocol error, for a prompt or a resource: their results cannot report one. */
export function tellFailure(error: unknown): never {
  if (isPublicProtocolError(error)) throw error
  if (error instanceof Declined) {
    throw new ProtocolError(INTERNAL_ERROR, messageOf(error), { code: 'DECLINED', action: error.action })
  }
  throw protocolErrorOf(error) ?? new ProtocolError(INTERNAL_ERROR, messageOf(error))
}
