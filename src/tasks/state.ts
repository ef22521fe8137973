// What the engine stores in a task's record: the request, which never changes, and the state. Both are stored as JSON, so the names
// of their fields are a stored format.
//
// A wire key names a question for clients. It is used once in a task's life: a question that is shown again, because its answer was
// not valid or because the question has changed, gets a new wire key.
import { createHmac, hash } from 'node:crypto'
import type { FlowState, OpenQuestion } from '../flow/flow-state.ts'
import { emptyState, isByHandState, readFlowState, readWaits, writeFlowState } from '../flow/flow-state.ts'
import type { ShownQuestion } from '../flow/flow-state.ts'
import type { TaskOutcome } from './outcome.ts'
import type { StoredSource } from '../server/source.ts'
import type { TaskGroup, TaskRecord } from '../store/tasks.ts'

/** The call that became the task, and what its client supports. */
export interface TaskRequest {
  readonly tool: string
  readonly args: Record<string, unknown>
  readonly flowId: string
  readonly startedAt: number
  /** How many rounds the flow took before it became a task. */
  readonly round: number
  readonly revision: string
  /** The capabilities that the client declared in the flow's first round, as bits. */
  readonly declared: number
  /** The capabilities that it declared in the request that became the task, as bits. */
  readonly can: number
  /** Where that request came from. Missing in tasks of earlier releases. */
  readonly source?: StoredSource
  /** The group that it counts in. */
  readonly group?: TaskGroup
  /** The id of the failed task that this one retries. */
  readonly retryOf?: string
}

/** What has come for a key. Without `value`: a pass has used it. */
export interface TaskEvent {
  readonly value?: unknown
  /** Milliseconds since 1970. */
  readonly at: number
}

export interface TaskFlowState {
  /** How the task ended, for operations. It is the first member of the text, so that a store can look for it. */
  ended?: Exclude<TaskOutcome, 'cancelled'>
  /** The key of the call whose failure ended the task. */
  failedKey?: string | undefined
  /** True if the journal of a task that failed is kept. */
  isKept?: boolean
  /** The version of the tool when the journal was started. */
  version: string | undefined
  /** The flow's state, as `writeFlowState` returns it. */
  carry: unknown
  /** How many passes have ended. The first one counts too if it was lost after it had recorded something. */
  passes: number
  /** The questions that clients see now, by wire key. */
  shown: Record<string, TaskQuestion>
  /** How many wire keys each question has had, by the author's key. */
  wires: Record<string, number>
  /** Answers that no pass has used yet, by the author's key. */
  answers: Record<string, TaskAnswer>
  /** Events from outside, by key. Missing if there are none. */
  events?: Record<string, TaskEvent>
  /** Due times that a worker wrote in the middle of a pass, as `writeWaits` returns them. */
  waits?: unknown
  /** How many workers were lost while the journal had this size. */
  losses?: Losses
  /** How many workers failed to run it while the journal had this size. */
  retries?: Tries
  /** How many workers left it to others while the journal had this size, because they do not have the tool or its version. */
  left?: Tries
  /** What has happened so far, for operations, as `TaskHistory` writes it. Missing in tasks of earlier releases. */
  history?: unknown
}

interface Tries {
  readonly bytes: number
  readonly count: number
}

interface Losses extends Tries {
  /** True until the task runs again. A worker that claims it and is lost meanwhile does not count: it has run nothing of it. */
  readonly waits?: boolean
}

export interface TaskQuestion extends ShownQuestion {
  readonly key: string
}

interface TaskAnswer {
  /** The question. Missing if the answer came with the call, before anything was asked. */
  readonly open?: OpenQuestion
  readonly raw: Record<string, unknown>
  /** When it was received, in milliseconds since 1970. Missing in tasks of earlier releases. */
  readonly at?: number
}

export function newState(
  version: string | undefined,
  carry: unknown,
  answers: Readonly<Record<string, Record<string, unknown>>> = {},
): TaskFlowState {
  const state: TaskFlowState = { version, carry, passes: 0, shown: bare(), wires: bare(), answers: bare() }
  for (const [key, raw] of Object.entries(answers)) state.answers[key] = { raw }
  return state
}

export function writeState(state: TaskFlowState): string {
  return JSON.stringify(state.ended === undefined ? state : { ended: state.ended, ...state })
}

/** What is left of the state of a task that has ended and that nobody can retry. An event that comes again is still told so. */
export function endedState(
  { version, passes, history, events }: TaskFlowState,
  ended: TaskFlowState['ended'],
): TaskFlowState {
  const state = { ...newState(version, undefined), passes, ...(ended !== undefined && { ended }), history }
  if (events === undefined) return state
  return { ...state, events: Object.fromEntries(Object.entries(events).map(([key, { at }]) => [key, { at }])) }
}

