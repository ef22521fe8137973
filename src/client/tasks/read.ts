// Reads a saved task that comes back: from a file, another process, another day.
import { isObject } from '../../protocol/json.ts'
import { ClientError } from '../errors.ts'
import { shown } from '../../protocol/text.ts'
import { REVISIONS } from '../revision.ts'
import type { SavedTask } from './saved.ts'
import { isPollInterval, isTaskId } from './state.ts'

/** Checks what may have been damaged on its way; throws `TASK_INVALID`. */
export function readSavedTask(given: unknown): Pick<SavedTask, 'taskId' | 'tool' | 'pollIntervalMs'> {
  if (typeof given === 'string') return { taskId: readId(given) }
  if (!isObject(given)) throw invalid('it is neither an id nor an object; give what JSON.parse makes of its text')
  const { version, revision, taskId, tool, pollIntervalMs } = given
  if (version !== 1) throw invalid(`its version is ${shown(version)}, and this client reads 1`)
  if (!REVISIONS.includes(revision as string)) {
    throw invalid(`its revision is ${shown(revision)}, and this client speaks ${REVISIONS.join(', ')}`)
  }
  if (tool !== undefined && typeof tool !== 'string') throw invalid('its tool is no text')
  if (pollIntervalMs !== undefined && !isPollInterval(pollIntervalMs)) {
    throw invalid('its pollIntervalMs is no whole number')
  }
  return {
    taskId: readId(taskId),
    ...(tool !== undefined && { tool }),
    ...(pollIntervalMs !== undefined && { pollIntervalMs }),
  }
}

function readId(id: unknown): string {
  if (isTaskId(id)) return id
  throw invalid('its id is no text, or a very long one')
}

function invalid(why: string): ClientError {
  return new ClientError('TASK_INVALID', `The task cannot be taken up: ${why}.`)
}
