// Tasks in PostgreSQL. The numbers are those of the invariants in tasks/store.ts.
//
// Each operation is one statement, and so one transaction (1). Whoever writes locks the task's row by updating it, so that
// what it believes is held against what the last writer left, not against what was there when it began (2).
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
import { Appending } from './append-queue.ts'
import { Claiming } from './claim.ts'
import type { Database } from './database.ts'
import type { Listening } from './listener.ts'
import { recordOf } from './record.ts'
import { taskStatements, type TaskStatements } from './statements.ts'
import { Sweeping } from './sweeper.ts'
import { asName, fromText, toName, toSpan, toText } from './texts.ts'

const LONGEST_LIST = 1_000

export class PostgresTasks implements TaskStore {
  readonly #database: Database
  readonly #listening: Listening
  readonly #statements: TaskStatements
  readonly #claiming: Claiming
  readonly #appending = new Appending((held, entries) => this.#append(held, entries))
  /** The tasks first. */
  readonly #swept: readonly Pick<Sweeping, 'sweep'>[]

  /** What else there is to sweep goes with the tasks: nobody else comes by on a quiet day. */
  constructor(database: Database, listening: Listening, others: readonly Pick<Sweeping, 'sweep'>[]) {
    this.#database = database
    this.#listening = listening
    this.#statements = taskStatements(database.schema, listening.channel)
    this.#claiming = new Claiming(database)
    this.#swept = [new Sweeping(database, 'tasks', ['id']), ...others]
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
        if (row['again'] === true) await this.#database.run(this.#statements.forget, [values[0]])
        return recordOf(row)
      }
      // Another made it while this statement was under way, which does not see it: the next one does, if it is still there.
      const there = await this.read(id)
      if (there !== undefined) return there
    }
  }

  async read(id: string): Promise<TaskRecord | undefined> {
    const name = asName(id)
    if (name === undefined) return undefined
    const [row] = await this.#database.run(this.#statements.read, [name])
    return row && recordOf(row)
  }

  async list(owner: string, limit: number, after?: { id: string; createdAt: number }): Promise<TaskRecord[]> {
    const most = Math.min(Math.floor(limit), LONGEST_LIST)
    const name = asName(owner)
    if (name === undefined || !(most > 0)) return []
    const [createdAt, id] = after === undefined ? [-1, ''] : [after.createdAt, asName(after.id) ?? '']
    return (await this.#database.run(this.#statements.list, [name, createdAt, id, most])).map(recordOf)
  }

  async claim(turn: { after: string; except?: string | undefined; leaseMs: number }): Promise<ClaimedTask | undefined> {
    const except = turn.except === undefined ? undefined : asName(turn.except)
    const [statement, values] = this.#claiming.of(toSpan(turn.leaseMs), asName(turn.after) ?? '', except)
    const [row] = await this.#database.run(statement, values)
    if (row === undefined) return undefined
    const record = recordOf(row)
    const held = { id: record.id, fence: Number(row['fence']) }
    const journal = row['whole'] === true ? partsOf(row) : await this.#journalOf(held)
    return journal && { ...record, ...held, journal: journalOf(journal), lost: row['lost'] === true }
  }

  async renew(held: readonly TaskLease[], leaseMs: number): Promise<RenewedLease[]> {
    const names = held.map(({ id }) => asName(id) ?? '')
    const fences = held.map(({ fence }) => fence)
    if (names.length === 0) return []
    const rows = await this.#database.run(this.#statements.renew, [names, fences, toSpan(leaseMs)])
    const versions = new Map(
      rows.map((row) => [`${Number(row['fence'])} ${fromText(row['id'])}`, Number(row['version'])]),
    )
    return held.flatMap(({ id, fence }) => {
      const version = versions.get(`${fence} ${id}`)
      return version === undefined ? [] : [{ id, fence, version }]
    })
  }

  append(held: TaskLease, entriesText: string): Promise<boolean> {
    return this.#appending.append(held, entriesText)
  }

  async change(id: string, belief: TaskPrecondition, change: TaskChange): Promise<number | undefined> {
    const name = asName(id)
    if (name === undefined) return undefined
    const { status, state, outcome, journal, dueMs, release = false } = change
    const ends = status !== undefined && isEnd(status)
    const [row] = await this.#database.run(this.#statements.change, [
      name,
      belief.fence ?? null,
      belief.version ?? null,
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

  async sweep(): Promise<number> {
    const [tasks = 0] = await Promise.all(this.#swept.map((each) => each.sweep()))
    return tasks
  }

  watch(listener: (news: TaskEvent) => void): () => void {
    return this.#listening.watchTasks(listener)
  }

  async #append({ id, fence }: TaskLease, entries: string): Promise<boolean> {
    const name = asName(id)
    if (name === undefined) return false
    const values = [name, fence, toText('journal', entries)]
    return (await this.#database.run(this.#statements.append, values)).length > 0
  }

  /** Read once nobody else can add to it. Nothing where the task has changed hands again. */
  async #journalOf({ id, fence }: TaskLease): Promise<string[] | undefined> {
    const [row] = await this.#database.run(this.#statements.journal, [asName(id), fence])
    return row && partsOf(row)
  }
}

function partsOf(row: Record<string, unknown>): string[] {
  return [row['journal'], row['entries']].flatMap((part) => (part === null ? [] : [fromText(part)]))
}

function textOrNull(what: string, text: string | undefined): string | null {
  return text === undefined ? null : toText(what, text)
}
