// A server with one task, which stands as a test says and does with its messages what a test says. Whatever it sends and gets
// is held against the schema of the extension.
import { once } from 'node:events'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { AppLike, Client, ClientOptions } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { onTestFinished } from 'vitest'
import { specValidator } from '../spec/validate.ts'
import type { Received } from './scripted.ts'

export const TASK_ID = '786512e2-9e0d-44bd-8f29-789f320fe840'

/** What a task is told as, beside what is the same for all. */
export type Told = Readonly<Record<string, unknown>>

/** In place of the answer: an error, a result, or that there is none. */
export type Instead = 'lost' | 'unavailable' | { error: object } | { result: object } | undefined

export interface TaskServerOptions {
  /** Whether it tells of changes to whoever listens: by default it knows nothing of that. */
  readonly tells?: boolean
  /** What a tool gives: by default the task. */
  readonly call?: (request: Received, number: number) => object | undefined
  /** What is done with the answers that come. */
  readonly onUpdate?: (responses: Readonly<Record<string, unknown>>, server: TaskServer) => void
  readonly onCancel?: (server: TaskServer) => void
  readonly instead?: (request: Received, server: TaskServer) => Instead
  /** Whether what it says is meant to be wrong. */
  readonly isWrong?: boolean
}

type Send = (message: object) => void

export class TaskServer {
  /** All but the discovery. */
  readonly requests: (Received & { readonly headers?: IncomingHttpHeaders })[] = []
  readonly problems: string[] = []
  told: Record<string, unknown>
  readonly #options: TaskServerOptions
  readonly #listeners = new Map<number, { send: Send; end: () => void }>()
  readonly #waiting = new Set<() => void>()
  #updates = 0

  constructor(told: Told = {}, options: TaskServerOptions = {}) {
    this.#options = options
    this.told = { status: 'working', pollIntervalMs: 1, ...told }
    onTestFinished(() => {
      if (this.problems.length > 0) throw new Error(this.problems.join('\n'))
    })
  }

  /** The app that `connect` takes. */
  get app(): AppLike {
    return {
      dispatch: async (message, { cancel, notify }) => {
        const cancelled = new Promise<void>((resolve) => cancel.listen(resolve))
        const send: Send = (each) => void notify(JSON.stringify(each))
        const response = await this.#serve(message as Received, send, cancelled)
        if (response === 'lost' || response === 'unavailable') throw new Error(response)
        return { text: JSON.stringify(response) }
      },
    }
  }

