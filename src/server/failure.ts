// How a failure is reported: as a protocol error, or as a result that the model reads.
import { Declined, FlowError } from '../flow/errors.ts'
import { INTERNAL_ERROR, ProtocolError } from '../protocol/errors.ts'
import { messageOf } from './content.ts'

/** The protocol error to respond with; `undefined` if the failure is a result that the model reads. */
export function protocolErrorOf(error: unknown): ProtocolError | undefined {
  if (error instanceof ProtocolError) return error
  if (error instanceof Declined) return undefined
  if (error instanceof FlowError && error.code !== 'ASKED_TOO_OFTEN') {
    return new ProtocolError(INTERNAL_ERROR, error.message, { code: error.code })
  }
  return undefined
}

/** Reports a failure as a protocol error, for a prompt or a resource: their results cannot report one. */
export function tellFailure(error: unknown): never {
  if (error instanceof ProtocolError) throw error
  if (error instanceof Declined) {
    throw new ProtocolError(INTERNAL_ERROR, messageOf(error), { code: 'DECLINED', action: error.action })
  }
  throw protocolErrorOf(error) ?? new ProtocolError(INTERNAL_ERROR, messageOf(error))
}
