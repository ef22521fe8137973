// How a task stands, read from an untrusted server.
import { ProtocolError } from '../../protocol/errors.ts'
import { isObject, isTame } from '../../protocol/json.ts'
import type { CallToolResult, InputRequests } from '../../protocol/messages.ts'
import { readError } from '../transports/message.ts'
import { badResponse } from '../errors.ts'
import { shown } from '../../protocol/text.ts'
import { MAX_DEPTH } from '../pending.ts'
import type { ServerQuestion } from '../answers/question.ts'
import { readQuestions } from '../answers/question.ts'
import { checkComplete, readDone } from '../round.ts'

export type TaskStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'

/** A task at one moment. The last three are ends: nothing changes after them. */
export type TaskState = WorkingTask | AskingTask | CompletedTask | FailedTask | CancelledTask

export interface TaskSummary {
  readonly id: string
  readonly status: TaskStatus
  /** What the server says of it, for people. */
  readonly message?: string
  /** ISO 8601, by the server's clock. */
  readonly createdAt: string
  readonly updatedAt: string
  /** From its creation; after that the server may drop it. `null` is for ever. */
  readonly ttlMs: number | null
  /** How often the server wants to be asked. */
  readonly pollIntervalMs?: number
}

export interface WorkingTask extends TaskSummary {
  readonly status: 'working'
}

export interface AskingTask extends TaskSummary {
  readonly status: 'input_required'
  /** All that are open, those too that were answered a moment ago. */
  readonly questions: readonly ServerQuestion[]
}

export interface CompletedTask extends TaskSummary {
  readonly status: 'completed'
  /** A failure that the model is to read is a result with `isError`. */
  readonly result: CallToolResult
}

export interface FailedTask extends TaskSummary {
  readonly status: 'failed'
  readonly error: ProtocolError
}

export interface CancelledTask extends TaskSummary {
  readonly status: 'cancelled'
}

const STATUSES: ReadonlySet<unknown> = new Set(['working', 'input_required', 'completed', 'failed', 'cancelled'])

const LONGEST_ID = 2_048
const LONGEST_DATE = 64
/** Of a status message; the rest is cut off. */
const LONGEST_MESSAGE = 8_192

/** What a call is told when it becomes a task, which may be less than what `tasks/get` tells. */
export function readTaskSummary(result: Record<string, unknown>): TaskSummary {
  const { taskId, status, statusMessage, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs } = result
  if (!isTaskId(taskId)) throw badResponse('the taskId of its task is no text, or a very long one')
  if (!STATUSES.has(status)) throw badResponse(`the status ${shown(status)} of its task is unknown`)
  if (statusMessage !== undefined && typeof statusMessage !== 'string') {
    throw badResponse('the statusMessage of its task is no text')
  }
  if (!isDate(createdAt)) throw badResponse('the createdAt of its task is no date')
  if (!isDate(lastUpdatedAt)) throw badResponse('the lastUpdatedAt of its task is no date')
  if (ttlMs !== null && !Number.isSafeInteger(ttlMs)) throw badResponse('the ttlMs of its task is no whole number')
  if (pollIntervalMs !== undefined && !isPollInterval(pollIntervalMs)) {
    throw badResponse('the pollIntervalMs of its task is no whole number')
  }
  return {
    id: taskId,
    status: status as TaskStatus,
    ...(statusMessage !== undefined && { message: statusMessage.slice(0, LONGEST_MESSAGE) }),
    createdAt,
    updatedAt: lastUpdatedAt,
    ttlMs: ttlMs as number | null,
    ...(pollIntervalMs !== undefined && { pollIntervalMs }),
  }
}

/** What `tasks/get` and `notifications/tasks` tell of the task of this id. */
export function readTaskState(result: Record<string, unknown>, id: string): TaskState {
  const head = readTaskSummary(result)
  if (head.id !== id) throw badResponse('it is of a task that was not asked for')
  switch (head.status) {
    case 'input_required':
      return { ...head, status: head.status, questions: readOpen(result['inputRequests']) }
    case 'completed':
      return { ...head, status: head.status, result: readResult(result['result']) }
    case 'failed': {
      const { code, message, data } = readError(result['error'])
      return { ...head, status: head.status, error: new ProtocolError(code, message, data) }
    }
    case 'working':
    case 'cancelled':
      return head as WorkingTask | CancelledTask
  }
}

export function isFinished({ status }: TaskSummary): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled'
}

export function isTaskId(id: unknown): id is string {
  return typeof id === 'string' && id !== '' && id.length <= LONGEST_ID
}

export function isPollInterval(ms: unknown): ms is number {
  return Number.isSafeInteger(ms)
}

function readOpen(requests: unknown): ServerQuestion[] {
  if (!isObject(requests)) throw badResponse('the inputRequests of its task are no object')
  if (!isTame(requests, MAX_DEPTH)) {
    throw badResponse('the inputRequests of its task are nested too deeply, or hold a number that is none')
  }
  return readQuestions(requests as unknown as InputRequests)
}

function readResult(result: unknown): CallToolResult {
  if (!isObject(result)) throw badResponse('the result of its task is no object')
  checkComplete(result, 'a completed task')
  return readDone(result, 'tools/call') as CallToolResult
}

function isDate(date: unknown): date is string {
  return typeof date === 'string' && date.length <= LONGEST_DATE && !Number.isNaN(Date.parse(date))
}
