// SEP-1685: calls that the client carries from each question to its answer. The rest of legacy/ uses only this class.
//
// A question ends the call on the instance that asked, and carries the state of the call. The answer brings the state back to any
// instance, which resumes the call there. Over HTTP, what follows is stored in a channel of the mailbox until the client fetches it
// by GET. On a connection, which stays open, it is sent on the connection.
import type { Caller } from '../../flow/caller.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { RequestId } from '../../protocol/messages.ts'
import { InvalidState } from '../../seal/errors.ts'
import type { LegacyRequest } from '../../server/legacy.ts'
import type { Reply } from '../../server/reply.ts'
import type { ResponseMessage } from '../../server/message-kind.ts'
import type { Resolved } from '../../server/resolve.ts'
import { isResponse } from '../../server/message-kind.ts'
import type { Mailbox } from '../../store/mailbox.ts'
import { limitedMailbox, MailboxShare } from '../../store/mailbox-share.ts'
import { logUnlessOutage } from '../../store/outages.ts'
import type { Exchange } from '../exchange.ts'
import { HttpRefusal, noRoomRefusal } from '../exchange.ts'
import type { LegacyHost, Outlet } from '../host.ts'
import { respond, seenBy } from '../methods.ts'
import type { Session } from '../session.ts'
import type { Suspender } from '../session-request.ts'
import { readEventId } from '../stream.ts'
import { ChannelReaders } from './channel-reader.ts'
import { ChannelWriter, isMailboxFull } from './channel.ts'
import type { EventPosition } from './event-position.ts'
import { endOf, EventIds, mailboxName, startOf } from './event-position.ts'
import type { CarriedHost } from './host.ts'
import type { CarriedAnswer } from './resume.ts'
import { openAnswer, recordCancelled, resumedCall, resumeOnce } from './resume.ts'
import { CallStates, stateIn } from './state.ts'
import { suspenderTo } from './suspend.ts'

/** In the memory of one process: a client that lost its stream is back by then. */
const LOST_STREAM_MS = 10_000

/**
 * An answer is acknowledged after the call has run on: if this instance dies before, the client sends the answer again and another
 * instance resumes the call. After this time it is acknowledged while the call still runs.
 */
const ACKNOWLEDGE_MS = 5_000

export interface CarriedOptions {
  /** Shared by all instances. Default: a mailbox in the memory of this process. */
  readonly mailbox: Mailbox | undefined
  /** How long the events of a stream without a reader are kept. */
  readonly keepMs: number
}

export interface OpenedAnswers {
  readonly answers: readonly CarriedAnswer[]
  /** The messages that carry no state. */
  readonly others: readonly Resolved[]
  /** The reply to the whole request, if the caller may not resume one of the calls. */
  readonly refusal?: Reply
}

export class CarriedCalls {
  readonly #legacy: LegacyHost
  readonly #host: CarriedHost
  readonly #readers: ChannelReaders

