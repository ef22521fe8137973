// Tasks in the memory of one process. The simplest form of the contract: the other stores are tested against it.
import { cursorOf, MAX_FOUND, MAX_LOOKED, readCursor } from '../operations.ts'
import type {
  ClaimRequest,
  ClaimedTask,
  FoundTasks,
  InspectedTask,
  NewTask,
  RenewedLease,
  TaskChange,
  TaskEvent,
  TaskGroup,
  TaskLease,
  TaskPosition,
  TaskPrecondition,
  TaskQuery,
  TaskRecord,
  TaskStore,
  TaskUsage,
  TaskVersion,
} from '../tasks.ts'
import { claimOneByOne, entriesOf, isEnd, journalOf, MAX_LIST, newRecord } from '../tasks.ts'
import { Watchers } from '../watchers.ts'

interface MemoryTask {
  record: TaskRecord
  /** How many tasks were created before it. */
  readonly number: number
  fence: number
  /** When the lease of its worker expires; `null` if no worker has one. */
  leaseUntil: number | null
  /** When it falls due, once no worker has a lease. */
  dueAt: number | null
  /** When it is deleted; `null` if never. */
  expiresAt: number | null
  claimedBy: string | undefined
  readonly group: TaskGroup | undefined
  /** The entries of its journal, as they were given. */
  journal: string[]
}

const MAX_SWEPT = 1_000
const NO_TASKS: ReadonlySet<MemoryTask> = new Set()

export class MemoryTasks implements TaskStore {
  readonly #now: () => number
  readonly #tasks = new Map<string, MemoryTask>()
  /** Tasks that are due now or at a known time. A claim does not look at the others. */
  readonly #scheduled = new Set<MemoryTask>()
  readonly #watchers = new Watchers<TaskEvent>()
  #created = 0
  /** True once a task of a group was created. */
  #hasGroups = false
  /** One counter for all tasks: a task that is created again under an old id gets no fence of the old one. */
  #lastFence = 0

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  async create(newTask: NewTask): Promise<TaskRecord> {
    const existing = this.#find(newTask.id)
    if (existing !== undefined) return existing.record
    const task = this.#insert(newTask)
    this.#watchers.notifySoon({ type: 'due' })
    return task.record
  }

  async createAndClaim(newTask: NewTask, leaseMs: number, worker?: string): Promise<TaskRecord | ClaimedTask> {
    const existing = this.#find(newTask.id)
    if (existing !== undefined || newTask.group !== undefined) return this.create(newTask)
    return this.#lease(this.#insert(newTask), leaseMs, worker)
  }

  #insert(newTask: NewTask): MemoryTask {
    const now = this.#now()
    const task: MemoryTask = {
      record: newRecord(newTask, now),
      number: (this.#created += 1),
      fence: 0,
      leaseUntil: null,
      dueAt: now,
      expiresAt: newTask.ttlMs === null ? null : now + newTask.ttlMs,
      claimedBy: undefined,
      group: newTask.group,
      journal: [entriesOf(newTask.journal)],
    }
    if (newTask.group !== undefined) this.#hasGroups = true
    this.#tasks.set(newTask.id, task)
    this.#schedule(task)
    return task
  }

