// Tasks in SQLite. A write has the file for itself, inside its transaction, so it can read first and then write.
import { toRecord } from '../task-row.ts'
import type { RowDecoder, TaskRow } from '../task-row.ts'
import type {
  ClaimRequest,
  ClaimedTask,
  FoundTasks,
  InspectedTask,
  NewTask,
  RenewedLease,
  TaskChange,
  TaskEvent,
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
import { ChangeFeed } from './change-feed.ts'
import type { SqliteStatement } from './driver.ts'
import type { SqliteFile } from './file.ts'
import type { GroupCommit } from './group-commit.ts'
import { SqliteTaskQueries } from './operations.ts'
import type { ChangedRow, CurrentRow, DueRow, WaitingRow } from './statements.ts'
import { SQL } from './statements.ts'
import { fromPlain, toPlain } from './text.ts'

/** How many groups one claim looks at for tasks whose time has come. The next claim goes on after them. */
const MAX_GROUPS = 1_000
/** How many tasks one statement marks as due. */
const MAX_MARKED = 1_000
const MAX_SWEPT = 500

const decoder: RowDecoder = { name: fromPlain, json: (stored) => stored }

/** Who claims a task, and for how long. */
type NewLease = Pick<ClaimRequest, 'leaseMs' | 'worker'>

interface Counts {
  /** Of the change. */
  readonly number: number
  /** For a claim. */
  readonly fence?: number
}

interface Changed {
  readonly version: number
  readonly isDue: boolean
  /** The task, if it was claimed too. */
  readonly claimed: ClaimedTask | undefined
}

type Statements = { readonly [Name in keyof typeof SQL]: SqliteStatement }

export class SqliteTasks implements TaskStore {
  readonly #commits: GroupCommit
  readonly #now: () => number
  readonly #sql: Statements
  readonly #queries: SqliteTaskQueries
  readonly #watchers = new Watchers<TaskEvent>()
  readonly #feed: ChangeFeed
  /** The last group that a claim has looked at. */
  #lastGroup = ''

  constructor({ database, commits, externalWrites, now }: SqliteFile) {
    this.#commits = commits
    this.#now = now
    const prepared = Object.entries(SQL).map(([name, sql]) => [name, database.prepare(sql)])
    this.#sql = Object.fromEntries(prepared) as Statements
    this.#queries = new SqliteTaskQueries(database)
    this.#feed = new ChangeFeed(externalWrites, {
      last: () => this.#count('lastChange').number,
      report: (after) => this.#report(after),
    })
  }

  create(task: NewTask): Promise<TaskRecord> {
    return this.#create(task, undefined)
  }

  createAndClaim(task: NewTask, leaseMs: number, worker?: string): Promise<TaskRecord | ClaimedTask> {
    return this.#create(task, task.group === undefined ? { leaseMs, worker } : undefined)
  }

  async #create(task: NewTask, lease: NewLease | undefined): Promise<TaskRecord | ClaimedTask> {
    const entries = entriesOf(task.journal)
    const [record, isNew] = await this.#commits.write((): [TaskRecord | ClaimedTask, boolean] => {
      const now = this.#now()
      const counts = this.#count(lease === undefined ? 'nextChange' : 'nextBoth')
      if (!this.#insert(task, entries, now, counts, lease)) {
        const [existing] = this.#sql.read.all([toPlain(task.id), now]) as TaskRow[]
        if (existing !== undefined) return [toRecord(existing, decoder), false]
        this.#dropExpired(task.id, now)
        this.#insert(task, entries, now, counts, lease)
      }
      if (task.group !== undefined) this.#fillPlaces(toPlain(task.group.name), now)
      const created = newRecord(task, now)
      if (lease === undefined) return [created, true]
      return [{ ...created, fence: counts.fence ?? 0, journal: journalOf([entries]), lost: false }, true]
    })
    if (isNew && lease === undefined) this.#watchers.notifySoon({ type: 'due' })
    return record
  }

  read(id: string): Promise<TaskRecord | undefined> {
    return this.#commits.read(() => {
      const [row] = this.#sql.read.all([toPlain(id), this.#now()]) as TaskRow[]
      return row && toRecord(row, decoder)
    })
  }

  versions(ids: readonly string[]): Promise<TaskVersion[]> {
    return this.#commits.read(() => {
      const names = JSON.stringify(ids.map(toPlain))
      const rows = this.#sql.versions.all([names, this.#now()]) as TaskVersion[]
      return rows.map(({ id, version }) => ({ id: fromPlain(id), version }))
    })
  }

  list(owner: string, limit: number, after?: TaskPosition): Promise<TaskRecord[]> {
    return this.#commits.read(() => {
      const most = Math.max(0, Math.min(limit, MAX_LIST))
      const [createdAt, id] = after === undefined ? [Number.MIN_SAFE_INTEGER, ''] : [after.createdAt, toPlain(after.id)]
      return (this.#sql.list.all([toPlain(owner), createdAt, id, this.#now(), most]) as TaskRow[]).map((row) =>
        toRecord(row, decoder),
      )
    })
  }

  claim(request: ClaimRequest): Promise<ClaimedTask | undefined> {
    return this.#commits.write(() => this.#claimNext(request, this.#beforeClaim(request)))
  }

  claimMany(request: ClaimRequest, limit: number): Promise<ClaimedTask[]> {
    return this.#commits.write(() => {
      const marked = this.#beforeClaim(request)
      return claimOneByOne(request, limit, (each) => this.#claimNext(each, marked))
    })
  }

  renew(leases: readonly TaskLease[], leaseMs: number): Promise<RenewedLease[]> {
    return this.#commits.write(() => {
      const now = this.#now()
      return leases.flatMap(({ id, fence }) => {
        const [row] = this.#sql.renew.all([now + leaseMs, toPlain(id), fence, now]) as { version: number }[]
        return row === undefined ? [] : [{ id, fence, version: row.version }]
      })
    })
  }

  append({ id, fence }: TaskLease, entriesText: string): Promise<boolean> {
    return this.#commits.write(() => {
      const lease = [toPlain(id), fence, this.#now()]
      if (entriesText === '') return this.#sql.leased.all(lease).length > 0
      return this.#sql.append.run([entriesText, ...lease]).changes > 0
    })
  }

  async change(id: string, precondition: TaskPrecondition, change: TaskChange): Promise<number | undefined> {
    return (await this.#change(id, precondition, change))?.version
  }

  async changeAndClaim(
    id: string,
    precondition: TaskPrecondition,
    change: TaskChange,
    leaseMs: number,
    worker?: string,
  ): Promise<number | ClaimedTask | undefined> {
    const changed = await this.#change(id, precondition, change, { leaseMs, worker })
    return changed?.claimed ?? changed?.version
  }

  async #change(
    id: string,
    precondition: TaskPrecondition,
    change: TaskChange,
    lease?: NewLease,
  ): Promise<Changed | undefined> {
    const journal = change.journal === undefined ? undefined : entriesOf(change.journal)
    const changed = await this.#commits.write(() => {
      const [task] = this.#sql.current.all([toPlain(id), this.#now()]) as CurrentRow[]
      return task !== undefined && holds(precondition, task) ? this.#apply(task, change, journal, lease) : undefined
    })
    if (changed === undefined) return undefined
    this.#watchers.notifySoon({ type: 'changed', id, version: changed.version })
    if (changed.isDue) this.#watchers.notifySoon({ type: 'due' })
    return changed
  }

  usage(owner: string): Promise<TaskUsage> {
    return this.#commits.read(() => {
      const [row] = this.#sql.usage.all([this.#now(), toPlain(owner)]) as TaskUsage[]
      return { open: row?.open ?? 0, bytes: row?.bytes ?? 0 }
    })
  }

  sweep(): Promise<number> {
    return this.#commits.write(() => {
      const expired = this.#sql.expired.all([this.#now(), MAX_SWEPT]) as { seq: number }[]
      for (const { seq } of expired) this.#drop(seq)
      return expired.length
    })
  }

  find(query: TaskQuery): Promise<FoundTasks> {
    return this.#commits.read(() => this.#queries.find(query, this.#now()))
  }

  inspect(id: string): Promise<InspectedTask | undefined> {
    return this.#commits.read(() => this.#queries.inspect(id, this.#now()))
  }

  remove(ids: readonly string[]): Promise<number> {
    return this.#commits.write(() => {
      const ended = [...new Set(ids)].flatMap((id) => this.#sql.endedOfId.all([toPlain(id)]) as { seq: number }[])
      for (const { seq } of ended) this.#drop(seq)
      return ended.length
    })
  }

  watch(listener: (event: TaskEvent) => void): () => void {
    this.#feed.start()
    const remove = this.#watchers.add(listener)
    return () => {
      remove()
      if (this.#watchers.size === 0) this.#feed.stop()
    }
  }

  #report(after: number): number | undefined {
    const rows = this.#sql.changedSince.all([after]) as ChangedRow[]
    for (const { id, version } of rows) this.#watchers.notify({ type: 'changed', id: fromPlain(id), version })
    if (rows.some(({ is_due: isDue }) => isDue === 1)) this.#watchers.notify({ type: 'due' })
    return rows.at(-1)?.change_number
  }

  /** Returns whether it was inserted: `false` if a task of this id exists. */
  #insert(
    task: NewTask,
    entries: string,
    now: number,
    { number, fence = 0 }: Counts,
    lease: NewLease | undefined,
  ): boolean {
    const { id, owner, request, state, message, pollMs, ttlMs, group } = task
    const names = [toPlain(id), toPlain(owner), message === undefined ? null : toPlain(message)]
    const times = [pollMs, ttlMs, now, now, ttlMs === null ? null : now + ttlMs]
    const dueAt = group === undefined ? now : null
    const isDue = Number(lease === undefined && group === undefined)
    const due = [fence, dueAt, number, lease === undefined ? null : now + lease.leaseMs, isDue]
    const worker = workerOf(lease)
    const place = group === undefined ? [null, null, null] : [toPlain(group.name), group.limit, now]
    const [row] = this.#sql.create.all([...names, ...times, ...due, worker, ...place]) as { seq: number }[]
    if (row === undefined) return false
    this.#sql.createText.run([row.seq, request, state])
    if (entries !== '') this.#sql.addEntries.run([row.seq, entries])
    return true
  }

  #apply(task: CurrentRow, change: TaskChange, journal: string | undefined, lease: NewLease | undefined): Changed {
    const { seq } = task
    const now = this.#now()
    const { status = task.status, state = null, outcome = null, dueMs, release = false, keepMs } = change
    const ends = isEnd(status)
    const message = 'message' in change ? (change.message === undefined ? null : toPlain(change.message)) : task.message
    const leaseUntil = release || ends ? null : task.lease_until
    const { group_name: group } = task
    const keepsDue = dueMs === undefined || (dueMs !== null && waitsForTurn(task, now))
    const [hadDueAt, hadWantedAt] = keepsDue ? [task.due_at, task.wanted_at] : [null, null]
    const at = keepsDue || dueMs === null ? null : now + dueMs
    const dueAt = ends ? null : group === null ? (at ?? hadDueAt) : hadDueAt
    const wantedAt = ends || group === null ? null : (at ?? hadWantedAt)
    const readyAt = leaseUntil ?? dueAt
    const isDue = readyAt !== null && readyAt <= now
    // The statement takes the later of this and the present end. 0 changes nothing. A task without an end keeps none.
    const keepUntil = ends && keepMs !== undefined ? now + keepMs : 0
    const claims = lease !== undefined && group === null && isDue && leaseUntil === null
    const { number, fence = task.fence } = this.#count(claims ? 'nextBoth' : 'nextChange')
    const held = claims ? [fence, now + lease.leaseMs, workerOf(lease)] : [fence, leaseUntil, task.claimed_by]
    const due = [dueAt, Number(isDue && !claims), keepUntil, number, ends ? null : group, wantedAt]
    this.#sql.change.run([status, message, now, ...held, ...due, seq])
    const fills = group !== null && this.#fillPlaces(group, now)
    if (state !== null || outcome !== null) this.#sql.changeText.run([state, outcome, seq])
    const drops = ends && keepMs === undefined
    if (drops || journal !== undefined) this.#sql.dropEntries.run([seq])
    if (!drops && journal !== undefined && journal !== '') this.#sql.addEntries.run([seq, journal])
    const claimed = claims ? this.#claimed(seq, fence) : undefined
    return { version: task.version + 1, isDue: (isDue && claimed === undefined) || fills, claimed }
  }

  /** Gives free places of groups to their tasks, if the claim wants that. Marks the tasks that are due, and returns how many it marked. */
  #beforeClaim({ groups }: ClaimRequest): number {
    const now = this.#now()
    if (groups === true) this.#fillAllPlaces(now)
    return this.#markDue(now)
  }

  #markDue(now: number): number {
    return this.#sql.markDue.run([now, MAX_MARKED]).changes
  }

  #claimNext(request: ClaimRequest, marked: number): ClaimedTask | undefined {
    const due = this.#nextDue(request, marked)
    if (due === undefined) return undefined
    const { fence = 0 } = this.#count('nextFence')
    this.#sql.claim.run([fence, this.#now() + request.leaseMs, workerOf(request), due.seq])
    return this.#claimed(due.seq, fence, due.lease_until === null ? undefined : due)
  }

  /** `lost` is the row as the worker left it that was lost. */
  #claimed(seq: number, fence: number, lost?: DueRow): ClaimedTask {
    const [row] = this.#sql.readClaimed.all([seq]) as TaskRow[]
    if (row === undefined) throw new Error('The row of the claimed task is missing.')
    const entries = this.#sql.entries.all([seq]) as { text: string }[]
    const journal = journalOf(entries.map(({ text }) => text))
    const lostWorker = typeof lost?.claimed_by === 'string' ? fromPlain(lost.claimed_by) : undefined
    return { ...toRecord(row, decoder), fence, journal, lost: lost !== undefined, lostWorker }
  }

  /** Gives the free places of a group to those tasks that have waited longest. Returns whether there were any. */
  #fillPlaces(group: string, now: number): boolean {
    const [first] = this.#sql.wanted.all([group, now, now, 1]) as { group_limit: number }[]
    if (first === undefined) return false
    const [places] = this.#sql.places.all([group, now]) as { number: number }[]
    const free = first.group_limit - (places?.number ?? 0)
    if (free <= 0) return false
    const next = this.#sql.wanted.all([group, now, now, free]) as { seq: number }[]
    for (const { seq } of next) this.#sql.admit.run([this.#count('nextChange').number, seq])
    return true
  }

  /** For tasks whose time has come, and for places of tasks that have outlived their ttl. */
  #fillAllPlaces(now: number): void {
    for (let looked = 0; looked < MAX_GROUPS; looked += 1) {
      const [waiting] = this.#sql.nextWaiting.all([this.#lastGroup]) as WaitingRow[]
      this.#lastGroup = waiting?.group_name ?? ''
      if (waiting === undefined) return
      if (waiting.wanted_at <= now) this.#fillPlaces(waiting.group_name, now)
    }
  }

  /**
   * The next task to claim. Deletes the tasks on the way that have outlived their ttl, and renews the leases of those that run.
   * `marked` is how many tasks were just marked as due. If that is MAX_MARKED, there may be more to mark.
   */
  #nextDue({ after, except, running = [], leaseMs }: ClaimRequest, marked: number): DueRow | undefined {
    const now = this.#now()
    const exceptOwner = except === undefined ? undefined : toPlain(except)
    for (let last = marked; ;) {
      const due = this.#dueOf('dueAfter', toPlain(after), exceptOwner) ?? this.#dueOf('dueFrom', '', exceptOwner)
      if (due === undefined) {
        if (last < MAX_MARKED) return undefined
        last = this.#markDue(now)
      } else if (due.expires_at !== null && due.expires_at <= now) this.#drop(due.seq)
      else if (due.lease_until === null || !running.some(({ fence }) => fence === due.fence)) return due
      else this.#sql.extend.run([now + leaseMs, due.seq])
    }
  }

  #dueOf(from: 'dueAfter' | 'dueFrom', owner: string, except: string | undefined): DueRow | undefined {
    const [due] = this.#sql[from].all([owner]) as DueRow[]
    if (due === undefined || due.owner !== except) return due
    const [next] = this.#sql.dueAfter.all([except]) as DueRow[]
    return next
  }

  #dropExpired(id: string, now: number): void {
    for (const { seq } of this.#sql.expiredOfId.all([toPlain(id), now]) as { seq: number }[]) this.#drop(seq)
  }

  #drop(seq: number): void {
    this.#sql.dropEntries.run([seq])
    this.#sql.dropText.run([seq])
    this.#sql.drop.run([seq])
  }

  #count(statement: 'nextChange' | 'nextFence' | 'nextBoth' | 'lastChange'): Counts {
    const [row] = this.#sql[statement].all([]) as Counts[]
    return row ?? { number: 0 }
  }
}

function workerOf(lease: NewLease | undefined): string | null {
  return lease?.worker === undefined ? null : toPlain(lease.worker)
}

/** True for a due task of a group that no worker has yet. It keeps its turn when it is made due once more. */
function waitsForTurn(
  { group_name: group, lease_until: leaseUntil, due_at: dueAt, wanted_at: wantedAt }: CurrentRow,
  now: number,
): boolean {
  return group !== null && leaseUntil === null && (dueAt ?? wantedAt ?? Infinity) <= now
}

function holds({ fence, version }: TaskPrecondition, task: CurrentRow): boolean {
  if (isEnd(task.status)) return false
  if (fence !== undefined && (task.lease_until === null || task.fence !== fence)) return false
  return version === undefined || task.version === version
}