  /** Over HTTP, until the test is over. Gives its address. */
  async listen(): Promise<string> {
    const server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => void chunks.push(chunk))
      request.on('end', () => {
        const message = JSON.parse(Buffer.concat(chunks).toString()) as Received
        void this.#answer({ ...message, headers: request.headers } as Received, response)
      })
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => {
      server.close()
      server.closeAllConnections()
    })
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
  }

  /** From now on it stands like this. */
  become(told: Told): void {
    const { pollIntervalMs, ttlMs, createdAt } = this.told
    this.#updates += 1
    this.told = {
      pollIntervalMs,
      ...(ttlMs !== undefined && { ttlMs }),
      ...(createdAt !== undefined && { createdAt }),
      ...told,
    }
    this.tell(this.detailed())
  }

  /** Says it to whoever listens. */
  tell(params: object): void {
    for (const [id, { send }] of this.#listeners) {
      send(this.#notification('notifications/tasks', { ...params, _meta: { [SUBSCRIPTION]: id } }))
    }
  }

  /** Ends the streams, in good order. */
  fallSilent(): void {
    for (const { end } of this.#listeners.values()) end()
  }

  /** How often it was asked this. */
  count(method: string): number {
    return this.requests.filter((request) => request.method === method).length
  }

  /** The params of all requests of this method, without `_meta`. */
  sent(method: string): Record<string, unknown>[] {
    return this.requests
      .filter((request) => request.method === method)
      .map(({ params: { _meta, ...params } }) => params)
  }

  /** Resolves when it has been asked this so often. */
  asked(method: string, times = 1): Promise<void> {
    return this.#until(() => this.count(method) >= times)
  }

  /** Resolves when somebody listens. */
  listened(): Promise<void> {
    return this.#until(() => this.#listeners.size > 0)
  }

  /** Resolves when nobody does. */
  unlistened(): Promise<void> {
    return this.#until(() => this.#listeners.size === 0)
  }

  detailed(): Record<string, unknown> {
    return { ...this.#times(), ...this.told }
  }

  #until(holds: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (!holds()) return
        this.#waiting.delete(look)
        resolve()
      }
      this.#waiting.add(look)
      look()
    })
  }

  #look(): void {
    for (const look of this.#waiting) look()
  }

  #times(): object {
    const updated = new Date(Date.UTC(2026, 6, 28, 10, 30) + this.#updates * 1_000).toISOString()
    return { taskId: TASK_ID, createdAt: '2026-07-28T10:30:00Z', lastUpdatedAt: updated, ttlMs: 3_600_000 }
  }

  async #answer(request: Received, response: ServerResponse): Promise<void> {
    const cancelled = once(response, 'close').then(() => {})
    const send: Send = (message) => {
      if (!response.headersSent) response.writeHead(200, { 'Content-Type': 'text/event-stream' })
      response.write(`data: ${JSON.stringify(message)}\n\n`)
    }
    const answer = await this.#serve(request, send, cancelled)
    if (answer === 'lost') return void response.destroy()
    if (answer === 'unavailable') return void response.writeHead(503).end()
    if (response.headersSent) return void response.end(`data: ${JSON.stringify(answer)}\n\n`)
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer))
  }

  async #serve(request: Received, send: Send, cancelled: Promise<void>): Promise<object | 'lost' | 'unavailable'> {
    const { id, method } = request
    if (method === 'server/discover') return { jsonrpc: '2.0', id, result: DISCOVERED }
    this.#checkRequest(request)
    this.requests.push(request)
    this.#look()
    const instead = this.#options.instead?.(request, this)
    if (typeof instead === 'string') return instead
    const said =
      instead ?? (method === 'subscriptions/listen' ? this.#subscribe(id, send, cancelled) : this.#do(request))
    const answer = { jsonrpc: '2.0', id, ...(await said) }
    if (instead === undefined) this.#checkAnswer(answer, method)
    return answer
  }

  #do(request: Received): { error: object } | { result: object } {
    const { method, params } = request
    const { call, onUpdate, onCancel } = this.#options
    switch (method) {
      case 'tools/call':
        return { result: call?.(request, this.count(method) - 1) ?? this.#made() }
      case 'tasks/get':
        if (params['taskId'] !== this.detailed()['taskId'] && this.#options.isWrong !== true) return UNKNOWN
        return { result: { resultType: 'complete', ...this.detailed() } }
      case 'tasks/update':
        onUpdate?.(params['inputResponses'] as Record<string, unknown>, this)
        return { result: { resultType: 'complete' } }
      case 'tasks/cancel':
        onCancel?.(this)
        return { result: { resultType: 'complete' } }
      case 'tools/list':
        return { result: LISTED }
      default:
        return { error: { code: -32601, message: 'Method not found' } }
    }
  }

  /** Less than all there is to tell. */
  #made(): object {
    const { inputRequests: _open, result: _result, error: _error, ...head } = this.detailed()
    return { resultType: 'task', ...head }
  }

  async #subscribe(id: number, send: Send, cancelled: Promise<void>): Promise<{ error: object } | { result: object }> {
    if (this.#options.tells !== true) return { error: { code: -32601, message: 'Method not found' } }
    const ended = new Promise<void>((resolve) => this.#listeners.set(id, { send, end: resolve }))
    const params = { notifications: { taskIds: [TASK_ID] }, _meta: { [SUBSCRIPTION]: id } }
    send(this.#notification('notifications/subscriptions/acknowledged', params))
    this.#look()
    await Promise.race([ended, cancelled])
    this.#listeners.delete(id)
    this.#look()
    return { result: { resultType: 'complete', _meta: { [SUBSCRIPTION]: id } } }
  }

  #notification(method: string, params: object): object {
    const message = { jsonrpc: '2.0', method, params }
    if (this.#options.isWrong === true) return message
    if (method === 'notifications/tasks') this.#check(message, 'TaskStatusNotification')
    else {
      const { notifications } = params as { notifications: object }
      this.#check(notifications, 'TaskSubscriptionAcknowledgedNotifications')
    }
    return message
  }

  #checkRequest(request: Received): void {
    const { method, params } = request
    const definition = REQUESTS[method]
    if (definition !== undefined) this.#check(request, definition)
    if (method === 'subscriptions/listen') this.#check(params['notifications'], 'TaskSubscriptionNotifications')
    const declared = params['_meta'] as Record<string, { extensions?: Record<string, unknown> }>
    const extension =
      declared['io.modelcontextprotocol/clientCapabilities']?.extensions?.['io.modelcontextprotocol/tasks']
    if (definition !== undefined || TASKING.has(method)) this.#check(extension, 'TasksExtensionCapability')
  }

  #checkAnswer(answer: object, method: string): void {
    if (this.#options.isWrong === true || !('result' in answer)) return
    const { result } = answer as { result: { resultType?: unknown } }
    const definition = method === 'tools/call' && result.resultType === 'task' ? 'CreateTaskResult' : RESULTS[method]
    if (definition !== undefined) this.#check(result, definition)
  }

  #check(message: unknown, definition: string): void {
    const problems = specValidator(definition, 'ext-tasks')(message)
    if (problems.length > 0) this.problems.push(`${problems.join('; ')}: ${JSON.stringify(message)}`)
  }
}

