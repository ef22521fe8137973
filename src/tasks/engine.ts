// The store as carrier: creates tasks from flows, reports them to clients, takes answers and cancellations, and runs a worker.
import { createHmac } from 'node:crypto'
import { storedSource } from '../server/source.ts'
import { noTask } from '../flow/errors.ts'
import { ProtocolError, RallyError } from '../protocol/errors.ts'
import type { DetailedTask } from '../protocol/messages.ts'
import { hasCapability } from '../server/capabilities.ts'
import type { AppServices } from '../server/context.ts'
import { taskProblem } from '../server/limits.ts'
import { readAnswers } from '../server/params.ts'
import type { RequestInfo } from '../server/request.ts'
import { invalidParams } from '../server/request.ts'
import type {
  FollowedTask,
  SignalOutcome,
  TaskLimits,
  TaskPage,
  Tasks,
  TasksOptions,
  TaskStart,
} from '../server/tasks.ts'
import type { EventAddress } from './events.ts'
import { EventTokens, eventText, receive, refused } from './events.ts'
import { Followers } from './followers.ts'
import type { TaskOperations } from './operations.ts'
import { waitLimits } from './run.ts'
import { ShownTasks, type ChangeableTask } from './shown-tasks.ts'
import type { TaskRequest } from './state.ts'
import { isByHand, newState, ownerOf, readState, retryIdIn, retryIdOf, takeAnswers, writeState } from './state.ts'
import type { ClaimedTask, NewTask, TaskChange, TaskRecord, TaskStore, TaskVersion } from '../store/tasks.ts'
import { StoreUnavailable } from '../store/outages.ts'
import { shown } from '../protocol/text.ts'
import { Unavailable } from '../protocol/unavailable.ts'
import { isEnd } from '../store/tasks.ts'
import { Usages } from '../store/usage.ts'
import { cursorAfter, fieldsText, followedTask, listedTask, metaText, readCursor, taskText, taskValue } from './view.ts'
import { Worker } from './worker.ts'

/** How often an answer or a cancellation is retried because the task changed in between. */
const MAX_TRIES = 100
/** How many retries of retries a token is good for. */
const MAX_RETRIES = 20
/** The form of a task id. The store is not asked for an id of another form. */
const ID = /^[0-9a-f]{64}$/
/** An id that no task has. */
const NO_TASK = 'readiness'
const PAGE_SIZE = 100
/** The longest delay of a timer. */
const MAX_TIMER_MS = 2_147_483_647
/** With a short lease, as in tests, a busy machine must not end the process. */
const LEAST_WATCHDOG_MS = 10_000

export class TaskEngine implements Tasks {
  readonly #host: AppServices
  readonly #store: TaskStore
  readonly #worker: Worker
  readonly #followers: Followers
  readonly #usages: Usages
  readonly #shown = new ShownTasks()
  readonly #eventTokens: EventTokens
  readonly #ttlMs: number | null
  readonly #pollMs: number
  readonly limits: TaskLimits

  constructor(host: AppServices, unguarded: TaskStore, options: CheckedTasksOptions) {
    const { ttlMs, pollMs, maxJournalBytes, timeoutMs } = options
    const store = host.outages.tasks(unguarded)
    this.#host = host
    this.#store = store
    this.#ttlMs = ttlMs
    this.#pollMs = pollMs
    this.limits = { maxJournalBytes, timeoutMs, waiting: waitLimits(ttlMs) }
    this.#eventTokens = new EventTokens(host.seal)
    this.#worker = new Worker(host, store, { ...options, eventTokens: this.#eventTokens })
    this.#followers = new Followers(store, host.logger)
    this.#usages = new Usages((owner) => store.usage(owner), taskProblem(host.limits), host.now)
  }

