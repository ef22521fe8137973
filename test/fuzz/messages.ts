// Valid messages for the app under test, and what they may repeat of what the app said before.
import type { Json } from './json.ts'
import { isObject, oddString } from './json.ts'
import type { Random } from './random.ts'

// Names of the protocol, written out: what the wire has must not follow a rename.
export const META_STATE = 'modelcontextprotocol.io/state/request/'
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks'
const META_PREFIX = 'io.modelcontextprotocol'
export const META_SERVER_INFO = `${META_PREFIX}/serverInfo`
export const META_SUBSCRIPTION = `${META_PREFIX}/subscriptionId`

export const CAPABILITIES = {
  elicitation: { form: {}, url: {} },
  sampling: { tools: {}, context: {} },
  roots: {},
  extensions: { [TASKS_EXTENSION]: {} },
}

const META: Json = {
  [`${META_PREFIX}/protocolVersion`]: '2026-07-28',
  [`${META_PREFIX}/clientCapabilities`]: CAPABILITIES,
  [`${META_PREFIX}/clientInfo`]: { name: 'fuzz', version: '1' },
  [`${META_PREFIX}/logLevel`]: 'debug',
  progressToken: 'p',
}

const TOOLS: Readonly<Record<string, { [key: string]: Json }>> = {
  echo: { text: 'hi %mark%' },
  mirror: { a: [1, { b: null }] },
  header: { region: 'eu' },
  admin: {},
  count: { to: 2 },
  deploy: { env: 'x', more: [1, 2] },
  trip: {},
  wizard: {},
  needs: {},
  job: {},
  later: {},
  odds: {},
  touch: {},
  model: {},
}

const accept = (content: { [key: string]: Json }): Json => ({ action: 'accept', content })

/** To every question of the app, by its key. `%ask%` is the key of the question that was asked last. */
const ANSWERS: { [key: string]: Json } = {
  ok: accept({ ok: true }),
  sure: accept({ confirm: true }),
  first: accept({ confirm: true }),
  to: accept({ choice: 'sea' }),
  said: { role: 'assistant', model: 'm', content: { type: 'text', text: 'Hello' } },
  roots: { roots: [{ uri: 'file:///a' }] },
  page: { action: 'accept' },
  name: accept({ name: 'Ada' }),
  reason: accept({ reason: 'why not' }),
  model: { role: 'assistant', model: 'm', content: { type: 'text', text: 'Hello' } },
  'needs:account>ok': accept({ ok: true }),
  '%ask%': accept({ confirm: true }),
}

const LISTS = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list']
const URIS = [
  'note://plain',
  'note://asked',
  'note://by/one?q=1&q=2',
  'note://by/none',
  'file:///a/b',
  'note://by/%E2%82',
  'note://private',
  'private://x',
]

/** A request of any revision, without what only 2026-07-28 has. */
export function anyRequest(random: Random): { method: string; params: { [key: string]: Json } } {
  const roll = random.int(10)
  if (roll < 5) {
    const [name, args] = random.pick(Object.entries(TOOLS))
    return { method: 'tools/call', params: { name, arguments: args } }
  }
  if (roll === 5)
    return {
      method: 'prompts/get',
      params: { name: random.pick(['brief', 'brief', 'private']), arguments: { topic: 'moon' } },
    }
  if (roll === 6) return { method: 'resources/read', params: { uri: random.pick(URIS) } }
  if (roll === 7) return { method: random.pick(LISTS), params: random.chance(0.4) ? { cursor: '%cursor%' } : {} }
  const isPrompt = random.chance(0.5)
  const isScoped = random.chance(0.3)
  const prompt: Json = { type: 'ref/prompt', name: isScoped ? 'private' : 'brief' }
  const template: Json = { type: 'ref/resource', uri: isScoped ? 'private://{id}' : 'note://by/{id}{?q*}' }
  const argument = { name: isPrompt ? (isScoped ? 'a' : 'topic') : 'id', value: '' }
  return { method: 'completion/complete', params: { ref: isPrompt ? prompt : template, argument } }
}

export function someAnswers(random: Random): { [key: string]: Json } {
  const entries = Object.entries(ANSWERS).filter(() => random.chance(0.7))
  return Object.fromEntries(entries.map(([key]) => [key, someAnswer(random, key)]))
}

/** Mostly the one that fits. */
function someAnswer(random: Random, key = random.pick(Object.keys(ANSWERS))): Json {
  if (random.chance(0.8)) return ANSWERS[key] ?? null
  return random.pick<Json>([
    { action: 'decline' },
    { action: 'cancel' },
    { role: 'assistant', model: 'm', content: { type: 'image', data: 'QQ==', mimeType: 'image/png' } },
    {
      role: 'assistant',
      model: 'm',
      content: [{ type: 'tool_use', id: 'u', name: 'n', input: {} }],
      stopReason: 'toolUse',
    },
    { roots: [] },
    random.pick(Object.values(ANSWERS)),
  ])
}

