// Tasks in the memory of one process. The simplest form of the contract: the other stores are tested against it.
import type {
  ClaimedTask,
  ClaimRequest,
  NewTask,
  RenewedLease,
  TaskChange,
  TaskEvent,
  TaskLease,
  TaskPosition,
  TaskPrecondition,
  TaskRecord,
  TaskStore,
  TaskUsage,
  TaskVersion,
} from '../tasks.ts'
import { entriesOf, isEnd, journalOf, MAX_LIST, newRecord } from '../tasks.ts'
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
  /** The entries of its journal, as they were given. */
  journal: string[]
}

const MAX_SWEPT = 1_000

export class MemoryTasks implements TaskStore {
  readonly #now: () => number
  readonly #tasks = new Map<string, MemoryTask>()
  /** Tasks that are due now or at a known time. A claim does not look at the others. */
  readonly #scheduled = new Set<MemoryTask>()
  readonly #watchers = new Watchers<TaskEvent>()
  #created = 0
  /** One counter for all tasks: a task that is created again under an old id gets no fence of the old one. */
  #lastFence = 0

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  async create(newTask: NewTask): Promise<TaskRecord> {
    const existing = this.#find(newTask.id)
    if (existing !== undefined) return existing.record
    const task = this.#insert(newTask)
    this.#watchers.notify({ type: 'due' })
    return task.record
  }

  async createAndClaim(newTask: NewTask, leaseMs: number): Promise<TaskRecord | ClaimedTask> {
    const existing = this.#find(newTask.id)
    return existing === undefined ? this.#lease(this.#insert(newTask), leaseMs) : existing.record
  }

  #insert(newTask: NewTask): MemoryTask {
    const now = this.#now()
    const task: MemoryTask = {
      record: newRecord(newTask, now),
      number: (this.#created += 1),
      fence: 0,
      leaseUntil: null,
      dueAt: now,
      journal: [entriesOf(newTask.journal)],
    }
    this.#tasks.set(newTask.id, task)
    this.#schedule(task)
    return task
  }

  #lease(task: MemoryTask, leaseMs: number): ClaimedTask {
    const lost = task.leaseUntil !== null
    task.fence = this.#lastFence += 1
    task.leaseUntil = this.#now() + leaseMs
    this.#schedule(task)
    return { ...task.record, fence: task.fence, journal: journalOf(task.journal), lost }
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
    for (const { record } of this.#tasks.values()) {
      if (record.owner === owner && !this.#isExpired(record)) all.push(record)
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
    const claimed: ClaimedTask[] = []
    while (claimed.length < limit) {
      const task = this.#claim({ ...request, after: claimed.at(-1)?.owner ?? request.after })
      // A lease of no time is over at once.
      if (task === undefined || claimed.some(({ id }) => id === task.id)) break
      claimed.push(task)
    }
    return claimed
  }

  #claim({ after, except, running = [], leaseMs }: ClaimRequest): ClaimedTask | undefined {
    const runningFences = new Set(running.map(({ fence }) => fence))
    let task: MemoryTask | undefined
    for (const each of this.#scheduled) {
      if (each.record.owner === except || !this.#isDue(each)) continue
      if (each.leaseUntil !== null && runningFences.has(each.fence)) continue
      if (task === undefined || comesBefore(each, task, after)) task = each
    }
    return task && this.#lease(task, leaseMs)
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
    if (task !== undefined && this.#isDue(task)) this.#watchers.notify({ type: 'due' })
    return task?.record.version
  }

  async changeAndClaim(
    id: string,
    precondition: TaskPrecondition,
    change: TaskChange,
    leaseMs: number,
  ): Promise<number | ClaimedTask | undefined> {
    const task = this.#change(id, precondition, change)
    if (task === undefined) return undefined
    return task.leaseUntil === null && this.#isDue(task) ? this.#lease(task, leaseMs) : task.record.version
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
    if (change.dueMs !== undefined) task.dueAt = change.dueMs === null ? null : now + change.dueMs
    if (change.release === true) task.leaseUntil = null
    if (isEnd(status)) {
      task.leaseUntil = null
      task.dueAt = null
      task.journal = []
    }
    this.#schedule(task)
    this.#watchers.notify({ type: 'changed', id, version })
    return task
  }

  async usage(owner: string): Promise<TaskUsage> {
    let open = 0
    let bytes = 0
    for (const { record, journal } of this.#tasks.values()) {
      if (record.owner !== owner || this.#isExpired(record)) continue
      const { request, state, outcome = '', status } = record
      if (!isEnd(status)) open += 1
      for (const text of [request, state, outcome, ...journal]) bytes += Buffer.byteLength(text)
    }
    return { open, bytes }
  }

  async sweep(): Promise<number> {
    let swept = 0
    for (const task of this.#tasks.values()) {
      if (swept === MAX_SWEPT) break
      if (!this.#isExpired(task.record)) continue
      this.#drop(task)
      swept += 1
    }
    return swept
  }

  watch(listener: (event: TaskEvent) => void): () => void {
    return this.#watchers.add(listener)
  }

  #find(id: string): MemoryTask | undefined {
    const task = this.#tasks.get(id)
    if (task === undefined || !this.#isExpired(task.record)) return task
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

  #isExpired({ ttlMs, createdAt }: TaskRecord): boolean {
    return ttlMs !== null && createdAt + ttlMs <= this.#now()
  }

  #isDue(task: MemoryTask): boolean {
    const at = readyAt(task)
    return at !== null && at <= this.#now() && !this.#isExpired(task.record)
  }
}

/** When a worker may claim it: at the end of the current lease, or else when it falls due. */
function readyAt({ leaseUntil, dueAt }: MemoryTask): number | null {
  return leaseUntil ?? dueAt
}

function isLeased(task: MemoryTask, fence: number): boolean {
  return task.leaseUntil !== null && task.fence === fence
}

function holds({ fence, version }: TaskPrecondition, task: MemoryTask): boolean {
  return (fence === undefined || isLeased(task, fence)) && (version === undefined || task.record.version === version)
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
