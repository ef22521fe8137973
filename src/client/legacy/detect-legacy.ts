// Detects a legacy server by its answer to a request of the current revision.
import { HEADER_MISMATCH, MISSING_CAPABILITY, ProtocolError, UNSUPPORTED_VERSION } from '../../protocol/errors.ts'
import { olderRevision } from '../../protocol/revisions/index.ts'
import { ClientError } from '../errors.ts'
import { isObject } from '../../protocol/json.ts'

/** HTTP statuses of a server that does not understand the request. */
const STATUSES: ReadonlySet<unknown> = new Set([400, 404, 405, 406, 415, 422])

/** True for every error that a server of the current revision would not send. */
export function isLegacyServer(error: unknown): boolean {
  const reported = error instanceof ClientError ? error.cause : error
  if (reported instanceof ProtocolError) {
    if (reported.rpcCode === UNSUPPORTED_VERSION) return supportsLegacy(reported.data)
    return reported.rpcCode !== HEADER_MISMATCH && reported.rpcCode !== MISSING_CAPABILITY
  }
  return error instanceof ClientError && error.code === 'HTTP_STATUS' && STATUSES.has(error.status)
}

function supportsLegacy(data: unknown): boolean {
  const supported: unknown = isObject(data) ? data['supported'] : undefined
  return Array.isArray(supported) && supported.some((revision) => olderRevision(revision) !== undefined)
}