function modernText(id: number, method: string, params: { [key: string]: Json }): string {
  return JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta: META } })
}

/** The messages of a client of 2026-07-28, as texts: a flow of some rounds, or something else. */
export function modernProgram(random: Random): string[] {
  const text = modernText
  const roll = random.int(10)
  if (roll === 0) return [text(1, 'server/discover', {})]
  if (roll === 1) {
    const wish = {
      toolsListChanged: true,
      resourcesListChanged: true,
      resourceSubscriptions: ['note://plain'],
      taskIds: ['%task%'],
    }
    const touch = text(3, 'tools/call', { name: 'touch' })
    return [text(1, 'tools/call', { name: 'job' }), text(2, 'subscriptions/listen', { notifications: wish }), touch]
  }
  const { method, params } = anyRequest(random)
  const retried = (id: number): string =>
    text(id, method, { ...params, requestState: '%state%', inputResponses: someAnswers(random) })
  const program = [text(1, method, params), ...random.list(0, 3, (index) => retried(index + 2))]
  const ofTasks = ['tasks/get', 'tasks/update', 'tasks/get', 'tasks/cancel']
  if (random.chance(0.3)) {
    const rest = ofTasks.map((each, index) =>
      text(index + 10, each, {
        taskId: '%task%',
        ...(each === 'tasks/update' && { inputResponses: someAnswers(random) }),
      }),
    )
    program.push(...rest.slice(0, 1 + random.int(4)))
  }
  return program
}

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

/** Other people, and nobody. */
export function somePrincipal(random: Random): string | null {
  return random.pick([null, null, 'ada', 'bob', oddString(random) || null])
}

export const OLDER_REVISIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2026-06-XX', '2026-02-03-draft']

/** The messages of an older client, as texts: a handshake, then calls, answers to what is asked, and the rest. */
export function olderProgram(random: Random, revision: string, carries: boolean): string[] {
  const capabilities: Json = { ...CAPABILITIES, ...(carries && { state: { scopes: ['request'] } }) }
  const clientInfo = { name: 'fuzz', version: '1' }
  const params = { protocolVersion: revision, capabilities, clientInfo }
  const program = [{ id: 0, method: 'initialize', params }, { method: 'notifications/initialized' }]
  const messages = random.list(1, 6, (index) => olderMessage(random, index + 1, revision, carries))
  const texts = [...program, ...messages].map((given) => JSON.stringify({ jsonrpc: '2.0', ...given }))
  if (revision !== '2025-03-26' || random.chance(0.7)) return texts
  return [...texts.slice(0, 2), `[${texts.slice(2).join()}]`]
}

function olderMessage(random: Random, id: number, revision: string, carries: boolean): { [key: string]: Json } {
  const meta = { _meta: { progressToken: id } }
  // A call first, so that there is something to answer.
  const roll = id === 1 ? 0 : random.int(14)
  if (roll < 4) {
    const { method, params } = anyRequest(random)
    const task: { [key: string]: Json } = params['name'] === 'job' && random.chance(0.7) ? { task: { ttl: 1_000 } } : {}
    return { id, method, params: { ...params, ...task, ...meta } }
  }
  if (roll < 7 || roll > 11) {
    const result = someAnswer(random)
    const state = { _meta: { [META_STATE]: '%state%' } }
    if (random.chance(0.1)) return { id: '%ask%', error: { code: -1, message: 'No.', ...(carries && { data: state }) } }
    return { id: '%ask%', result: carries && isObject(result) ? { ...result, ...state } : result }
  }
  if (roll === 7 && revision.includes('draft')) {
    const answers = Object.entries(someAnswers(random)).map(([key, result]): [string, Json] => [key, { result }])
    return { id, ...anyRequest(random), request_state: '%state%', input_responses: Object.fromEntries(answers) }
  }
  if (roll === 7) {
    const { method, params } = anyRequest(random)
    return { id, method, params: { ...params, requestState: '%state%', inputResponses: someAnswers(random) } }
  }
  if (roll === 8) return { method: 'notifications/cancelled', params: { requestId: random.int(4), reason: 'why not' } }
  if (roll === 9) {
    const method = random.pick(['tasks/get', 'tasks/result', 'tasks/cancel', 'tasks/list', 'tasks/input_response'])
    return {
      id,
      method,
      params: method === 'tasks/list' ? {} : { taskId: '%task%', inputResponses: someAnswers(random) },
    }
  }
  if (roll === 10)
    return {
      id,
      method: random.pick(['resources/subscribe', 'resources/unsubscribe']),
      params: { uri: 'note://plain' },
    }
  return { id, ...random.pick([{ method: 'ping' }, { method: 'logging/setLevel', params: { level: 'debug' } }]) }
}
