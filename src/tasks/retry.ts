// The task that retries a task that has failed: a new one with the same flow id, so that all its steps have the same idempotency keys.
//
// 1. What the journal holds before `from` is kept. The entry `from` and all that settled after it is removed.
// 2. Answers that are removed are held under their pins, except that of `from` itself: the same question is not asked again.
// 3. Events that have come count for it too, except that of `from` itself, and those whose value is gone: it was in a scope that is done
//    again. The tokens that the failed task handed out reach it.
// 4. A question or an event whose deadline passed before the retry has a new one: nobody could use the time after the failure. The token
//    of the event stays the same, because the text of a question that was answered may have it.
// 5. Its id is derived from the one of the failed task. So two retries of one task are the same task, also if two operators make them.
import type { FlowState } from '../flow/flow-state.ts'
import { writeFlowState } from '../flow/flow-state.ts'
import type { AnswerPayload, Entry } from '../flow/journal.ts'
import { Journal } from '../flow/journal.ts'
import { SCOPE_SEPARATOR } from '../flow/scopes.ts'
import { RallyError } from '../protocol/errors.ts'
import type { InspectedTask } from '../store/tasks.ts'
import type { NewTask } from '../store/tasks.ts'
import { readHistory, writeHistory } from './history.ts'
import { outcomeOf } from './outcome.ts'
import type { TaskFlowState, TaskRequest } from './state.ts'
import { flowStateOf, newState, readState, retryIdOf, writeState } from './state.ts'

/** How many keys an error message names. */
const MAX_NAMED = 20

/** `from` is the key of the first entry to do again. Default: the call that failed, if the journal has it, or else nothing. */
export function retryOf(task: InspectedTask, from: string | undefined, now: number): NewTask {
  const state = readState(task.state)
  checkFailed(task, state)
  const request = JSON.parse(task.request) as TaskRequest
  const journal = Journal.read(task.journal)
  const flowState = flowStateOf(state)
  const recorded = new Set(Object.keys(state.answers).filter((key) => journal.get(key) !== undefined))
  const first = from === undefined ? recordOf(journal, state.failedKey) : journal.get(from)
  if (from !== undefined && first === undefined && from !== state.failedKey) throw noSuchKey(from, journal)
  if (first !== undefined) cutFrom(first, journal, flowState)
  // A question that failed is asked again, as if for the first time, also if the journal does not have it.
  const again = from ?? state.failedKey ?? ''
  const answers: Record<string, Record<string, unknown>> = {}
  for (const [key, { open, raw, at }] of Object.entries(state.answers)) {
    // The journal tells what became of it.
    if (recorded.has(key) || key === again) continue
    // An answer that came with the call is for any question of the first pass.
    if (open === undefined) answers[key] = raw
    else if (!flowState.held.has(key)) flowState.held.set(key, { ...open, answer: { raw }, at })
    flowState.open.delete(key)
  }
  flowState.held.delete(again)
  const events = eventsFor(state.events, first?.key, journal, flowState)
  reopenExpired(flowState, events, journal, now)
  flowState.open.delete(again)
  return {
    id: retryIdOf(task),
    owner: task.owner,
    request: JSON.stringify({ ...request, retryOf: task.id }),
    state: writeState({
      ...newState(state.version, writeFlowState(flowState), answers),
      passes: state.passes,
      history: historyWithRetry(state.history, first?.key ?? '', now),
      ...(events !== undefined && { events }),
    }),
    journal: journal.text(),
    message: undefined,
    pollMs: task.pollMs,
    ttlMs: task.ttlMs,
    group: request.group,
  }
}

/** The entry of a call. Of a call inside a scope that has settled, a journal has only the scope. */
function recordOf(journal: { get(key: string): Entry | undefined }, callKey = ''): Entry | undefined {
  for (let key = callKey; key !== ''; key = key.slice(0, Math.max(0, key.lastIndexOf(SCOPE_SEPARATOR)))) {
    const entry = journal.get(key)
    if (entry !== undefined) return entry
  }
  return undefined
}

/** The deadline is set anew when the call is reached again. */
function reopenExpired(
  { waits, open }: FlowState,
  events: TaskFlowState['events'],
  journal: Journal,
  now: number,
): void {
  for (const [key, { dueAt, event }] of waits ?? []) {
    if (dueAt > now) continue
    if (event === undefined) {
      if (open.has(key)) waits?.delete(key)
    } else if (events?.[key] === undefined && recordOf(journal, key) === undefined) {
      waits?.set(key, { dueAt: Infinity, event })
    }
  }
}

/** Without the event to wait for again, and without those that came and whose value is gone: they can be sent again. */
function eventsFor(
  events: TaskFlowState['events'],
  again: string | undefined,
  journal: Journal,
  { held }: FlowState,
): TaskFlowState['events'] {
  const kept = Object.entries(events ?? {}).filter(
    ([key, { value }]) =>
      key !== again && (value !== undefined || held.has(key) || recordOf(journal, key) !== undefined),
  )
  return kept.length === 0 ? undefined : Object.fromEntries(kept)
}

function cutFrom(first: Entry, journal: Journal, flowState: FlowState): void {
  const cut = journal.cut(first)
  const cutByKey = new Map(cut.map((entry) => [entry.key, entry]))
  for (const [key, { event }] of flowState.waits ?? []) {
    // A question may quote the token of an event, and somebody may have it.
    if (event === undefined && recordOf(cutByKey, key) !== undefined) flowState.waits?.delete(key)
  }
  for (const { tag, key, payload } of cut.slice(1)) {
    if (tag !== 'a') continue
    const [pin, asked, action, value] = payload as AnswerPayload
    flowState.held.set(key, { pin, asked, answer: { action, value } })
  }
}

/** The new task shows what happened to the one before it, too. */
function historyWithRetry(stored: unknown, key: string, now: number): unknown {
  const { rows, dropped } = readHistory(stored)
  return writeHistory({ rows: [...rows, { type: 'retry', at: now, until: now, worker: undefined, key }], dropped })
}

function checkFailed(task: InspectedTask, state: TaskFlowState): void {
  const outcome = outcomeOf(task)
  if (outcome === undefined) throw notRetryable('it has not ended. Wait for its end, or cancel it')
  if (outcome === 'ok') throw notRetryable('it has not failed. Call the tool again to run it once more')
  if (outcome === 'cancelled') throw notRetryable('it was cancelled, and its journal was deleted. Call the tool again')
  if (state.isKept !== true)
    throw notRetryable(
      'its journal was not kept: `tasks.keepFailedMs` was 0 when it failed, or an earlier version ran it. Call the tool again',
    )
}

function noSuchKey(key: string, journal: Journal): RallyError {
  const keys = Array.from({ length: journal.length }, (_, i) => journal.at(i)?.key ?? '')
  const named = keys.slice(0, MAX_NAMED).map((each) => `"${each}"`)
  const rest = keys.length > MAX_NAMED ? ` and ${keys.length - MAX_NAMED} more` : ''
  const has = keys.length === 0 ? 'Nothing was recorded: leave out `from`' : `Use one of ${named.join(', ')}${rest}`
  return notRetryable(`its journal has no entry for \`from\`, got "${key}". ${has}`)
}

function notRetryable(why: string): RallyError {
  return new RallyError('TASK_NOT_RETRYABLE', `app.tasks.retry(): the task cannot be retried: ${why}.`)
}
