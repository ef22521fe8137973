// Follows the state of a task: by notifications if the server sends them, and otherwise by polling.
import { backoff } from '../../protocol/backoff.ts'
import { isObject } from '../../protocol/json.ts'
import { readRetryAdvice } from '../../protocol/unavailable.ts'
import type { Connection } from '../connection.ts'
import type { Deadline } from '../deadline.ts'
import { badResponse, ClientError, isConnectionLoss } from '../errors.ts'
import type { Outage, TaskRequests } from './requests.ts'
import type { TaskState } from './state.ts'
import { readTaskState } from './state.ts'

/** Used if the server names no interval, and the bounds of what it may name. */
const DEFAULT_INTERVAL_MS = 1_000
const MIN_INTERVAL_MS = 100
const MAX_INTERVAL_MS = 300_000

/** The interval while the server sends notifications: one of them may have been lost. */
const NOTIFIED_INTERVAL_MS = 30_000

/** Before the stream of notifications is opened again. Meanwhile the task is polled. */
const REOPEN = { firstMs: 1_000, maxMs: 60_000 }

export interface TaskWatchOptions {
  readonly connection: Connection
  readonly requests: TaskRequests
  readonly id: string
  /** The limit of all waiting. */
  readonly deadline: Deadline
  /** How often the server wants to be polled, as it said last. */
  readonly pollIntervalMs: number | undefined
  /** True if the current state is not known, so that the first poll is due now. */
  readonly isDue: boolean
}

export class TaskWatch {
  readonly #options: TaskWatchOptions
  readonly #outage: Outage
  readonly #closed = new AbortController()
  #intervalMs: number
  #dueAt: number
  /** The time of the last poll, or of the creation of the task. */
  #polledAt: number
  /** The last notification that was not read yet. It replaces all earlier ones. */
  #notification: Record<string, unknown> | undefined
  #isNotified = false
  #isWoken = false
  #endSleep: () => void = () => {}
  #lastUpdate = -Infinity

  constructor(options: TaskWatchOptions) {
    this.#options = options
    this.#outage = options.requests.newOutage(options.deadline)
    this.#intervalMs = intervalOf(options.pollIntervalMs)
    this.#polledAt = performance.now()
    this.#dueAt = options.isDue ? this.#polledAt : this.#polledAt + this.#intervalMs
    void this.#listen()
  }

  /** Waits for a state that may be new. Returns undefined after `wake`. */
  async next(): Promise<TaskState | undefined> {
    for (;;) {
      if (this.#isWoken) {
        this.#isWoken = false
        return undefined
      }
      const notified = this.#takeNotification()
      if (notified !== undefined) return this.#schedule(notified)
      const dueMs = this.#dueAt - performance.now()
      if (dueMs > 0) await this.#sleep(dueMs)
      else {
        const state = await this.#poll()
        if (state !== undefined) return this.#schedule(state)
      }
    }
  }

  /** Makes `next` return, now or when it is called next. */
  wake(): void {
    this.#isWoken = true
    this.#endSleep()
  }

  close(): void {
    this.#closed.abort()
  }

  async #poll(): Promise<TaskState | undefined> {
    const { requests, id, deadline } = this.#options
    try {
      const state = await requests.get(id, deadline)
      this.#outage.end()
      this.#polledAt = performance.now()
      return state
    } catch (error) {
      this.#dueAt = performance.now() + this.#outage.delayAfter(error)
      return undefined
    }
  }

  #takeNotification(): TaskState | undefined {
    const notification = this.#notification
    this.#notification = undefined
    if (notification === undefined) return undefined
    try {
      const state = readTaskState(notification, this.#options.id)
      // A notification that was sent before the last poll is older than what the poll returned.
      return Date.parse(state.updatedAt) < this.#lastUpdate ? undefined : state
    } catch (error) {
      // An invalid notification is ignored. If the state itself is invalid, the next poll fails.
      if (error instanceof ClientError) return undefined
      throw error
    }
  }

  /** Sets the time of the next poll. */
  #schedule(state: TaskState): TaskState {
    this.#lastUpdate = Date.parse(state.updatedAt)
    if (state.pollIntervalMs !== undefined) this.#intervalMs = intervalOf(state.pollIntervalMs)
    const intervalMs = this.#isNotified ? Math.max(this.#intervalMs, NOTIFIED_INTERVAL_MS) : this.#intervalMs
    this.#dueAt = performance.now() + intervalMs
    return state
  }

  /** Ends early when `#endSleep` is called. */
  #sleep(ms: number): Promise<void> {
    return this.#options.deadline.wait((resolve) => {
      const cancel = (): void => {
        clearTimeout(timer)
        this.#endSleep = () => {}
      }
      const end = (): void => {
        cancel()
        resolve(undefined)
      }
      const timer = setTimeout(end, ms)
      this.#endSleep = end
      return cancel
    })
  }

  /** Runs until the watch is closed, or the server does not send notifications about tasks. */
  async #listen(): Promise<void> {
    const { connection, requests, id } = this.#options
    let ends = 0
    while (!this.#closed.signal.aborted && !connection.isClosed) {
      const attempt = connection.openDeadline('subscriptions/listen', Infinity, this.#closed.signal)
      try {
        if (ends > 0) await attempt.sleep(backoff(ends, REOPEN))
        const { error } = await requests.listen(id, attempt, (what, params) => {
          if (what === 'subscriptions/acknowledged') this.#acknowledged(params, attempt)
          if (what === 'tasks' && params['taskId'] === id) this.#notified(params)
        })
        // Without a time to try again, the server does not notify about tasks.
        if (error !== undefined && readRetryAdvice(error.data) === undefined) return
      } catch (error) {
        if (!isConnectionLoss(error)) return
      } finally {
        connection.closeDeadline(attempt)
        ends = this.#isNotified ? 1 : ends + 1
        this.#pollAgain()
      }
    }
  }

  /** Does not poll earlier: a change before the acknowledgement is seen by the poll that is due anyway. */
  #acknowledged({ notifications }: Record<string, unknown>, attempt: Deadline): void {
    const { taskIds } = isObject(notifications) ? notifications : {}
    this.#isNotified = Array.isArray(taskIds) && taskIds.includes(this.#options.id)
    if (!this.#isNotified) attempt.abort(badResponse('the subscription does not include the task'))
  }

  #notified(params: Record<string, unknown>): void {
    this.#notification = params
    this.#endSleep()
  }

  /** The stream has ended, so the task is polled at the server's own interval again. */
  #pollAgain(): void {
    if (!this.#isNotified) return
    this.#isNotified = false
    this.#dueAt = Math.min(this.#dueAt, Math.max(performance.now(), this.#polledAt + this.#intervalMs))
    this.#endSleep()
  }
}

function intervalOf(pollIntervalMs = DEFAULT_INTERVAL_MS): number {
  return Math.min(Math.max(pollIntervalMs, MIN_INTERVAL_MS), MAX_INTERVAL_MS)
}
