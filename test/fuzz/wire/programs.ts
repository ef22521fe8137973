// What clients of the app under test send: each program is a list of messages, as texts. `%state%` and the like are slots.
import type { Json } from '../harness/json.ts'
import { isObject, oddString } from '../harness/json.ts'
import type { Random } from '../harness/random.ts'
import { META_CAPABILITIES, META_LOG_LEVEL, META_STATE, META_VERSION, TASKS_EXTENSION } from './messages.ts'

type Params = { [key: string]: Json }

const CAPABILITIES: Params = {
  elicitation: { form: {}, url: {} },
  sampling: { tools: {}, context: {} },
  roots: {},
  extensions: { [TASKS_EXTENSION]: {} },
}
const META: Params = {
  [META_VERSION]: '2026-07-28',
  [META_CAPABILITIES]: CAPABILITIES,
  [META_LOG_LEVEL]: 'debug',
  progressToken: 'p',
}

/** The tools of the app that take arguments; the others take none. */
const ARGUMENTS: Readonly<Record<string, Params>> = {
  echo: { text: 'hi %mark%' },
  mirror: { a: [1, { b: null }] },
  header: { region: 'eu' },
  count: { to: 2 },
  deploy: { env: 'x', more: [1, 2] },
}
const OTHER_TOOLS = ['admin', 'trip', 'wizard', 'needs', 'job', 'later', 'odds', 'touch', 'model']
const URIS = ['plain', 'asked', 'by/one?q=1&q=2', 'by/none', 'by/%E2%82', 'private', `by/x?${'q=1&'.repeat(900)}q=2`]
const LISTS = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list']

const accept = (content: Params): Json => ({ action: 'accept', content })
const said = (content: Json): Json => ({ role: 'assistant', model: 'm', content })

/** To every question of the app, by its key. `%ask%` is the key of the question that was asked last. */
const ANSWERS: Params = {
  ok: accept({ ok: true }),
  sure: accept({ confirm: true }),
  first: accept({ confirm: true }),
  to: accept({ choice: 'sea' }),
  said: said({ type: 'text', text: 'Hello' }),
  model: said({ type: 'text', text: 'Hello' }),
  roots: { roots: [{ uri: 'file:///a' }] },
  page: { action: 'accept' },
  name: accept({ name: 'Ada' }),
  reason: accept({ reason: 'why not' }),
  'needs:account>ok': accept({ ok: true }),
  '%ask%': accept({ confirm: true }),
}
const OTHER_ANSWERS: readonly Json[] = [
  { action: 'decline' },
  { action: 'cancel' },
  said({ type: 'image', data: 'QQ==', mimeType: 'image/png' }),
  said([{ type: 'tool_use', id: 'u', name: 'n', input: {} }]),
  { roots: [] },
]

/** The messages of a client of 2026-07-28: a flow of some rounds, and what may follow. */
export function modernProgram(random: Random): string[] {
  const { method, params } = someRequest(random)
  const retry = (): Request => {
    return { method, params: { ...params, requestState: '%state%', inputResponses: someAnswers(random) } }
  }
  const requests = random.oneOf<Request[]>([
    () => [{ method, params }, ...random.list(0, 3, retry)],
    () => [{ method, params }, retry(), retry(), ...random.list(1, 4, () => someTaskRequest(random))],
    () => [call('job'), { method: 'subscriptions/listen', params: { notifications: WISH } }, call('touch')],
    () => [call('job'), ...random.list(1, 4, () => someTaskRequest(random))],
    () => [{ method: 'server/discover', params: {} }],
  ])
  return requests.map((request, index) =>
    JSON.stringify({ jsonrpc: '2.0', id: index + 1, ...request, params: { ...request.params, _meta: META } }),
  )
}

/** The messages of an older client: a handshake, then calls, answers to what is asked, and the rest. */
export function olderProgram(random: Random, revision: string, carries: boolean): string[] {
  const capabilities: Json = { ...CAPABILITIES, ...(carries && { state: { scopes: ['request'] } }) }
  const params = { protocolVersion: revision, capabilities, clientInfo: { name: 'fuzz', version: '1' } }
  const handshake = [{ id: 0, method: 'initialize', params }, { method: 'notifications/initialized' }]
  const first = { id: 1, ...someRequest(random) }
  const others = random.list(0, 5, (index) => olderMessage(random, index + 2, revision, carries))
  const texts = [...handshake, first, ...others].map((given) => JSON.stringify({ jsonrpc: '2.0', ...given }))
  if (revision !== '2025-03-26' || random.chance(0.7)) return texts
  return [...texts.slice(0, 2), `[${texts.slice(2).join()}]`]
}

