// Tasks in PostgreSQL. The numbers are those of the invariants in store/tasks.ts.
//
// Each operation is one statement, and so one transaction (1). A write locks the task's row by updating it, so that its precondition is
// checked against what the last writer left, not against what the statement saw when it began (2).
import { toRecord, type RowDecoder, type TaskRow } from '../task-row.ts'
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
import { entriesOf, isEnd, journalOf, MAX_LIST } from '../tasks.ts'
import { AppendQueue } from './append-queue.ts'
import { ClaimQueries } from './claim.ts'
import type { PostgresDatabase, Row } from './database.ts'
import type { Listener } from './listener.ts'
import { taskStatements, type TaskStatements } from './statements.ts'
import { Sweeper } from './sweeper.ts'
import { asName, fromText, toName, toSpan, toText } from './text.ts'

const decoder: RowDecoder = { name: fromText, json: fromText }

export class PostgresTasks implements TaskStore {
  readonly #database: PostgresDatabase
  readonly #listener: Listener
  readonly #statements: TaskStatements
  readonly #claims: ClaimQueries
  readonly #appends = new AppendQueue((lease, entries) => this.#append(lease, entries))
  readonly #sweeper: Sweeper
  readonly #otherParts: readonly Pick<Sweeper, 'sweep'>[]

  /** `otherParts` of the store are swept together with the tasks: on a quiet day, no new row of theirs starts a sweep. */
  constructor(database: PostgresDatabase, listener: Listener, otherParts: readonly Pick<Sweeper, 'sweep'>[]) {
    this.#database = database
    this.#listener = listener
    this.#statements = taskStatements(database.schema, listener.channel)
    this.#claims = new ClaimQueries(database)
    this.#sweeper = new Sweeper(database, 'tasks', ['id'])
    this.#otherParts = otherParts
  }

  async create(task: NewTask): Promise<TaskRecord> {
    const { id, owner, request, state, journal, message, pollMs, ttlMs } = task
    const values = [
      toName('id of a task', id),
      toName('owner of a task', owner),
      toText('request', request),
      toText('state', state),
      toText('journal', entriesOf(journal)),
      textOrNull('message', message),
      toSpan(pollMs),
      ttlMs === null ? null : toSpan(ttlMs),
    ]
    for (;;) {
      const [row] = await this.#database.run(this.#statements.create, values)
      if (row !== undefined) {
        if (row['replaced'] === true) await this.#database.run(this.#statements.dropReplaced, [values[0]])
        return recordOf(row)
      }
      // Another caller created it during this statement, which does not see it. The next statement does, if the task still exists.
      const existing = await this.read(id)
      if (existing !== undefined) return existing
    }
  }

  async read(id: string): Promise<TaskRecord | undefined> {
    const name = asName(id)
    if (name === undefined) return undefined
    const [row] = await this.#database.run(this.#statements.read, [name])
    return row && recordOf(row)
  }

  async versions(ids: readonly string[]): Promise<TaskVersion[]> {
    const names = ids.flatMap((id) => asName(id) ?? [])
    const rows = await this.#database.run(this.#statements.versions, [names])
    return rows.map((row) => ({ id: fromText(row['id']), version: Number(row['version']) }))
  }

  async list(owner: string, limit: number, after?: TaskPosition): Promise<TaskRecord[]> {
    const most = Math.min(Math.floor(limit), MAX_LIST)
    const name = asName(owner)
    if (name === undefined || !(most > 0)) return []
    const [createdAt, id] = after === undefined ? [-1, ''] : [after.createdAt, asName(after.id) ?? '']
    const rows = await this.#database.run(this.#statements.list, [name, createdAt, id, most])
    return rows.map(recordOf)
  }

  async claim({ after, except, running = [], leaseMs }: ClaimRequest): Promise<ClaimedTask | undefined> {
    const exceptName = except === undefined ? undefined : asName(except)
    const fences = running.map(({ fence }) => fence)
    const [query, values] = this.#claims.of(toSpan(leaseMs), asName(after) ?? '', fences, exceptName)
    const [row] = await this.#database.run(query, values)
    if (row === undefined) return undefined
    const record = recordOf(row)
    const lease = { id: record.id, fence: Number(row['fence']) }
    const journal = row['whole'] === true ? partsOf(row) : await this.#journalOf(lease)
    return journal && { ...record, ...lease, journal: journalOf(journal), lost: row['lost'] === true }
  }

  async renew(leases: readonly TaskLease[], leaseMs: number): Promise<RenewedLease[]> {
    const names = leases.map(({ id }) => asName(id) ?? '')
    const fences = leases.map(({ fence }) => fence)
    if (names.length === 0) return []
    const rows = await this.#database.run(this.#statements.renew, [names, fences, toSpan(leaseMs)])
    const versions = new Map(
      rows.map((row) => [`${Number(row['fence'])} ${fromText(row['id'])}`, Number(row['version'])]),
    )
    return leases.flatMap(({ id, fence }) => {
      const version = versions.get(`${fence} ${id}`)
      return version === undefined ? [] : [{ id, fence, version }]
    })
  }

  append(lease: TaskLease, entriesText: string): Promise<boolean> {
    return this.#appends.append(lease, entriesText)
  }

  async change(id: string, precondition: TaskPrecondition, change: TaskChange): Promise<number | undefined> {
    const name = asName(id)
    if (name === undefined) return undefined
    const { status, state, outcome, journal, dueMs, release = false } = change
    const ends = status !== undefined && isEnd(status)
    const [row] = await this.#database.run(this.#statements.change, [
      name,
      precondition.fence ?? null,
      precondition.version ?? null,
      status ?? null,
      'message' in change,
      textOrNull('message', change.message),
      textOrNull('state', state),
      textOrNull('outcome', outcome),
      ends ? '' : journal === undefined ? null : toText('journal', entriesOf(journal)),
      ends || dueMs !== undefined,
      ends || dueMs === null || dueMs === undefined ? null : toSpan(dueMs),
      ends || release,
    ])
    return row && Number(row['version'])
  }

  async usage(owner: string): Promise<TaskUsage> {
    const name = asName(owner)
    const [row] = name === undefined ? [] : await this.#database.run(this.#statements.usage, [name])
    return { open: Number(row?.['open'] ?? 0), bytes: Number(row?.['bytes'] ?? 0) }
  }

  async sweep(): Promise<number> {
    const [tasks] = await Promise.all([this.#sweeper.sweep(), ...this.#otherParts.map((part) => part.sweep())])
    return tasks
  }

  watch(listener: (event: TaskEvent) => void): () => void {
    return this.#listener.watchTasks(listener)
  }

  async #append({ id, fence }: TaskLease, entries: string): Promise<boolean> {
    const name = asName(id)
    if (name === undefined) return false
    const values = [name, fence, toText('journal', entries)]
    return (await this.#database.run(this.#statements.append, values)).length > 0
  }

  /** The journal, read in a statement after the claim. `undefined` if the lease is already lost. */
  async #journalOf({ id, fence }: TaskLease): Promise<string[] | undefined> {
    const [row] = await this.#database.run(this.#statements.journal, [asName(id), fence])
    return row && partsOf(row)
  }
}

function recordOf(row: Row): TaskRecord {
  return toRecord(row as unknown as TaskRow, decoder)
}

function partsOf(row: Row): string[] {
  return [row['journal'], row['entries']].flatMap((part) => (part === null ? [] : [fromText(part)]))
}

function textOrNull(what: string, text: string | undefined): string | null {
  return text === undefined ? null : toText(what, text)
}
