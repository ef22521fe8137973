// POST <base>/events/<token>: an event from outside over HTTP.
//
// The token is the permission, so nobody is authenticated here, and any page may post: a browser adds no rights of its own to the
// request. Everything is bounded before the token is opened.
import { RallyError } from '../protocol/errors.ts'
import { isTame } from '../protocol/json.ts'
import { Unavailable } from '../protocol/unavailable.ts'
import type { App } from '../server/app.ts'
import type { Reply } from '../server/reply.ts'
import { UNAVAILABLE } from '../server/reply.ts'

const SEGMENT = '/events/'
/** The largest body, in bytes. The value in it has the same limit. */
const MAX_BODY_BYTES = 65_536
const MAX_TOKEN_CHARACTERS = 4_096
const DEEPEST = 64

const EVENT_CORS = {
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
export function refuseEvent(method: string, header: (name: string) => string | undefined): Reply | undefined {
  if (method === 'OPTIONS') return { status: 204, headers: EVENT_CORS, text: '' }
  if (method !== 'POST') return failure(405, 'Send events by POST.', { Allow: 'POST, OPTIONS' })
  if (!/^application\/json\s*(;|$)/i.test(header('content-type') ?? '')) {
    return failure(415, 'Content-Type must be application/json.')
  }
  return Number(header('content-length')) > MAX_BODY_BYTES ? tooLarge() : undefined
}

/** Never rejects. */
export async function postEvent(app: App, token: string, body: string, bytes: number): Promise<Reply> {
  if (bytes > MAX_BODY_BYTES) return tooLarge()
  if (token.length > MAX_TOKEN_CHARACTERS) return failure(404, REFUSED)
  let value: unknown
  try {
    value = JSON.parse(body)
  } catch {
    return failure(400, 'The body is not JSON.')
  }
  if (!isTame(value, DEEPEST)) return failure(400, `The body is nested deeper than ${DEEPEST} levels.`)
  app.work()
  try {
    return { status: 200, headers: EVENT_CORS, text: JSON.stringify({ status: await app.signal(token, value) }) }
  } catch (error) {
    return failureOf(app, error)
  }
}

const REFUSED = 'The event was refused: its token is wrong or has expired, or its task has ended. Do not send it again.'

function failureOf(app: App, error: unknown): Reply {
  if (error instanceof Unavailable) return failure(UNAVAILABLE, error.message, { 'Retry-After': error.retryAfter })
  if (error instanceof RallyError && error.code === 'EVENT_REFUSED') return failure(404, REFUSED)
  if (error instanceof RallyError && error.code === 'EVENT_MISMATCH') return failure(422, error.message)
  app.logger.error('Taking an event failed.', { error })
  return failure(500, 'Internal error')
}

function tooLarge(): Reply {
  return failure(413, `The body is larger than ${MAX_BODY_BYTES} bytes.`)
}

function failure(status: number, error: string, headers: Readonly<Record<string, string>> = {}): Reply {
  return { status, headers: { ...EVENT_CORS, ...headers }, text: JSON.stringify({ error }) }
}
