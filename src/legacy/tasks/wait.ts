// A request for the result of a task that has not ended: it waits. In revisions that ask in the middle of a request, the questions
// of the task go to the client that waits.
import { flowDigest } from '../../flow/derive.ts'
import { Cancel } from '../../protocol/cancel.ts'
import { INTERNAL_ERROR, INVALID_PARAMS, ProtocolError, RallyError } from '../../protocol/errors.ts'
import type { OlderRevision } from '../../protocol/revisions/older.ts'
import type { DetailedTask } from '../../protocol/messages.ts'
import { olderTask } from '../../protocol/revisions/older.ts'
import type { FollowedTask } from '../../server/tasks.ts'
import { StoreUnavailable } from '../../store/outages.ts'
import type { LegacyHost, Outlet } from '../host.ts'
import type { WaitingRequest } from '../asks.ts'
import type { ProgressReporter, Session } from '../session.ts'
import { TaskQuestions } from './questions.ts'

export interface TaskWaiting {
  readonly host: LegacyHost
  readonly session: Session
  readonly outlet: Outlet
  readonly taskId: string
  /** Sends the progress, if the client wants to be told. */
  readonly progress: ProgressReporter | undefined
  /** See `Tasks.follow`. */
  readonly follow: (onTask: (task: FollowedTask) => void, onGone: () => void) => () => void
  readonly answer: (inputResponses: Record<string, Record<string, unknown>>) => Promise<unknown>
}

export class TaskWait implements WaitingRequest {
  readonly cancel = new Cancel()
  readonly #waiting: TaskWaiting
  readonly #questions: TaskQuestions
  #lastSent: string | undefined
  #finish: (settle: () => void) => void = () => {}
  #resolve: (task: DetailedTask | undefined) => void = () => {}
  #reject: (error: ProtocolError) => void = () => {}

  constructor(waiting: TaskWaiting) {
    this.#waiting = waiting
    const failed = (error: unknown): void => this.#failBy(error)
    this.#questions = new TaskQuestions({
      ...waiting,
      answered: (key, answer) => void waiting.answer({ [key]: answer }).catch(failed),
      failed,
    })
  }

  get owner(): string {
    return this.#waiting.session.owner
  }

  evict(): void {
    this.#fail('Too many requests wait for results of tasks (limits.maxTaskWaits). Poll tasks/get instead.')
  }

  interrupt(): void {
    this.#fail('The server is shutting down. The task goes on: request its result again.')
  }

  /** Returns the task when it has ended, or when it has questions that this revision answers by retrying; `undefined` if the client left. */
  run(): Promise<DetailedTask | undefined> {
    const { host, outlet, follow } = this.#waiting
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
      let stopListening: (() => void) | undefined
      outlet.open?.()
      const unfollow = follow(
        (task) => this.#onTask(task),
        () => this.#fail('Task not found: its ttl has expired.', INVALID_PARAMS),
      )
      const timer = setTimeout(() => {
        this.#fail(`The task has no result after ${host.callMs} ms. It goes on: request its result again.`)
      }, host.callMs).unref()
      this.#finish = (settle) => {
        this.#finish = () => {}
        unfollow()
        clearTimeout(timer)
        this.cancel.listen(undefined)
        stopListening?.()
        this.#questions.end()
        settle()
      }
      const leave = (): void => this.#finish(() => resolve(undefined))
      this.cancel.listen(leave)
      stopListening = outlet.onLost?.(leave)
    })
  }

  #onTask(task: FollowedTask): void {
    const { session, progress } = this.#waiting
    try {
      progress?.send(task.progress)
      if (isReady(task, session.revision)) return this.#finish(() => this.#resolve(task))
      this.#notifyStatus(task)
      this.#questions.show(task.inputRequests ?? {})
    } catch (error) {
      this.#failBy(error)
    }
  }

  /** Notifies the client of a changed status. The client knows the first one: it requested the task. */
  #notifyStatus(task: DetailedTask): void {
    const { lastUpdatedAt: _at, ...params } = olderTask(task, this.#waiting.session.revision)
    const text = JSON.stringify(params)
    if (this.#lastSent !== undefined && this.#lastSent !== text) {
      const notification = {
        jsonrpc: '2.0',
        method: 'notifications/tasks/status',
        params: olderTask(task, this.#waiting.session.revision),
      }
      this.#waiting.outlet.notify(JSON.stringify(notification))
    }
    this.#lastSent = text
  }

  /** Only the messages of Rally's own errors go to the client. */
  #failBy(error: unknown): void {
    if (error instanceof StoreUnavailable) return this.#finish(() => this.#reject(error))
    if (error instanceof RallyError) return this.#fail(error.message)
    const { host, taskId } = this.#waiting
    host.app.logger.error('Waiting for the result of a task failed.', { task: flowDigest(taskId), error })
    this.#fail('Internal error')
  }

  #fail(why: string, code = INTERNAL_ERROR): void {
    this.#finish(() => this.#reject(new ProtocolError(code, why)))
  }
}

/** True if the request can be answered: the task has ended, or it has questions and this revision answers them by retrying. */
export function isReady(task: DetailedTask, { rounds }: OlderRevision): boolean {
  return hasEnded(task) || (rounds !== undefined && task.status === 'input_required')
}

export function hasEnded({ status }: DetailedTask): boolean {
  return status !== 'working' && status !== 'input_required'
}