  #lease(task: MemoryTask, leaseMs: number, worker: string | undefined): ClaimedTask {
    const lost = task.leaseUntil !== null
    task.fence = this.#lastFence += 1
    task.leaseUntil = this.#now() + leaseMs
    this.#schedule(task)
    const lostWorker = lost ? task.claimedBy : undefined
    task.claimedBy = worker
    return { ...task.record, fence: task.fence, journal: journalOf(task.journal), lost, lostWorker }
  }

  async read(id: string): Promise<TaskRecord | undefined> {
    return this.#find(id)?.record
  }

  async versions(ids: readonly string[]): Promise<TaskVersion[]> {
    return ids.flatMap((id) => {
      const version = this.#find(id)?.record.version
      return version === undefined ? [] : [{ id, version }]
    })
  }

  async list(owner: string, limit: number, after?: TaskPosition): Promise<TaskRecord[]> {
    const all: TaskRecord[] = []
    for (const task of this.#tasks.values()) {
      if (task.record.owner === owner && !this.#isExpired(task)) all.push(task.record)
    }
    return all
      .filter((task) => after === undefined || byAge(after, task) < 0)
      .toSorted(byAge)
      .slice(0, Math.max(0, Math.min(limit, MAX_LIST)))
  }

  async claim(request: ClaimRequest): Promise<ClaimedTask | undefined> {
    return this.#claim(request)
  }

  async claimMany(request: ClaimRequest, limit: number): Promise<ClaimedTask[]> {
    return claimOneByOne(request, limit, (each) => this.#claim(each))
  }

  #claim({ after, except, running = [], leaseMs, worker }: ClaimRequest): ClaimedTask | undefined {
    const runningFences = new Set(running.map(({ fence }) => fence))
    const waiting = this.#waitingForPlace()
    let task: MemoryTask | undefined
    for (const each of this.#scheduled) {
      if (each.record.owner === except || !this.#isDue(each)) continue
      if (each.leaseUntil !== null && runningFences.has(each.fence)) continue
      if (waiting.has(each)) continue
      if (task === undefined || comesBefore(each, task, after)) task = each
    }
    return task && this.#lease(task, leaseMs, worker)
  }

  /** The due tasks of groups for which there is no place: others have it, or have waited longer for it. */
  #waitingForPlace(): ReadonlySet<MemoryTask> {
    if (!this.#hasGroups) return NO_TASKS
    const groups = new Map<string, { due: MemoryTask[]; taken: number }>()
    for (const task of this.#scheduled) {
      if (task.group === undefined || this.#isExpired(task)) continue
      const group = groups.get(task.group.name) ?? { due: [], taken: 0 }
      groups.set(task.group.name, group)
      if (task.leaseUntil !== null) group.taken += 1
      else if (this.#isDue(task)) group.due.push(task)
    }
    const waiting = new Set<MemoryTask>()
    for (const { due, taken } of groups.values()) {
      const inOrder = due.toSorted((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0) || a.number - b.number)
      const free = (inOrder[0]?.group?.limit ?? 0) - taken
      for (const task of inOrder.slice(Math.max(0, free))) waiting.add(task)
    }
    return waiting
  }

  async renew(leases: readonly TaskLease[], leaseMs: number): Promise<RenewedLease[]> {
    const renewed: RenewedLease[] = []
    for (const { id, fence } of leases) {
      const task = this.#find(id)
      if (task === undefined || !isLeased(task, fence)) continue
      task.leaseUntil = this.#now() + leaseMs
      renewed.push({ id, fence, version: task.record.version })
    }
    return renewed
  }

  async append({ id, fence }: TaskLease, entriesText: string): Promise<boolean> {
    const task = this.#find(id)
    if (task === undefined || !isLeased(task, fence)) return false
    task.journal.push(entriesText)
    return true
  }

  async change(id: string, precondition: TaskPrecondition, change: TaskChange): Promise<number | undefined> {
    const task = this.#change(id, precondition, change)
    // A task of a group may have left its place to another.
    if (task !== undefined && (this.#isDue(task) || task.group !== undefined))
      this.#watchers.notifySoon({ type: 'due' })
    return task?.record.version
  }

  async changeAndClaim(
    id: string,
    precondition: TaskPrecondition,
    change: TaskChange,
    leaseMs: number,
    worker?: string,
  ): Promise<number | ClaimedTask | undefined> {
    const task = this.#find(id)
    if (task?.group !== undefined) return this.change(id, precondition, change)
    const changed = this.#change(id, precondition, change)
    if (changed === undefined) return undefined
    if (changed.leaseUntil === null && this.#isDue(changed)) return this.#lease(changed, leaseMs, worker)
    if (this.#isDue(changed)) this.#watchers.notifySoon({ type: 'due' })
    return changed.record.version
  }

  #change(id: string, precondition: TaskPrecondition, change: TaskChange): MemoryTask | undefined {
    const task = this.#find(id)
    if (task === undefined || isEnd(task.record.status) || !holds(precondition, task)) return undefined
    const { record } = task
    const now = this.#now()
    const { status = record.status, state = record.state, outcome = record.outcome } = change
    const { message } = 'message' in change ? change : record
    if (change.journal !== undefined) task.journal = [entriesOf(change.journal)]
    const version = record.version + 1
    task.record = { ...record, status, message, state, outcome, updatedAt: now, version }
    if (change.dueMs === null) task.dueAt = null
    else if (change.dueMs !== undefined && !waitsForTurn(task, now)) task.dueAt = now + change.dueMs
    if (change.release === true) task.leaseUntil = null
    if (isEnd(status)) {
      task.leaseUntil = null
      task.dueAt = null
      if (change.keepMs === undefined) task.journal = []
      else if (task.expiresAt !== null) task.expiresAt = Math.max(task.expiresAt, now + change.keepMs)
    }
    this.#schedule(task)
    this.#watchers.notifySoon({ type: 'changed', id, version })
    return task
  }

  async usage(owner: string): Promise<TaskUsage> {
    let open = 0
    let bytes = 0
    for (const task of this.#tasks.values()) {
      const { record, journal } = task
      if (record.owner !== owner) continue
      const { request, state, outcome = '', status } = record
      if (!isEnd(status) && !this.#isExpired(task)) open += 1
      for (const text of [request, state, outcome, ...journal]) bytes += Buffer.byteLength(text)
    }
    return { open, bytes }
  }

  async sweep(): Promise<number> {
    let swept = 0
    for (const task of this.#tasks.values()) {
      if (swept === MAX_SWEPT) break
      if (!this.#isExpired(task)) continue
      this.#drop(task)
      swept += 1
    }
    return swept
  }

  async find(query: TaskQuery): Promise<FoundTasks> {
    const after = query.cursor === undefined ? undefined : Number(readCursor(query.cursor).minor)
    const limit = Math.min(query.limit, MAX_FOUND)
    const tasks: TaskRecord[] = []
    let looked = 0
    // In the order of their creation.
    for (const task of [...this.#tasks.values()].toReversed()) {
      if (after !== undefined && task.number >= after) continue
      if (tasks.length === limit || looked === MAX_LOOKED) return { tasks, next: cursorOf(0, task.number + 1) }
      looked += 1
      if (!this.#isExpired(task) && matches(query, task.record)) tasks.push(task.record)
    }
    return { tasks }
  }

  async inspect(id: string): Promise<InspectedTask | undefined> {
    const task = this.#find(id)
    if (task === undefined) return undefined
    const { record, journal, claimedBy, leaseUntil, dueAt, expiresAt } = task
    const times = {
      leaseUntil: leaseUntil ?? undefined,
      dueAt: dueAt ?? undefined,
      expiresAt: expiresAt ?? undefined,
    }
    return { ...record, journal: journalOf(journal), claimedBy, ...times }
  }

  async remove(ids: readonly string[]): Promise<number> {
    const ended = [...new Set(ids)].flatMap((id) => this.#find(id) ?? []).filter(({ record }) => isEnd(record.status))
    for (const task of ended) this.#drop(task)
    return ended.length
  }

  watch(listener: (event: TaskEvent) => void): () => void {
    return this.#watchers.add(listener)
  }

  #find(id: string): MemoryTask | undefined {
    const task = this.#tasks.get(id)
    if (task === undefined || !this.#isExpired(task)) return task
    this.#drop(task)
    return undefined
  }

  #drop(task: MemoryTask): void {
    this.#tasks.delete(task.record.id)
    this.#scheduled.delete(task)
  }

  #schedule(task: MemoryTask): void {
    if (readyAt(task) === null) this.#scheduled.delete(task)
    else this.#scheduled.add(task)
  }

  #isExpired({ expiresAt }: MemoryTask): boolean {
    return expiresAt !== null && expiresAt <= this.#now()
  }

  #isDue(task: MemoryTask): boolean {
    const at = readyAt(task)
    return at !== null && at <= this.#now() && !this.#isExpired(task)
  }
}

/** When a worker may claim it: at the end of the current lease, or else when it falls due. */
function readyAt({ leaseUntil, dueAt }: MemoryTask): number | null {
  return leaseUntil ?? dueAt
}

/** True for a due task of a group that no worker has yet. It keeps its turn when it is made due once more. */
function waitsForTurn({ group, leaseUntil, dueAt }: MemoryTask, now: number): boolean {
  return group !== undefined && leaseUntil === null && dueAt !== null && dueAt <= now
}

function isLeased(task: MemoryTask, fence: number): boolean {
  return task.leaseUntil !== null && task.fence === fence
}

function holds({ fence, version }: TaskPrecondition, task: MemoryTask): boolean {
  return (fence === undefined || isLeased(task, fence)) && (version === undefined || task.record.version === version)
}

function matches(query: TaskQuery, { owner, status, request, state, createdAt }: TaskRecord): boolean {
  const { statuses, requestPrefix = '', statePrefix = '', createdBefore = Infinity } = query
  if (query.owner !== undefined && owner !== query.owner) return false
  if (statuses !== undefined && !statuses.includes(status)) return false
  return createdAt < createdBefore && request.startsWith(requestPrefix) && state.startsWith(statePrefix)
}

/** Whether task `a` is claimed before task `b`. Owners go by name, those after `after` first; tasks of one owner by due time. */
function comesBefore(a: MemoryTask, b: MemoryTask, after: string): boolean {
  const [ownerA, ownerB] = [a.record.owner, b.record.owner]
  if (ownerA === ownerB) return ((readyAt(a) ?? 0) - (readyAt(b) ?? 0) || a.number - b.number) < 0
  if (ownerA > after !== ownerB > after) return ownerA > after
  return ownerA < ownerB
}

function byAge(a: TaskPosition, b: TaskPosition): number {
  return a.createdAt - b.createdAt || (a.id < b.id ? -1 : Number(a.id > b.id))
}
