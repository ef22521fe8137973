// What has happened to a task so far: who claimed it, which steps were tried, what was asked, what it waited for. For operations only.
//
// 1. It is a part of the task's state, so it adds no statement to a task's life. What a worker noted after its last write of the state
//    is lost with the worker; the next one adds what the journal tells of it.
// 2. It is bounded, in rows and in the length of its texts, and holds no payload: neither arguments, nor answers, nor results. Of an
//    error whose message callers may not read, it holds the name, the code and the reference by which the log has the message.
import type { AnswerPayload, Entry, Journal } from '../flow/journal.ts'
import { RallyError } from '../protocol/errors.ts'
import type {
  AskEnd,
  Observation,
  ObservedAsk,
  ObservedStep,
  ObservedWait,
  Observer,
  StepEnd,
  WaitEnd,
} from '../flow/observer.ts'

export type HistoryType = 'claim' | 'step' | 'ask' | 'wait' | 'retry'

export interface HistoryRow {
  readonly type: HistoryType
  /** Milliseconds since 1970. */
  readonly at: number
  /** `undefined` if it is not over, or if nobody knows when it was. */
  until: number | undefined
  worker: string | undefined
  /** Empty for a claim. */
  readonly key: string
  /** The attempt of a step, from 1. */
  readonly attempt?: number
  /** When a wait is over, or when a question expires. */
  dueAt?: number | undefined
  /** How it ended. */
  how?: string | undefined
  error?: string | undefined
}

export interface History {
  readonly rows: readonly HistoryRow[]
  /** How many rows there is no room for. */
  readonly dropped: number
}

/** A worker's claim, as the store keeps it beside the task. */
export interface ClaimNote {
  readonly worker: string
  /** By the clock of that worker. */
  readonly at: number
}

const MAX_ROWS = 200
/** Of the rows that are too many, the ones after these go first: how a task began is worth knowing. */
const FIRST_ROWS = 20
const MAX_ERROR_LENGTH = 300
const MAX_WORKER_LENGTH = 100

export class TaskHistory implements Observer {
  readonly #rows: HistoryRow[]
  readonly #now: () => number
  readonly #receivedAt: (key: string) => number | undefined
  readonly #referenceOf: ((key: string) => string) | undefined
  #dropped: number
  #claim: HistoryRow | undefined

  /**
   * `receivedAt` is when the answer to a question was received, `referenceOf` what the log calls the failure of a step. Without it, the
   * messages of all errors are kept.
   */
  constructor(
    stored: unknown,
    now: () => number,
    receivedAt: (key: string) => number | undefined,
    referenceOf?: (key: string) => string,
  ) {
    const { rows, dropped } = readHistory(stored)
    this.#rows = [...rows]
    this.#dropped = dropped
    this.#now = now
    this.#receivedAt = receivedAt
    this.#referenceOf = referenceOf
  }

  /** A history to read and not to write. */
  static of(rows: readonly HistoryRow[]): TaskHistory {
    const history = new TaskHistory(undefined, Date.now, () => undefined)
    history.#rows.push(...rows)
    return history
  }

  get rows(): readonly HistoryRow[] {
    return this.#rows
  }

  /** A worker has claimed the task. `lost` is the worker before it, if its lease expired. */
  claimed(worker: string, lost: ClaimNote | 'unknown' | undefined): void {
    const now = this.#now()
    if (lost !== undefined) {
      const unfinished = this.#openRow('claim', '')
      const row = unfinished ?? this.#add('claim', '', lost === 'unknown' ? now : lost.at)
      if (lost !== 'unknown') row.worker = lost.worker
      row.until = now
      row.how = 'lost'
    }
    this.#claim = this.#add('claim', '', now)
    this.#claim.worker = worker.slice(0, MAX_WORKER_LENGTH)
  }

