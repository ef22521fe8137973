// The tasks of one process, which end with it. What the contract of a store says, in its plainest form.
import { entriesOf, journalOf } from '../journal-text.ts'
import { isEnd } from '../status.ts'
import type {
  TaskPrecondition,
  ClaimedTask,
  TaskLease,
  TaskEvent,
  NewTask,
  RenewedLease,
  TaskChange,
  TaskRecord,
  TaskStatus,
  TaskStore,
} from '../store.ts'
import { Watchers } from '../watchers.ts'

interface Kept {
  readonly made: NewTask
  /** How many were made before it. */
  readonly number: number
  readonly createdAt: number
  status: TaskStatus
  message: string | undefined
  state: string
  outcome: string | undefined
  updatedAt: number
  version: number
  fence: number
  /** Until when a worker holds it, if one does. */
  leaseUntil: number | null
  /** When it falls due, once nobody holds it. */
  dueAt: number | null
  /** The entries of its journal, as they were given. */
  journal: string[]
}

const LONGEST_LIST = 1_000
const SWEPT_AT_ONCE = 1_000

export class MemoryTasks implements TaskStore {
  readonly #now: () => number
  readonly #tasks = new Map<string, Kept>()
  /** Those that are due now or at a time that is known: what is parked or over is never looked at. */
  readonly #scheduled = new Set<Kept>()
  readonly #watchers = new Watchers<TaskEvent>()
  #made = 0
  /** None is given twice: a task that is made again under an old id is not that of its old worker. */
  #fences = 0

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  async create(made: NewTask): Promise<TaskRecord> {
    const there = this.#find(made.id)
    if (there !== undefined) return recordOf(there)
    const now = this.#now()
    const task: Kept = {
      made,
      number: (this.#made += 1),
      createdAt: now,
      status: 'working',
      message: made.message,
      state: made.state,
      outcome: undefined,
      updatedAt: now,
      version: 1,
      fence: 0,
      leaseUntil: null,
      dueAt: now,
      journal: [entriesOf(made.journal)],
    }
    this.#tasks.set(made.id, task)
    this.#schedule(task)
    this.#watchers.tell({ type: 'due' })
    return recordOf(task)
  }

  async read(id: string): Promise<TaskRecord | undefined> {
    const task = this.#find(id)
    return task && recordOf(task)
  }

  async list(owner: string, limit: number, after?: { id: string; createdAt: number }): Promise<TaskRecord[]> {
    const all: TaskRecord[] = []
    for (const task of this.#tasks.values()) {
      if (task.made.owner === owner && !this.#isOver(task)) all.push(recordOf(task))
    }
    return all
      .filter((task) => after === undefined || byAge(after, task) < 0)
      .toSorted(byAge)
      .slice(0, Math.max(0, Math.min(limit, LONGEST_LIST)))
  }

  async claim(turn: { after: string; except?: string | undefined; leaseMs: number }): Promise<ClaimedTask | undefined> {
    let task: Kept | undefined
    for (const each of this.#scheduled) {
      if (each.made.owner === turn.except || !this.#isDue(each)) continue
      if (task === undefined || comesBefore(each, task, turn.after)) task = each
    }
    if (task === undefined) return undefined
    const lost = task.leaseUntil !== null
    task.fence = this.#fences += 1
    task.leaseUntil = this.#now() + turn.leaseMs
    return { ...recordOf(task), fence: task.fence, journal: journalOf(task.journal), lost }
  }

  async renew(held: readonly TaskLease[], leaseMs: number): Promise<RenewedLease[]> {
    const standing: RenewedLease[] = []
    for (const { id, fence } of held) {
      const task = this.#find(id)
      if (task === undefined || !isHeld(task, fence)) continue
      task.leaseUntil = this.#now() + leaseMs
      standing.push({ id, fence, version: task.version })
    }
    return standing
  }

  async append({ id, fence }: TaskLease, entriesText: string): Promise<boolean> {
    const task = this.#find(id)
    if (task === undefined || !isHeld(task, fence)) return false
    task.journal.push(entriesText)
    return true
  }

  async change(id: string, belief: TaskPrecondition, change: TaskChange): Promise<number | undefined> {
    const task = this.#find(id)
    if (task === undefined || isEnd(task.status) || !holds(belief, task)) return undefined
    const now = this.#now()
    const { status = task.status, state = task.state, outcome = task.outcome, journal, dueMs, release = false } = change
    if (journal !== undefined) task.journal = [entriesOf(journal)]
    if ('message' in change) task.message = change.message
    task.status = status
    task.state = state
    task.outcome = outcome
    task.updatedAt = now
    task.version += 1
    if (dueMs !== undefined) task.dueAt = dueMs === null ? null : now + dueMs
    if (release) task.leaseUntil = null
    if (isEnd(status)) {
      task.leaseUntil = null
      task.dueAt = null
      task.journal = []
    }
    this.#schedule(task)
    this.#watchers.tell({ type: 'changed', id, version: task.version })
    if (this.#isDue(task)) this.#watchers.tell({ type: 'due' })
    return task.version
  }

  async sweep(): Promise<number> {
    let swept = 0
    for (const [id, task] of this.#tasks) {
      if (swept === SWEPT_AT_ONCE) break
      if (!this.#isOver(task)) continue
      this.#drop(id, task)
      swept += 1
    }
    return swept
  }

  watch(listener: (news: TaskEvent) => void): () => void {
    return this.#watchers.add(listener)
  }

  #find(id: string): Kept | undefined {
    const task = this.#tasks.get(id)
    if (task === undefined || !this.#isOver(task)) return task
    this.#drop(id, task)
    return undefined
  }

  #drop(id: string, task: Kept): void {
    this.#tasks.delete(id)
    this.#scheduled.delete(task)
  }

  #schedule(task: Kept): void {
    if (readyAt(task) === null) this.#scheduled.delete(task)
    else this.#scheduled.add(task)
  }

  #isOver({ made: { ttlMs }, createdAt }: Kept): boolean {
    return ttlMs !== null && createdAt + ttlMs <= this.#now()
  }

  #isDue(task: Kept): boolean {
    const at = readyAt(task)
    return at !== null && at <= this.#now() && !this.#isOver(task)
  }
}

/** Since when, or from when on, it may be taken up. */
function readyAt({ leaseUntil, dueAt }: Kept): number | null {
  return leaseUntil ?? dueAt
}

function isHeld(task: Kept, fence: number): boolean {
  return task.leaseUntil !== null && task.fence === fence
}

function holds({ fence, version }: TaskPrecondition, task: Kept): boolean {
  return (fence === undefined || isHeld(task, fence)) && (version === undefined || task.version === version)
}

/** Whether it is this one's turn rather than the other's: owners in the order of their names, those after `after` first. */
function comesBefore(one: Kept, other: Kept, after: string): boolean {
  const [mine, theirs] = [one.made.owner, other.made.owner]
  if (mine === theirs) return ((readyAt(one) ?? 0) - (readyAt(other) ?? 0) || one.number - other.number) < 0
  if (mine > after !== theirs > after) return mine > after
  return mine < theirs
}

function byAge(one: { id: string; createdAt: number }, other: { id: string; createdAt: number }): number {
  return one.createdAt - other.createdAt || (one.id < other.id ? -1 : Number(one.id > other.id))
}

function recordOf(task: Kept): TaskRecord {
  const { id, owner, request, pollMs, ttlMs } = task.made
  const { state, status, message, createdAt, updatedAt, outcome, version } = task
  return { id, owner, request, state, status, message, pollMs, ttlMs, createdAt, updatedAt, outcome, version }
}
