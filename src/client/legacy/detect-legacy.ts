// Whether a server is an older one, told by how it answers a modern request.
import { HEADER_MISMATCH, MISSING_CAPABILITY, ProtocolError, UNSUPPORTED_VERSION } from '../../protocol/errors.ts'
import { olderRevision } from '../../protocol/revisions/index.ts'
import { ClientError } from '../errors.ts'
import { isObject } from '../../protocol/json.ts'

/** With these and no word of the protocol, a server says over HTTP that it makes nothing of a request. */
const STATUSES: ReadonlySet<unknown> = new Set([400, 404, 405, 406, 415, 422])

/** Any error that is none of a modern server's is taken for an older one's. */
export function isOlder(error: unknown): boolean {
  const said = error instanceof ClientError ? error.cause : error
  if (said instanceof ProtocolError) {
    if (said.rpcCode === UNSUPPORTED_VERSION) return namesOlder(said.data)
    return said.rpcCode !== HEADER_MISMATCH && said.rpcCode !== MISSING_CAPABILITY
  }
  return error instanceof ClientError && error.code === 'HTTP_STATUS' && STATUSES.has(error.status)
}

function namesOlder(data: unknown): boolean {
  const supported: unknown = isObject(data) ? data['supported'] : undefined
  return Array.isArray(supported) && supported.some((revision) => olderRevision(revision) !== undefined)
}
