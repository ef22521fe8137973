// Sessions over HTTP: finds the session of a request, sorts its messages, and answers with JSON or with a stream of events.
import { INTERNAL_ERROR, isPublicProtocolError, ProtocolError } from '../protocol/errors.ts'
import type { RequestId } from '../protocol/messages.ts'
import { olderRevision } from '../protocol/revisions/index.ts'
import { Unavailable } from '../protocol/unavailable.ts'
import type { LegacyRequest } from '../server/legacy.ts'
import type { EventSink, Reply } from '../server/reply.ts'
import { errorReply, internalError, resultReply, UNAVAILABLE } from '../server/reply.ts'
import type { Resolved, ResolvedRequest } from '../server/resolve.ts'
import { resolve } from '../server/resolve.ts'
import { isInitialize, isResponse, isWaiting } from '../server/message-kind.ts'
import type { CarriedCalls } from './carried/index.ts'
import { Exchange, HttpRefusal, noRoomRefusal } from './exchange.ts'
import type { LegacyHost } from './host.ts'
import { initializeText, readInitialize } from './initialize.ts'
import { notified, respond, seenBy } from './methods.ts'
import { withMethod } from './rounds.ts'
import { SessionIds } from './session-id.ts'
import type { Session, Sessions } from './session.ts'
import { batchProblem } from './session.ts'
import type { EventStream } from './stream.ts'
import { readEventId } from './stream.ts'
import type { Streams } from './streams.ts'

export interface HttpParts {
  readonly host: LegacyHost
  readonly carried: CarriedCalls
  readonly sessions: Sessions
  readonly streams: Streams
}

export class HttpSessions {
  readonly #host: LegacyHost
  readonly #carried: CarriedCalls
  readonly #sessions: Sessions
  readonly #streams: Streams
  readonly #ids: SessionIds

  constructor({ host, carried, sessions, streams }: HttpParts) {
    this.#host = host
    this.#carried = carried
    this.#sessions = sessions
    this.#streams = streams
    this.#ids = new SessionIds(host.app.seal, host.optedIn)
  }

  /** Answers a message or a batch. Returns `undefined` for a 202. Never throws. */
  async post(message: Resolved, request: LegacyRequest): Promise<Reply | undefined> {
    try {
      if (isInitialize(message)) return await this.#initialize(message, request)
      return await this.#inSession(request, (session) => this.#receive(session, message, request))
    } catch (error) {
      if (error instanceof HttpRefusal) return errorReply(message.id, error, error.status)
      if (isPublicProtocolError(error)) return errorReply(message.id, error, 400)
      this.#host.app.logger.error('A POST of a 2025-era client failed.', { error })
      return errorReply(message.id, internalError(), 500)
    }
  }

  /** Opens a stream for messages that belong to no call, or resumes a stream that was lost. Never throws. */
  async get(request: LegacyRequest): Promise<Reply> {
    try {
      return await this.#inSession(request, (session) => this.#listen(session, request))
    } catch (error) {
      if (error instanceof HttpRefusal) return errorReply(undefined, error, error.status)
      if (error instanceof Unavailable) return errorReply(undefined, error)
      this.#host.app.logger.error('A GET of a 2025-era client failed.', { error })
      return errorReply(undefined, internalError(), 500)
    }
  }

  async #initialize(message: Resolved, { caller }: LegacyRequest): Promise<Reply> {
    if (message.kind === 'invalid') throw message.problem
    const { id, params = {} } = message
    if (id === undefined) throw new HttpRefusal(400, 'id must be a string or an integer')
    let claims: ReturnType<typeof readInitialize>
    try {
      claims = readInitialize(params, this.#host.optedIn)
    } catch (error) {
      if (error instanceof ProtocolError) return errorReply(id, error)
      throw error
    }
    const token = await this.#ids.mint(claims, caller?.principal)
    const text = initializeText(this.#host.app, claims, caller?.principal)
    return { ...resultReply(id, text), headers: { 'Mcp-Session-Id': token } }
  }

  async #inSession<T>(request: LegacyRequest, serve: (session: Session) => Promise<T>): Promise<T> {
    const session = await this.#find(request)
    const done = session.use()
    try {
      return await serve(session)
    } finally {
      done()
      this.#sessions.settle(session)
    }
  }

