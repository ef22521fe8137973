// What the operators of an app do with its tasks: list them, look into one, cancel, answer, signal, retry and delete them. Nothing of it is on
// the wire of MCP. It works on a store alone, without the code of the app, so that a terminal can do it too.
import type { Wait } from '../flow/flow-state.ts'
import { RallyError } from '../protocol/errors.ts'
import { assertJson, isObject } from '../protocol/json.ts'
import type { CallToolResult, InputRequest, InputResponse } from '../protocol/messages.ts'
import { shown as shownValue } from '../protocol/text.ts'
import type { SignalOutcome } from '../server/tasks.ts'
import type { InspectedTask, TaskRecord, TaskStatus, TaskStore } from '../store/tasks.ts'
import { isEnd, TASK_STATUSES } from '../store/tasks.ts'
import { eventText, receive } from './events.ts'
import { readClaimNote } from './history.ts'
import type { TaskOutcome } from './outcome.ts'
import { outcomeOf, statePrefixOf, TASK_OUTCOMES } from './outcome.ts'
import { retryOf } from './retry.ts'
import type { TaskFlowState, TaskRequest } from './state.ts'
import { flowStateOf, isByHand, ownerOf, readState, retryIdOf, takeAnswers, writeState } from './state.ts'
import { readMessage } from './status-message.ts'
import type { TaskTimelineEntry } from './timeline.ts'
import { timelineOf } from './timeline.ts'

/** Which tasks `app.tasks.list()` returns. Newest first. */
export interface TaskListOptions {
  /** The status that clients see. Default: any. */
  readonly status?: TaskStatus
  /** How the task ended. Finds tasks that ended under this version of mcp-rally or a later one. Default: any, and tasks that have not ended. */
  readonly outcome?: TaskOutcome
  /** The name of the tool. Default: any. */
  readonly tool?: string
  /** The principal whose tasks to list. `null`: callers without one. Default: all. */
  readonly principal?: string | null
  /** Only tasks that were created before this time; or `next` of the page before. Default: now. */
  readonly before?: Date | string
  /** The most tasks of a page, up to 1 000. Default 50. */
  readonly limit?: number
}

/** A page of `app.tasks.list()`. */
export interface TaskList {
  /** The newest first. */
  readonly tasks: readonly TaskSummary[]
  /** Pass it as `before` for the next page. Missing on the last page. A page with `next` may have fewer tasks than `limit`, or none. */
  readonly next?: string
}

/** A task, as a list shows it. */
export interface TaskSummary {
  /** The id of the task, which clients use too. */
  readonly id: string
  /** The name of the tool. */
  readonly tool: string
  /** The status that clients see. A tool that threw is `completed` there: see `outcome`. */
  readonly status: TaskStatus
  /** How it ended. Missing while it has not. */
  readonly outcome?: TaskOutcome
  /** The status message, for people. */
  readonly message?: string
  /** Missing if the caller had none. */
  readonly principal?: string
  /** When the task was created. */
  readonly createdAt: Date
  /** When the task changed last. */
  readonly updatedAt: Date
  /** The id of the failed task that this one retries. */
  readonly retryOf?: string
}

/** A task with its arguments, its open questions, its result and its timeline. */
export interface TaskDetails extends TaskSummary {
  /** The arguments of the call. */
  readonly arguments?: unknown
  /** The questions that it asks now, by the keys that `answer` takes. */
  readonly questions?: Readonly<Record<string, InputRequest>>
  /** The result of a task whose status is `completed`. */
  readonly result?: CallToolResult
  /** The worker that has it now. */
  readonly worker?: string
  /** When it continues, if it waits for a time. */
  readonly dueAt?: Date
  /** When it is deleted. Missing: never. */
  readonly expiresAt?: Date
  /** True if `retry` can make a new task from it. */
  readonly canRetry: boolean
  /** The id of the task that retries this one. */
  readonly retriedAs?: string
  /** What happened to the task, the oldest first. */
  readonly timeline: readonly TaskTimelineEntry[]
  /** How many entries of the timeline there was no room for. */
  readonly dropped: number
}

