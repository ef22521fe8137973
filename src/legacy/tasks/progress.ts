// The progress of a task, for the client that made it. The token of the call stays valid as long as the task lives.
import type { ProgressToken } from '../../protocol/messages.ts'
import type { FollowedTask, TaskProgress } from '../../server/tasks.ts'
import type { LegacyHost, Outlet } from '../host.ts'
import type { ProgressReporter, Session } from '../session.ts'
import { hasEnded } from './wait.ts'

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

  send(progress: TaskProgress | undefined): void {
    if (progress === undefined || progress.progress <= this.#highest) return
    const params = { progressToken: this.#token, ...progress }
    const notify = [...this.#redirects].at(-1) ?? this.#notify
    const isSent = notify(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params }))
    if (isSent) this.#highest = progress.progress
  }

  redirect(notify: Notify): () => void {
    this.#redirects.add(notify)
    return () => void this.#redirects.delete(notify)
  }
}

/** The task of a call with a progress token. */
interface ToldTask {
  readonly session: Session
  readonly outlet: Outlet
  readonly token: ProgressToken
  readonly taskId: string
}

/** Follows the task until it ends, or until its session is forgotten. Without a stream to the client, the next report may find one. */
export function tellProgress(
  { app: { tasks }, settle }: LegacyHost,
  { session, outlet, token, taskId }: ToldTask,
): void {
  const { progress } = session
  if (tasks === undefined || progress.size >= MAX_EACH || progress.has(taskId)) return
  // Over HTTP, the stream of the call ends with its response.
  const notify: Notify = (text) => (outlet.overHttp === true ? session.standalone : outlet)?.notify(text) ?? false
  const reporter = new ProgressSender(token, notify)
  const ended = (): void => {
    progress.delete(taskId)
    unfollow()
    settle(session)
  }
  const unfollow = tasks.follow(
    taskId,
    (task: FollowedTask) => {
      reporter.send(task.progress)
      if (hasEnded(task)) ended()
    },
    ended,
  )
  progress.set(taskId, { reporter, stop: unfollow })
}
