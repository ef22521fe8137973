// Finds and inspects tasks for operations.
//
// Tasks have their `seq` in the order of their creation, so a list of all tasks needs no index of its own: such an index would cost every
// write of every task. The texts of a task are read only if the task matches.
import type { FoundTasks, InspectedTask, TaskQuery } from '../tasks.ts'
import { cursorOf, MAX_FOUND, MAX_LOOKED, readCursor } from '../operations.ts'
import type { RowDecoder, TaskRow } from '../task-row.ts'
import { RECORD_COLUMNS, toRecord } from '../task-row.ts'
import type { TaskStatus } from '../tasks.ts'
import { journalOf } from '../tasks.ts'
import type { SqliteDatabase, SqliteStatement } from './driver.ts'
import { fromPlain, toPlain } from './text.ts'

const LOOKED = `SELECT seq, created_at, id, status, expires_at,
    substr(request, 1, length(?1)) = ?1 AND substr(state, 1, length(?2)) = ?2 AS has_prefixes
  FROM rally_task JOIN rally_task_text ON task = seq`
const RECORD = `${RECORD_COLUMNS} FROM rally_task JOIN rally_task_text ON task = seq`

const SQL = {
  look: `${LOOKED} WHERE seq < ?3 ORDER BY seq DESC LIMIT ?4`,
  lookAtOwner: `${LOOKED} WHERE owner = ?5 AND (created_at, id) < (?3, ?6) ORDER BY created_at DESC, id DESC LIMIT ?4`,
  record: `SELECT ${RECORD} WHERE seq = ?`,
  inspect: `SELECT seq, claimed_by, lease_until, coalesce(due_at, wanted_at) AS due_at, expires_at, ${RECORD} WHERE id = ? AND (expires_at IS NULL OR expires_at > ?)`,
  entries: 'SELECT text FROM rally_task_entry WHERE task = ? ORDER BY number',
  firstFrom: 'SELECT seq, created_at FROM rally_task WHERE seq >= ? ORDER BY seq LIMIT 1',
  last: 'SELECT max(seq) AS seq FROM rally_task',
} as const

interface LookedRow {
  readonly seq: number
  readonly created_at: number
  readonly id: string
  readonly status: TaskStatus
  readonly expires_at: number | null
  readonly has_prefixes: number
}

interface InspectedRow extends TaskRow {
  readonly seq: number
  readonly claimed_by: string | null
  readonly lease_until: number | null
  readonly due_at: number | null
  readonly expires_at: number | null
}

const decoder: RowDecoder = { name: fromPlain, json: (stored) => stored }

type Statements = { readonly [Name in keyof typeof SQL]: SqliteStatement }

export class SqliteTaskQueries {
  readonly #sql: Statements

  constructor(database: SqliteDatabase) {
    const prepared = Object.entries(SQL).map(([name, sql]) => [name, database.prepare(sql)])
    this.#sql = Object.fromEntries(prepared) as Statements
  }

  find(query: TaskQuery, now: number): FoundTasks {
    const { statuses, requestPrefix = '', statePrefix = '', owner } = query
    const limit = Math.min(query.limit, MAX_FOUND)
    const isFiltered = statuses !== undefined || requestPrefix !== '' || statePrefix !== ''
    const most = isFiltered ? MAX_LOOKED : limit
    const prefixes = [requestPrefix, statePrefix]
    const looked = (
      owner === undefined
        ? this.#sql.look.all([...prefixes, this.#seqBefore(query), most])
        : this.#lookAtOwner(owner, prefixes, query, most)
    ) as LookedRow[]
    const found: LookedRow[] = []
    let last: LookedRow | undefined
    for (const row of looked) {
      if (found.length === limit) break
      last = row
      const isAlive = row.expires_at === null || row.expires_at > now
      if (isAlive && row.has_prefixes === 1 && (statuses === undefined || statuses.includes(row.status)))
        found.push(row)
    }
    const tasks = (found.flatMap(({ seq }) => this.#sql.record.all([seq])) as TaskRow[]).map((row) =>
      toRecord(row, decoder),
    )
    if (last === undefined || (looked.length < most && last === looked.at(-1))) return { tasks }
    return { tasks, next: owner === undefined ? cursorOf(0, last.seq) : cursorOf(last.created_at, last.id) }
  }

  inspect(id: string, now: number): InspectedTask | undefined {
    const [row] = this.#sql.inspect.all([toPlain(id), now]) as InspectedRow[]
    if (row === undefined) return undefined
    const entries = this.#sql.entries.all([row.seq]) as { text: string }[]
    return {
      ...toRecord(row, decoder),
      journal: journalOf(entries.map(({ text }) => text)),
      claimedBy: row.claimed_by === null ? undefined : fromPlain(row.claimed_by),
      leaseUntil: row.lease_until ?? undefined,
      dueAt: row.due_at ?? undefined,
      expiresAt: row.expires_at ?? undefined,
    }
  }

  #lookAtOwner(
    owner: string,
    prefixes: readonly string[],
    { cursor, createdBefore }: TaskQuery,
    most: number,
  ): unknown[] {
    const { major, minor } =
      cursor === undefined ? { major: createdBefore ?? Number.MAX_SAFE_INTEGER, minor: '' } : readCursor(cursor)
    return this.#sql.lookAtOwner.all([...prefixes, major, most, toPlain(owner), minor])
  }

  #seqBefore({ cursor, createdBefore }: TaskQuery): number {
    if (cursor !== undefined) return Number(readCursor(cursor).minor) || 0
    return createdBefore === undefined ? Number.MAX_SAFE_INTEGER : this.#firstSince(createdBefore)
  }

  /** The lowest `seq` of a task that was created at this time or later, found by halving. */
  #firstSince(time: number): number {
    const [last] = this.#sql.last.all([]) as { seq: number | null }[]
    let low = 0
    let high = (last?.seq ?? 0) + 1
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      const [row] = this.#sql.firstFrom.all([middle]) as { seq: number; created_at: number }[]
      if (row === undefined || row.created_at >= time) high = middle
      else low = row.seq + 1
    }
    return low
  }
}
