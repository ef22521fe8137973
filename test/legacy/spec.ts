// Holds what a server sends to a 2025-11-25 client against the official schema of that revision.
import { specValidator } from '../spec/validate.ts'

const REQUESTS: Readonly<Record<string, string>> = {
  'elicitation/create': 'ElicitRequest',
  'sampling/createMessage': 'CreateMessageRequest',
  'roots/list': 'ListRootsRequest',
}

const NOTIFICATIONS: Readonly<Record<string, string>> = {
  'notifications/progress': 'ProgressNotification',
  'notifications/message': 'LoggingMessageNotification',
  'notifications/cancelled': 'CancelledNotification',
  'notifications/elicitation/complete': 'ElicitationCompleteNotification',
  'notifications/tools/list_changed': 'ToolListChangedNotification',
  'notifications/prompts/list_changed': 'PromptListChangedNotification',
  'notifications/resources/list_changed': 'ResourceListChangedNotification',
  'notifications/resources/updated': 'ResourceUpdatedNotification',
  'notifications/tasks/status': 'TaskStatusNotification',
}

const RESULTS: Readonly<Record<string, string>> = {
  initialize: 'InitializeResult',
  ping: 'EmptyResult',
  'tools/list': 'ListToolsResult',
  'tools/call': 'CallToolResult',
  'prompts/list': 'ListPromptsResult',
  'prompts/get': 'GetPromptResult',
  'resources/list': 'ListResourcesResult',
  'resources/templates/list': 'ListResourceTemplatesResult',
  'resources/read': 'ReadResourceResult',
  'resources/subscribe': 'EmptyResult',
  'resources/unsubscribe': 'EmptyResult',
  'completion/complete': 'CompleteResult',
  'logging/setLevel': 'EmptyResult',
  'tools/call as a task': 'CreateTaskResult',
  'tasks/get': 'GetTaskResult',
  'tasks/result': 'CallToolResult',
  'tasks/cancel': 'CancelTaskResult',
  'tasks/list': 'ListTasksResult',
}

/** Of 2026-07-28, which the schema of an open object would let pass. */
const NEWER = ['resultType', 'ttlMs', 'pollIntervalMs', 'cacheScope', 'requestState', 'inputRequests']

/** What the revision does not allow about a message; empty when it allows all of it. `method` is what it answers. */
export function olderProblems(message: object, method?: string): string[] {
  const check = (definition: string | undefined, value: unknown): string[] =>
    definition === undefined
      ? [`nobody expects ${JSON.stringify(message).slice(0, 200)}`]
      : specValidator(definition, '2025-11-25')(value)
  const { method: own, result } = message as { method?: string; result?: object }
  if (own !== undefined) {
    const isRequest = 'id' in message
    const definition = isRequest ? REQUESTS[own] : NOTIFICATIONS[own]
    return [...check(isRequest ? 'JSONRPCRequest' : 'JSONRPCNotification', message), ...check(definition, message)]
  }
  if (result === undefined) return check('JSONRPCErrorResponse', message)
  const newer = NEWER.filter((key) => key in result).map((key) => `${key} is of a newer revision`)
  return [...check('JSONRPCResultResponse', message), ...check(RESULTS[method ?? ''], result), ...newer]
}
