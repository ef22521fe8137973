// Tasks in PostgreSQL. The numbers are those of the invariants in store/tasks.ts.
//
// Operations on several tasks share a statement, which is one transaction (1). A write locks the task's row, so that its precondition is
// checked against what the last writer left, not against what the statement saw when it began (2).
import type { FoundTasks, InspectedTask, TaskQuery } from '../tasks.ts'
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
import { entriesOf, isEnd, journalOf, MAX_LIST, newRecord } from '../tasks.ts'
import { AppendQueue } from './append-queue.ts'
import { ArrayValue } from './array-value.ts'
import { Batches, type BatchItem } from './batches.ts'
import { ClaimQueries, type ClaimValues } from './claim.ts'
import type { PostgresDatabase, Row } from './database.ts'
import { Groups } from './groups.ts'
import type { Listener } from './listener.ts'
import { PostgresTaskQueries } from './operations.ts'
import { taskStatements, WRITE_COLUMNS, type TaskStatements } from './statements.ts'
import { Sweeper } from './sweeper.ts'
import { asName, fromText, toName, toSpan, toText } from './text.ts'

const decoder: RowDecoder = { name: fromText, json: fromText }

type WriteColumns = typeof WRITE_COLUMNS

/** A write, which shares its statement with others. */
interface Write extends BatchItem {
  readonly statement: keyof WriteColumns
  /** By column. */
  readonly values: Readonly<Record<string, unknown>>
}

export class PostgresTasks implements TaskStore {
  readonly #database: PostgresDatabase
  readonly #listener: Listener
  readonly #statements: TaskStatements
  readonly #claims: ClaimQueries
  readonly #groups: Groups
  readonly #queries: PostgresTaskQueries
  readonly #appends = new AppendQueue((lease, entries) => this.#append(lease, entries))
  readonly #writes = new Batches<Write, Row>('writes', (items) => this.#runWrites(items))
  readonly #reads = new Batches<BatchItem, Row>('reads', (items) => this.#runReads(items))
  readonly #sweeper: Sweeper
  readonly #otherParts: readonly Pick<Sweeper, 'sweep'>[]

  /** `otherParts` of the store are swept together with the tasks: on a quiet day, no new row of theirs starts a sweep. */
  constructor(database: PostgresDatabase, listener: Listener, otherParts: readonly Pick<Sweeper, 'sweep'>[]) {
    this.#database = database
    this.#listener = listener
    this.#statements = taskStatements(database.schema)
    this.#claims = new ClaimQueries(database)
    this.#groups = new Groups(database, () => listener.send([{ type: 'due' }]))
    this.#queries = new PostgresTaskQueries(database)
    this.#sweeper = new Sweeper(database, 'tasks', ['id'])
    this.#otherParts = otherParts
  }

  create(task: NewTask): Promise<TaskRecord> {
    return this.#create(task, null)
  }

  createAndClaim(task: NewTask, leaseMs: number, worker?: string): Promise<TaskRecord | ClaimedTask> {
    return this.#create(task, task.group === undefined ? toSpan(leaseMs) : null, worker)
  }