  async #find({ header, caller }: LegacyRequest): Promise<Session> {
    const version = header('mcp-protocol-version')
    if (version !== undefined && olderRevision(version, this.#host.optedIn) === undefined) {
      throw new HttpRefusal(400, 'the MCP-Protocol-Version header names a revision that has no sessions here')
    }
    const token = header('mcp-session-id')
    if (token === undefined) throw new HttpRefusal(400, 'the Mcp-Session-Id header is missing')
    const claims = await this.#ids.open(token, caller?.principal)
    if (claims === undefined) throw new HttpRefusal(404, 'this session does not exist, initialize a new one')
    const session = this.#sessions.of(claims, caller?.principal)
    if (typeof session === 'string') throw noRoomRefusal(session, 'sessions', 'maxSessions', this.#sessions.shares)
    return session
  }

  async #receive(session: Session, message: Resolved, request: LegacyRequest): Promise<Reply | undefined> {
    const batch: readonly unknown[] | undefined = Array.isArray(message.message) ? message.message : undefined
    const isBatch = batch !== undefined
    // Before any work is spent on its messages, of which there may be millions.
    const problem = isBatch ? batchProblem(batch, session.revision) : undefined
    if (problem !== undefined) throw new HttpRefusal(400, problem)
    const resolved = isBatch ? batch.map((each) => resolve(this.#host.app.registry, each)) : [message]
    const sender = { session, caller: request.caller, overHttp: true }
    const messages = resolved.map((each) => seenBy(this.#host, withMethod(this.#host, session.revision, each), sender))
    for (const each of messages) {
      const refused = request.refuse?.(each, each.id)
      if (refused !== undefined) return refused
    }
    // First, because a state that does not open refuses the whole request.
    const { answers, others, refusal } = await this.#carried.openAnswers(session, messages, request)
    if (refusal !== undefined) return refusal
    const { requests, refused, cancelled, unexpected } = this.#sort(session, others)
    await this.#carried.cancel(session, cancelled)
    const resumed = this.#carried.resumeAll(session, answers, request, () => this.#sessions.settle(session))
    if (requests.length === 0 && refused.length === 0) {
      if (unexpected) throw new HttpRefusal(400, 'no question waits for this response here')
      await resumed
      return undefined
    }
    if (!isBatch && refused[0] !== undefined) return refused[0]
    return this.#respond(session, requests, refused, request, isBatch)
  }

  #respond(
    session: Session,
    requests: readonly ResolvedRequest[],
    refused: readonly Reply[],
    request: LegacyRequest,
    isBatch: boolean,
  ): Promise<Reply | undefined> {
    const { caller } = request
    const exchange = new Exchange(session, this.#streams, request)
    const noRoom = !isBatch && requests.some(isWaiting) ? exchange.hold() : undefined
    if (noRoom !== undefined) {
      return Promise.resolve(errorReply(requests[0]?.id, new ProtocolError(INTERNAL_ERROR, noRoom), 200))
    }
    const suspender = isBatch ? undefined : this.#carried.suspenderOn(exchange, session, caller)
    for (const { text } of refused) exchange.tell(text)
    const responses = requests.map(async (each) => {
      const reply = await respond(this.#host, { request: each, session, outlet: exchange, caller, suspender })
      if (reply !== undefined) exchange.tell(reply.text)
      return reply
    })
    const all = Promise.all(responses).then(([reply]): Reply | undefined => {
      const texts = exchange.end()
      this.#sessions.settle(session)
      if (!isBatch && reply?.status === UNAVAILABLE && texts.length > 0) return reply
      return texts.length === 0 ? undefined : { status: 200, text: isBatch ? `[${texts.join(',')}]` : texts.join('') }
    })
    // A stream, if something is sent before the responses; otherwise the responses as JSON.
    return Promise.race([exchange.opened, all])
  }

  /** Takes notifications and responses, and returns what is left to answer. */
  #sort(session: Session, messages: readonly Resolved[]): SortedMessages {
    const requests: ResolvedRequest[] = []
    const refused: Reply[] = []
    const cancelled: RequestId[] = []
    let unexpected = false
    for (const message of messages) {
      if (isResponse(message)) {
        if (!this.#host.asks.take(session, message.message)) unexpected = true
      } else if (message.kind === 'invalid') refused.push(errorReply(message.id, message.problem, 400))
      else if (message.kind === 'notification') {
        const requestId = notified(session, message)
        if (requestId !== undefined) cancelled.push(requestId)
      } else if (message.method !== 'initialize') requests.push(message)
      else {
        const refusal = new HttpRefusal(400, 'initialize is not allowed in a session or a batch')
        refused.push(errorReply(message.id, refusal, 400))
      }
    }
    return { requests, refused, cancelled, unexpected }
  }

  async #listen(session: Session, request: LegacyRequest): Promise<Reply> {
    if (!request.takesEvents) throw new HttpRefusal(406, 'a GET must accept text/event-stream')
    const last = request.header('last-event-id')
    const event = last === undefined ? undefined : readEventId(last)
    const known = event && session.streams.get(event.stream)
    // A standalone stream that is not kept any more is replaced by a new one.
    if (last !== undefined && known === undefined && event?.standalone !== true) {
      const rest = await this.#carried.read(session, last, request)
      if (rest !== undefined) return rest
      throw event === undefined ? new HttpRefusal(400, 'this server did not send this Last-Event-ID') : notKept()
    }
    const stream = known ?? this.#openStandalone(session)
    if (known !== undefined && event !== undefined && !stream.keepsAfter(event.number)) throw notKept()
    const after = known === undefined ? 0 : (event?.number ?? 0)
    // Tells the client not to reconnect.
    if (stream.isOverAfter(after)) return { status: 204, text: '', headers: {} }
    return {
      status: 200,
      text: '',
      headers: {},
      events: (sink: EventSink) => {
        stream.attach(sink, after)
        // Called at once if the client has left already.
        request.peer.listen(() => stream.detach(sink))
      },
    }
  }

  #openStandalone(session: Session): EventStream {
    if (this.#host.app.handover.draining) throw new HttpRefusal(503, 'the server is shutting down')
    if (!this.#streams.makeRoomIn(session)) throw new HttpRefusal(409, 'the session has too many open streams')
    const stream = this.#streams.open(session, true)
    if (typeof stream === 'string') throw noRoomRefusal(stream, 'event streams', 'maxStreams', this.#streams.shares)
    return stream
  }
}

interface SortedMessages {
  readonly requests: ResolvedRequest[]
  readonly refused: Reply[]
  readonly cancelled: RequestId[]
  /** True if a response answers no question that waits here. */
  readonly unexpected: boolean
}

function notKept(): HttpRefusal {
  return new HttpRefusal(400, 'the events after this Last-Event-ID are not kept any more')
}
