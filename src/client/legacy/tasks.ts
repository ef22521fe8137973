// Tasks in the revisions with sessions. There a call becomes a task only if the client asks for it, and the result of a task, or its
// questions, have a request of their own: `tasks/result`.
import { ProtocolError } from '../../protocol/errors.ts'
import { isObject } from '../../protocol/json.ts'
import type { ServerCapabilities } from '../../protocol/messages.ts'
import type { OlderRevision } from '../../protocol/revisions/older.ts'
import type { SendTaskRequest, TaskDialect } from '../tasks/dialect.ts'

/** Undefined if the server makes no tasks of calls. */
export function taskDialectOf(
  { tasks, rounds }: OlderRevision,
  capabilities: ServerCapabilities,
): TaskDialect | undefined {
  if (!tasks || !declaresTasks(capabilities)) return undefined
  const questions = rounds === undefined ? 'live' : 'read'
  const writeInput = rounds?.writeTaskInput
  return {
    questions,
    readCreated: (result) => (isObject(result['task']) ? { ...inOurForm(result['task']), resultType: 'task' } : result),
    get: (id, send) => get(id, questions, send),
    update: async (id, answers, send, post) => {
      if (writeInput !== undefined) return post((messageId) => writeInput(messageId, id, answers))
      await send('tasks/input_response', { taskId: id, inputResponses: answers })
    },
  }
}

/** `tasks: { requests: { tools: { call: {} } } }` */
function declaresTasks(capabilities: object): boolean {
  let declared: unknown = capabilities
  for (const name of ['tasks', 'requests', 'tools', 'call']) declared = isObject(declared) ? declared[name] : undefined
  return declared !== undefined
}

async function get(
  id: string,
  questions: TaskDialect['questions'],
  send: SendTaskRequest,
): Promise<Record<string, unknown>> {
  const task = inOurForm(await send('tasks/get', { taskId: id }))
  switch (task['status']) {
    case 'completed':
    case 'failed':
      return ended(task, id, send)
    case 'input_required':
      // Asked while the client waits for the result, so there is nothing to read.
      if (questions === 'live') return { ...task, inputRequests: {} }
      return asking(task, id, send)
    default:
      return task
  }
}

/** A tool that reports an error is a failed task there, with a result. In our form it is completed, with `isError`. */
async function ended(
  task: Record<string, unknown>,
  id: string,
  send: SendTaskRequest,
): Promise<Record<string, unknown>> {
  try {
    return { ...task, status: 'completed', result: await send('tasks/result', { taskId: id }) }
  } catch (error) {
    if (!(error instanceof ProtocolError) || task['status'] === 'completed') throw error
    const { rpcCode: code, message, data } = error
    return { ...task, status: 'failed', error: { code, message, ...(data !== undefined && { data }) } }
  }
}

async function asking(
  task: Record<string, unknown>,
  id: string,
  send: SendTaskRequest,
): Promise<Record<string, unknown>> {
  const result = await send('tasks/result', { taskId: id })
  // It may have ended between the two requests.
  if (result['resultType'] !== 'input_required') return { ...task, status: 'completed', result }
  return { ...task, inputRequests: result['inputRequests'] }
}

function inOurForm(task: Record<string, unknown>): Record<string, unknown> {
  const { status, createdAt, lastUpdatedAt = createdAt, ttl = null, pollInterval, ...rest } = task
  return {
    ...rest,
    // The first draft writes it with a capital letter, and has no time of the last update.
    status: typeof status === 'string' ? status.toLowerCase() : status,
    createdAt,
    lastUpdatedAt,
    ttlMs: ttl,
    ...(pollInterval !== undefined && { pollIntervalMs: pollInterval }),
  }
}
