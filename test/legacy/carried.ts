// A raw client of the 2025 era that carries its calls: it echoes the state of a question, and comes back for the rest.
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

/** Events up to the end of their stream, of which the last has a question or a response. */
export interface Leg {
  readonly messages: Wired[]
  readonly last: Wired | undefined
  /** What to come back with. */
  readonly lastId: string
  readonly events: RawEvent[]
}

export async function legOf(response: Response): Promise<Leg> {
  const reader = new Events(response)
  const events: RawEvent[] = []
  for (let event = await reader.next(); event !== undefined; event = await reader.next()) events.push(event)
  const messages = events.flatMap(({ data }) => (data ? [JSON.parse(data) as Wired] : []))
  return { messages, last: messages.at(-1), lastId: reader.lastId, events }
}

/** What there is after an event, wherever. */
export async function fetchLeg(session: RawSession, lastId: string): Promise<Leg> {
  return legOf(await session.get({ 'Last-Event-ID': lastId }))
}

export function openCarrying(ask: Ask, revision = '2025-11-25', headers = {}): Promise<RawSession> {
  return RawSession.open(ask, { revision, capabilities: CARRIES, headers })
}

/** A whole call, with an answer to each question by its message. Gives its legs. */
export async function callThrough(
  session: RawSession,
  tool: string,
  answer: (question: Wired) => object,
  args: object = {},
): Promise<Leg[]> {
  const legs = [await legOf(await session.call(tool, args))]
  for (let leg = legs[0]; leg?.last?.method !== undefined; leg = legs.at(-1)) {
    const { status } = await session.post(answerTo(leg.last, answer(leg.last)))
    if (status !== 202) throw new Error(`The answer was not taken: ${status}`)
    legs.push(await fetchLeg(session, leg.lastId))
  }
  return legs
}
