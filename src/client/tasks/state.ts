// The state of a task, read from an untrusted server, and a saved task.
import type { ProtocolError } from '../../protocol/errors.ts'
import { isObject } from '../../protocol/json.ts'
import type { CallToolResult } from '../../protocol/messages.ts'
import { shown } from '../../protocol/text.ts'
import type { ServerQuestion } from '../answers/question.ts'
import { readQuestions } from '../answers/question.ts'
import { REVISIONS } from '../discovery.ts'
import { badResponse, ClientError, received } from '../errors.ts'
import { checkComplete, readDone, readInputRequests } from '../round.ts'
import { META_PROGRESS } from '../../protocol/revisions/2026-07-28.ts'
import type { ProgressUpdate } from '../options.ts'
import type { SavedTask } from '../saved.ts'
import { isText, MAX_BYTES, MAX_LENGTH, shortened } from '../server-text.ts'
import { readError } from '../transports/message.ts'

/** The status of a task, as the protocol names it. */
export type TaskStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'

/** A task at one moment. The last three are final. */
export type TaskState = WorkingTask | AskingTask | CompletedTask | FailedTask | CancelledTask

export interface TaskSummary {
  readonly id: string
  readonly status: TaskStatus
  /** A message from the server, for people. */
  readonly message?: string
  /** How far it is. Only Rally's servers say it with the task: others only tell `onProgress`. */
  readonly progress?: ProgressUpdate
  /** ISO 8601, by the server's clock. */
  readonly createdAt: string
  readonly updatedAt: string
  /** Milliseconds from its creation until the server may delete it. `null` means never. */
  readonly ttlMs: number | null
  /** How often the server wants to be polled. */
  readonly pollIntervalMs?: number
}

/** A task that runs. */
export interface WorkingTask extends TaskSummary {
  /** Tells the states of a task apart. */
  readonly status: 'working'
}

/** A task that waits for answers. */
export interface AskingTask extends TaskSummary {
  /** Tells the states of a task apart. */
  readonly status: 'input_required'
  /** All open questions. A question that was answered a moment ago may still be among them. */
  readonly questions: readonly ServerQuestion[]
}

/** A task that ended with a result. */
export interface CompletedTask extends TaskSummary {
  /** Tells the states of a task apart. */
  readonly status: 'completed'
  /** A failure that the model should read is a result with `isError`. */
  readonly result: CallToolResult
}

/** A task that ended with an error. */
export interface FailedTask extends TaskSummary {
  /** Tells the states of a task apart. */
  readonly status: 'failed'
  /** The error that the server reported. */
  readonly error: ProtocolError
}

/** A task that was cancelled. */
export interface CancelledTask extends TaskSummary {
  /** Tells the states of a task apart. */
  readonly status: 'cancelled'
}

/** The revisions whose tasks this client knows. */
const TASK_REVISIONS: readonly string[] = [...REVISIONS, '2025-11-25', '2026-06-XX', '2026-02-03-draft']

const STATUSES: ReadonlySet<unknown> = new Set(['working', 'input_required', 'completed', 'failed', 'cancelled'])

const MAX_DATE_LENGTH = 64

/** Reads the members that every task has. The response that creates a task may have no others. */
export function readTaskSummary(result: Record<string, unknown>): TaskSummary {
  const { taskId, status, statusMessage, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs, _meta: meta } = result
  if (!isTaskId(taskId)) throw badTask('taskId', `a string of 1 to ${MAX_BYTES.taskId} bytes`, taskId)
  if (!STATUSES.has(status)) throw badTask('status', `one of ${[...STATUSES].join(', ')}`, status)
  if (statusMessage !== undefined && typeof statusMessage !== 'string') {
    throw badTask('statusMessage', 'a string', statusMessage)
  }
  if (!isDate(createdAt)) throw badTask('createdAt', 'an ISO 8601 date', createdAt)
  if (!isDate(lastUpdatedAt)) throw badTask('lastUpdatedAt', 'an ISO 8601 date', lastUpdatedAt)
  if (ttlMs !== null && !Number.isSafeInteger(ttlMs)) throw badTask('ttlMs', 'an integer or null', ttlMs)
  if (pollIntervalMs !== undefined && !isPollInterval(pollIntervalMs)) {
    throw badTask('pollIntervalMs', 'an integer', pollIntervalMs)
  }
  const progress = readProgress(isObject(meta) ? meta[META_PROGRESS] : undefined)
  return {
    id: taskId,
    status: status as TaskStatus,
    ...(statusMessage !== undefined && { message: shortened(statusMessage, MAX_LENGTH.message) }),
    ...(progress !== undefined && { progress }),
    createdAt,
    updatedAt: lastUpdatedAt,
    ttlMs: ttlMs as number | null,
    ...(pollIntervalMs !== undefined && { pollIntervalMs }),
  }
}

