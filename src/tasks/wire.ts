// A task as the extension for tasks writes it.
import { readShown } from './record.ts'
import type { TaskRecord } from '../store/store.ts'

/** The fields of a task and what belongs to its status: a JSON text without its braces. */
export function detailedText(task: TaskRecord): string {
  const fields = taskText(task)
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

/** The fields of a task: a JSON text without its braces. */
export function taskText({ id, status, message, createdAt, updatedAt, ttlMs, pollMs }: TaskRecord): string {
  return JSON.stringify({
    taskId: id,
    status,
    statusMessage: message,
    createdAt: new Date(createdAt).toISOString(),
    lastUpdatedAt: new Date(updatedAt).toISOString(),
    ttlMs,
    pollIntervalMs: pollMs,
  }).slice(1, -1)
}

/** A task among others: of its result no more than whether it tells of an error. */
export function listedText(task: TaskRecord): string {
  const { isError } = JSON.parse((task.status === 'completed' && task.outcome) || '{}') as { isError?: unknown }
  return isError === true ? `${taskText(task)},"result":{"isError":true}` : taskText(task)
}

function questionsText(stateText: string): string {
  const questions = Object.entries(readShown(stateText)).map(([wire, { text }]) => `${JSON.stringify(wire)}:${text}`)
  return `{${questions.join(',')}}`
}