export function readState(text: string): TaskFlowState {
  const state = JSON.parse(text) as TaskFlowState
  // Clients choose keys, so these objects have no prototype: a key such as "constructor" must not find an inherited member.
  state.shown = Object.assign(bare<TaskQuestion>(), state.shown)
  state.wires = Object.assign(bare<number>(), state.wires)
  state.answers = Object.assign(bare<TaskAnswer>(), state.answers)
  if (state.events !== undefined) state.events = Object.assign(bare<TaskEvent>(), state.events)
  return state
}

/** The questions that clients see now, by wire key. */
export function readShown(text: string): TaskFlowState['shown'] {
  return (JSON.parse(text) as TaskFlowState).shown
}

/** The flow's state for the next pass. It includes questions that a worker showed before it died. */
export function flowStateOf(state: TaskFlowState): FlowState {
  const carry = readFlowState(state.carry ?? writeFlowState(emptyState()))
  for (const { key, pin, asked } of Object.values(state.shown)) carry.open.set(key, { pin, asked })
  for (const [key, { open }] of Object.entries(state.answers)) if (open !== undefined) carry.open.set(key, open)
  if (state.waits !== undefined) carry.waits = new Map([...(carry.waits ?? []), ...readWaits(state.waits)])
  return carry
}

/**
 * Shows these questions, except those that have been answered meanwhile. Of the questions shown before, only those that the pass has
 * not reached yet stay.
 */
export function showQuestions(
  state: TaskFlowState,
  open: ReadonlyMap<string, ShownQuestion>,
  unreached: ReadonlyMap<string, unknown> = new Map(),
): void {
  const before = new Map<string, { wire: string; shown: TaskQuestion }>()
  for (const [wire, shown] of Object.entries(state.shown)) before.set(shown.key, { wire, shown })
  state.shown = bare()
  for (const { wire, shown } of before.values()) if (unreached.has(shown.key)) state.shown[wire] = shown
  for (const [key, question] of open) {
    if (Object.hasOwn(state.answers, key)) continue
    const known = before.get(key)
    // The same question keeps the text that it was shown with: a text must not change under its wire key.
    if (known?.shown.pin === question.pin) state.shown[known.wire] = { ...known.shown, asked: question.asked }
    else state.shown[nextWireKey(state, key)] = { key, ...question }
  }
}

/** Moves answers to shown questions into the state. Returns how many there were. */
export function takeAnswers(
  state: TaskFlowState,
  responses: Readonly<Record<string, Record<string, unknown>>>,
  at: number,
): number {
  let taken = 0
  for (const [wire, raw] of Object.entries(responses)) {
    const shown = state.shown[wire]
    if (shown === undefined) continue
    const { key, pin, asked } = shown
    state.answers[key] = { open: { pin, asked }, raw, at }
    delete state.shown[wire]
    taken += 1
  }
  return taken
}

/** The workers that were lost since the journal last grew, if there are any. */
export function lossesOf({ losses }: TaskFlowState, bytes: number): Losses | undefined {
  return losses?.bytes === bytes ? losses : undefined
}

/** Counts a worker that could not run the task. Returns how many there were since the journal last grew. */
export function countTry(state: TaskFlowState, which: 'retries' | 'left', bytes: number): number {
  const { [which]: tries } = state
  const count = tries?.bytes === bytes ? tries.count + 1 : 1
  state[which] = { bytes, count }
  return count
}

/** The id of the task that retries this one, whether it exists or not. */
export function retryIdOf({ id, request }: Pick<TaskRecord, 'id' | 'request'>): string {
  const { flowId } = JSON.parse(request) as TaskRequest
  return retryIdIn(flowId, id)
}

/** The same, for a task that may have been deleted. */
export function retryIdIn(flowId: string, id: string): string {
  return createHmac('sha256', flowId).update(`retry of ${id}`).digest('hex')
}

/** The store can tell owners apart, but never learns their names. */
export function ownerOf(principal: string | undefined): string {
  return principal === undefined ? '' : hash('sha256', principal, 'base64url')
}

/** True for a handler that handles its rounds by hand: it gets the answers of a round together. */
export function isByHand(state: TaskFlowState): boolean {
  return isByHandState(state.carry)
}

/** An author's key contains no tilde, so no two questions share a wire key. */
function nextWireKey(state: TaskFlowState, key: string): string {
  const times = (state.wires[key] ?? 0) + 1
  state.wires[key] = times
  return times === 1 ? key : `${key}~${times}`
}

function bare<T>(): Record<string, T> {
  return Object.create(null) as Record<string, T>
}
