// POST <base>/events/<token>: an event from outside over HTTP.
//
// The token is the permission, so nobody is authenticated here, and any page may post: a browser adds no rights of its own to the
// request. Everything is bounded before the token is opened.
import { ProtocolError, RallyError } from '../protocol/errors.ts'
import { Unavailable } from '../protocol/unavailable.ts'
import type { App } from '../server/app.ts'
import type { Reply } from '../server/reply.ts'
import { UNAVAILABLE } from '../server/reply.ts'
import type { ReadHeader } from './header-check.ts'

const SEGMENT = '/events/'
/** The largest body, in bytes. The value in it has the same limit. */
export const MAX_EVENT_BODY_BYTES = 65_536
const MAX_TOKEN_CHARACTERS = 4_096

/** On every reply. */
export const EVENT_CORS = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Methods': 'POST',
  'Access-Control-Allow-Headers': 'Content-Type',
}

/** True if a URL may be one of an event. It costs no parsing. */
export function mayBeEvent(url: string): boolean {
  return url.includes(SEGMENT)
}

/** The token in a path, if it is one of an event. */
export function eventTokenIn(path: string): string | undefined {
  const at = path.lastIndexOf(SEGMENT)
  const token = at === -1 ? '' : path.slice(at + SEGMENT.length)
  return token === '' || token.includes('/') ? undefined : token
}

/** The reply to a request that is not read any further. */
export function refuseEvent(method: string, header: ReadHeader): Reply | undefined {
  if (method === 'OPTIONS') return { status: 204, headers: {}, text: '' }
  if (method !== 'POST') return eventFailure(405, 'Send events by POST.', { Allow: 'POST, OPTIONS' })
  const isJson = /^application\/json\s*(;|$)/i.test(header('content-type') ?? '')
  return isJson ? undefined : eventFailure(415, 'Content-Type must be application/json.')
}

/** True if a parser that read the body has made this text of a JSON string, which is longer than its value. */
export function isParsedString(text: string, header: ReadHeader): boolean {
  const length = header('content-length')
  return length !== undefined && header('content-encoding') === undefined && Number(length) !== Buffer.byteLength(text)
}

/** Never rejects. */
export async function postEvent(app: App, token: string, body: string): Promise<Reply> {
  if (token.length > MAX_TOKEN_CHARACTERS) return eventFailure(404, REFUSED)
  let value: unknown
  try {
    value = JSON.parse(body)
  } catch {
    return eventFailure(400, 'The body is not JSON.')
  }
  app.work()
  try {
    return { status: 200, text: JSON.stringify({ status: await app.signal(token, value) }) }
  } catch (error) {
    return failureOf(app, error)
  }
}

const REFUSED = 'The event was refused: its token is wrong or has expired, or its task has ended. Do not send it again.'
/** Who sends the event learns nothing of the caller who is over its limit. */
const NO_ROOM = 'The server has no room for this event. Try again later.'

function failureOf(app: App, error: unknown): Reply {
  if (error instanceof Unavailable) return eventFailure(UNAVAILABLE, error.message, { 'Retry-After': error.retryAfter })
  const code = error instanceof RallyError ? error.code : undefined
  if (code === 'EVENT_REFUSED') return eventFailure(404, REFUSED)
  if (error instanceof RallyError && code === 'EVENT_MISMATCH') return eventFailure(422, error.message)
  // Such as 1e999, which is not finite.
  if (error instanceof RallyError && code === 'NOT_JSON') return eventFailure(400, error.message)
  if (error instanceof ProtocolError) {
    app.logger.warn('There was no room for an event.', { reason: error.message })
    return eventFailure(429, NO_ROOM)
  }
  app.logger.error('Taking an event failed.', { error })
  return eventFailure(500, 'Internal error')
}

export function eventFailure(status: number, error: string, headers?: Readonly<Record<string, string>>): Reply {
  return { status, text: JSON.stringify({ error }), ...(headers && { headers }) }
}
