// Revision 2026-07-28: every request stands alone, and the client carries a call from round to round.
// Messages have the form of this revision throughout the code. The other revisions translate to it and from it.
import type { Message, RetryText } from './rounds.ts'

export const REVISION = '2026-07-28'

export const META_VERSION = 'io.modelcontextprotocol/protocolVersion'
export const META_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'
export const META_CLIENT_INFO = 'io.modelcontextprotocol/clientInfo'
export const META_LOG_LEVEL = 'io.modelcontextprotocol/logLevel'
export const META_SERVER_INFO = 'io.modelcontextprotocol/serverInfo'
export const META_SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId'

/** Ours, in a result that only asks for a retry: why. */
export const META_DEFERRED = 'com.mcp-rally/deferred'
/** The instance has another version of the tool. Another instance may have the right one, so the client waits longer each time. */
export const DEFERRED_VERSION = 'version'

/**
 * Ours, in the first round of a call: the same for every attempt to send it, so that the server knows a repeat. Also the name of the
 * extension by which a server says that it knows repeats, and with `records` whether it records their responses for this caller.
 */
export const META_IDEMPOTENCY_KEY = 'com.mcp-rally/idempotency-key'

/** Ours, in a task: how far it is, with the members of a progress notification. */
export const META_PROGRESS = 'com.mcp-rally/progress'

/** The extension that lets a call become a task. */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks'

/** The requests that may take several rounds. */
export const ROUND_METHODS: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read'])

/** The requests that may be answered with a task, or are about one. */
export const TASK_METHODS: ReadonlySet<string> = new Set([
  'tools/call',
  'tasks/get',
  'tasks/update',
  'tasks/cancel',
  'subscriptions/listen',
])

/** The property of `params` that the Mcp-Name header repeats, by method. */
export const NAME_PARAMS: Readonly<Record<string, 'name' | 'uri' | 'taskId'>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
}

/** The most answers that one round may carry. */
export const MOST_ANSWERS = 1_000

/** What a retry adds to its request, for a client. `answers` are by the keys of their questions. */
export function writeRetry(answers: Message | undefined, state: string | undefined): RetryText {
  const responses = answers === undefined ? '' : `,"inputResponses":${JSON.stringify(answers)}`
  const requestState = state === undefined ? '' : `,"requestState":${JSON.stringify(state)}`
  return { inParams: responses + requestState, beside: '' }
}

/** The text of a result that asks, for a server. `questions` are JSON texts by key; without them it asks for a retry only. */
export function inputRequiredText(
  questions: Iterable<readonly [key: string, text: string]> | undefined,
  state: string,
  serverMeta: string,
): string {
  const end = `"requestState":${JSON.stringify(state)},"_meta":${serverMeta}}`
  if (questions === undefined) return `{"resultType":"input_required",${end}`
  const requests: string[] = []
  for (const [key, text] of questions) requests.push(`${JSON.stringify(key)}:${text}`)
  return `{"resultType":"input_required","inputRequests":{${requests.join(',')}},${end}`
}
