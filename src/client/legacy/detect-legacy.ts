// Detects a legacy server by its answer to a request of the current revision.
import { HEADER_MISMATCH, MISSING_CAPABILITY, ProtocolError, UNSUPPORTED_VERSION } from '../../protocol/errors.ts'
import { NoCommonRevision } from '../discovery.ts'
import { ClientError } from '../errors.ts'

/** Errors that only a server of the current revision sends. */
const MODERN_CODES: ReadonlySet<number> = new Set([HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION])

/** HTTP statuses that say nothing about the revision: the server took too long, or refuses to work now. */
const BUSY: ReadonlySet<number> = new Set([408, 425, 429])
const NOT_IMPLEMENTED = 501

/** True for every answer that a server of the current revision would not give. A server that gave no answer may be any. */
export function isLegacyServer(error: unknown): boolean {
  if (error instanceof NoCommonRevision) return error.mayBeLegacy
  const reported = error instanceof ClientError ? error.cause : error
  if (reported instanceof ProtocolError) return !MODERN_CODES.has(reported.rpcCode)
  if (!(error instanceof ClientError)) return false
  const { code, status = 0 } = error
  const isRefusal = status === NOT_IMPLEMENTED || (status >= 400 && status < 500 && !BUSY.has(status))
  return code === 'BAD_RESPONSE' || (code === 'HTTP_STATUS' && isRefusal)
}
