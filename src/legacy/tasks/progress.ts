// The progress of a task, for the client that made it. The token of the call stays valid as long as the task lives.
import type { ProgressToken } from '../../protocol/messages.ts'
import type { FollowedTask, TaskProgress, Tasks } from '../../server/tasks.ts'
import type { Outlet } from '../host.ts'
import type { ProgressReporter, Session } from '../session.ts'

/** A client that makes more tasks than this at a time learns the progress of the others when it waits for their results. */
const MAX_EACH = 32

type Notify = Outlet['notify']

/** Sends the progress with one token. The numbers rise. */
export class ProgressSender implements ProgressReporter {
  readonly #token: ProgressToken
  readonly #notify: Notify
  /** Requests that wait for the result may end in any order. The last one of those that still wait is used. */
  readonly #redirects = new Set<Notify>()
  #highest = -Infinity

  constructor(token: ProgressToken, notify: Notify) {
    this.#token = token
    this.#notify = notify
  }

  send(progress: TaskProgress | undefined): boolean {
    if (progress === undefined || progress.progress <= this.#highest) return true
    this.#highest = progress.progress
    const params = { progressToken: this.#token, ...progress }
    const notify = [...this.#redirects].at(-1) ?? this.#notify
    return notify(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params }))
  }

  redirect(notify: Notify): () => void {
    this.#redirects.add(notify)
    return () => void this.#redirects.delete(notify)
  }
}

/** Follows a task that a call with a token has made, until the task ends or the client cannot be told. */
export function tellProgress(
  tasks: Tasks,
  { session, outlet, token, taskId }: { session: Session; outlet: Outlet; token: ProgressToken; taskId: string },
): void {
  const { progress } = session
  if (progress.size >= MAX_EACH || progress.has(taskId)) return
  // Over HTTP, the stream of the call ends with its response.
  const notify: Notify = (text) => {
    const to = outlet.overHttp === true ? session.standalone : outlet
    to?.notify(text)
    return to !== undefined
  }
  const sender = new ProgressSender(token, notify)
  progress.set(taskId, sender)
  const stop = (): void => {
    progress.delete(taskId)
    unfollow()
  }
  const unfollow = tasks.follow(
    taskId,
    (task: FollowedTask) => {
      const isOver = task.status !== 'working' && task.status !== 'input_required'
      if (isOver || !sender.send(task.progress)) stop()
    },
    stop,
  )
}
