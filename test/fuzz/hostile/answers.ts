// What an honest server says to each request of a client, as texts with `"%id%"` for the id: the client target changes them.
import type { Json } from '../harness/json.ts'
import { META_SERVER_INFO, META_STATE, META_SUBSCRIPTION, TASKS_EXTENSION } from '../wire/messages.ts'
import type { Random } from '../harness/random.ts'
import { someSchema } from './schemas.ts'

type Result = { [key: string]: Json }

const text = (said: string): Json => ({ type: 'text', text: said })
const info: Json = { name: 'hostile', version: '1', title: 'H', icons: [{ src: 'https://a.example/i.png' }] }
const CAPABILITIES: Json = {
  tools: { listChanged: true },
  prompts: {},
  resources: { subscribe: true },
  completions: {},
  logging: {},
  extensions: { [TASKS_EXTENSION]: {} },
}
const TASK: Result = {
  taskId: 'a-task',
  createdAt: '2026-07-28T00:00:00Z',
  lastUpdatedAt: '2026-07-28T00:00:01Z',
  ttlMs: 1_000,
  pollIntervalMs: 1,
}

export const NOTES = [
  { method: 'notifications/progress', params: { progressToken: 1, progress: 1, total: 2, message: 'm' } },
  { method: 'notifications/message', params: { level: 'info', data: { a: 1 }, logger: 'l' } },
  { method: 'notifications/tools/list_changed', params: {} },
  { method: 'notifications/resources/updated', params: { uri: 'note://a', _meta: { [META_SUBSCRIPTION]: '%id%' } } },
  {
    method: 'notifications/subscriptions/acknowledged',
    params: { notifications: { toolsListChanged: true }, _meta: { [META_SUBSCRIPTION]: '%id%' } },
  },
  { method: 'notifications/tasks', params: { ...TASK, status: 'working', _meta: { [META_SUBSCRIPTION]: '%id%' } } },
  { method: 'notifications/cancelled', params: { requestId: '%id%' } },
  { method: 'notifications/elicitation/complete', params: { elicitationId: 'e' } },
  { id: 's1', method: 'ping' },
  { id: 's2', method: 'roots/list' },
  {
    id: 's3',
    method: 'elicitation/create',
    params: {
      message: 'Name?',
      requestedSchema: { type: 'object', properties: { a: { type: 'string' } } },
      _meta: { [META_STATE]: 'sr' },
    },
  },
  {
    id: 's4',
    method: 'sampling/createMessage',
    params: { messages: [{ role: 'user', content: text('Hi') }], maxTokens: 5 },
  },
].map((note) => JSON.stringify({ jsonrpc: '2.0', ...note }))

/** A form whose schema is a random one, now and then not of the few that a form may have. */
function question(random: Random): Json {
  const field = random.pick<Json>([
    { type: 'string', minLength: 1 },
    { type: 'boolean' },
    { type: 'integer', maximum: 3 },
    { type: 'string', enum: ['x', 'y'] },
    { type: 'array', items: { type: 'string', enum: ['x'] } },
    someSchema(random, 1),
  ])
  const requestedSchema = { type: 'object', properties: { a: field }, required: ['a'] }
  return random.pick<Json>([
    { method: 'elicitation/create', params: { mode: 'form', message: 'Which?', requestedSchema } },
    {
      method: 'elicitation/create',
      params: { mode: 'url', message: 'Go there.', url: 'https://a.example/x', elicitationId: 'e' },
    },
    { method: 'sampling/createMessage', params: { messages: [{ role: 'user', content: text('Hi') }], maxTokens: 5 } },
    { method: 'roots/list' },
  ])
}

