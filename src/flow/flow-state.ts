// What a flow carries between rounds beside its journal: the questions it left open and the answers it has not used yet.
import type { ClientInfo } from './caller.ts'
import { FlowError } from './errors.ts'
import type { Action, AnswerPayload, Journal } from './journal.ts'

export interface OpenQuestion {
  /** Digest of the question as the client was shown it. */
  pin: string
  /** How many times it has been asked in this flow. */
  asked: number
}

export interface ShownQuestion extends OpenQuestion {
  /** The question's wire text. */
  readonly text: string
}

export interface HeldAnswer extends OpenQuestion {
  /** A validated answer, or the raw answer to a question that the pass did not reach. */
  answer: { action: Action; value?: unknown } | { raw: Record<string, unknown> }
  /** When a raw answer was received, in milliseconds since 1970. Missing in states of earlier releases. */
  at?: number | undefined
}

/** A due time that was set when its call was first reached. */
export interface Wait {
  /** Milliseconds since 1970. Infinity for an event without a deadline. */
  readonly dueAt: number
  /** How many attempts of the step have failed, if the call is a step. */
  readonly attempts?: number
  /** Present if the call is an event. The JSON Schema of its value is there until it settles. */
  readonly event?: { readonly token: string; readonly schema?: unknown }
}

export interface FlowState {
  open: Map<string, OpenQuestion>
  held: Map<string, HeldAnswer>
  /** The due times of calls that have not settled, by key. */
  waits?: Map<string, Wait>
  /** Present if the last round was taken by hand. `state` is the JSON value that the handler returned, if any. */
  byHand?: { readonly state?: unknown }
  /** The client as the handler first read it: it is the same in every later pass. */
  client?: ClientInfo
  /** What an observer returned from `trace` when the flow began. */
  trace?: string
}

export function emptyState(): FlowState {
  return { open: new Map(), held: new Map() }
}

/** Compact and positional JSON. `readFlowState` is the inverse. */
export function writeFlowState({ open, held, byHand, client, waits, trace }: FlowState): unknown {
  const openRows: unknown[] = []
  for (const [key, { pin, asked }] of open) openRows.push([key, pin, asked])
  const heldRows: unknown[] = []
  for (const [key, { pin, asked, answer, at }] of held) {
    if ('raw' in answer) heldRows.push([key, pin, asked, 'raw', answer.raw, ...(at === undefined ? [] : [at])])
    // In an array, JSON would turn a missing value into null.
    else heldRows.push([key, pin, asked, answer.action, ...(answer.value === undefined ? [] : [answer.value])])
  }
  const rows: unknown[] = [openRows, heldRows]
  const hasWaits = (waits !== undefined && waits.size > 0) || trace !== undefined
  if (byHand !== undefined) rows.push(byHand.state === undefined ? [] : [byHand.state])
  else if (client !== undefined || hasWaits) rows.push(null)
  if (client !== undefined || hasWaits) rows.push(client ?? null)
  if (hasWaits) rows.push(waits === undefined ? [] : writeWaits(waits))
  if (trace !== undefined) rows.push(trace)
  return rows
}

export function readFlowState(json: unknown): FlowState {
  const flowState = emptyState()
  if (!Array.isArray(json) || !Array.isArray(json[0]) || !Array.isArray(json[1])) throw malformed()
  for (const row of json[0]) {
    const [key, pin, asked] = readRow(row)
    flowState.open.set(key, { pin, asked })
  }
  for (const row of json[1]) {
    const [key, pin, asked, action, value, at] = readRow(row)
    if (action === 'raw')
      flowState.held.set(key, {
        pin,
        asked,
        answer: { raw: value as Record<string, unknown> },
        ...(typeof at === 'number' && { at }),
      })
    else flowState.held.set(key, { pin, asked, answer: { action: action as Action, value } })
  }
  if (isByHandState(json)) flowState.byHand = readByHand(json[2])
  if (json.length > 3 && json[3] !== null) flowState.client = json[3] as ClientInfo
  const waits = json.length > 4 ? readWaits(json[4]) : undefined
  if (waits !== undefined && waits.size > 0) flowState.waits = waits
  if (typeof json[5] === 'string') flowState.trace = json[5]
  return flowState
}

/** Compact and positional JSON. `readWaits` is the inverse. */
export function writeWaits(waits: ReadonlyMap<string, Wait>): unknown[] {
  return Array.from(waits, ([key, { dueAt, attempts, event }]) => {
    if (event === undefined) return attempts === undefined ? [key, dueAt] : [key, dueAt, attempts]
    return [key, Number.isFinite(dueAt) ? dueAt : null, null, event.token, event.schema ?? null]
  })
}

export function readWaits(json: unknown): Map<string, Wait> {
  if (!Array.isArray(json)) throw malformed()
  const waits = new Map<string, Wait>()
  for (const row of json) {
    if (!Array.isArray(row)) throw malformed()
    const [key, dueAt, attempts, token, schema = null] = row as unknown[]
    if (typeof key === 'string' && typeof token === 'string') {
      const event = { token, ...(schema !== null && { schema }) }
      waits.set(key, { dueAt: typeof dueAt === 'number' ? dueAt : Infinity, event })
      continue
    }
    if (typeof key !== 'string' || typeof dueAt !== 'number') throw malformed()
    waits.set(key, typeof attempts === 'number' ? { dueAt, attempts } : { dueAt })
  }
  return waits
}

/** True if the last round was taken by hand. Takes what `writeFlowState` returned. */
export function isByHandState(json: unknown): json is readonly [unknown, unknown, unknown] {
  return Array.isArray(json) && json.length > 2 && json[2] !== null
}

/**
 * Keeps the answers of another version of the handler, held under their own pins. The new version uses an answer if it
 * asks the question in the same words.
 */
export function keepAnswers(journal: Journal, flowState: FlowState): FlowState {
  const held = new Map(flowState.held)
  const waits = new Map(flowState.waits)
  for (let i = 0; i < journal.length; i += 1) {
    const entry = journal.at(i)
    // What was due stays due: nobody waits for it again.
    if (entry?.tag === 't' || entry?.tag === 'ax') waits.set(entry.key, withDueAt(0, waits.get(entry.key)))
    if (entry?.tag !== 'a') continue
    const [pin, asked, action, value] = entry.payload as AnswerPayload
    held.set(entry.key, { pin, asked, answer: { action, value } })
  }
  // As in `readFlowState`: a flow without due times has no `waits`.
  return { ...flowState, held, ...(waits.size > 0 && { waits }) }
}

/** A wait with this due time, and the token of an event that the call has had before. */
export function withDueAt(dueAt: number, before: Wait | undefined): Wait {
  return before?.event === undefined ? { dueAt } : { dueAt, event: before.event }
}

function readRow(row: unknown): [string, string, number, ...unknown[]] {
  if (Array.isArray(row) && typeof row[0] === 'string' && typeof row[1] === 'string' && typeof row[2] === 'number') {
    return row as [string, string, number, ...unknown[]]
  }
  throw malformed()
}

function readByHand(json: unknown): { state?: unknown } {
  if (!Array.isArray(json) || json.length > 1) throw malformed()
  return json.length === 0 ? {} : { state: json[0] as unknown }
}

function malformed(): FlowError {
  return new FlowError('JOURNAL_INVALID', 'The saved flow state cannot be read: it does not have the expected form.')
}
