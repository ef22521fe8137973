// What a flow carries between rounds beside its journal: the questions it left open, and answers it has not used yet.
import { FlowError } from './errors.ts'
import type { Action, AnswerPayload, Journal } from './journal.ts'

export interface OpenQuestion {
  /** Digest of the question as the client was shown it. */
  pin: string
  /** How often it has been asked in this flow. */
  asked: number
}

export interface HeldAnswer extends OpenQuestion {
  /** Either the validated answer, or the raw one that came for a question the pass did not reach. */
  answer: { action: Action; value?: unknown } | { raw: Record<string, unknown> }
}

export interface FlowState {
  open: Map<string, OpenQuestion>
  held: Map<string, HeldAnswer>
  /** The last round was taken by hand. Its handler may keep a state, which is JSON, from one round to the next. */
  byHand?: { readonly state?: unknown }
}

export function emptyState(): FlowState {
  return { open: new Map(), held: new Map() }
}

/** Compact and positional; `readCarry` is its inverse. */
export function writeFlowState({ open, held, byHand }: FlowState): unknown {
  const carried: unknown[] = [
    Array.from(open, ([key, { pin, asked }]) => [key, pin, asked]),
    Array.from(held, ([key, { pin, asked, answer }]) =>
      'raw' in answer
        ? [key, pin, asked, 'raw', answer.raw]
        : // In an array JSON would make null of what is not there.
          [key, pin, asked, answer.action, ...(answer.value === undefined ? [] : [answer.value])],
    ),
  ]
  if (byHand !== undefined) carried.push(byHand.state === undefined ? [] : [byHand.state])
  return carried
}

export function readFlowState(json: unknown): FlowState {
  const carry = emptyState()
  if (!Array.isArray(json) || !Array.isArray(json[0]) || !Array.isArray(json[1])) throw torn()
  for (const row of json[0]) {
    const [key, pin, asked] = readRow(row)
    carry.open.set(key, { pin, asked })
  }
  for (const row of json[1]) {
    const [key, pin, asked, action, value] = readRow(row)
    if (action === 'raw') carry.held.set(key, { pin, asked, answer: { raw: value as Record<string, unknown> } })
    else carry.held.set(key, { pin, asked, answer: { action: action as Action, value } })
  }
  if (json.length > 2) carry.byHand = readByHand(json[2])
  return carry
}

/** From another version of the handler. Answers alone are held under their own pins: the new version takes those whose question it asks in the same words. */
export function keepAnswers(journal: Journal, carry: FlowState): FlowState {
  const carried: FlowState = { ...carry, held: new Map(carry.held) }
  for (let i = 0; i < journal.length; i += 1) {
    const entry = journal.at(i)
    if (entry?.tag !== 'a') continue
    const [pin, asked, action, value] = entry.payload as AnswerPayload
    carried.held.set(entry.key, { pin, asked, answer: { action, value } })
  }
  return carried
}

function readRow(row: unknown): [string, string, number, ...unknown[]] {
  if (Array.isArray(row) && typeof row[0] === 'string' && typeof row[1] === 'string' && typeof row[2] === 'number') {
    return row as [string, string, number, ...unknown[]]
  }
  throw torn()
}

function readByHand(kept: unknown): { state?: unknown } {
  if (!Array.isArray(kept) || kept.length > 1) throw torn()
  return kept.length === 0 ? {} : { state: kept[0] as unknown }
}

function torn(): FlowError {
  return new FlowError('JOURNAL_INVALID', 'What the flow carries beside its journal has an unknown form.')
}