  async #create(task: NewTask, leaseMs: number | null, worker?: string): Promise<TaskRecord | ClaimedTask> {
    const { id, owner, request, state, journal, message, pollMs, ttlMs, group } = task
    const write = writing('create', {
      id: toName('id of a task', id),
      owner: toName('owner of a task', owner),
      request: toText('request', request),
      state: toText('state', state),
      journal: toText('journal', entriesOf(journal)),
      message: textOrNull('message', message),
      poll_ms: toSpan(pollMs),
      ttl_ms: ttlMs === null ? null : toSpan(ttlMs),
      lease_ms: leaseMs,
      claimed_by: textOrNull('worker', worker),
      group_name: group === undefined ? null : toName('group of a task', group.name),
      group_limit: group === undefined ? null : toSpan(group.limit),
    })
    for (;;) {
      const row = await this.#writes.add(write)
      if (row !== undefined) {
        const record = newRecord(task, Number(row['created_at']))
        return leaseMs === null ? record : { ...record, fence: Number(row['fence']), journal, lost: false }
      }
      // It exists, or another caller created it during this statement. It may also expire before it is read.
      const existing = await this.read(id)
      if (existing !== undefined) return existing
    }
  }

  async read(id: string): Promise<TaskRecord | undefined> {
    const key = asName(id)
    const row = key === undefined ? undefined : await this.#reads.add({ key, size: 0, statement: 'read' })
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

  async claim(request: ClaimRequest): Promise<ClaimedTask | undefined> {
    const [task] = await this.claimMany(request, 1)
    return task
  }

  async claimMany(request: ClaimRequest, limit: number): Promise<ClaimedTask[]> {
    if (request.groups === true) await this.#groups.poll()
    const [query, values] = this.#claims.upTo(limit, claimValues(request))
    const rows = await this.#database.run(query, values)
    const claimed = await Promise.all(rows.map((row) => this.#claimed(row)))
    return claimed.filter((task) => task !== undefined)
  }

  async renew(leases: readonly TaskLease[], leaseMs: number): Promise<RenewedLease[]> {
    if (leases.length === 0) return []
    // In the order of the ids, as all statements lock rows.
    const sorted = leases
      .map(({ id, fence }) => ({ name: asName(id) ?? '', fence }))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    const columns = [sorted.map(({ name }) => name), sorted.map(({ fence }) => fence)]
    const rows = await this.#database.run(this.#statements.renew, [...columns, toSpan(leaseMs)])
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
    const row = await this.#change(id, precondition, change)
    return row && Number(row['version'])
  }

  async changeAndClaim(
    id: string,
    precondition: TaskPrecondition,
    change: TaskChange,
    leaseMs: number,
    worker?: string,
  ): Promise<number | ClaimedTask | undefined> {
    const row = await this.#change(id, precondition, change, { leaseMs: toSpan(leaseMs), worker })
    // Without a task as well if that claim is lost already.
    const claimed = row?.['claims'] === true ? await this.#claimed(row) : undefined
    return claimed ?? (row && Number(row['version']))
  }

  async #change(
    id: string,
    precondition: TaskPrecondition,
    change: TaskChange,
    claim?: { readonly leaseMs: number; readonly worker: string | undefined },
  ): Promise<Row | undefined> {
    const name = asName(id)
    if (name === undefined) return undefined
    const { status, state, outcome, journal, dueMs, release = false, keepMs } = change
    const ends = status !== undefined && isEnd(status)
    const drops = ends && keepMs === undefined
    const write = writing('change', {
      id: name,
      fence: precondition.fence ?? null,
      version: precondition.version ?? null,
      status: status ?? null,
      has_message: 'message' in change,
      message: textOrNull('message', change.message),
      state: textOrNull('state', state),
      outcome: textOrNull('outcome', outcome),
      journal: drops ? '' : journal === undefined ? null : toText('journal', entriesOf(journal)),
      has_due: ends || dueMs !== undefined,
      due_ms: ends || dueMs === null || dueMs === undefined ? null : toSpan(dueMs),
      releases: ends || release,
      lease_ms: claim?.leaseMs ?? null,
      worker: textOrNull('worker', claim?.worker),
      keep_ms: ends && keepMs !== undefined ? toSpan(keepMs) : null,
    })
    return this.#writes.add(write)
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

  find(query: TaskQuery): Promise<FoundTasks> {
    return this.#queries.find(query)
  }

  inspect(id: string): Promise<InspectedTask | undefined> {
    return this.#queries.inspect(id)
  }

  remove(ids: readonly string[]): Promise<number> {
    return this.#queries.remove(ids)
  }

  watch(listener: (event: TaskEvent) => void): () => void {
    return this.#listener.watchTasks(listener)
  }

  async #append({ id, fence }: TaskLease, entries: string): Promise<boolean> {
    const name = asName(id)
    if (name === undefined) return false
    const row = await this.#writes.add(writing('append', { id: name, fence, entries: toText('journal', entries) }))
    return row !== undefined
  }

  /** A task that exists already has no row, nor has one whose precondition does not hold. */
  async #runWrites(writes: readonly Write[]): Promise<Map<string, Row>> {
    const { statement } = writes[0] as Write
    const columns = Object.entries(WRITE_COLUMNS[statement]).map(([name, type]) => {
      const column = writes.map(({ values }) => values[name])
      return new ArrayValue(type, column)
    })
    const rows = await this.#database.run(this.#statements[statement], columns)
    if (statement !== 'append') {
      this.#listener.send(statement === 'create' ? createdEvents(writes, rows) : changedEvents(rows))
      this.#groups.touch(rows.flatMap(({ group_name: group }) => (typeof group === 'string' ? [group] : [])))
      await this.#dropReplaced(rows)
    }
    return byId(rows)
  }

  async #runReads(items: readonly BatchItem[]): Promise<Map<string, Row>> {
    const ids = items.map(({ key }) => key)
    return byId(await this.#database.run(this.#statements.read, [new ArrayValue('text', ids)]))
  }

  /** Deletes the entries of journals that were replaced. Nobody reads these any more, so it does not matter if it fails. */
  async #dropReplaced(rows: readonly Row[]): Promise<void> {
    const ids = rows.flatMap((row) => (row['replaced'] === true ? [row['id']] : []))
    if (ids.length > 0) await this.#database.run(this.#statements.dropReplaced, [ids]).catch(() => {})
  }

  /** The task in a row that a claim returned. `undefined` if the lease is already lost. */
  async #claimed(row: Row): Promise<ClaimedTask | undefined> {
    const record = recordOf(row)
    const lease = { id: record.id, fence: Number(row['fence']) }
    const journal = row['whole'] === true ? partsOf(row) : await this.#journalOf(lease)
    const lostWorker = typeof row['lost_worker'] === 'string' ? fromText(row['lost_worker']) : undefined
    return journal && { ...record, ...lease, journal: journalOf(journal), lost: row['lost'] === true, lostWorker }
  }

  /** The journal, read in a statement after the claim. `undefined` if the lease is already lost. */
  async #journalOf({ id, fence }: TaskLease): Promise<string[] | undefined> {
    const [row] = await this.#database.run(this.#statements.journal, [asName(id), fence])
    return row && partsOf(row)
  }
}

