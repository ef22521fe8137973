// How a failure is told: as a protocol error, or as a result that the model reads.
import { Declined, FlowError } from '../flow/errors.ts'
import { INTERNAL_ERROR, ProtocolError } from '../protocol/errors.ts'
import type { Logger } from '../protocol/logger.ts'
import { messageOf } from './content.ts'

/** `undefined` where it is a result that the model reads. */
export function protocolErrorOf(error: unknown): ProtocolError | undefined {
  if (error instanceof ProtocolError) return error
  if (error instanceof Declined) return undefined
  if (error instanceof FlowError && error.code !== 'ASKED_TOO_OFTEN') {
    return new ProtocolError(INTERNAL_ERROR, error.message, { code: error.code })
  }
  return undefined
}

/** For what has no result that tells a failure, such as a prompt: a protocol error does. */
export function tellFailure(error: unknown, what: string, logger: Logger): never {
  if (error instanceof ProtocolError) throw error
  if (error instanceof Declined) {
    throw new ProtocolError(INTERNAL_ERROR, messageOf(error), { code: 'DECLINED', action: error.action })
  }
  logger.error(what, { error })
  throw protocolErrorOf(error) ?? new ProtocolError(INTERNAL_ERROR, messageOf(error))
}