/** Other people, and nobody. */
export function somePrincipal(random: Random): string | null {
  return random.pick([null, null, 'ada', 'bob', oddString(random) || null])
}

type Request = { method: string; params: Params }

const WISH = { toolsListChanged: true, resourceSubscriptions: ['note://plain', 'note://private'], taskIds: ['%task%'] }

function call(name: string): Request {
  return { method: 'tools/call', params: { name, arguments: ARGUMENTS[name] ?? {} } }
}

/** A request of any revision, without what only one of them has. */
function someRequest(random: Random): Request {
  const someCall = (): Request => call(random.pick([...Object.keys(ARGUMENTS), ...OTHER_TOOLS]))
  const prompt = random.pick(['brief', 'brief', 'private'])
  const template = random.pick(['note://by/{id}{?q*}', 'private://{id}'])
  return random.oneOf<Request>([
    someCall,
    someCall,
    someCall,
    () => ({ method: 'prompts/get', params: { name: prompt, arguments: { topic: 'moon', a: 'b' } } }),
    () => ({ method: 'resources/read', params: { uri: `note://${random.pick(URIS)}` } }),
    () => ({ method: 'resources/read', params: { uri: random.pick(['file:///a/b', 'private://x']) } }),
    () => ({ method: random.pick(LISTS), params: random.chance(0.4) ? { cursor: '%cursor%' } : {} }),
    () => completion({ type: 'ref/prompt', name: prompt }, prompt === 'brief' ? 'topic' : 'a'),
    () => completion({ type: 'ref/resource', uri: template }, 'id'),
  ])
}

function completion(ref: Json, name: string): Request {
  return { method: 'completion/complete', params: { ref, argument: { name, value: '' } } }
}

function someTaskRequest(random: Random): Request {
  const method = random.pick(['tasks/get', 'tasks/update', 'tasks/cancel'])
  return {
    method,
    params: { taskId: '%task%', ...(method === 'tasks/update' && { inputResponses: someAnswers(random) }) },
  }
}

function olderMessage(random: Random, id: number, revision: string, carries: boolean): Params {
  const { method, params } = someRequest(random)
  const state = { _meta: { [META_STATE]: '%state%' } }
  const answer = (): Params => {
    const result = someAnswer(random)
    return { id: '%ask%', result: carries && isObject(result) ? { ...result, ...state } : result }
  }
  const retry = (): Params => {
    const answers = someAnswers(random)
    if (revision !== '2026-02-03-draft')
      return { id, method, params: { ...params, requestState: '%state%', inputResponses: answers } }
    const results = Object.entries(answers).map(([key, result]): [string, Json] => [key, { result }])
    return { id, method, params, request_state: '%state%', input_responses: Object.fromEntries(results) }
  }
  const ofTasks = random.pick(['tasks/get', 'tasks/result', 'tasks/cancel', 'tasks/list', 'tasks/input_response'])
  const ofResources = random.pick(['resources/subscribe', 'resources/unsubscribe'])
  return random.oneOf<Params>([
    () => ({ id, method, params: { ...params, _meta: { progressToken: id } } }),
    () => ({ id, method: 'tools/call', params: { name: 'job', task: { ttl: 1_000 } } }),
    answer,
    answer,
    answer,
    () => ({ id: '%ask%', error: { code: -1, message: 'No.', ...(carries && { data: state }) } }),
    retry,
    () => ({ method: 'notifications/cancelled', params: { requestId: random.int(4), reason: 'why not' } }),
    () => ({ id, method: ofTasks, params: { taskId: '%task%', inputResponses: someAnswers(random) } }),
    () => ({ id, method: ofResources, params: { uri: 'note://plain' } }),
    () => ({ id, method: 'logging/setLevel', params: { level: 'debug' } }),
    () => ({ id, method: 'ping' }),
  ])
}

function someAnswers(random: Random): Params {
  const keys = Object.keys(ANSWERS).filter(() => random.chance(0.7))
  return Object.fromEntries(keys.map((key) => [key, someAnswer(random, key)]))
}

/** Mostly the one that fits. */
function someAnswer(random: Random, key = random.pick(Object.keys(ANSWERS))): Json {
  return random.chance(0.8) ? (ANSWERS[key] ?? null) : random.pick([...OTHER_ANSWERS, ...Object.values(ANSWERS)])
}