/** What a payload is: of which tool, and of which question or step. */
export interface PayloadPlace {
  /** What the payload is. */
  readonly kind: 'arguments' | 'question' | 'answer' | 'step' | 'result'
  /** The name of the tool. */
  readonly tool: string
  /** The key of the question or step. */
  readonly key?: string
}

/** What `app.tasks.get()` shows. */
export interface TaskGetOptions {
  /**
   * `true` leaves out all payloads: arguments, questions, answers, results of steps and of the tool. A function returns what to show in
   * their place; `undefined` leaves one out. The status message and the errors of steps are no payloads: they are always shown, also where
   * the error of a step became the result of the tool. Default false.
   */
  readonly redact?: boolean | ((payload: unknown, place: PayloadPlace) => unknown)
}

/** Where `app.tasks.retry()` begins. */
export interface TaskRetryOptions {
  /**
   * The key of a step, question, sleep or scope. It and all that settled after it is done again; answers to later questions are kept.
   * Default: the call whose failure ended the task, if it was one.
   */
  readonly from?: string
}

/** What `app.tasks.prune()` deletes. */
export interface TaskPruneOptions {
  /** Deletes tasks that ended before so many milliseconds. */
  readonly olderThanMs: number
  /** Only tasks that ended like this. Default: any. */
  readonly outcome?: TaskOutcome
  /** Only tasks of this tool. Default: any. */
  readonly tool?: string
}

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 1_000
/** How many times one `list` asks the store, which looks at a bounded number of tasks each time. */
const MAX_LOOKS = 25
const MAX_TRIES = 100
const ENDS = ['completed', 'failed', 'cancelled'] as const satisfies readonly TaskStatus[]

export class TaskOperations {
  readonly #store: TaskStore
  readonly #onDue: () => void

  /** `onDue` is called after a task has become due. */
  constructor(store: TaskStore, onDue: () => void = () => {}) {
    this.#store = store
    this.#onDue = onDue
  }

  /** Lists tasks, the newest first. */
  async list(options: TaskListOptions = {}): Promise<TaskList> {
    const { before, limit = DEFAULT_LIMIT } = options
    checkLimit(limit)
    const filters = filtersOf('list', options)
    const tasks: TaskSummary[] = []
    let from = positionOf(before)
    for (let looks = 0; looks < MAX_LOOKS; looks += 1) {
      const page = await this.#find({ ...filters, ...from, limit: limit - tasks.length })
      tasks.push(...page.tasks.map(summaryOf))
      if (page.next === undefined) return { tasks }
      from = { cursor: page.next }
      if (tasks.length >= limit) break
    }
    return { tasks, ...('cursor' in from && { next: from.cursor }) }
  }

  /** One task, with its timeline. */
  async get(id: string, { redact = false }: TaskGetOptions = {}): Promise<TaskDetails> {
    checkId('get', id)
    const task = await this.#inspect(id)
    const retry = await this.#store.read(retryIdOf(task))
    return detailsOf(task, retry?.id, redactionOf(redact))
  }

