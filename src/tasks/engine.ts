// The store as carrier: makes tasks of flows, tells of them, takes answers and cancellations, and works on them.
import { createHmac, hash } from 'node:crypto'
import type { Answers } from '../flow/answering.ts'
import { noTask } from '../flow/errors.ts'
import { INTERNAL_ERROR, ProtocolError } from '../protocol/errors.ts'
import { hasCapability } from '../server/capabilities.ts'
import type { DispatchHost } from '../server/context.ts'
import { readAnswers } from '../server/params.ts'
import type { RequestInfo } from '../server/request.ts'
import { invalidParams } from '../server/request.ts'
import type { Beginning, Tasks, TasksOptions } from '../server/tasks.ts'
import { cursorAfter, readCursor } from './cursor.ts'
import { Followers } from './followers.ts'
import type { TaskRequest } from './record.ts'
import { isByHand, newState, readState, takeAnswers, writeState } from './record.ts'
import { isEnd } from '../store/status.ts'
import type { TaskChange, TaskRecord, TaskStore } from '../store/store.ts'
import { detailedText, listedText, taskText } from './wire.ts'
import { Worker } from './worker.ts'

/** How often an answer or a cancellation is tried again because the task has changed meanwhile. */
const MOST_TRIES = 100
/** What an id looks like. Nobody is bothered with what cannot be one. */
const ID = /^[0-9a-f]{64}$/
const PAGE_SIZE = 100

export class TaskEngine implements Tasks {
  readonly #host: DispatchHost
  readonly #store: TaskStore
  readonly #worker: Worker
  readonly #followers: Followers
  readonly #ttlMs: number | null
  readonly #pollMs: number

  constructor(host: DispatchHost, store: TaskStore, options: Required<TasksOptions>) {
    const { ttlMs, pollMs } = options
    this.#host = host
    this.#store = store
    this.#ttlMs = ttlMs
    this.#pollMs = pollMs
    this.#worker = new Worker(host, store, options)
    this.#followers = new Followers(store, host.logger)
  }

  async begin({ tool, args, principal, info, claims, answers }: Beginning): Promise<string> {
    const { flowId, startedAt, round, revision, capabilities, carry, journal, version } = claims
    const kept: TaskRequest = {
      tool,
      args,
      flowId,
      startedAt,
      round,
      revision,
      declared: capabilities,
      can: info.capabilities,
    }
    // One flow makes one task, however often its last round is repeated: the id follows from the flow's, which is secret.
    const task = await this.#store.create({
      id: createHmac('sha256', flowId).update('task').digest('hex'),
      owner: ownerOf(principal),
      request: JSON.stringify(kept),
      state: writeState(newState(version, carry, answers)),
      journal,
      message: undefined,
      pollMs: this.#pollMs,
      ttlMs: shorter(this.#ttlMs, info.taskTtlMs),
    })
    this.#worker.pull()
    return `{"resultType":"task",${taskText(task)},"_meta":${this.#host.serverMeta}}`
  }

  serve(
    method: string,
    params: Record<string, unknown>,
    info: RequestInfo,
    principal: string | undefined,
  ): Promise<string> | undefined {
    switch (method) {
      case 'tasks/get':
      case 'tasks/update':
      case 'tasks/cancel':
        break
      default:
        return undefined
    }
    if (!hasCapability(info.capabilities, 'tasks')) throw noTask()
    const id = readId(params['taskId'])
    const owner = ownerOf(principal)
    if (method === 'tasks/get') return this.#get(id, owner)
    if (method === 'tasks/cancel') return this.#cancel(id, owner)
    const answers = readAnswers(params['inputResponses'])
    if (answers === undefined) throw invalidParams('inputResponses must be an object, with an answer for each key')
    return this.#update(id, owner, answers)
  }

  async list(principal: string | undefined, cursor: unknown): Promise<string> {
    const found = await this.#store.list(ownerOf(principal), PAGE_SIZE + 1, readCursor(cursor))
    const page = found.slice(0, PAGE_SIZE)
    const last = found.length > PAGE_SIZE ? page.at(-1) : undefined
    const more = last === undefined ? '' : `,"nextCursor":"${cursorAfter(last)}"`
    return `{"tasks":[${page.map((task) => `{${listedText(task)}}`).join(',')}]${more}}`
  }

  async own(ids: readonly string[], principal: string | undefined): Promise<string[]> {
    const owner = ownerOf(principal)
    const possible = [...new Set(ids)].filter((id) => ID.test(id))
    const found = await Promise.all(possible.map((id) => this.#store.read(id)))
    return found.filter((task) => task?.owner === owner).map((task) => task?.id ?? '')
  }

  follow(ids: readonly string[], tell: (taskText: string) => void, gone?: () => void): () => void {
    return this.#followers.follow(ids, (task) => tell(detailedText(task)), gone)
  }

  start(): void {
    this.#worker.start()
  }

  drain(): void {
    this.#worker.drain()
  }

  interrupt(): void {
    this.#worker.interrupt()
  }

  idle(): Promise<void> {
    return this.#worker.idle()
  }

  async #get(id: string, owner: string): Promise<string> {
    const task = await this.#find(id, owner)
    return `{"resultType":"complete",${detailedText(task)},"_meta":${this.#host.serverMeta}}`
  }

  /** Taken as they come: what is not shown now, or not any more, is passed over. */
  async #update(id: string, owner: string, answers: Answers): Promise<string> {
    await this.#change(id, owner, (task) => {
      const state = readState(task.state)
      if (takeAnswers(state, answers) === 0) return undefined
      const waits = Object.keys(state.shown).length > 0
      return {
        state: writeState(state),
        status: waits ? 'input_required' : 'working',
        ...(!(waits && isByHand(state)) && { dueMs: 0 }),
      }
    })
    this.#worker.pull()
    return this.#acknowledged()
  }

  async #cancel(id: string, owner: string): Promise<string> {
    await this.#change(id, owner, () => ({ status: 'cancelled' }))
    return this.#acknowledged()
  }

  /** What is over stays as it is. */
  async #change(id: string, owner: string, make: (task: TaskRecord) => TaskChange | undefined): Promise<void> {
    for (let tries = 0; tries < MOST_TRIES; tries += 1) {
      const task = await this.#find(id, owner)
      if (isEnd(task.status)) return
      const change = make(task)
      if (change === undefined) return
      if ((await this.#store.change(id, { version: task.version }, change)) !== undefined) return
    }
    throw new ProtocolError(INTERNAL_ERROR, 'The task changes too fast. Try again.')
  }

  async #find(id: string, owner: string): Promise<TaskRecord> {
    const task = await this.#store.read(id)
    // Another's looks as if it were not there.
    if (task?.owner !== owner) throw notFound()
    return task
  }

  #acknowledged(): string {
    return `{"resultType":"complete","_meta":${this.#host.serverMeta}}`
  }
}

/** The store learns who is who, and no names. */
function ownerOf(principal: string | undefined): string {
  return principal === undefined ? '' : hash('sha256', principal, 'base64url')
}

/** What a client would like counts only where it is less. */
function shorter(ownMs: number | null, wantedMs: number | undefined): number | null {
  if (wantedMs === undefined) return ownMs
  return ownMs === null ? wantedMs : Math.min(ownMs, wantedMs)
}

function readId(id: unknown): string {
  if (typeof id !== 'string') throw invalidParams('taskId must be a string')
  if (!ID.test(id)) throw notFound()
  return id
}

function notFound(): ProtocolError {
  return invalidParams('Task not found: it never was, has expired, or is not yours.')
}