const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId'

const DISCOVERED = {
  supportedVersions: ['2026-07-28'],
  capabilities: { tools: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } },
  ttlMs: 0,
  cacheScope: 'private',
  resultType: 'complete',
  _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'tasks', version: '1' } },
}

const LISTED = {
  resultType: 'complete',
  ttlMs: 600_000,
  cacheScope: 'private',
  tools: [
    { name: 'hello_world', inputSchema: { type: 'object' } },
    {
      name: 'counted',
      inputSchema: { type: 'object' },
      outputSchema: { type: 'object', properties: { count: { type: 'integer' } }, required: ['count'] },
    },
  ],
}

const UNKNOWN = { error: { code: -32602, message: 'Failed to retrieve task: Task not found' } }

const TASKING: ReadonlySet<string> = new Set(['tools/call', 'subscriptions/listen'])

const REQUESTS: Readonly<Record<string, string>> = {
  'tasks/get': 'GetTaskRequest',
  'tasks/update': 'UpdateTaskRequest',
  'tasks/cancel': 'CancelTaskRequest',
}

const RESULTS: Readonly<Record<string, string>> = {
  'tasks/get': 'GetTaskResult',
  'tasks/update': 'UpdateTaskResult',
  'tasks/cancel': 'CancelTaskResult',
}

/** A task that asks for a text under each key. */
export function asking(...keys: readonly string[]): Told {
  const requests = keys.map((key) => [key, nameForm(`Your ${key}?`)])
  return { status: 'input_required', inputRequests: Object.fromEntries(requests) }
}

export function completed(text: string, more: object = {}): Told {
  return { status: 'completed', result: { content: [{ type: 'text', text }], isError: false, ...more } }
}

export const answerOf = (name: string) => ({ action: 'accept', content: { name } }) as const

function nameForm(message: string): object {
  const requestedSchema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }
  return { method: 'elicitation/create', params: { mode: 'form', message, requestedSchema } }
}

export interface Begun {
  readonly server: TaskServer
  readonly client: Client
}

/** A server whose task stands like this, and a client of it. */
export async function begun(told: Told, options: TaskServerOptions = {}, of: ClientOptions = {}): Promise<Begun> {
  const server = new TaskServer(told, options)
  return { server, client: await connected(server, of) }
}

/** A client of it, until the test is over. */
export async function connected(server: TaskServer, options: ClientOptions = {}): Promise<Client> {
  const client = await connect(server.app, { logger: { warn: () => {}, error: () => {} }, ...options })
  onTestFinished(() => client.close())
  return client
}
