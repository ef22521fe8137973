// Holds what a whole server sends against the official schema: the methods and notifications that the tool suites do not use
// are added here to theirs.
import { META_SERVER_INFO } from '../../src/protocol/revisions/2026-07-28.ts'
import { specValidator } from '../spec/validate.ts'
import { problemsOf } from '../wire/spec.ts'

const RESULTS: Readonly<Record<string, string>> = {
  'prompts/get': 'GetPromptResult',
  'prompts/list': 'ListPromptsResult',
  'resources/read': 'ReadResourceResult',
  'resources/list': 'ListResourcesResult',
  'resources/templates/list': 'ListResourceTemplatesResult',
  'completion/complete': 'CompleteResult',
  'subscriptions/listen': 'SubscriptionsListenResult',
}

const NOTIFICATIONS: Readonly<Record<string, string>> = {
  'notifications/subscriptions/acknowledged': 'SubscriptionsAcknowledgedNotification',
  'notifications/tools/list_changed': 'ToolListChangedNotification',
  'notifications/prompts/list_changed': 'PromptListChangedNotification',
  'notifications/resources/list_changed': 'ResourceListChangedNotification',
  'notifications/resources/updated': 'ResourceUpdatedNotification',
}

/** Throws unless the specification allows this message in answer to a request of this method. */
export function checkMessage(message: object, method: string): void {
  const problems =
    'result' in message ? resultProblems(message, message.result, method) : otherProblems(message, method)
  if (problems.length > 0) throw new Error(`${problems.join('; ')}: ${JSON.stringify(message).slice(0, 2000)}`)
}

function resultProblems(message: object, result: unknown, method: string): string[] {
  const definition = RESULTS[method]
  if (at(result, 'resultType') === 'input_required') return [...problemsOf(message, method), ...hintsIn(result)]
  if (definition === undefined) return problemsOf(message, method)
  const problems = [...specValidator('JSONRPCResultResponse')(message), ...specValidator(definition)(result)]
  if (at(result, 'resultType') !== 'complete') problems.push('no resultType')
  const serverInfo = at(at(result, '_meta'), META_SERVER_INFO)
  return [...problems, ...specValidator('Implementation')(serverInfo).map((problem) => `serverInfo: ${problem}`)]
}

/** Nobody may keep a round that is not the last one. */
function hintsIn(result: unknown): string[] {
  return ['ttlMs', 'cacheScope'].filter((hint) => at(result, hint) !== undefined).map((hint) => `an interim ${hint}`)
}

function otherProblems(message: object, method: string): string[] {
  const definition = 'method' in message ? NOTIFICATIONS[String(message.method)] : undefined
  if (definition === undefined) return problemsOf(message, method)
  return [...specValidator('JSONRPCNotification')(message), ...specValidator(definition)(message)]
}

function at(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
}
