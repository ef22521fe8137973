// Sessions over HTTP: which one a request belongs to, what its body holds, and the answer as JSON or as events.
import { ProtocolError } from '../protocol/errors.ts'
import type { RequestId } from '../protocol/messages.ts'
import { olderRevision } from '../protocol/revisions/index.ts'
import type { LegacyRequest } from '../server/legacy.ts'
import type { EventSink, Reply } from '../server/reply.ts'
import { errorReply, internalError, resultReply } from '../server/reply.ts'
import type { Resolved, ResolvedRequest } from '../server/resolve.ts'
import { isInitialize, isResponse } from '../server/resolve.ts'
import type { Carrying } from './carried/http.ts'
import { openAnswers, parting, readRest, takeUpAll } from './carried/http.ts'
import { Exchange } from './exchange.ts'
import { initializeText, readInitialize } from './initialize.ts'
import { problemOfBatch } from './messages.ts'
import { notified, respond } from './methods.ts'
import { Refusal } from './refusal.ts'
import type { Session } from './session.ts'
import type { SessionIds } from './session-id.ts'
import type { Sessions } from './sessions.ts'
import { readEventId } from './stream.ts'
import type { Streams } from './streams.ts'
import { noteCancelled } from './carried/resume.ts'

export interface HttpSessions extends Carrying {
  readonly ids: SessionIds
  readonly sessions: Sessions
  readonly streams: Streams
}

export async function post(
  on: HttpSessions,
  message: Resolved | readonly Resolved[],
  request: LegacyRequest,
): Promise<Reply | undefined> {
  const { id } = 'kind' in message ? message : { id: undefined }
  try {
    if ('kind' in message && isInitialize(message)) return await initialize(on, message, request)
    const session = await findSession(on, request)
    const done = session.use()
    try {
      return await receive(on, session, message, request)
    } finally {
      done()
      on.sessions.settle(session)
    }
  } catch (error) {
    if (error instanceof Refusal) return errorReply(id, error, error.status)
    if (error instanceof ProtocolError) return errorReply(id, error, 400)
    on.host.app.logger.error('Serving a 2025-era request failed.', { error })
    return errorReply(id, internalError(), 500)
  }
}

/** A stream for what belongs to no call, or the rest of one that was lost. */
export async function get(on: HttpSessions, request: LegacyRequest): Promise<Reply> {
  try {
    const session = await findSession(on, request)
    const done = session.use()
    try {
      return await listen(on, session, request)
    } finally {
      done()
      on.sessions.settle(session)
    }
  } catch (error) {
    if (error instanceof Refusal) return errorReply(undefined, error, error.status)
    on.host.app.logger.error('Opening a stream failed.', { error })
    return errorReply(undefined, internalError(), 500)
  }
}

async function initialize(on: HttpSessions, message: Resolved, request: LegacyRequest): Promise<Reply> {
  if (message.kind === 'invalid') throw message.problem
  const { id, params = {} } = message
  if (id === undefined) throw new Refusal(400, 'id must be a string or an integer')
  let claims: ReturnType<typeof readInitialize>
  try {
    claims = readInitialize(params, on.host.optedIn)
  } catch (error) {
    if (error instanceof ProtocolError) return errorReply(id, error)
    throw error
  }
  const token = await on.ids.mint(claims, request.principal)
  const text = initializeText(on.host.app, claims.revision, request.principal)
  return { ...resultReply(id, text), headers: { 'Mcp-Session-Id': token } }
}

async function findSession(on: HttpSessions, { header, principal }: LegacyRequest): Promise<Session> {
  const version = header('mcp-protocol-version')
  if (version !== undefined && olderRevision(version, on.host.optedIn) === undefined) {
    throw new Refusal(400, `the MCP-Protocol-Version header names no revision that has sessions here`)
  }
  const token = header('mcp-session-id')
  if (token === undefined) throw new Refusal(400, 'the Mcp-Session-Id header is missing')
  const claims = await on.ids.open(token, principal)
  if (claims === undefined) throw new Refusal(404, 'there is no such session: initialize a new one')
  const session = on.sessions.of(claims)
  if (session === undefined) throw new Refusal(503, 'too many sessions are busy: try again later')
  return session
}

