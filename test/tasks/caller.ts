// A client of one app that has tasks: every message that it gets is held against the schemas.
import type { App } from 'mcp-rally'
import { send } from 'mcp-rally'
import type { InputRequest, JSONRPCErrorObject } from '../../src/protocol/messages.ts'
import { META_CAPABILITIES, TASKS_EXTENSION } from '../../src/protocol/revisions/2026-07-28.ts'
import type { Round, WireRequest } from '../wire/messages.ts'
import { EVERYTHING, request, resultOf } from '../wire/messages.ts'
import { checkMessage } from './spec.ts'

export interface Task {
  readonly taskId: string
  readonly status: 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'
  readonly statusMessage?: string
  readonly createdAt: string
  readonly ttlMs: number | null
  readonly pollIntervalMs: number
  readonly inputRequests?: Readonly<Record<string, InputRequest>>
  readonly result?: { readonly content: { readonly text: string }[]; readonly isError?: boolean }
  readonly error?: JSONRPCErrorObject
}

/** What a client with tasks says on every request. */
export const WITH_TASKS = { [META_CAPABILITIES]: { ...EVERYTHING, extensions: { [TASKS_EXTENSION]: {} } } }

/** Where it hears that something has happened to the tasks. */
interface Store {
  changed(): Promise<void>
}

export class Caller {
  readonly #office: Store
  readonly #app: App
  readonly #principal: string | undefined

  constructor(office: Store, app: App, principal?: string) {
    this.#office = office
    this.#app = app
    this.#principal = principal
  }

  /** Sends a request as it is, and gives the response. */
  async send(message: WireRequest): Promise<object | undefined> {
    const response = await send(this.#app, message, this.#principal === undefined ? {} : { principal: this.#principal })
    if (response !== undefined) checkMessage(response, message.method)
    return response
  }

  call(name: string, args: object = {}, round: Round = {}, meta: object = WITH_TASKS): Promise<object | undefined> {
    return this.send(request('tools/call', { name, arguments: args, ...round }, meta))
  }

  /** Calls a tool that becomes a task in this very round, and gives the task's id. */
  async begin(name: string, args: object = {}, round: Round = {}, meta: object = WITH_TASKS): Promise<string> {
    const result = resultOf(await this.call(name, args, round, meta))
    if (result['resultType'] !== 'task') throw new Error(`This should be a task: ${JSON.stringify(result)}`)
    return String(result['taskId'])
  }

  async get(id: string): Promise<Task> {
    return resultOf(await this.send(task('tasks/get', id))) as unknown as Task
  }

  async update(id: string, inputResponses: unknown): Promise<void> {
    resultOf(await this.send(task('tasks/update', id, { inputResponses })))
  }

  async cancel(id: string): Promise<void> {
    resultOf(await this.send(task('tasks/cancel', id)))
  }

  /** Looks at the task whenever the store has changed, until it stands as is wanted. */
  async until(id: string, isWanted: (task: Task) => boolean): Promise<Task> {
    for (;;) {
      const changed = this.#office.changed()
      const seen = await this.get(id)
      if (isWanted(seen)) return seen
      await changed
    }
  }

  /** Once exactly these questions are open: the message of each. */
  async asked(id: string, ...keys: string[]): Promise<Record<string, unknown>> {
    const wanted = keys.toSorted().join()
    const { inputRequests = {} } = await this.until(
      id,
      (seen) =>
        Object.keys(seen.inputRequests ?? {})
          .toSorted()
          .join() === wanted,
    )
    return Object.fromEntries(
      Object.entries(inputRequests).map(([key, { params }]) => [
        key,
        (params as { message?: unknown } | undefined)?.message,
      ]),
    )
  }

  ended(id: string): Promise<Task> {
    return this.until(id, ({ status }) => status !== 'working' && status !== 'input_required')
  }

  /** The text of the result that the task comes to. */
  async said(id: string): Promise<string> {
    const { status, result, error } = await this.ended(id)
    if (status !== 'completed') throw new Error(`This should be completed: ${status} ${JSON.stringify(error)}`)
    return result?.content[0]?.text ?? ''
  }
}

/** A request of the extension. */
export function task(method: string, taskId: unknown, params: object = {}): WireRequest {
  return request(method, { taskId, ...params }, WITH_TASKS)
}