function claimValues({ after, except, running = [], leaseMs, worker }: ClaimRequest): ClaimValues {
  return {
    leaseMs: toSpan(leaseMs),
    after: asName(after) ?? '',
    except: except === undefined ? undefined : asName(except),
    fences: running.map(({ fence }) => fence),
    worker: textOrNull('worker', worker),
  }
}

function writing<Name extends keyof WriteColumns>(
  statement: Name,
  values: Readonly<Record<keyof WriteColumns[Name], unknown>> & { readonly id: string },
): Write {
  let size = 0
  for (const value of Object.values(values)) if (typeof value === 'string') size += value.length
  return { statement, key: values.id, size, values }
}

function byId(rows: readonly Row[]): Map<string, Row> {
  return new Map(rows.map((row) => [String(row['id']), row]))
}

/** Nobody waits for a task that is claimed already, nor for one that has no place yet. */
function createdEvents(writes: readonly Write[], rows: readonly Row[]): TaskEvent[] {
  const isDue = writes.some(({ values }) => values['lease_ms'] === null && values['group_name'] === null)
  return rows.length > 0 && isDue ? [{ type: 'due' }] : []
}

function changedEvents(rows: readonly Row[]): TaskEvent[] {
  const changed = rows.map((row): TaskEvent => {
    return { type: 'changed', id: fromText(row['id']), version: Number(row['version']) }
  })
  return rows.some((row) => row['is_due'] === true) ? [...changed, { type: 'due' }] : changed
}

function recordOf(row: Row): TaskRecord {
  return toRecord(row as unknown as TaskRow, decoder)
}

function partsOf(row: Row): string[] {
  return [row['journal'], row['entries']].flatMap((part) => (typeof part === 'string' ? [fromText(part)] : []))
}

function textOrNull(what: string, text: string | undefined): string | null {
  return text === undefined ? null : toText(what, text)
}