  /** Cancels a task, whoever it belongs to. */
  async cancel(id: string): Promise<void> {
    checkId('cancel', id)
    if ((await this.#store.change(id, {}, { status: 'cancelled' })) === undefined) throw await this.#unchangeable(id)
  }

  /** Answers questions of a task in place of its client, by the keys of `questions` in what `get` returns. */
  async answer(id: string, answers: Readonly<Record<string, InputResponse>>): Promise<void> {
    checkId('answer', id)
    checkAnswers(answers)
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const task = await this.#store.read(id)
      if (task === undefined || isEnd(task.status)) throw await this.#unchangeable(id)
      const state = readState(task.state)
      checkAsked(Object.keys(answers), state)
      takeAnswers(state, answers, Date.now())
      const waits = Object.keys(state.shown).length > 0
      const change = {
        state: writeState(state),
        status: waits ? 'input_required' : 'working',
        ...(!(waits && isByHand(state)) && { dueMs: 0 }),
      } as const
      if ((await this.#store.change(id, { version: task.version }, change)) === undefined) continue
      return this.#onDue()
    }
    throw new RallyError('STORE_BUSY', `The task changed ${MAX_TRIES} times while it was answered. Try again.`)
  }

  /** Sends an event to a task by its key. */
  async signal(id: string, key: string, value: unknown): Promise<SignalOutcome> {
    checkId('signal', id)
    const text = eventText(value)
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const task = await this.#store.read(id)
      if (task === undefined || isEnd(task.status)) throw await this.#unchangeable(id)
      const { dueAt } = eventIn(readState(task.state), key)
      const event = { value: JSON.parse(text) as unknown, at: Date.now() }
      const state = receive(task, { key, dueAt }, event)
      if (state === 'repeated') return 'repeated'
      const change = { state: writeState(state), dueMs: 0 }
      if ((await this.#store.change(id, { version: task.version }, change)) === undefined) continue
      this.#onDue()
      return 'accepted'
    }
    throw new RallyError('STORE_BUSY', `The task changed ${MAX_TRIES} times while the event was sent. Try again.`)
  }

  /**
   * Makes a new task of one that ended in error or was given up. It has the same flow, so its steps have the same idempotency keys, and
   * it continues after what was recorded before `from`. Returns the new task.
   */
  async retry(id: string, { from }: TaskRetryOptions = {}): Promise<TaskSummary> {
    checkId('retry', id)
    const task = await this.#inspect(id)
    const newTask = retryOf(task, from, Date.now())
    const existing = await this.#store.read(newTask.id)
    if (existing !== undefined)
      throw new RallyError(
        'TASK_NOT_RETRYABLE',
        `app.tasks.retry(): the task cannot be retried: it was retried already, as ${existing.id}. If that one has failed too, retry that one.`,
      )
    const created = await this.#store.create(newTask)
    this.#onDue()
    return summaryOf(created)
  }

  /** Deletes tasks that have ended. Returns how many there were. */
  async prune(options: TaskPruneOptions): Promise<number> {
    // Without types, the options may be missing.
    const { olderThanMs, outcome, tool } = { ...options }
    if (typeof olderThanMs !== 'number' || !(olderThanMs >= 0))
      throw invalid('prune', '`olderThanMs` must be a number of at least 0', olderThanMs)
    const before = Date.now() - olderThanMs
    const filters = filtersOf('prune', {
      ...(outcome !== undefined && { outcome }),
      ...(tool !== undefined && { tool }),
    })
    let cursor: string | undefined
    let deleted = 0
    do {
      // What ended before that time was created before it, too.
      const position = cursor === undefined ? { createdBefore: before + 1 } : { cursor }
      const page = await this.#find({ statuses: ENDS, ...filters, ...position, limit: MAX_LIMIT })
      const old = page.tasks.filter(({ updatedAt }) => updatedAt <= before).map(({ id }) => id)
      if (old.length > 0) deleted += await this.#need('remove')(old)
      cursor = page.next
    } while (cursor !== undefined)
    return deleted
  }

  #find: NonNullable<TaskStore['find']> = (query) => this.#need('find')(query)

  async #inspect(id: string): Promise<InspectedTask> {
    const task = await this.#need('inspect')(id)
    if (task === undefined) throw unknownTask(id)
    return task
  }

  /** Why a task was not changed. */
  async #unchangeable(id: string): Promise<RallyError> {
    const task = await this.#store.read(id)
    if (task === undefined) return unknownTask(id)
    return new RallyError('TASK_ENDED', `The task has ended already: ${outcomeOf(task) ?? task.status}.`)
  }

  #need<Name extends 'find' | 'inspect' | 'remove'>(name: Name): NonNullable<TaskStore[Name]> {
    const store: TaskStore = this.#store
    const found = store[name]
    if (found !== undefined) return found.bind(store) as NonNullable<TaskStore[Name]>
    throw new RallyError('STORE_UNSUPPORTED', `The store has no function \`${name}\`, which operations on tasks need.`)
  }
}

/** The store is not asked with a wrong id: its failure would look like an outage. */
function checkId(call: string, id: unknown): void {
  if (typeof id !== 'string') throw invalid(call, '`id` must be the id of a task, a string', id)
}

type Filters = Partial<
  Pick<Parameters<NonNullable<TaskStore['find']>>[0], 'owner' | 'statuses' | 'requestPrefix' | 'statePrefix'>
>

function filtersOf(call: string, options: TaskListOptions): Filters {
  checkFilters(call, options)
  const { status, outcome, tool, principal } = options
  const statuses = outcome === 'cancelled' ? 'cancelled' : status
  if (outcome === 'cancelled' && status !== undefined && status !== 'cancelled') return { statuses: [] }
  return {
    ...(statuses !== undefined && { statuses: [statuses] }),
    ...(outcome !== undefined && outcome !== 'cancelled' && { statePrefix: statePrefixOf(outcome) }),
    // The tool is the first member of a stored request.
    ...(tool !== undefined && { requestPrefix: `{"tool":${JSON.stringify(tool)},` }),
    ...(principal !== undefined && { owner: ownerOf(principal ?? undefined) }),
  }
}

function checkFilters(call: string, { status, outcome, tool, principal }: TaskListOptions): void {
  if (status !== undefined && !TASK_STATUSES.includes(status))
    throw invalid(call, `\`status\` must be one of ${TASK_STATUSES.join(', ')}`, status)
  if (outcome !== undefined && !TASK_OUTCOMES.includes(outcome))
    throw invalid(call, `\`outcome\` must be one of ${TASK_OUTCOMES.join(', ')}`, outcome)
  if (tool !== undefined && typeof tool !== 'string') throw invalid(call, '`tool` must be a string', tool)
  if (principal !== undefined && principal !== null && typeof principal !== 'string')
    throw invalid(call, '`principal` must be a string or null', principal)
}

function positionOf(before: Date | string | undefined): { cursor: string } | { createdBefore?: number } {
  if (before === undefined) return {}
  if (typeof before === 'string') return { cursor: before }
  const time = before instanceof Date ? before.getTime() : Number.NaN
  if (!Number.isNaN(time)) return { createdBefore: time }
  throw invalid('list', '`before` must be a valid Date, or `next` of a page', before)
}

function checkLimit(limit: number): void {
  if (Number.isSafeInteger(limit) && limit >= 1 && limit <= MAX_LIMIT) return
  throw invalid('list', `\`limit\` must be a whole number from 1 to ${MAX_LIMIT}`, limit)
}

/** The wire allows no others. A state that holds one could not be read again. */
function checkAnswers(answers: unknown): asserts answers is Readonly<Record<string, Record<string, unknown>>> {
  if (!isObject(answers))
    throw answerInvalid(`\`answers\` must be an object with an answer for each key, got ${shownValue(answers)}`)
  for (const [key, answer] of Object.entries(answers)) {
    const problem = `the answer to "${key}" must be an object such as { action: 'accept', content: { ... } }`
    if (!isObject(answer)) throw answerInvalid(`${problem}, got ${shownValue(answer)}`)
  }
  assertJson(answers, 'app.tasks.answer(): `answers`')
}

function checkAsked(keys: readonly string[], { shown }: TaskFlowState): void {
  const wrong = keys.find((key) => shown[key] === undefined)
  if (keys.length > 0 && wrong === undefined) return
  const asked = Object.keys(shown).map((key) => `"${key}"`)
  const asks = asked.length === 0 ? 'It asks nothing now' : `It asks ${asked.join(', ')}`
  const problem = wrong === undefined ? 'there is no answer' : `the task does not ask "${wrong}"`
  throw answerInvalid(`${problem}. ${asks}`)
}

function answerInvalid(problem: string): RallyError {
  return new RallyError('ANSWER_INVALID', `app.tasks.answer(): ${problem}.`)
}

/** The event that the handler has declared under this key, or that has come for it. */
function eventIn(state: TaskFlowState, key: string): { readonly dueAt: number } {
  const waits = flowStateOf(state).waits ?? new Map<string, Wait>()
  const wait = waits.get(key)
  if (wait?.event !== undefined) return wait
  if (state.events?.[key] !== undefined) return { dueAt: Infinity }
  const known = [...waits].flatMap(([each, { event }]) => (event === undefined ? [] : [`"${each}"`]))
  const waitsFor = known.length === 0 ? 'It waits for none now' : `It waits for ${known.join(', ')}`
  throw new RallyError(
    'EVENT_REFUSED',
    `app.tasks.signal(): the task has no event "${key}". ${waitsFor}. Pass the key of io.event().`,
  )
}

type Redact = (payload: unknown, place: PayloadPlace) => unknown

function redactionOf(redact: NonNullable<TaskGetOptions['redact']>): Redact {
  if (typeof redact === 'function') return redact
  return redact ? () => undefined : (payload) => payload
}

function summaryOf(task: TaskRecord): TaskSummary {
  const { id, status, createdAt, updatedAt } = task
  const { message } = readMessage(task.message)
  const { tool, source, retryOf: retried } = JSON.parse(task.request) as TaskRequest
  const outcome = outcomeOf(task)
  const principal = source?.caller?.principal
  return {
    id,
    tool,
    status,
    ...(outcome !== undefined && { outcome }),
    ...(message !== undefined && { message }),
    ...(principal !== undefined && { principal }),
    createdAt: new Date(createdAt),
    updatedAt: new Date(updatedAt),
    ...(retried !== undefined && { retryOf: retried }),
  }
}

function detailsOf(task: InspectedTask, retriedAs: string | undefined, redact: Redact): TaskDetails {
  const request = JSON.parse(task.request) as TaskRequest
  const state = readState(task.state)
  const { tool } = request
  const worker = task.leaseUntil === undefined ? undefined : readClaimNote(task.claimedBy)?.worker
  const args = redact(request.args, { kind: 'arguments', tool })
  const questions = questionsOf(state, tool, redact)
  const result =
    task.status === 'completed' ? redact(JSON.parse(task.outcome ?? '{}'), { kind: 'result', tool }) : undefined
  const { entries, dropped } = timelineOf(task, request, state, result)
  return {
    ...summaryOf(task),
    ...(args !== undefined && { arguments: args }),
    ...(task.status === 'input_required' && questions !== undefined && { questions }),
    ...(result !== undefined && { result: result as CallToolResult }),
    ...(worker !== undefined && { worker }),
    ...(task.leaseUntil === undefined && task.dueAt !== undefined && { dueAt: new Date(task.dueAt) }),
    ...(task.expiresAt !== undefined && { expiresAt: new Date(task.expiresAt) }),
    canRetry: state.isKept === true && retriedAs === undefined,
    ...(retriedAs !== undefined && { retriedAs }),
    timeline: entries.map((entry) => redacted(entry, tool, redact)),
    dropped,
  }
}

/** `undefined` if all of them are left out. */
function questionsOf(
  { shown }: TaskFlowState,
  tool: string,
  redact: Redact,
): Readonly<Record<string, InputRequest>> | undefined {
  const questions = Object.entries(shown).flatMap(([wire, { key, text }]): [string, InputRequest][] => {
    const question = redact(JSON.parse(text), { kind: 'question', tool, key })
    return question === undefined ? [] : [[wire, question as InputRequest]]
  })
  return questions.length === 0 ? undefined : Object.fromEntries(questions)
}

function redacted(entry: TaskTimelineEntry, tool: string, redact: Redact): TaskTimelineEntry {
  const { value, ...rest } = entry
  if (value === undefined) return entry
  const kind = entry.type === 'step' ? 'step' : 'answer'
  const instead = redact(value, { kind, tool, ...(entry.key !== undefined && { key: entry.key }) })
  return { ...rest, ...(instead !== undefined && { value: instead }) }
}

function invalid(call: string, problem: string, got: unknown): RallyError {
  return new RallyError('OPTION_INVALID', `app.tasks.${call}(): ${problem}, got ${shownValue(got)}.`)
}

function unknownTask(id: string): RallyError {
  return new RallyError('TASK_UNKNOWN', `No task has the id ${shownValue(id)}. It may have been deleted.`)
}