  constructor(legacy: LegacyHost, { mailbox: shared, keepMs }: CarriedOptions) {
    const { app } = legacy
    const { seal, logger, limits } = app
    const mailbox = limitedMailbox(shared, app)
    this.#legacy = legacy
    this.#readers = new ChannelReaders(mailbox, logger, limits)
    this.#host = {
      app,
      states: new CallStates(seal),
      eventIds: new EventIds(seal),
      mailbox,
      // At least as long as the state may be sent again, so that a repeated answer finds the events of the first.
      eventsMs: shared === undefined ? keepMs : Math.max(keepMs, seal.lifetimeMs),
      questionMs: shared === undefined ? Math.min(keepMs, LOST_STREAM_MS) : seal.ttl,
    }
  }

  /** How many clients read a channel on this instance. */
  get readers(): number {
    return this.#readers.size
  }

  /** Ends the streams of all clients that read a channel: they reconnect to another instance. */
  drain(): void {
    this.#readers.end()
  }

  /** Stops a call that may be suspended. */
  async cancel(session: Session, ids: readonly RequestId[]): Promise<void> {
    if (session.carriesState) await Promise.all(ids.map((id) => recordCancelled(this.#host, session, id)))
  }

  /** Over HTTP: suspends the calls of one request. Returns `undefined` if the client does not carry its calls. */
  suspenderOn(exchange: Exchange, session: Session, caller: Caller | undefined): Suspender | undefined {
    if (!session.carriesState) return undefined
    const { streamId: channel } = exchange
    const number = endOf(0)
    const ask = async (text: string): Promise<boolean> => {
      if (!exchange.open()) return false
      await this.#storeQuestion(mailboxName(channel, session), number, text, session)
      exchange.suspend(text, await this.#host.eventIds.mint({ channel, number }, session, caller?.principal))
      return true
    }
    return suspenderTo(this.#host, session, caller?.principal, {
      channel,
      segment: 0,
      ask,
      refusal: () => exchange.refusal,
    })
  }

  /** Over HTTP: opens the answers that carry a state. Throws `InvalidState`. */
  async openAnswers(
    session: Session,
    messages: readonly Resolved[],
    { caller, refuse }: LegacyRequest,
  ): Promise<OpenedAnswers> {
    const answers: CarriedAnswer[] = []
    const others: Resolved[] = []
    for (const each of messages) {
      if (!isResponse(each) || !carriesState(each)) others.push(each)
      else {
        const answer = await openAnswer(this.#host, session, each.message, caller?.principal)
        // Resuming a call needs the scopes that it took to begin it, if it is not hidden by now.
        const refusal = refuse?.(seenBy(this.#legacy, answer.request, { session, caller, overHttp: true }), each.id)
        if (refusal !== undefined) return { answers, others, refusal }
        answers.push(answer)
      }
    }
    return { answers, others }
  }

  /** Over HTTP: resumes the calls. Resolves when the answers can be acknowledged; `ended` is called when all segments have ended. */
  resumeAll(
    session: Session,
    answers: readonly CarriedAnswer[],
    request: LegacyRequest,
    ended: () => void,
  ): Promise<void> {
    if (answers.length === 0) return Promise.resolve()
    const { caller } = request
    const done = session.use()
    const all = Promise.all(answers.map((answer) => this.#resumeInChannel(session, answer, caller))).finally(() => {
      done()
      ended()
    })
    const acknowledged = acknowledge(all, request)
    // In a batch nothing awaits it. The failure has been logged.
    acknowledged.catch(() => {})
    return acknowledged
  }

  /** Over HTTP: the events after this id. Returns `undefined` if it belongs to no call that the client carries. */
  async read(session: Session, lastEventId: string, request: LegacyRequest): Promise<Reply | undefined> {
    const { caller, peer } = request
    const position = session.carriesState ? await this.#find(session, lastEventId, caller) : undefined
    if (position === undefined) return undefined
    if (this.#host.app.handover.draining) throw new HttpRefusal(503, 'the server is shutting down')
    const noRoom = this.#readers.makeRoom(session.owner)
    if (noRoom !== undefined) throw noRoomRefusal(noRoom, 'event streams', 'maxStreams', this.#readers.shares)
    const reading = {
      owner: session.owner,
      name: mailboxName(position.channel, session),
      position,
      eventId: (at: EventPosition) => this.#host.eventIds.mint(at, session, caller?.principal),
      primes: session.revision.primesStreams,
    }
    return { status: 200, text: '', headers: {}, events: (sink) => peer.listen(this.#readers.open(reading, sink)) }
  }

  /** On a connection: suspends the calls of one request. Returns `undefined` if the client does not carry its calls. */
  suspenderOnConnection(
    outlet: Outlet,
    session: Session,
    caller: Caller | undefined,
    segment = 0,
  ): Suspender | undefined {
    if (!session.carriesState) return undefined
    const ask = (text: string): Promise<boolean> => Promise.resolve(outlet.send(text))
    return suspenderTo(this.#host, session, caller?.principal, { channel: undefined, segment, ask })
  }

  /** On a connection: resumes the call of an answer. Never throws. */
  async resumeOnConnection(
    outlet: Outlet,
    session: Session,
    caller: Caller | undefined,
    message: Record<string, unknown>,
  ): Promise<void> {
    try {
      const answer = await openAnswer(this.#host, session, message, caller?.principal)
      const suspender = this.suspenderOnConnection(outlet, session, caller, answer.state.segment + 1)
      await resumeOnce(this.#host, session, answer, async () => {
        const text = await this.#run(session, answer, outlet, suspender, caller)
        if (text !== undefined) outlet.send(text)
      })
    } catch (error) {
      // The reason why a state is invalid has been logged.
      if (!(error instanceof InvalidState))
        logUnlessOutage(this.#host.app.logger, 'A call could not be resumed.', { error })
    }
  }

  async #resumeInChannel(session: Session, answer: CarriedAnswer, caller: Caller | undefined): Promise<void> {
    const { id, channel, segment } = answer.state
    const writer = new ChannelWriter(this.#host, session, channel, segment + 1)
    const ask = (text: string): Promise<boolean> => writer.close(text).then(() => true)
    const suspender = suspenderTo(this.#host, session, caller?.principal, { channel, segment: segment + 1, ask })
    try {
      if (await writer.isComplete()) return
      // Before the call runs: what follows could not be stored.
      if (this.#host.mailbox instanceof MailboxShare) this.#host.mailbox.checkRoom(session.mailboxOwner)
      await resumeOnce(this.#host, session, answer, async () => {
        const text = await this.#run(session, answer, writer, suspender, caller)
        if (text !== undefined) await writer.respond(id, text)
      })
    } catch (error) {
      if (error instanceof ProtocolError) throw error
      if (isMailboxFull(error)) throw new HttpRefusal(429, error.message)
      this.#host.app.logger.error('The mailbox could not store what follows an answer.', { error })
      throw new HttpRefusal(503, 'what follows this answer could not be stored, send the answer again')
    }
  }

  async #run(
    session: Session,
    answer: CarriedAnswer,
    outlet: Outlet,
    suspender: Suspender | undefined,
    caller: Caller | undefined,
  ): Promise<string | undefined> {
    const resumed = resumedCall(this.#host, answer)
    const reply = await respond(this.#legacy, {
      request: answer.request,
      session,
      outlet,
      caller,
      suspender,
      resumed,
    })
    return reply?.text
  }

  /** A copy for a client that loses its stream before it has read the question. Never throws. */
  async #storeQuestion(name: string, number: number, text: string, session: Session): Promise<void> {
    const { mailbox, questionMs, app } = this.#host
    try {
      await mailbox.leave(name, number, text, questionMs, session.mailboxOwner)
    } catch (error) {
      const why = 'A question could not be stored. A client that loses its stream now will not see it.'
      logUnlessOutage(app.logger, why, { error })
    }
  }

  async #find(session: Session, eventId: string, caller: Caller | undefined): Promise<EventPosition | undefined> {
    const event = readEventId(eventId)
    if (event === undefined) return this.#host.eventIds.open(eventId, session, caller?.principal)
    // The id of an event on a stream that was lost: its call may have asked a question since.
    const position = { channel: event.stream, number: startOf(0) }
    const events = await this.#host.mailbox.after(mailboxName(position.channel, session), position.number)
    return events.length === 0 ? undefined : position
  }
}

/** True if the response carries the state of a call. */
export function carriesState({ message }: ResponseMessage): boolean {
  return stateIn(message) !== undefined
}

async function acknowledge(work: Promise<unknown>, { hold, release }: LegacyRequest): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(resolve, ACKNOWLEDGE_MS, 'late').unref()
  })
  if ((await Promise.race([work, late]).finally(() => clearTimeout(timer))) !== 'late') return
  // The call runs on with what came with the answer. Without room for that, the client waits until it has ended.
  if (hold?.() !== undefined) await work
  else void work.finally(release).catch(() => {})
}
