// The timeline of a task, for operations: its history, and what the journal and the state tell beyond it.
import type { AnswerPayload } from '../flow/journal.ts'
import { Journal } from '../flow/journal.ts'
import type { InspectedTask } from '../store/tasks.ts'
import { isEnd } from '../store/tasks.ts'
import type { HistoryRow } from './history.ts'
import { readClaimNote, readHistory, TaskHistory } from './history.ts'
import { outcomeOf } from './outcome.ts'
import type { TaskFlowState, TaskRequest } from './state.ts'

/** One thing that happened to a task. */
export interface TaskTimelineEntry {
  /**
   * `claim`: a worker had the task. `step`: an attempt of a step. `ask`: a question, until its answer. `wait`: a sleep, a wait for an
   * event, or the wait before the next attempt of a step. `retry`: an operator made this task from the one before. `end`: the task ended.
   */
  readonly type: 'claim' | 'step' | 'ask' | 'wait' | 'retry' | 'end'
  /** When it began. */
  readonly at: Date
  /** When it was over. */
  readonly until?: Date
  /** When a wait is over, or when a question expires. */
  readonly dueAt?: Date
  /** The key of the step, question, event or sleep. Of a retry, what it was made from. */
  readonly key?: string
  /** The worker that did it. */
  readonly worker?: string
  /** The attempt of a step, from 1. */
  readonly attempt?: number
  /**
   * How it ended. A claim: `running`, `released`, `lost`, `ended`. A step: `running`, `completed`, `failed`. A question: `open`,
   * `accept`, `decline`, `cancel`, `expired`. A wait: `waiting`, `over`, `expired`. The end: an outcome.
   */
  readonly how: string
  /** The message of the error, if it failed. */
  readonly error?: string
  /** What the step returned, the answer, or the value of the event. Only while the journal is kept. */
  readonly value?: unknown
}

export interface TaskTimeline {
  readonly entries: readonly TaskTimelineEntry[]
  /** How many entries the task had no room for. */
  readonly dropped: number
}

const OPEN: Readonly<Record<HistoryRow['type'], string>> = {
  claim: 'running',
  step: 'running',
  ask: 'open',
  wait: 'waiting',
  retry: 'made',
}

/** `result` is that of the tool, as far as it may be shown. */
export function timelineOf(
  task: InspectedTask,
  request: TaskRequest,
  state: TaskFlowState,
  result: unknown,
): TaskTimeline {
  const journal = Journal.read(task.journal)
  const history = historyNow(task, request, state, journal)
  const entries = history.rows
    .map((row) => toEntry(row, valueOf(journal, row), isEnd(task.status)))
    .toSorted((a, b) => a.at.getTime() - b.at.getTime())
  const outcome = outcomeOf(task)
  if (outcome !== undefined) {
    // Always the last, although the clock of the store may differ from those of the workers.
    const error = outcome === 'ok' || outcome === 'cancelled' ? undefined : errorIn(task, result)
    entries.push({ type: 'end', at: new Date(task.updatedAt), how: outcome, ...(error !== undefined && { error }) })
  }
  return { entries, dropped: history.dropped }
}

/** The stored history, with what has happened since it was written. */
function historyNow(
  task: InspectedTask,
  { startedAt }: TaskRequest,
  { history, answers, shown, events }: TaskFlowState,
  journal: Journal,
): ReturnType<typeof readHistory> {
  const { rows, dropped } = readHistory(history)
  const note = readClaimNote(task.claimedBy)
  const now = [...rows]
  if (task.leaseUntil !== undefined && note !== undefined && !rows.some((row) => isClaimOf(row, note.worker, note.at)))
    now.push({ type: 'claim', at: note.at, until: undefined, worker: note.worker, key: '' })
  for (const { key } of Object.values(shown)) {
    if (now.some((row) => row.type === 'ask' && row.key === key && row.until === undefined)) continue
    now.push({ type: 'ask', at: task.updatedAt, until: undefined, worker: undefined, key })
  }
  for (const row of now) {
    const answeredAt = row.type === 'ask' && row.until === undefined ? answers[row.key]?.at : undefined
    if (answeredAt === undefined) continue
    row.until = Math.max(row.at, answeredAt)
    const action = answers[row.key]?.raw['action']
    row.how = typeof action === 'string' ? action : 'answered'
  }
  const read = TaskHistory.of(now)
  if (events !== undefined) read.eventsCame(events)
  return { rows: read.addEntries(journal, startedAt).rows, dropped }
}

/** The worker notes its claim a moment before it begins to write a history. */
function isClaimOf(row: HistoryRow, worker: string, at: number): boolean {
  return row.type === 'claim' && row.worker === worker && row.at >= at
}

function toEntry(row: HistoryRow, value: unknown, hasEnded: boolean): TaskTimelineEntry {
  const { type, at, until, dueAt, key, worker, attempt, how, error } = row
  return {
    type,
    at: new Date(at),
    ...(until !== undefined && { until: new Date(until) }),
    ...(dueAt !== undefined && { dueAt: new Date(dueAt) }),
    ...(key !== '' && { key }),
    ...(worker !== undefined && { worker }),
    ...(type === 'step' && { attempt: attempt ?? 1 }),
    how: how ?? (hasEnded && until === undefined ? 'left' : OPEN[type]),
    ...(error !== undefined && { error }),
    ...(value !== undefined && { value }),
  }
}

function valueOf(journal: Journal, { type, key, how }: HistoryRow): unknown {
  const entry = journal.get(key)
  if (type === 'step') return entry?.tag === 's' && how === 'completed' ? entry.payload : undefined
  return (type === 'ask' || type === 'wait') && entry?.tag === 'a' ? (entry.payload as AnswerPayload)[3] : undefined
}

/** What the client was told. */
function errorIn({ status, message }: InspectedTask, result: unknown): string | undefined {
  if (status === 'failed') return message
  const { content } = (result ?? {}) as { content?: readonly { type?: unknown; text?: unknown }[] }
  const texts = Array.isArray(content) ? content.map(({ text }) => text).filter((text) => typeof text === 'string') : []
  return texts.length === 0 ? undefined : texts.join('\n')
}
