// A request for the result of a task that has none yet: it waits, and holds nothing but its place. What the task asks meanwhile
// goes to whoever waits, where the revision asks in the middle of a request.
import { Cancel } from '../protocol/cancel.ts'
import { INTERNAL_ERROR, INVALID_PARAMS, ProtocolError, RallyError } from '../protocol/errors.ts'
import type { OlderRevision } from '../protocol/revisions/older.ts'
import type { DetailedTask } from '../protocol/messages.ts'
import { olderTask } from '../protocol/revisions/older.ts'
import type { LegacyHost, Outlet } from './host.ts'
import type { Session, Stoppable } from './session.ts'
import { TaskQuestions } from './task-questions.ts'

export interface TaskWaiting {
  readonly host: LegacyHost
  readonly session: Session
  readonly outlet: Outlet
  readonly taskId: string
  /** Tells how the task stands, now and whenever it has changed, and that it is gone. Gives how to stop. */
  readonly follow: (tell: (task: DetailedTask) => void, gone: () => void) => () => void
  readonly answer: (inputResponses: Record<string, Record<string, unknown>>) => Promise<unknown>
}

export class TaskWait implements Stoppable {
  readonly cancel = new Cancel()
  readonly #waiting: TaskWaiting
  readonly #questions: TaskQuestions
  #told: string | undefined
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

  interrupt(): void {
    this.#fail('The server is going down. The task is kept: ask for its result again.')
  }

  /** The task once it has a result or, where the client carries rounds, questions; nothing where nobody waits any more. */
  run(): Promise<DetailedTask | undefined> {
    const { host, outlet, follow } = this.#waiting
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
      outlet.open?.()
      const unfollow = follow(
        (task) => this.#see(task),
        () => this.#fail('Task not found: it has outlived its ttl.', INVALID_PARAMS),
      )
      const timer = setTimeout(() => {
        this.#fail(`There was no result within ${host.callMs} ms. The task goes on: ask for its result again.`)
      }, host.callMs).unref()
      this.#finish = (settle) => {
        this.#finish = () => {}
        unfollow()
        clearTimeout(timer)
        this.cancel.listen(undefined)
        outlet.onLost?.(undefined)
        this.#questions.end()
        settle()
      }
      const leave = (): void => this.#finish(() => resolve(undefined))
      this.cancel.listen(leave)
      outlet.onLost?.(leave)
    })
  }

  #see(task: DetailedTask): void {
    if (isReady(task, this.#waiting.session.revision)) return this.#finish(() => this.#resolve(task))
    try {
      this.#tell(task)
      this.#questions.show(task.inputRequests ?? {})
    } catch (error) {
      this.#failBy(error)
    }
  }

  /** Whoever began to wait knows how the task stood then. */
  #tell(task: DetailedTask): void {
    const { lastUpdatedAt: _at, ...params } = olderTask(task)
    const text = JSON.stringify(params)
    if (this.#told !== undefined && this.#told !== text) {
      const notification = { jsonrpc: '2.0', method: 'notifications/tasks/status', params: olderTask(task) }
      this.#waiting.outlet.notify(JSON.stringify(notification))
    }
    this.#told = text
  }

  /** What is nothing that Rally says itself is nothing for the client either. */
  #failBy(error: unknown): void {
    if (error instanceof RallyError) return this.#fail(error.message)
    this.#waiting.host.app.logger.error('Waiting for the result of a task failed.', { error })
    this.#fail('Internal error')
  }

  #fail(why: string, code = INTERNAL_ERROR): void {
    this.#finish(() => this.#reject(new ProtocolError(code, why)))
  }
}

/** Whether there is something to answer with: the result or, where the client carries rounds, what the task asks. */
export function isReady(task: DetailedTask, { rounds }: OlderRevision): boolean {
  return isOver(task) || (rounds !== undefined && task.status === 'input_required')
}

export function isOver({ status }: DetailedTask): boolean {
  return status !== 'working' && status !== 'input_required'
}
