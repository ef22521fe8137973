// One job as its client takes it from the call to the result, on whichever port answers, while a stranger tries to get at it.
import { setTimeout } from 'node:timers/promises'
import { INTERNAL_ERROR, INVALID_PARAMS } from '../../src/protocol/errors.ts'
import type { JSONRPCErrorObject } from '../../src/protocol/messages.ts'
import type { WireRequest } from '../wire/messages.ts'
import { accept, askedIn } from '../wire/messages.ts'
import type { WireTask } from './task-wire.ts'
import { cancelTask, getTask, post, taskCall, taskIn, updateTask } from './task-wire.ts'

const FROM = 1_000
const PLUS = 1_000_000
/** Comes by an event from outside. */
const MORE = 5_000_000
const RETRY_MS = 50
const GIVE_UP_MS = 10_000
/** Of the looks at a task, one in so many is a stranger's too. */
const PROBE_EVERY = 4

export interface Client {
  /** Where somebody listens, once anybody does. */
  port(): Promise<number>
  readonly pollMs: number
  /** Runs it when it is its turn: the client has only so many hands. */
  inTurn<T>(run: () => Promise<T>): Promise<T>
}

export class Job {
  readonly id: number
  /** Requests that got no answer, or none that says anything, and were sent again. */
  retries = 0
  /** Tries of the stranger, and those of them that were not told that there is no such task. */
  probes = 0
  readonly admitted: unknown[] = []
  taskId = ''
  /** From the state of its first round to the task that was made of it. */
  stateMs = 0
  readonly #principal: string
  readonly #stranger: string
  readonly #client: Client
  readonly #hasEvents: boolean

  constructor(id: number, client: Client, { principals, hasEvents }: { principals: number; hasEvents: boolean }) {
    this.id = id
    this.#principal = `principal ${id % principals}`
    this.#stranger = `principal ${(id + 1) % principals}`
    this.#client = client
    this.#hasEvents = hasEvents
  }

  expected(steps: number): string {
    return `Job ${this.id} comes to ${FROM + PLUS + (this.#hasEvents ? MORE : 0) + (steps * (steps + 1)) / 2}.`
  }

  /** The text of its result. Fails where it comes to anything else. */
  async run(): Promise<string> {
    await this.#begin()
    const { inputRequests } = await this.#until(({ inputRequests: asked = {} }) => 'go_on' in asked)
    const { message = '' } = inputRequests?.['go_on']?.params ?? {}
    // Before the handler awaits it, and twice.
    for (const more of this.#hasEvents ? [MORE, 666] : []) await this.#signal(message.split('Token: ')[1] ?? '', more)
    await this.#probe(updateTask(this.taskId, { go_on: accept({ plus: 666 }) }))
    await this.#probe(cancelTask(this.taskId))
    await this.#send(updateTask(this.taskId, { go_on: accept({ plus: PLUS }) }))
    const { status, result, error } = await this.#until(isOver)
    const text = result?.content[0]?.text
    if (status === 'completed' && result?.isError !== true && text !== undefined) return text
    throw new Error(`Job ${this.id} is ${status}: ${JSON.stringify(result ?? error)}`)
  }

  async #begin(): Promise<void> {
    const args = { job: this.id }
    const { state: requestState } = askedIn(await this.#send(taskCall('job', args)))
    const began = performance.now()
    const inputResponses = { begin: accept({ from: FROM }) }
    const made = taskIn(await this.#send(taskCall('job', args, { requestState, inputResponses })))
    this.taskId = made.taskId
    this.stateMs = performance.now() - began
  }

  async #until(wanted: (task: WireTask) => boolean): Promise<WireTask> {
    for (let looks = this.id; ; looks += 1) {
      if (looks % PROBE_EVERY === 0) await this.#probe(getTask(this.taskId))
      const task = taskIn(await this.#send(getTask(this.taskId)))
      if (wanted(task)) return task
      if (isOver(task)) throw new Error(`Job ${this.id} is ${task.status}: ${JSON.stringify(task)}`)
      await setTimeout(this.#client.pollMs * (0.75 + Math.random() / 2))
    }
  }

  /** Until somebody has taken the event, or says that one came before. */
  async #signal(token: string, more: number): Promise<void> {
    const init = {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ more }),
    }
    for (;;) {
      const url = `http://127.0.0.1:${await this.#client.port()}/events/${token}`
      const response = await this.#client
        .inTurn(() => fetch(url, { ...init, signal: AbortSignal.timeout(GIVE_UP_MS) }))
        .catch(() => undefined)
      if (response?.status === 200) return
      if (response !== undefined && response.status < 500) throw new Error(`The event got a ${response.status}.`)
      this.retries += 1
      await setTimeout(RETRY_MS * (0.5 + Math.random()))
    }
  }

  /** Whatever a stranger asks of a task, it is not there. */
  async #probe(message: WireRequest): Promise<void> {
    this.probes += 1
    const response = (await this.#send(message, this.#stranger)) as { error?: JSONRPCErrorObject }
    const { code, message: said = '' } = response.error ?? {}
    if (code !== INVALID_PARAMS || !said.startsWith('Task not found')) this.admitted.push(response)
  }

  /** Until somebody answers it. All that is sent here may be sent again. */
  async #send(message: WireRequest, principal = this.#principal): Promise<object> {
    for (;;) {
      const response = await this.#post(await this.#client.port(), message, principal)
      if (response !== undefined) return response
      this.retries += 1
      await setTimeout(RETRY_MS * (0.5 + Math.random()))
    }
  }

  /** Nothing where the worker went away, or could not reach its store. */
  async #post(port: number, message: WireRequest, principal: string): Promise<object | undefined> {
    try {
      const url = `http://127.0.0.1:${port}/mcp`
      const response = await this.#client.inTurn(() => post(url, message, { 'X-Principal': principal }))
      const { error } = response as { error?: JSONRPCErrorObject }
      return error?.code === INTERNAL_ERROR ? undefined : response
    } catch {
      return undefined
    }
  }
}

function isOver({ status }: WireTask): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled'
}
