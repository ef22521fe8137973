// What kind of message a resolved one is. A file of its own, because the hosts need this and nothing else of the server: the
// entry mcp-rally/node stays small.
import { RESULT_TOOL } from '../protocol/apps.ts'
import { isObject } from '../protocol/json.ts'
import { META_VERSION } from '../protocol/revisions/2026-07-28.ts'
import type { InvalidMessage, Resolved } from './resolve.ts'

/** True when the sender waits for a response. An id that is not valid counts: the sender meant to send a request. */
export function expectsResponse({ kind, message }: Resolved): boolean {
  return kind === 'request' || (kind === 'invalid' && isObject(message) && message['id'] !== undefined)
}

/** A response has no method, but a result or an error. */
export interface ResponseMessage extends InvalidMessage {
  readonly message: Record<string, unknown>
}

export function isResponse(resolved: Resolved): resolved is ResponseMessage {
  const { kind, message } = resolved
  return (
    kind === 'invalid' && isObject(message) && !('method' in message) && ('result' in message || 'error' in message)
  )
}

/** Every request of 2026-07-28 names its revision in `_meta`; no request of an older revision does. */
export function namesRevision({ meta }: Resolved): boolean {
  return meta !== undefined && META_VERSION in meta
}

/** True for the request that begins a session of an older revision. */
export function isInitialize(request: Resolved): boolean {
  return request.method === 'initialize' && expectsResponse(request) && !namesRevision(request)
}

/** True for a request that only waits for something to happen. It has limits of its own. */
export function isWaiting({ kind, method, target, params }: Resolved): boolean {
  if (kind !== 'request') return false
  if (method === 'subscriptions/listen' || method === 'tasks/result') return true
  // A call of the model that waits for the user. No tool of an author has this name.
  return target === undefined && method === 'tools/call' && params?.['name'] === RESULT_TOOL
}