/** `undefined` if it is not what we write there. */
function readProgress(given: unknown): ProgressUpdate | undefined {
  const { progress, total, message } = isObject(given) ? given : {}
  if (!Number.isFinite(progress)) return undefined
  return {
    progress: progress as number,
    ...(Number.isFinite(total) && { total: total as number }),
    ...(typeof message === 'string' && { message: shortened(message, MAX_LENGTH.message) }),
  }
}

/** Reads the result of `tasks/get` or the params of `notifications/tasks` for the task with this id. */
export function readTaskState(result: Record<string, unknown>, id: string): TaskState {
  const summary = readTaskSummary(result)
  if (summary.id !== id) throw badResponse(`its taskId must be ${shown(id)}, got ${shown(summary.id)}`)
  switch (summary.status) {
    case 'input_required': {
      const questions = readQuestions(readInputRequests(result['inputRequests']))
      return { ...summary, status: summary.status, questions }
    }
    case 'completed':
      return { ...summary, status: summary.status, result: readResult(result['result']) }
    case 'failed': {
      return { ...summary, status: summary.status, error: received(readError(result['error'])) }
    }
    case 'working':
    case 'cancelled':
      return summary as WorkingTask | CancelledTask
  }
}

/** Checks a saved task, or only its id. Throws `TASK_INVALID` if it is damaged. */
export function readSavedTask(saved: unknown): Pick<SavedTask, 'taskId' | 'tool' | 'pollIntervalMs'> {
  if (typeof saved === 'string') return { taskId: readSavedId(saved) }
  if (!isObject(saved))
    throw invalidSave(`it must be an id or an object, got ${shown(saved)}. Pass the result of JSON.parse`)
  const { version, revision, taskId, tool, pollIntervalMs } = saved
  if (version !== 1) throw invalidSave(`its version must be 1, got ${shown(version)}`)
  if (!TASK_REVISIONS.includes(revision as string)) {
    throw invalidSave(`its revision must be one of ${TASK_REVISIONS.join(', ')}, got ${shown(revision)}`)
  }
  if (tool !== undefined && typeof tool !== 'string') throw invalidSave(`its tool must be a string, got ${shown(tool)}`)
  if (pollIntervalMs !== undefined && !isPollInterval(pollIntervalMs)) {
    throw invalidSave(`its pollIntervalMs must be an integer, got ${shown(pollIntervalMs)}`)
  }
  return {
    taskId: readSavedId(taskId),
    ...(tool !== undefined && { tool }),
    ...(pollIntervalMs !== undefined && { pollIntervalMs }),
  }
}

/** True if the task does not change any more. */
export function isFinished({ status }: TaskSummary): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled'
}

function isTaskId(id: unknown): id is string {
  return isText(id, MAX_BYTES.taskId)
}

function isPollInterval(ms: unknown): ms is number {
  return Number.isSafeInteger(ms)
}

function isDate(date: unknown): date is string {
  return typeof date === 'string' && date.length <= MAX_DATE_LENGTH && !Number.isNaN(Date.parse(date))
}

function readResult(result: unknown): CallToolResult {
  if (!isObject(result)) throw badTask('result', 'an object', result)
  checkComplete(result, 'tasks/get')
  return readDone(result, 'tools/call') as CallToolResult
}

function badTask(member: string, expected: string, got: unknown): ClientError {
  return badResponse(`the ${member} of its task must be ${expected}, got ${shown(got)}`)
}

function readSavedId(id: unknown): string {
  if (isTaskId(id)) return id
  throw invalidSave(`its id must be a string of 1 to ${MAX_BYTES.taskId} bytes, got ${shown(id)}`)
}

function invalidSave(why: string): ClientError {
  return new ClientError('TASK_INVALID', `Cannot resume the saved task: ${why}.`)
}
