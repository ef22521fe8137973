// Holds what a server sends against the official schema, and against what the specification says beside it.
import { META_SERVER_INFO } from '../../src/protocol/revisions/2026-07-28.ts'
import { specValidator } from '../spec/validate.ts'

/** Throws unless the specification allows this message in answer to a request of this method. */
export function checkMessage(message: unknown, method: unknown): void {
  const problems = problemsOf(message, method)
  if (problems.length > 0) throw new Error(`${problems.join('; ')}: ${JSON.stringify(message).slice(0, 2000)}`)
}

/** What the specification does not allow about a message that a server sent, empty when it allows all of it. */
export function problemsOf(message: unknown, method: unknown): string[] {
  if (!isObject(message)) return ['a message must be an object']
  if ('method' in message) return notificationProblems(message)
  if ('error' in message) return errorProblems(message)
  return resultProblems(message, String(method))
}

const NOTIFICATIONS: Readonly<Record<string, string>> = {
  'notifications/progress': 'ProgressNotification',
  'notifications/message': 'LoggingMessageNotification',
}

/** Some codes are defined as whole responses, the others as the error inside. */
const ERROR_RESPONSES: Readonly<Record<string, string>> = {
  '-32020': 'HeaderMismatchError',
  '-32021': 'MissingRequiredClientCapabilityError',
  '-32022': 'UnsupportedProtocolVersionError',
}
const ERRORS: Readonly<Record<string, string>> = {
  '-32700': 'ParseError',
  '-32600': 'InvalidRequestError',
  '-32601': 'MethodNotFoundError',
  '-32602': 'InvalidParamsError',
  '-32603': 'InternalError',
}

const RESULTS: Readonly<Record<string, string>> = {
  'tools/call': 'CallToolResult',
  'tools/list': 'ListToolsResult',
  'server/discover': 'DiscoverResult',
}

function notificationProblems(message: Record<string, unknown>): string[] {
  const definition = NOTIFICATIONS[String(message['method'])]
  if (definition === undefined) return [`nobody expects the notification ${String(message['method'])}`]
  return [...specValidator('JSONRPCNotification')(message), ...specValidator(definition)(message)]
}

function errorProblems(message: Record<string, unknown>): string[] {
  const problems = specValidator('JSONRPCErrorResponse')(message)
  const { error } = message
  const code = isObject(error) ? String(error['code']) : ''
  const response = ERROR_RESPONSES[code]
  if (response !== undefined) return [...problems, ...specValidator(response)(message)]
  const inside = ERRORS[code]
  return inside === undefined
    ? [...problems, `${code} is no code of the protocol`]
    : [...problems, ...specValidator(inside)(error)]
}

function resultProblems(message: Record<string, unknown>, method: string): string[] {
  const { result } = message
  const problems = specValidator('JSONRPCResultResponse')(message)
  if (!isObject(result)) return problems
  const definition = result['resultType'] === 'input_required' ? 'InputRequiredResult' : RESULTS[method]
  if (definition === undefined) return [...problems, `${method} has no result that is known here`]
  problems.push(...specValidator(definition)(result))
  if (result['resultType'] !== 'complete' && definition !== 'InputRequiredResult') problems.push('no resultType')
  if (definition === 'InputRequiredResult' && !('inputRequests' in result || 'requestState' in result)) {
    problems.push('neither inputRequests nor requestState')
  }
  const meta = result['_meta']
  const serverInfo = isObject(meta) ? meta[META_SERVER_INFO] : undefined
  return [...problems, ...specValidator('Implementation')(serverInfo).map((problem) => `serverInfo: ${problem}`)]
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
