// A task as its client sees it: as a value, as the JSON text of 2026-07-28, and as an entry of a list page.
//
// The texts are written straight from the record: an outcome and a question are stored as JSON text and are not parsed here.
import { invalidParams } from '../server/request.ts'
import type { DetailedTask, InputRequest } from '../protocol/messages.ts'
import type { TaskPosition, TaskRecord } from '../store/tasks.ts'
import { META_PROGRESS } from '../protocol/revisions/2026-07-28.ts'
import type { FollowedTask } from '../server/tasks.ts'
import { readShown } from './state.ts'
import { readMessage } from './status-message.ts'

const MAX_CURSOR_LENGTH = 1_024

/** The task with what belongs to its status: its questions, its result or its error. */
export function taskValue(task: TaskRecord): DetailedTask {
  const fields = fieldsOf(task)
  switch (task.status) {
    case 'input_required':
      return { ...fields, inputRequests: questionsOf(task.state) }
    case 'completed':
      return { ...fields, result: JSON.parse(task.outcome ?? '{}') as NonNullable<DetailedTask['result']> }
    case 'failed':
      return { ...fields, error: JSON.parse(task.outcome ?? '{}') as NonNullable<DetailedTask['error']> }
    default:
      return fields
  }
}

/** The same as JSON text, without the braces around it. */
export function taskText(task: TaskRecord): string {
  const fields = fieldsText(task)
  switch (task.status) {
    case 'input_required':
      return `${fields},"inputRequests":${questionsText(task.state)}`
    case 'completed':
      return `${fields},"result":${task.outcome ?? '{}'}`
    case 'failed':
      return `${fields},"error":${task.outcome ?? '{}'}`
    default:
      return fields
  }
}

/** The task, and how far it is. */
export function followedTask(task: TaskRecord): FollowedTask {
  const { progress } = readMessage(task.message)
  return progress === undefined ? taskValue(task) : { ...taskValue(task), progress }
}

/** What belongs into `_meta` beside the task, as JSON text with a comma at its end. */
export function metaText({ message }: TaskRecord): string {
  const { progress } = readMessage(message)
  return progress === undefined ? '' : `"${META_PROGRESS}":${JSON.stringify(progress)},`
}

/** The fields that every task has, as JSON text without the braces around it. */
export function fieldsText({ id, status, message: stored, createdAt, updatedAt, ttlMs, pollMs }: TaskRecord): string {
  const { message } = readMessage(stored)
  const statusMessage = message === undefined ? '' : `"statusMessage":${JSON.stringify(message)},`
  const times = `"createdAt":"${timeText(createdAt)}","lastUpdatedAt":"${timeText(updatedAt)}"`
  return `"taskId":"${id}","status":"${status}",${statusMessage}${times},"ttlMs":${ttlMs},"pollIntervalMs":${pollMs}`
}

/** A task in a list. Of its result it says only whether it is an error. */
export function listedTask(task: TaskRecord): DetailedTask {
  const { isError } = JSON.parse((task.status === 'completed' && task.outcome) || '{}') as { isError?: unknown }
  return isError === true ? { ...fieldsOf(task), result: { isError: true } } : fieldsOf(task)
}

/** The cursor of the page after this task. It names a task that the caller owns, so it is neither encrypted nor signed. */
export function cursorAfter({ id, createdAt }: TaskPosition): string {
  return Buffer.from(JSON.stringify([createdAt, id])).toString('base64url')
}

export function readCursor(cursor: unknown): TaskPosition | undefined {
  if (cursor === undefined || cursor === null) return undefined
  const [createdAt, id] = typeof cursor === 'string' && cursor.length <= MAX_CURSOR_LENGTH ? decode(cursor) : []
  if (typeof id === 'string' && isTime(createdAt)) return { id, createdAt }
  throw invalidParams('Invalid cursor: this server did not issue it. Request the list again without a cursor.')
}

/** PostgreSQL keeps times as 64-bit integers, and a forged cursor may hold any number. */
function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function fieldsOf({ id, status, message: stored, createdAt, updatedAt, ttlMs, pollMs }: TaskRecord): DetailedTask {
  const { message } = readMessage(stored)
  return {
    taskId: id,
    status,
    ...(message !== undefined && { statusMessage: message }),
    createdAt: timeText(createdAt),
    lastUpdatedAt: timeText(updatedAt),
    ttlMs,
    pollIntervalMs: pollMs,
  }
}

function timeText(ms: number): string {
  return new Date(ms).toISOString()
}

function questionsOf(stateText: string): Record<string, InputRequest> {
  const questions = Object.entries(readShown(stateText)).map(([wire, { text }]): [string, unknown] => [
    wire,
    JSON.parse(text),
  ])
  return Object.fromEntries(questions) as Record<string, InputRequest>
}

function questionsText(stateText: string): string {
  const questions = Object.entries(readShown(stateText)).map(([wire, { text }]) => `${JSON.stringify(wire)}:${text}`)
  return `{${questions.join(',')}}`
}

function decode(cursor: string): unknown[] {
  try {
    const position: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    return Array.isArray(position) ? position : []
  } catch {
    return []
  }
}
