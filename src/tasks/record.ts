// What the engine keeps of a task in the texts of its record.
//
// Wire keys are never used again in a task's life: a question that is shown anew, because its answer did not fit or because it has
// changed, gets a fresh one.
import type { FlowState, OpenQuestion } from '../flow/flow-state.ts'
import { emptyState, readFlowState, writeFlowState } from '../flow/flow-state.ts'
import type { ShownQuestion } from '../flow/flow-state.ts'

/** What was asked for, and by whom it can be answered. */
export interface TaskRequest {
  readonly tool: string
  readonly args: Record<string, unknown>
  readonly flowId: string
  readonly startedAt: number
  /** The rounds that the flow took before it became a task. */
  readonly round: number
  readonly revision: string
  /** What the client declared in the flow's first round, as bits. */
  readonly declared: number
  /** What it declared in the request that became the task. */
  readonly can: number
}

export interface TaskFlowState {
  /** Of the tool, when it last began from the top. */
  version: string | undefined
  /** As `writeCarry` gives it. */
  carry: unknown
  /** Passes that came to an end. */
  passes: number
  /** The questions that clients see, by wire key. */
  shown: Record<string, Shown>
  /** How often each question was given a wire key. */
  wires: Record<string, number>
  /** What came in and no pass has used, by the author's key. */
  answers: Record<string, Answered>
  /** How often workers were lost while the journal had this size. */
  losses?: { readonly bytes: number; readonly count: number }
}

export interface Shown extends ShownQuestion {
  readonly key: string
}

interface Answered {
  /** Not there for what came with the call itself, before anything was asked. */
  readonly open?: OpenQuestion
  readonly raw: Record<string, unknown>
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
  return JSON.stringify(state)
}

export function readState(text: string): TaskFlowState {
  const state = JSON.parse(text) as TaskFlowState
  // Keys come from clients: none of them may be taken for what every object has.
  return {
    ...state,
    version: state.version,
    shown: Object.assign(bare<Shown>(), state.shown),
    wires: Object.assign(bare<number>(), state.wires),
    answers: Object.assign(bare<Answered>(), state.answers),
  }
}

/** The questions that clients see, by wire key. */
export function readShown(text: string): TaskFlowState['shown'] {
  return (JSON.parse(text) as TaskFlowState).shown
}

/** What the next pass begins with. A worker that died had shown more than it carried on. */
export function carryOf(state: TaskFlowState): FlowState {
  const carry = readFlowState(state.carry ?? writeFlowState(emptyState()))
  for (const { key, pin, asked } of Object.values(state.shown)) carry.open.set(key, { pin, asked })
  for (const [key, { open }] of Object.entries(state.answers)) if (open !== undefined) carry.open.set(key, open)
  return carry
}

/**
 * Shows these questions, except those that have been answered meanwhile, and of those shown before only the ones that the pass
 * has not reached yet.
 */
export function expose(
  state: TaskFlowState,
  open: ReadonlyMap<string, ShownQuestion>,
  unreached: ReadonlyMap<string, unknown> = new Map(),
): void {
  const before = new Map<string, { wire: string; shown: Shown }>()
  for (const [wire, shown] of Object.entries(state.shown)) before.set(shown.key, { wire, shown })
  state.shown = bare()
  for (const { wire, shown } of before.values()) if (unreached.has(shown.key)) state.shown[wire] = shown
  for (const [key, question] of open) {
    if (Object.hasOwn(state.answers, key)) continue
    const known = before.get(key)
    // The same question stands as it was shown, with the note that it had: its text may not change under its wire key.
    if (known?.shown.pin === question.pin) state.shown[known.wire] = { ...known.shown, asked: question.asked }
    else state.shown[nextWire(state, key)] = { key, ...question }
  }
}

/** Takes the answers to what is shown, and gives how many there were. */
export function takeAnswers(state: TaskFlowState, given: Readonly<Record<string, Record<string, unknown>>>): number {
  let taken = 0
  for (const [wire, raw] of Object.entries(given)) {
    const shown = state.shown[wire]
    if (shown === undefined) continue
    const { key, pin, asked } = shown
    state.answers[key] = { open: { pin, asked }, raw }
    delete state.shown[wire]
    taken += 1
  }
  return taken
}

/** Gives how often that has happened since the journal last grew. */
export function countLoss(state: TaskFlowState, bytes: number): number {
  const count = state.losses?.bytes === bytes ? state.losses.count + 1 : 1
  state.losses = { bytes, count }
  return count
}

/** By hand, a handler sees the answers of a round together. */
export function isByHand(state: TaskFlowState): boolean {
  return Array.isArray(state.carry) && state.carry.length > 2
}

/** No key of an author's has a tilde. */
function nextWire(state: TaskFlowState, key: string): string {
  const times = (state.wires[key] ?? 0) + 1
  state.wires[key] = times
  return times === 1 ? key : `${key}~${times}`
}

function bare<T>(): Record<string, T> {
  return Object.create(null) as Record<string, T>
}
