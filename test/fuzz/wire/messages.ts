// What both sides say: names of the protocol, what a client repeats of what its server said, and how a response went.
import { isObject } from '../harness/json.ts'

// Written out: what is on the wire must not follow a rename.
const PREFIX = 'io.modelcontextprotocol'
export const META_VERSION = `${PREFIX}/protocolVersion`
export const META_CAPABILITIES = `${PREFIX}/clientCapabilities`
export const META_LOG_LEVEL = `${PREFIX}/logLevel`
export const META_SERVER_INFO = `${PREFIX}/serverInfo`
export const META_SUBSCRIPTION = `${PREFIX}/subscriptionId`
export const TASKS_EXTENSION = `${PREFIX}/tasks`
export const META_STATE = 'modelcontextprotocol.io/state/request/'

export const OLDER_REVISIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2026-06-XX', '2026-02-03-draft']

/** What a server said that a client repeats to it: `%state%` and the like stand for it in an input. `%mark%` is the client's own. */
export class Slots {
  static #clients = 0
  readonly #values: Record<string, string> = { mark: `mark-${(Slots.#clients += 1)}` }

  set(name: string, value: unknown): void {
    if (typeof value === 'string') this.#values[name] = value
  }

  get(name: string): string | undefined {
    return this.#values[name]
  }

  /** In a JSON text, or with `raw` in one that is none. */
  fill(text: string, { raw = false } = {}): string {
    return text.replaceAll(/%(state|task|ask|cursor|session|event|mark)%/g, (whole, name: string) => {
      const value = this.#values[name] ?? whole
      return raw ? value : JSON.stringify(value).slice(1, -1)
    })
  }

  /** Takes what there is from a message of the server, of whichever revision. */
  note(message: unknown): void {
    if (!isObject(message)) return
    const { id, method, params, result } = message
    if (typeof method === 'string' && id !== undefined) {
      this.set('ask', id)
      const meta = isObject(params) ? params['_meta'] : undefined
      if (isObject(meta)) this.set('state', meta[META_STATE])
    }
    this.set('state', message['request_state'])
    if (!isObject(result)) return
    const task = isObject(result['task']) ? result['task'] : result
    this.set('state', result['requestState'])
    this.set('task', task['taskId'])
    this.set('cursor', result['nextCursor'])
    if (isObject(result['inputRequests'])) this.set('ask', Object.keys(result['inputRequests'])[0])
  }
}

/** A short word for how a response went, without what differs from one time to the next. */
export function fateOf(message: unknown): string {
  if (!isObject(message)) return 'none'
  const { error, result, method } = message
  if (isObject(error)) return `${plain(error['code'])} ${plain(error['message'])}`
  if (typeof method === 'string') return method.slice(0, 40)
  if (!isObject(result)) return 'other'
  const { resultType = '', status = '', content } = result
  const said = Array.isArray(content) && isObject(content[0]) ? plain(content[0]['text']) : ''
  return `${plain(resultType)} ${plain(status)} ${Object.keys(result).slice(0, 8).join()} ${said}`
}

function plain(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value) ?? ''
  const named = value.replace(/(not found|Unknown \w+|Invalid \w+ for \w+): .*/s, '$1')
  return named.replaceAll(/"[^"]*"|\d+|[^ -~]/g, '_').slice(0, 60)
}
