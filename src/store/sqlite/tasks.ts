// Tasks in SQLite. A write sees and changes the file alone, inside of its transaction, so it reads first and then writes.
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
  TaskStore,
} from '../store.ts'
import { toPlain } from '../plain-text.ts'
import type { Database, Statement } from './driver.ts'
import type { SqliteNews } from './change-feed.ts'
import type { DueRow, RecordRow, StandingRow } from './task-statements.ts'
import { SQL, toRecord } from './task-statements.ts'
import type { Turn } from './group-commit.ts'

const LONGEST_LIST = 1_000
/** Whose time has come, in one go. */
const MOST_MARKED = 1_000
const SWEPT_AT_ONCE = 500

type Statements = { readonly [Name in keyof typeof SQL]: Statement }

export class SqliteTasks implements TaskStore {
  readonly #turn: Turn
  readonly #news: SqliteNews
  readonly #now: () => number
  readonly #sql: Statements

  constructor(database: Database, turn: Turn, news: SqliteNews, now: () => number) {
    this.#turn = turn
    this.#news = news
    this.#now = now
    const prepared = Object.entries(SQL).map(([name, sql]) => [name, database.prepare(sql)])
    this.#sql = Object.fromEntries(prepared) as Statements
  }

  async create(task: NewTask): Promise<TaskRecord> {
    const entries = entriesOf(task.journal)
    const [record, isNew] = await this.#turn.write((): [TaskRecord, boolean] => {
      const now = this.#now()
      if (!this.#insert(task, entries, now)) {
        const [there] = this.#sql.read.all([toPlain(task.id), now]) as RecordRow[]
        if (there !== undefined) return [toRecord(there), false]
        this.#dropExpired(task.id, now)
        this.#insert(task, entries, now)
      }
      return [recordOf(task, now), true]
    })
    if (isNew) this.#news.tell({ type: 'due' })
    return record
  }

  read(id: string): Promise<TaskRecord | undefined> {
    return this.#turn.read(() => {
      const [row] = this.#sql.read.all([toPlain(id), this.#now()]) as RecordRow[]
      return row && toRecord(row)
    })
  }

  list(owner: string, limit: number, after?: { id: string; createdAt: number }): Promise<TaskRecord[]> {
    return this.#turn.read(() => {
      const most = Math.max(0, Math.min(limit, LONGEST_LIST))
      const [createdAt, id] = after === undefined ? [Number.MIN_SAFE_INTEGER, ''] : [after.createdAt, toPlain(after.id)]
      return (this.#sql.list.all([toPlain(owner), createdAt, id, this.#now(), most]) as RecordRow[]).map(toRecord)
    })
  }

  claim(turn: { after: string; except?: string | undefined; leaseMs: number }): Promise<ClaimedTask | undefined> {
    return this.#turn.write(() => {
      const due = this.#nextDue(toPlain(turn.after), turn.except === undefined ? undefined : toPlain(turn.except))
      if (due === undefined) return undefined
      const fence = this.#next('nextFence')
      this.#sql.claim.run([fence, this.#now() + turn.leaseMs, due.seq])
      const [row] = this.#sql.readClaimed.all([due.seq]) as RecordRow[]
      if (row === undefined) throw new Error('The task that was taken is not there.')
      const entries = this.#sql.entries.all([due.seq]) as { text: string }[]
      const journal = journalOf(entries.map(({ text }) => text))
      return { ...toRecord(row), fence, journal, lost: due.lease_until !== null }
    })
  }

  renew(held: readonly TaskLease[], leaseMs: number): Promise<RenewedLease[]> {
    return this.#turn.write(() => {
      const now = this.#now()
      return held.flatMap(({ id, fence }) => {
        const [row] = this.#sql.renew.all([now + leaseMs, toPlain(id), fence, now]) as { version: number }[]
        return row === undefined ? [] : [{ id, fence, version: row.version }]
      })
    })
  }

  append({ id, fence }: TaskLease, entriesText: string): Promise<boolean> {
    return this.#turn.write(() => {
      const [task] = this.#sql.held.all([toPlain(id), fence, this.#now()]) as { seq: number }[]
      if (task !== undefined && entriesText !== '') this.#sql.append.run([task.seq, entriesText])
      return task !== undefined
    })
  }

  async change(id: string, belief: TaskPrecondition, change: TaskChange): Promise<number | undefined> {
    const journal = change.journal === undefined ? undefined : entriesOf(change.journal)
    const changed = await this.#turn.write(() => {
      const [task] = this.#sql.standing.all([toPlain(id), this.#now()]) as StandingRow[]
      return task !== undefined && holds(belief, task) ? this.#apply(task, change, journal) : undefined
    })
    if (changed === undefined) return undefined
    this.#news.tell({ type: 'changed', id, version: changed.version })
    if (changed.isDue) this.#news.tell({ type: 'due' })
    return changed.version
  }

  sweep(): Promise<number> {
    return this.#turn.write(() => {
      const expired = this.#sql.expired.all([this.#now(), SWEPT_AT_ONCE]) as { seq: number }[]
      for (const { seq } of expired) this.#drop(seq)
      return expired.length
    })
  }

  watch(listener: (news: TaskEvent) => void): () => void {
    return this.#news.watch(listener)
  }

  /** Whether it was not there before. */
  #insert({ id, owner, request, state, message, pollMs, ttlMs }: NewTask, entries: string, now: number): boolean {
    const names = [toPlain(id), toPlain(owner), message === undefined ? null : toPlain(message)]
    const times = [pollMs, ttlMs, now, now, ttlMs === null ? null : now + ttlMs, now]
    const [row] = this.#sql.create.all([...names, ...times, this.#next('nextChange')]) as { seq: number }[]
    if (row === undefined) return false
    this.#sql.createText.run([row.seq, request, state])
    if (entries !== '') this.#sql.append.run([row.seq, entries])
    return true
  }

  #apply(task: StandingRow, change: TaskChange, journal: string | undefined): { version: number; isDue: boolean } {
    const { seq } = task
    const now = this.#now()
    const { status = task.status, state = null, outcome = null, dueMs, release = false } = change
    const ends = isEnd(status)
    const message = 'message' in change ? (change.message === undefined ? null : toPlain(change.message)) : task.message
    const leaseUntil = release || ends ? null : task.lease_until
    const wanted = dueMs === undefined ? task.due_at : dueMs === null ? null : now + dueMs
    const dueAt = ends ? null : wanted
    const readyAt = leaseUntil ?? dueAt
    const isDue = readyAt !== null && readyAt <= now
    this.#sql.change.run([status, message, now, leaseUntil, dueAt, Number(isDue), this.#next('nextChange'), seq])
    if (state !== null || outcome !== null) this.#sql.changeText.run([state, outcome, seq])
    if (ends || journal !== undefined) this.#sql.dropEntries.run([seq])
    if (!ends && journal !== undefined && journal !== '') this.#sql.append.run([seq, journal])
    return { version: task.version + 1, isDue }
  }

  /** The next in turn. Those that have outlived their ttl are cleared away as they are met, once each. */
  #nextDue(after: string, except: string | undefined): DueRow | undefined {
    const now = this.#now()
    for (;;) {
      const { changes: marked } = this.#sql.markDue.run([now, MOST_MARKED])
      const due = this.#dueOf('dueAfter', after, except) ?? this.#dueOf('dueFrom', '', except)
      if (due === undefined && marked < MOST_MARKED) return undefined
      if (due === undefined) continue
      if (due.expires_at === null || due.expires_at > now) return due
      this.#drop(due.seq)
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

  #next(count: 'nextChange' | 'nextFence'): number {
    const [row] = this.#sql[count].all([]) as { number: number }[]
    return row?.number ?? 0
  }
}

/** A task that has just been made. */
function recordOf({ id, owner, request, state, message, pollMs, ttlMs }: NewTask, now: number): TaskRecord {
  const times = { pollMs, ttlMs, createdAt: now, updatedAt: now }
  return { id, owner, request, state, status: 'working', message, ...times, outcome: undefined, version: 1 }
}

function holds({ fence, version }: TaskPrecondition, task: StandingRow): boolean {
  if (isEnd(task.status)) return false
  if (fence !== undefined && (task.lease_until === null || task.fence !== fence)) return false
  return version === undefined || task.version === version
}