async function receive(
  on: HttpSessions,
  session: Session,
  message: Resolved | readonly Resolved[],
  request: LegacyRequest,
): Promise<Reply | undefined> {
  const isBatch = !('kind' in message)
  const problem = isBatch ? problemOfBatch(message, session.revision) : undefined
  if (problem !== undefined) throw new Refusal(400, problem)
  const messages = isBatch ? message : [message]
  // Before anything is done: a state that does not open has the whole of it refused.
  const { answered, others, refusal } = await openAnswers(on, session, messages, request)
  if (refusal !== undefined) return refusal
  const { requests, refused, cancelled, unexpected } = sort(on, session, others)
  if (session.carriesState) await Promise.all(cancelled.map((id) => noteCancelled(on.host, session, id)))
  const takenUp = takeUpAll(on, session, answered, request, () => on.sessions.settle(session))
  if (requests.length === 0 && refused.length === 0) {
    if (unexpected) throw new Refusal(400, 'no question waits for this response here')
    await takenUp
    return undefined
  }
  if (!isBatch && refused[0] !== undefined) return refused[0]
  const exchange = new Exchange(session, on.streams, request, isBatch ? undefined : parting(on, session, request))
  for (const { text } of refused) exchange.tell(text)
  const responses = requests.map(async (each) => {
    const text = await respond(on.host, { request: each, session, outlet: exchange, principal: request.principal })
    if (text !== undefined) exchange.tell(text)
  })
  // Whichever comes first: events before the responses, or all of the responses.
  const all = Promise.all(responses).then((): Reply | undefined => {
    const texts = exchange.end()
    on.sessions.settle(session)
    return texts.length === 0 ? undefined : { status: 200, text: isBatch ? `[${texts.join(',')}]` : texts.join('') }
  })
  return Promise.race([exchange.opened, all])
}

interface Sorted {
  readonly requests: ResolvedRequest[]
  readonly refused: Reply[]
  readonly cancelled: RequestId[]
  /** A response came that nobody waits for. */
  readonly unexpected: boolean
}

/** Notifications and responses are taken up on the way. */
function sort({ host }: HttpSessions, session: Session, messages: readonly Resolved[]): Sorted {
  const requests: ResolvedRequest[] = []
  const refused: Reply[] = []
  const cancelled: RequestId[] = []
  let unexpected = false
  for (const message of messages) {
    if (isResponse(message)) {
      if (!host.asks.take(session, message.message)) unexpected = true
    } else if (message.kind === 'invalid') refused.push(errorReply(message.id, message.problem, 400))
    else if (message.kind === 'notification') {
      const requestId = notified(session, message)
      if (requestId !== undefined) cancelled.push(requestId)
    } else if (message.method !== 'initialize') requests.push(message)
    else {
      const refusal = new Refusal(400, 'initialize cannot come in a session or a batch')
      refused.push(errorReply(message.id, refusal, 400))
    }
  }
  return { requests, refused, cancelled, unexpected }
}

async function listen(on: HttpSessions, session: Session, request: LegacyRequest): Promise<Reply> {
  if (!request.takesEvents) throw new Refusal(406, 'a stream is read as text/event-stream')
  const last = request.header('last-event-id')
  const event = last === undefined ? undefined : readEventId(last)
  const known = event && session.streams.get(event.stream)
  // A stream of no call that is not kept any more is as good as a new one.
  if (last !== undefined && known === undefined && event?.standalone !== true) {
    const rest = await readRest(on, session, last, request)
    if (rest !== undefined) return rest
    throw event === undefined ? new Refusal(400, 'the Last-Event-ID is none that was sent here') : notKept()
  }
  if (known === undefined && on.host.app.handover.draining) throw new Refusal(503, 'the server is going down')
  if (known === undefined && !on.streams.makeRoomIn(session)) throw new Refusal(409, 'the session has streams enough')
  const stream = known ?? on.streams.open(session, true)
  if (stream === undefined) throw new Refusal(503, 'too many streams are open: try again later')
  if (known !== undefined && event !== undefined && !stream.keepsAfter(event.number)) throw notKept()
  const after = known === undefined ? 0 : (event?.number ?? 0)
  // Which tells a client that there is no use in coming back.
  if (stream.isOverAfter(after)) return { status: 204, text: '', headers: {} }
  return {
    status: 200,
    text: '',
    headers: {},
    events: (sink: EventSink) => {
      stream.attach(sink, after)
      // It may have left already.
      request.peer.listen(() => stream.detach(sink))
    },
  }
}

function notKept(): Refusal {
  return new Refusal(400, 'what came after this Last-Event-ID is not kept here')
}
