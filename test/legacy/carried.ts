// A raw client of the 2025 era that carries its calls: it returns the state of a question with the answer, and fetches the rest.
import type { Ask, RawEvent, Wired } from './raw.ts'
import { ALL, Events, RawSession } from './raw.ts'

export const STATE = 'modelcontextprotocol.io/state/request/'

export const CARRIES = { ...ALL, state: { scopes: ['request'] } }

export function stateOf(question: Wired | undefined): string | undefined {
  const { _meta: meta } = (question?.params ?? {}) as { _meta?: Record<string, string> }
  return meta?.[STATE]
}

/** The response to a question, with its state. */
export function answerTo(question: Wired | undefined, result: object, state = stateOf(question)): object {
  return { jsonrpc: '2.0', id: question?.id, result: { ...result, _meta: { [STATE]: state } } }
}

export function errorTo(question: Wired | undefined, message: string, state = stateOf(question)): object {
  const data = { _meta: { [STATE]: state } }
  return { jsonrpc: '2.0', id: question?.id, error: { code: -32603, message, data } }
}

export const accepted = (content?: object): object => ({ action: 'accept', ...(content && { content }) })

/** All events of a stream. The last one has a question or a response. */
export interface Segment {
  readonly messages: Wired[]
  readonly last: Wired | undefined
  /** The id to reconnect with. */
  readonly lastId: string
  readonly events: RawEvent[]
}

export async function readSegment(response: Response): Promise<Segment> {
  const reader = new Events(response)
  const events: RawEvent[] = []
  for (let event = await reader.next(); event !== undefined; event = await reader.next()) events.push(event)
  const messages = events.flatMap(({ data }) => (data ? [JSON.parse(data) as Wired] : []))
  return { messages, last: messages.at(-1), lastId: reader.lastId, events }
}

/** Fetches the events after this id. */
export async function fetchSegment(session: RawSession, lastId: string): Promise<Segment> {
  return readSegment(await session.get({ 'Last-Event-ID': lastId }))
}

export function openCarrying(ask: Ask, revision = '2025-11-25', headers = {}): Promise<RawSession> {
  return RawSession.open(ask, { revision, capabilities: CARRIES, headers })
}

/** A whole call, with an answer to each question by its message. Returns its segments. */
export async function callThrough(
  session: RawSession,
  tool: string,
  answer: (question: Wired) => object,
  args: object = {},
): Promise<Segment[]> {
  const segments = [await readSegment(await session.call(tool, args))]
  for (let segment = segments[0]; segment?.last?.method !== undefined; segment = segments.at(-1)) {
    const { status } = await session.post(answerTo(segment.last, answer(segment.last)))
    if (status !== 202) throw new Error(`The answer was not taken: ${status}`)
    segments.push(await fetchSegment(session, segment.lastId))
  }
  return segments
}
