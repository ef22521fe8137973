// How a task stands, again and again: as the server tells of its changes where it does, and else by asking it.
import { isObject } from '../../protocol/json.ts'
import { badResponse, ClientError } from '../errors.ts'
import type { Connection } from '../connection.ts'
import type { Deadline } from '../deadline.ts'
import type { TaskState } from './state.ts'
import { readTaskState } from './state.ts'
import type { TaskRequests, Outage } from './requests.ts'

/** Where the server does not say how often it wants to be asked, and the bounds of what it may say. */
const USUAL_MS = 1_000
const LEAST_MS = 100
const MOST_MS = 300_000

/** While the server tells of changes: what was told may have been lost. */
const TOLD_MS = 30_000

/** Before the stream is tried again. In the meantime the server is asked. */
const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 60_000

export interface TaskWatchOptions {
  readonly connection: Connection
  readonly requests: TaskRequests
  readonly id: string
  /** All waiting is done within it. */
  readonly deadline: Deadline
  /** How often the server wants to be asked, as it said last. */
  readonly pollIntervalMs: number | undefined
  /** Whether how it stands now is not known. */
  readonly isDue: boolean
}

export class TaskWatch {
  readonly #watched: TaskWatchOptions
  readonly #trouble: Outage
  readonly #over = new AbortController()
  #intervalMs: number
  #dueAt: number
  /** When the server was asked last, or had just made the task. */
  #lookedAt: number
  /** The last that was told and not yet looked at: it says all that those before it did. */
  #told: Record<string, unknown> | undefined
  #isTelling = false
  #isWoken = false
  #stir: () => void = () => {}
  #lastUpdate = -Infinity

  constructor(watched: TaskWatchOptions) {
    this.#watched = watched
    this.#trouble = watched.requests.newOutage(watched.deadline)
    this.#intervalMs = intervalOf(watched.pollIntervalMs)
    this.#lookedAt = performance.now()
    this.#dueAt = watched.isDue ? this.#lookedAt : this.#lookedAt + this.#intervalMs
    void this.#listen()
  }

  /** How it stands, once that may be news; nothing when it was woken. */
  async next(): Promise<TaskState | undefined> {
    for (;;) {
      if (this.#isWoken) {
        this.#isWoken = false
        return undefined
      }
      const told = this.#takeTold()
      if (told !== undefined) return this.#seen(told)
      const dueMs = this.#dueAt - performance.now()
      if (dueMs > 0) await this.#rest(dueMs)
      else {
        const state = await this.#look()
        if (state !== undefined) return this.#seen(state)
      }
    }
  }

  /** Lets `next` return, now or when it is called next. */
  wake(): void {
    this.#isWoken = true
    this.#stir()
  }

  close(): void {
    this.#over.abort()
  }

  async #look(): Promise<TaskState | undefined> {
    const { requests, id, deadline } = this.#watched
    try {
      const state = await requests.get(id, deadline)
      this.#trouble.end()
      this.#lookedAt = performance.now()
      return state
    } catch (error) {
      this.#dueAt = performance.now() + this.#trouble.delayAfter(error)
      return undefined
    }
  }

  #takeTold(): TaskState | undefined {
    const told = this.#told
    this.#told = undefined
    if (told === undefined) return undefined
    try {
      const state = readTaskState(told, this.#watched.id)
      // On its way while we looked ourselves.
      return Date.parse(state.updatedAt) < this.#lastUpdate ? undefined : state
    } catch (error) {
      // What is wrong with it will be wrong when the server is asked, too; and if not, all is well.
      if (error instanceof ClientError) return undefined
      throw error
    }
  }

  #seen(state: TaskState): TaskState {
    this.#lastUpdate = Date.parse(state.updatedAt)
    if (state.pollIntervalMs !== undefined) this.#intervalMs = intervalOf(state.pollIntervalMs)
    this.#dueAt = performance.now() + (this.#isTelling ? Math.max(this.#intervalMs, TOLD_MS) : this.#intervalMs)
    return state
  }

  /** Until so much time has passed, or something happens. */
  #rest(ms: number): Promise<void> {
    return this.#watched.deadline.wait((resolve) => {
      const end = (): void => {
        clearTimeout(timer)
        this.#stir = () => {}
      }
      const timer = setTimeout(() => {
        end()
        resolve(undefined)
      }, ms)
      this.#stir = () => {
        end()
        resolve(undefined)
      }
      return end
    })
  }

  /** Until it is over, or the server does not tell of tasks. */
  async #listen(): Promise<void> {
    const { connection, requests, id } = this.#watched
    let ends = 0
    while (!this.#over.signal.aborted && !connection.isClosed) {
      const attempt = connection.openDeadline('subscriptions/listen', Infinity, this.#over.signal)
      try {
        if (ends > 0) await attempt.sleep(Math.min(FIRST_PAUSE_MS * 2 ** (ends - 1), LONGEST_PAUSE_MS))
        const { error } = await requests.listen(id, attempt, (what, params) => {
          if (what === 'subscriptions/acknowledged') this.#acknowledged(params, attempt)
          if (what === 'tasks' && params['taskId'] === id) this.#tell(params)
        })
        if (error !== undefined) return
      } catch (error) {
        if (!isPassing(error)) return
      } finally {
        connection.closeDeadline(attempt)
        ends = this.#isTelling ? 1 : ends + 1
        this.#silent()
      }
    }
  }

  /** Nothing is due any sooner for it: what has happened until now is seen when it would have been. */
  #acknowledged({ notifications }: Record<string, unknown>, attempt: Deadline): void {
    const { taskIds } = isObject(notifications) ? notifications : {}
    this.#isTelling = Array.isArray(taskIds) && taskIds.includes(this.#watched.id)
    if (!this.#isTelling) attempt.abort(badResponse('it does not tell of the task'))
  }

  #tell(params: Record<string, unknown>): void {
    this.#told = params
    this.#stir()
  }

  /** From now on it is asked again, as often as it likes. */
  #silent(): void {
    if (!this.#isTelling) return
    this.#isTelling = false
    this.#dueAt = Math.min(this.#dueAt, Math.max(performance.now(), this.#lookedAt + this.#intervalMs))
    this.#stir()
  }
}

function intervalOf(pollIntervalMs = USUAL_MS): number {
  return Math.min(Math.max(pollIntervalMs, LEAST_MS), MOST_MS)
}

function isPassing(error: unknown): boolean {
  return error instanceof ClientError && ['LOST', 'CONNECTION'].includes(error.code)
}
