// What clients that carry their calls send and fetch over HTTP: answers with a state, and the rest of a call by GET.
import { ProtocolError } from '../../protocol/errors.ts'
import type { LegacyRequest } from '../../server/legacy.ts'
import type { Reply } from '../../server/reply.ts'
import type { Resolved } from '../../server/resolve.ts'
import { isResponse } from '../../server/resolve.ts'
import { Box } from './channel.ts'
import type { PartingOptions } from '../exchange.ts'
import type { LegacyHost } from '../host.ts'
import type { Place } from './event-position.ts'
import { beginOf, lastOf, nameOf } from './event-position.ts'
import type { Readers } from './readers.ts'
import { Refusal } from '../refusal.ts'
import type { Session } from '../session.ts'
import { stateIn } from './state.ts'
import { newStreamId, readEventId } from '../stream.ts'
import type { Answered } from './resume.ts'
import { goOn, openAnswer } from './resume.ts'

export interface Carrying {
  readonly host: LegacyHost
  readonly readers: Readers
}

export interface Opened {
  readonly answered: readonly Answered[]
  /** All that carries no state. */
  readonly others: readonly Resolved[]
  /** Of the whole, where the caller may not go on with one of the calls. */
  readonly refusal?: Reply
}

/** Throws `InvalidState`. */
export async function openAnswers(
  { host }: Carrying,
  session: Session,
  messages: readonly Resolved[],
  { principal, refuse }: LegacyRequest,
): Promise<Opened> {
  const answered: Answered[] = []
  const others: Resolved[] = []
  for (const each of messages) {
    if (!isResponse(each) || stateIn(each.message) === undefined) others.push(each)
    else {
      const answer = await openAnswer(host, session, each.message, principal)
      // To go on with a call takes what it took to begin it.
      const refused = refuse?.(answer.request, each.id)
      if (refused !== undefined) return { answered, others, refusal: refused }
      answered.push(answer)
    }
  }
  return { answered, others }
}

/**
 * An answer is acknowledged once what comes of it is there: should this instance die before, the client sends it again, and
 * another one goes on. Only one that takes long is acknowledged before.
 */
const TAKEN_UP_MS = 5_000

/** Goes on with the calls. `over` is told once that is over. */
export function takeUpAll(
  on: Carrying,
  session: Session,
  answered: readonly Answered[],
  request: LegacyRequest,
  over: () => void,
): Promise<void> {
  if (answered.length === 0) return Promise.resolve()
  const done = session.use()
  const all = Promise.all(answered.map((each) => takeUp(on, session, each, request))).finally(() => {
    done()
    over()
  })
  const acknowledged = within(all, TAKEN_UP_MS)
  // In a batch nobody may wait for it. What went wrong has been logged.
  acknowledged.catch(() => {})
  return acknowledged
}

/** Where the client carries its calls, a question names the box in which to look for what follows the answer. */
export function parting(
  { host }: Carrying,
  session: Session,
  { principal }: LegacyRequest,
): PartingOptions | undefined {
  if (!session.carriesState) return undefined
  const { places, mailbox, askedMs, app } = host
  const box = newStreamId(false)
  const number = lastOf(0)
  return {
    box,
    leg: 0,
    eventId: () => places.eventId({ box, number }, session, principal),
    leave: async (text) => {
      try {
        await mailbox.leave(nameOf(box, session), number, text, askedMs)
      } catch (error) {
        app.logger.warn('A question could not be left for a client that may lose its stream.', { error })
      }
    },
  }
}

/** What came after the event, of a call that the client carries; `undefined` where it is none of such a call. */
export async function readRest(
  on: Carrying,
  session: Session,
  last: string,
  request: LegacyRequest,
): Promise<Reply | undefined> {
  const place = session.carriesState ? await placeOf(on, session, last, request) : undefined
  if (place === undefined) return undefined
  const { places, app } = on.host
  if (app.handover.draining) throw new Refusal(503, 'the server is going down')
  if (on.readers.isFull) throw new Refusal(503, 'too many streams are open: try again later')
  const name = nameOf(place.box, session)
  const eventId = (at: Place): string | Promise<string> => places.eventId(at, session, request.principal)
  const { primesStreams: primes } = session.revision
  return {
    status: 200,
    text: '',
    headers: {},
    events: (sink) => request.peer.listen(on.readers.open({ name, place, eventId, primes }, sink)),
  }
}

async function placeOf(
  { host }: Carrying,
  session: Session,
  last: string,
  { principal }: LegacyRequest,
): Promise<Place | undefined> {
  const { places, mailbox } = host
  const event = readEventId(last)
  if (event === undefined) return places.open(last, session, principal)
  // A stream that was lost: its call may have asked something meanwhile.
  const place = { box: event.stream, number: beginOf(0) }
  const letters = await mailbox.after(nameOf(place.box, session), place.number)
  return letters.length === 0 ? undefined : place
}

/** Goes on with the call, and leaves what it comes to in its box. */
async function takeUp(
  { host }: Carrying,
  session: Session,
  answered: Answered,
  { principal }: LegacyRequest,
): Promise<void> {
  const { id, box: name, leg } = answered.state
  try {
    const box = new Box(host, session, name, leg + 1)
    if (await box.isTaken()) return
    await goOn(host, session, answered, box, principal, (text) => box.respond(id, text))
  } catch (error) {
    if (error instanceof ProtocolError) throw error
    host.app.logger.error('What comes next in a call could not be left for its client.', { error })
    throw new Refusal(503, 'what comes next could not be left for you: send it again')
  }
}

async function within(work: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms).unref()
  })
  await Promise.race([work, late]).finally(() => clearTimeout(timer))
}
