// Holds what a server with tasks sends against the schema of the extension, and the rest against that of the revision.
import { checkMessage as checkOther } from '../server/spec.ts'
import { specValidator } from '../spec/validate.ts'

const RESULTS: Readonly<Record<string, string>> = {
  'tasks/get': 'GetTaskResult',
  'tasks/update': 'UpdateTaskResult',
  'tasks/cancel': 'CancelTaskResult',
}

/** By status, what `tasks/get` and notifications hold: the union alone would take one for another. */
const DETAILED: Readonly<Record<string, string>> = {
  working: 'WorkingTask',
  input_required: 'InputRequiredTask',
  completed: 'CompletedTask',
  failed: 'FailedTask',
  cancelled: 'CancelledTask',
}

const KNOWN = new Set([
  'taskId',
  'status',
  'statusMessage',
  'createdAt',
  'lastUpdatedAt',
  'ttlMs',
  'pollIntervalMs',
  'inputRequests',
  'result',
  'error',
  'resultType',
  '_meta',
])

/** Throws unless the extension, or else the revision, allows this message in answer to a request of this method. */
export function checkMessage(message: object, method: string): void {
  const problems = problemsOf(message, method)
  if (problems === undefined) return checkOther(message, method)
  if (problems.length > 0) throw new Error(`${problems.join('; ')}: ${JSON.stringify(message).slice(0, 2000)}`)
}

/** `undefined` where the message is none of the extension's. */
function problemsOf(message: object, method: string): string[] | undefined {
  if ('method' in message && message.method === 'notifications/tasks') {
    const params = 'params' in message ? (message.params as Record<string, unknown>) : {}
    return [...tasksValidator('TaskStatusNotification')(message), ...taskProblems(params)]
  }
  if (!('result' in message)) return undefined
  const result = message.result as Record<string, unknown>
  const definition = method === 'tools/call' && result['resultType'] === 'task' ? 'CreateTaskResult' : RESULTS[method]
  if (definition === undefined) return undefined
  const problems = [...specValidator('JSONRPCResultResponse')(message), ...tasksValidator(definition)(result)]
  if (definition === 'GetTaskResult') problems.push(...taskProblems(result))
  else if (method !== 'tools/call')
    problems.push(...Object.keys(result).filter((key) => !/^(resultType|_meta)$/.test(key)))
  return problems
}

function taskProblems(task: Record<string, unknown>): string[] {
  const problems = tasksValidator(DETAILED[String(task['status'])] ?? 'Task')(task)
  problems.push(...Object.keys(task).filter((key) => !KNOWN.has(key)))
  for (const [key, of] of Object.entries({ inputRequests: 'input_required', result: 'completed', error: 'failed' })) {
    if (key in task !== (task['status'] === of)) problems.push(`${key} beside ${String(task['status'])}`)
  }
  if ('inputRequests' in task) problems.push(...specValidator('InputRequests')(task['inputRequests']))
  if ('result' in task) problems.push(...specValidator('CallToolResult')(task['result']))
  for (const key of ['createdAt', 'lastUpdatedAt']) {
    if (new Date(String(task[key])).toISOString() !== task[key]) problems.push(`${key} is no time`)
  }
  return problems
}

function tasksValidator(definition: string): (value: unknown) => string[] {
  return specValidator(definition, 'ext-tasks')
}