function callResults(random: Random, isOlder: boolean): Result[] {
  const done: Result = { resultType: 'complete', content: [text('done')], structuredContent: { a: 1 } }
  if (isOlder)
    return random.chance(0.3)
      ? [{ inputRequests: { q: question(random) }, requestState: 's', result_type: 'incomplete' }, done]
      : [done]
  const asks: Result = {
    resultType: 'input_required',
    inputRequests: { q: question(random), r: question(random) },
    requestState: 's',
  }
  const task: Result = { resultType: 'task', ...TASK, status: 'working' }
  return random.pick([
    [done],
    [asks, done],
    [asks, asks, done],
    [{ resultType: 'input_required', requestState: 's' }, done],
    [task],
  ])
}

/** `older` is the revision of a server that has sessions. */
export function baseAnswers(random: Random, older?: string): [string, string][] {
  const isOlder = older !== undefined
  const schema = (): Json => ({ type: 'object', properties: { a: someSchema(random, 2) } })
  const tool: Json = { name: 't', description: 'd', inputSchema: schema(), outputSchema: schema() }
  const listed: Result = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' }
  const detailed = random.pick<Result>([
    { ...TASK, status: 'completed', result: { content: [text('done')] } },
    { ...TASK, status: 'failed', error: { code: -32_603, message: 'It failed.' } },
    { ...TASK, status: 'input_required', inputRequests: { q: question(random) } },
    { ...TASK, status: 'cancelled', statusMessage: 'Why not.' },
  ])
  const results: [string, Result][] = [
    [
      'server/discover',
      {
        ...listed,
        supportedVersions: ['2026-07-28'],
        capabilities: CAPABILITIES,
        instructions: 'i',
        _meta: { [META_SERVER_INFO]: info },
      },
    ],
    ['initialize', { protocolVersion: older ?? '2025-11-25', capabilities: CAPABILITIES, serverInfo: info }],
    ['tools/list', { ...listed, tools: [tool], ...(random.chance(0.3) && { nextCursor: 'c' }) }],
    ['tools/list', { ...listed, tools: [] }],
    ...callResults(random, isOlder).map((result): [string, Result] => ['tools/call', result]),
    ['prompts/list', { ...listed, prompts: [{ name: 'p', arguments: [{ name: 'a', required: true }] }] }],
    ['prompts/get', { resultType: 'complete', messages: [{ role: 'user', content: text('Hi') }] }],
    ['resources/list', { ...listed, resources: [{ uri: 'note://a', name: 'a', size: 3 }] }],
    ['resources/templates/list', { ...listed, resourceTemplates: [{ uriTemplate: 'note://{a}', name: 'a' }] }],
    [
      'resources/read',
      {
        ...listed,
        contents: [
          { uri: 'note://a', text: 'A' },
          { uri: 'note://b', blob: 'QQ==' },
        ],
      },
    ],
    ['completion/complete', { resultType: 'complete', completion: { values: ['a'], total: 1, hasMore: false } }],
    ['tasks/get', { resultType: 'complete', ...TASK, status: 'working' }],
    ['tasks/get', { resultType: 'complete', ...detailed }],
    ['tasks/update', { resultType: 'complete' }],
    ['tasks/cancel', { resultType: 'complete' }],
    ['resources/subscribe', {}],
    ['resources/unsubscribe', {}],
    ['logging/setLevel', {}],
    ['ping', {}],
    ['subscriptions/listen', { resultType: 'complete' }],
  ]
  const error = {
    code: random.pick([-32_601, -32_602, -32_042, -32_022, 1]),
    message: 'No.',
    data: {
      supported: ['2025-11-25'],
      elicitations: [{ elicitationId: 'e', url: 'https://a.example', message: 'm', mode: 'url' }],
    },
  }
  const inputRequests = { q: question(random) }
  const params = { name: 't', arguments: {} }
  const saved = { version: 1, revision: '2026-07-28', method: 'tools/call', params, inputRequests, requestState: 's' }
  const answers = results.map(([method, result]): [string, string] => {
    const isRefused = random.chance(0.03) || (isOlder && method === 'server/discover')
    return [method, JSON.stringify({ jsonrpc: '2.0', id: '%id%', ...(isRefused ? { error } : { result }) })]
  })
  return [...answers, ['saved', JSON.stringify(saved)]]
}