  async create(start: TaskStart): Promise<DetailedTask> {
    return taskValue(await this.#create(start))
  }

  async createText(start: TaskStart): Promise<string> {
    return `{"resultType":"task",${fieldsText(await this.#create(start))},"_meta":${this.#host.serverMeta}}`
  }

  serve(
    method: string,
    params: Record<string, unknown>,
    info: RequestInfo,
    principal: string | undefined,
  ): Promise<string> | undefined {
    const { taskId } = params
    switch (method) {
      case 'tasks/get':
        requireTasks(info)
        return this.#getText(taskId, principal)
      case 'tasks/update':
        requireTasks(info)
        return this.update(taskId, params['inputResponses'], principal).then(() => this.#emptyResult())
      case 'tasks/cancel':
        requireTasks(info)
        return this.cancel(taskId, principal).then(() => this.#emptyResult())
      default:
        return undefined
    }
  }

  async get(taskId: unknown, principal: string | undefined): Promise<FollowedTask> {
    return followedTask(await this.#show(taskId, principal))
  }

  async update(taskId: unknown, inputResponses: unknown, principal: string | undefined): Promise<void> {
    const id = readId(taskId)
    const answers = readAnswers(inputResponses)
    if (answers === undefined) throw invalidParams('inputResponses must be an object, with an answer for each key')
    this.start()
    const owner = ownerOf(principal)
    const answer = (task: ChangeableTask): TaskChange | undefined => {
      const state = readState(task.state)
      if (takeAnswers(state, answers, this.#host.now()) === 0) return undefined
      const waits = Object.keys(state.shown).length > 0
      return {
        state: writeState(state),
        status: waits ? 'input_required' : 'working',
        ...(!(waits && isByHand(state)) && { dueMs: 0 }),
      }
    }
    await this.#change(id, owner, answer, this.#shown.take(id, owner))
  }

  async cancel(taskId: unknown, principal: string | undefined): Promise<void> {
    await this.#change(readId(taskId), ownerOf(principal), () => ({ status: 'cancelled' }))
  }

  async signal(token: unknown, value: unknown): Promise<SignalOutcome> {
    const text = eventText(value)
    const address = await this.#eventTokens.open(token)
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const task = await this.#lastRetryOf(address)
      if (task === undefined) throw refused()
      const state = receive(task, address, { value: JSON.parse(text) as unknown, at: this.#host.now() })
      if (state === 'repeated') return 'repeated'
      if (await this.#changeWithin(task.owner, task, { state: writeState(state), dueMs: 0 })) return 'accepted'
    }
    throw changedTooOften()
  }

  /** The task, or the one that retries it, which may be stored for longer. So a token that was handed out before a retry is good after it. */
  async #lastRetryOf({ taskId, flowId }: EventAddress): Promise<TaskRecord | undefined> {
    let task = await this.#store.read(taskId)
    let id = taskId
    for (let retries = 0; retries < MAX_RETRIES && (task === undefined || isEnd(task.status)); retries += 1) {
      if (task === undefined && flowId === '') break
      id = task === undefined ? retryIdIn(flowId, id) : retryIdOf(task)
      const next = await this.#store.read(id)
      // The older ones are deleted first: one that is stored was not retried if the next one is missing.
      if (task !== undefined && next === undefined) break
      task = next
    }
    return task
  }

  async list(principal: string | undefined, cursor: unknown): Promise<TaskPage> {
    const found = await this.#store.list(ownerOf(principal), PAGE_SIZE + 1, readCursor(cursor))
    const page = found.slice(0, PAGE_SIZE)
    const last = found.length > PAGE_SIZE ? page.at(-1) : undefined
    return { tasks: page.map(listedTask), ...(last !== undefined && { nextCursor: cursorAfter(last) }) }
  }

  async own(ids: readonly string[], principal: string | undefined): Promise<string[]> {
    const owner = ownerOf(principal)
    const possible = [...new Set(ids)].filter((id) => ID.test(id))
    const found = await Promise.all(possible.map((id) => this.#store.read(id)))
    return found.flatMap((task) => (task?.owner === owner ? [task.id] : []))
  }

  follow(taskId: string, onTask: (task: FollowedTask) => void, onGone: () => void): () => void {
    return this.#followers.follow([taskId], (task) => onTask(followedTask(task)), onGone)
  }

  followText(ids: readonly string[], onTask: (taskText: string, metaText: string) => void): () => void {
    return this.#followers.follow(ids, (task) => onTask(taskText(task), metaText(task)))
  }

  /** What operators do. Loaded with the first use. */
  async operations(): Promise<TaskOperations> {
    const { TaskOperations: Operations } = await import('./operations.ts')
    return new Operations(this.#store, () => this.#worker.pull())
  }

  async reachStore(): Promise<void> {
    await this.#store.read(NO_TASK)
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

  async #create({ tool, args, source, info, claims, answers }: TaskStart): Promise<TaskRecord> {
    const { flowId, startedAt, round, revision, capabilities, carry, journal, version } = claims
    this.start()
    const group = await this.#host.registry.tools.get(tool)?.taskGroup?.(args, source.caller)
    const request: TaskRequest = {
      tool,
      args,
      flowId,
      startedAt,
      round,
      revision,
      declared: capabilities,
      can: info.capabilities,
      source: storedSource(source),
      ...(group !== undefined && { group }),
    }
    const newTask: NewTask = {
      // Derived from the secret flow id, so that a repeated last round of a flow finds the same task, also on another version.
      id: createHmac('sha256', flowId).update('task').digest('hex'),
      owner: ownerOf(source.caller?.principal),
      request: JSON.stringify(request),
      state: writeState(newState(version, carry, answers)),
      journal,
      message: undefined,
      pollMs: this.#pollMs,
      ttlMs: shorter(this.#ttlMs, info.taskTtlMs),
      group,
    }
    const wanted = { tasks: 1, bytes: bytesOf(newTask) } as const
    try {
      await this.#usages.add(newTask.owner, wanted)
    } catch (error) {
      // In round 0, nothing of the call has run.
      if (error instanceof StoreUnavailable) throw round === 0 ? error.unprocessed() : error
      return this.#existing(newTask, error)
    }
    try {
      return await this.#createIn(newTask)
    } catch (error) {
      const isUnprocessed = error instanceof StoreUnavailable && round === 0 && error.wroteNothing
      throw isUnprocessed ? error.unprocessed() : error
    } finally {
      this.#usages.written(newTask.owner, wanted)
    }
  }

  /** If the worker has a free place and the store can, the task is claimed when it is created. */
  async #createIn(newTask: NewTask): Promise<TaskRecord> {
    const claims = this.#store.createAndClaim !== undefined && newTask.group === undefined
    const place = claims ? this.#worker.reserve(newTask.owner) : undefined
    if (place === undefined) {
      const task = await this.#store.create(newTask)
      this.#worker.pull()
      return task
    }
    let claimed: ClaimedTask | undefined
    try {
      const task = await this.#store.createAndClaim?.(newTask, place.leaseMs, place.worker)
      if (task !== undefined && 'fence' in task) claimed = task
      // The task of a repeated last round exists already, and has its worker.
      return task as TaskRecord
    } finally {
      place.settle(claimed)
    }
  }

  /** An owner that has too many tasks still finds the task of a repeated last round. */
  async #existing({ id, owner }: NewTask, error: unknown): Promise<TaskRecord> {
    const task = error instanceof ProtocolError ? await this.#store.read(id) : undefined
    if (task?.owner === owner) return task
    throw error
  }

  async #getText(taskId: unknown, principal: string | undefined): Promise<string> {
    const task = await this.#show(taskId, principal)
    const meta = `{${metaText(task)}${this.#host.serverMeta.slice(1)}`
    return `{"resultType":"complete",${taskText(task)},"_meta":${meta}}`
  }

  /** Changes the task as `make` says. A task that has ended stays as it is. If it is still as `known`, it is not read. */
  async #change(
    id: string,
    owner: string,
    make: (task: ChangeableTask) => TaskChange | undefined,
    known?: ChangeableTask,
  ): Promise<void> {
    const first = known && make(known)
    if (known && first && (await this.#changeWithin(owner, known, first))) return
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const task = await this.#find(id, owner)
      if (isEnd(task.status)) return
      const change = make(task)
      if (change === undefined) return
      if (await this.#changeWithin(owner, task, change)) return
    }
    throw changedTooOften()
  }

  /** Returns `false` if the task has changed meanwhile. Throws if the change makes it too large for its owner. */
  async #changeWithin(owner: string, { id, version, state }: ChangeableTask, change: TaskChange): Promise<boolean> {
    const bytes = change.state === undefined ? 0 : Buffer.byteLength(change.state) - Buffer.byteLength(state)
    const wanted = { tasks: 0, bytes: Math.max(0, bytes) } as const
    if (bytes > 0) await this.#usages.add(owner, wanted)
    try {
      return await this.#changeIn(owner, { id, version }, change)
    } finally {
      if (bytes > 0) this.#usages.written(owner, wanted)
    }
  }

  /** If the change makes the task due, the worker has a free place and the store can, the task is claimed with the change. */
  async #changeIn(owner: string, { id, version }: TaskVersion, change: TaskChange): Promise<boolean> {
    const place = change.dueMs === 0 && this.#store.changeAndClaim ? this.#worker.reserve(owner) : undefined
    if (place === undefined) {
      const isChanged = (await this.#store.change(id, { version }, change)) !== undefined
      if (isChanged && change.dueMs === 0) this.#worker.pull()
      return isChanged
    }
    let claimed: ClaimedTask | undefined
    try {
      const changed = await this.#store.changeAndClaim?.(id, { version }, change, place.leaseMs, place.worker)
      if (typeof changed === 'object') claimed = changed
      return changed !== undefined
    } finally {
      place.settle(claimed)
    }
  }

  async #show(taskId: unknown, principal: string | undefined): Promise<TaskRecord> {
    const task = await this.#find(readId(taskId), ownerOf(principal))
    this.#shown.add(task)
    return task
  }

  async #find(id: string, owner: string): Promise<TaskRecord> {
    const task = await this.#store.read(id)
    // The same answer for a task of another owner, so that nobody learns that it exists.
    if (task?.owner !== owner) throw notFound()
    return task
  }

  #emptyResult(): string {
    return `{"resultType":"complete","_meta":${this.#host.serverMeta}}`
  }
}

function bytesOf({ request, state, journal }: NewTask): number {
  return Buffer.byteLength(request) + Buffer.byteLength(state) + Buffer.byteLength(journal)
}

function requireTasks({ capabilities }: RequestInfo): void {
  if (!hasCapability(capabilities, 'tasks')) throw noTask()
}

/** A client may ask for a shorter ttl than the option, never for a longer one. */
function shorter(ownMs: number | null, requestedMs: number | undefined): number | null {
  if (requestedMs === undefined) return ownMs
  return ownMs === null ? requestedMs : Math.min(ownMs, requestedMs)
}

function readId(id: unknown): string {
  if (typeof id !== 'string') throw invalidParams('taskId must be a string')
  if (!ID.test(id)) throw notFound()
  return id
}

function changedTooOften(): Unavailable {
  return new Unavailable(`The task changed ${MAX_TRIES} times during this request. Try again.`, { retryAfterMs: 1_000 })
}

function notFound(): ProtocolError {
  return invalidParams('Task not found: it does not exist, has expired, or belongs to another caller.')
}

type CheckedTasksOptions = Required<Omit<TasksOptions, 'eventsUrl'>> & {
  readonly watchdogMs: number
  readonly eventsUrl: string | undefined
}

/** Checks the options when the app is built, and adds the defaults. */
export function readTasksOptions(options: TasksOptions): CheckedTasksOptions {
  const { ttlMs = 86_400_000, pollMs = 1_000, leaseMs = 15_000 } = options
  const { concurrency = 32, maxJournalBytes = 1_048_576, timeoutMs = 3_600_000 } = options
  const { keepFailedMs = 259_200_000, worker = defaultWorker() } = options
  const { watchdogMs: givenWatchdogMs = Math.max(2 * leaseMs, LEAST_WATCHDOG_MS) } = options
  const watchdogMs = givenWatchdogMs === false ? 0 : givenWatchdogMs
  const spans = {
    ...(ttlMs !== null && { ttlMs }),
    pollMs,
    leaseMs,
    maxJournalBytes,
    timeoutMs,
    ...(watchdogMs !== 0 && { watchdogMs }),
  }
  for (const [name, value] of Object.entries(spans)) {
    if (!Number.isSafeInteger(value) || value < 1) {
      throw new RallyError('OPTION_INVALID', `\`tasks.${name}\` must be a whole number of at least 1, got ${value}.`)
    }
  }
  for (const [name, value] of Object.entries({ leaseMs, timeoutMs })) {
    if (value <= MAX_TIMER_MS) continue
    throw new RallyError('OPTION_INVALID', `\`tasks.${name}\` must be at most ${MAX_TIMER_MS}, got ${value}.`)
  }
  for (const [name, value] of Object.entries({ concurrency, keepFailedMs })) {
    if (Number.isSafeInteger(value) && value >= 0) continue
    throw new RallyError('OPTION_INVALID', `\`tasks.${name}\` must be a whole number of at least 0, got ${value}.`)
  }
  const eventsUrl = options.eventsUrl === undefined ? undefined : readEventsUrl(options.eventsUrl)
  if (typeof worker !== 'string' || worker === '')
    throw new RallyError('OPTION_INVALID', `\`tasks.worker\` must be a string that is not empty, got ${shown(worker)}.`)
  return {
    ttlMs,
    pollMs,
    leaseMs,
    concurrency,
    maxJournalBytes,
    timeoutMs,
    watchdogMs,
    keepFailedMs,
    worker,
    eventsUrl,
  }
}

/** Without a slash at its end. */
function readEventsUrl(url: unknown): string {
  const parsed = typeof url === 'string' && URL.canParse(url) ? new URL(url) : undefined
  const isUrl = parsed !== undefined && /^https?:$/.test(parsed.protocol) && parsed.search === '' && parsed.hash === ''
  const path = parsed?.pathname.replace(/\/$/, '')
  if (isUrl && path?.endsWith('/events')) return `${parsed.origin}${path}`
  throw new RallyError(
    'OPTION_INVALID',
    `\`tasks.eventsUrl\` must be an http or https URL that ends in /events, got ${shown(url)}.`,
  )
}

/** Runtimes other than Node may have no host name. */
function defaultWorker(): string {
  const { hostname } = process.getBuiltinModule?.('node:os') ?? {}
  return `${hostname?.() ?? 'instance'}:${process.pid ?? 0}`
}