  /** Adds the entries of the journal that no row tells of: those of a worker that was lost, or of the call before it became a task. */
  addEntries(journal: Journal, startedAt: number): this {
    const retriedAt = this.#rows.findLast(({ type }) => type === 'retry')?.at ?? 0
    const settled = new Map<string, HistoryRow>()
    const unfinished = new Map<string, HistoryRow>()
    // If rows were dropped: an entry that is older than this and has no row was among them.
    let writtenUntil = -Infinity
    for (const row of this.#rows) {
      if (row.until === undefined) unfinished.set(`${row.type} ${row.key}`, row)
      else settled.set(row.key, row)
      if (this.#dropped > 0 && row.type !== 'claim') writtenUntil = Math.max(writtenUntil, row.until ?? row.at)
    }
    for (let i = 0; i < journal.length; i += 1) {
      const entry = journal.at(i)
      const type = entry && ENTRY_TYPES[entry.tag[0] ?? '']
      if (entry === undefined || type === undefined) continue
      const at = startedAt + entry.at
      const how = howOf(entry)
      const open =
        unfinished.get(`${type} ${entry.key}`) ?? (type === 'ask' ? unfinished.get(`wait ${entry.key}`) : undefined)
      const known = settled.get(entry.key)
      // A row before a retry tells nothing of an entry after it, and a failed attempt nothing of a result.
      const isKnown = known !== undefined && (known.at >= retriedAt || at <= retriedAt) && known.how !== 'failed'
      const wasDropped = known === undefined && at <= writtenUntil
      if (open === undefined && (isKnown || wasDropped || (known?.how === 'failed' && how === 'failed'))) continue
      const row = open ?? this.#add(type, entry.key, at)
      row.until = Math.max(at, row.at)
      if (open === undefined) row.worker = this.#workerAt(at)
      // An event that came ends a wait.
      row.how = row.type === 'wait' && entry.tag === 'a' ? 'over' : how
    }
    return this
  }

  /** The worker is about to release the task, or to end it. May be called again, if that write had to be repeated. */
  released(how: 'released' | 'ended'): void {
    if (this.#claim === undefined) return
    const now = this.#now()
    this.#claim.until = now
    this.#claim.how = how
    if (how === 'released') this.#joinIdleClaims()
    for (const row of this.#rows) {
      if (row.until !== undefined || row.dueAt === undefined || row.dueAt > now) continue
      // As long as the task has not ended, the answer to a question may be on its way into a pass.
      if (row.type !== 'wait' && how !== 'ended') continue
      row.until = row.dueAt
      row.how = row.type === 'wait' ? 'over' : 'expired'
    }
  }

  step({ key, attempt }: ObservedStep): (end: StepEnd) => void {
    const row = this.#add('step', key, this.#now(), attempt)
    return ({ outcome, error }) => {
      row.until = this.#now()
      row.how = outcome
      if (error !== undefined) row.error = errorText(error, this.#referenceOf?.(key))
    }
  }

  ask({ key }: ObservedAsk): Observation<AskEnd> {
    const row = this.#openRow('ask', key) ?? this.#add('ask', key, this.#now())
    return ({ outcome }) => {
      if (outcome === 'open') return
      row.until = Math.max(row.at, this.#receivedAt(key) ?? this.#now())
      row.how = outcome
    }
  }

  /** Ends the waits for events that have come. */
  eventsCame(events: Readonly<Record<string, { readonly at: number }>>): void {
    for (const [key, { at }] of Object.entries(events)) {
      const row = this.#openRow('wait', key)
      if (row === undefined) continue
      row.until = Math.max(row.at, at)
      row.how = 'over'
    }
  }

  wait({ for: reason, keys, dueAt }: ObservedWait): Observation<WaitEnd> {
    if (reason === 'event') {
      for (const each of keys) if (this.#openRow('wait', each) === undefined) this.#add('wait', each, this.#now())
    }
    if (reason !== 'time' || dueAt === undefined) return undefined
    const [key = ''] = keys
    const question = this.#openRow('ask', key)
    const row = question ?? this.#openRow('wait', key) ?? this.#add('wait', key, this.#now())
    row.dueAt = dueAt
    if (question !== undefined) return undefined
    return ({ outcome }) => {
      if (outcome !== 'over') return
      row.until = this.#now()
      row.how = 'over'
    }
  }

  write(): unknown {
    this.#bound()
    return writeHistory({ rows: this.#rows, dropped: this.#dropped })
  }

  #add(type: HistoryType, key: string, at: number, attempt?: number): HistoryRow {
    const worker = type === 'claim' ? undefined : this.#claim?.worker
    const row: HistoryRow = { type, at, until: undefined, worker, key, ...(attempt !== undefined && { attempt }) }
    this.#rows.push(row)
    return row
  }

  /** A task may be claimed many times only to be left to another worker. Of such claims in a row, one row tells. */
  #joinIdleClaims(): void {
    const [one, other] = this.#rows.slice(-2)
    if (other !== this.#claim || one?.type !== 'claim' || one.how !== 'released' || other?.until === undefined) return
    this.#rows.pop()
    one.until = other.until
    one.worker = other.worker
    this.#claim = one
  }

  #openRow(type: HistoryType, key: string): HistoryRow | undefined {
    return this.#rows.findLast((row) => row.type === type && row.key === key && row.until === undefined)
  }

  /** What was recorded before the last claim is not that worker's, also if it was in the same millisecond. */
  #workerAt(time: number): string | undefined {
    const isAt = (row: HistoryRow): boolean =>
      row.type === 'claim' && row !== this.#claim && row.at <= time && time <= (row.until ?? time)
    return this.#rows.findLast(isAt)?.worker
  }

  #bound(): void {
    const tooMany = this.#rows.length - MAX_ROWS
    if (tooMany <= 0) return
    this.#rows.splice(FIRST_ROWS, tooMany)
    this.#dropped += tooMany
  }
}

/** The first letters of the tags of the journal. */
const ENTRY_TYPES: Readonly<Record<string, HistoryType>> = { s: 'step', c: 'step', a: 'ask', t: 'wait' }

function howOf({ tag, payload }: Entry): string {
  switch (tag) {
    case 'se':
    case 'ce':
      return 'failed'
    case 'a':
      return (payload as AnswerPayload)[2]
    case 'ax':
      return 'expired'
    case 't':
      return 'over'
    default:
      return 'completed'
  }
}

// The stored form: the names of the workers once, times as differences, and no member that can be left out at the end of a row.

const TYPES: readonly HistoryType[] = ['claim', 'step', 'ask', 'wait', 'retry']

/** `readHistory` is the inverse. */
export function writeHistory({ rows, dropped }: History): unknown {
  const workers: string[] = []
  let before = 0
  const written = rows.map(({ type, at, until, worker, key, attempt = 1, dueAt, how, error }) => {
    if (worker !== undefined && !workers.includes(worker)) workers.push(worker)
    const row: unknown[] = [
      TYPES.indexOf(type),
      at - before,
      until === undefined ? null : until - at,
      worker === undefined ? -1 : workers.indexOf(worker),
      key,
      type === 'step' ? attempt : dueAt === undefined ? null : dueAt - at,
      how ?? null,
      error ?? null,
    ]
    before = at
    while (row.at(-1) === null) row.pop()
    return row
  })
  return [workers, written, ...(dropped > 0 ? [dropped] : [])]
}

/** Operations must not fail because of a history that a newer version wrote: rows of an unknown form are left out. */
export function readHistory(stored: unknown): History {
  const [workers, written, dropped] = Array.isArray(stored) ? (stored as unknown[]) : []
  if (!Array.isArray(workers) || !Array.isArray(written)) return { rows: [], dropped: 0 }
  let before = 0
  const rows = (written as unknown[]).flatMap((row): HistoryRow[] => {
    if (!Array.isArray(row) || typeof row[1] !== 'number') return []
    const [type, after, lasted, worker, key, detail, how, error] = row as unknown[]
    const at = before + Number(after)
    before = at
    const name = TYPES[Number(type)]
    if (name === undefined) return []
    return [
      {
        type: name,
        at,
        until: typeof lasted === 'number' ? at + lasted : undefined,
        worker: textIn((workers as unknown[])[Number(worker)]),
        key: textIn(key) ?? '',
        ...(name === 'step' && { attempt: Number(detail) || 1 }),
        ...(name !== 'step' && typeof detail === 'number' && { dueAt: at + detail }),
        how: textIn(how),
        error: textIn(error),
      },
    ]
  })
  return { rows, dropped: typeof dropped === 'number' ? dropped : 0 }
}

export function writeClaimNote({ worker, at }: ClaimNote): string {
  return JSON.stringify([worker.slice(0, MAX_WORKER_LENGTH), at])
}

/** `undefined` if it is none. */
export function readClaimNote(text: string | undefined): ClaimNote | undefined {
  try {
    const [worker, at] = JSON.parse(text ?? '[]') as unknown[]
    return typeof worker === 'string' && typeof at === 'number' ? { worker, at } : undefined
  } catch {
    return undefined
  }
}

function textIn(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function errorText(error: unknown, reference: string | undefined): string {
  const isShown = reference === undefined || (error instanceof RallyError && error.isPublic)
  const text = isShown ? shownText(error) : `${nameOf(error)}. Reference: ${reference}`
  return text.length <= MAX_ERROR_LENGTH ? text : `${text.slice(0, MAX_ERROR_LENGTH)}...`
}

function shownText(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
}

/** The name and the code of an error. */
function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error
  const code = 'code' in error && (typeof error.code === 'string' || typeof error.code === 'number') ? error.code : ''
  return `${error.name} ${code}`.trim()
}
