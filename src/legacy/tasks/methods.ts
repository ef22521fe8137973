// The methods of tasks in a session, in the words of the older revisions that have tasks.
import { INTERNAL_ERROR, MISSING_CAPABILITY, ProtocolError } from '../../protocol/errors.ts'
import { isObject } from '../../protocol/json.ts'
import type { DetailedTask } from '../../protocol/messages.ts'
import { META_PROGRESS, META_SERVER_INFO } from '../../protocol/revisions/2026-07-28.ts'
import type { OlderRevision } from '../../protocol/revisions/older.ts'
import { META_RELATED_TASK, olderTask } from '../../protocol/revisions/older.ts'
import type { Result } from '../../protocol/revisions/rounds.ts'
import { errorResult } from '../../server/content.ts'
import { invalidParams } from '../../server/request.ts'
import type { FollowedTask, Tasks } from '../../server/tasks.ts'
import type { LegacyHost } from '../host.ts'
import { olderQuestions } from '../rounds.ts'
import type { SessionRequest } from '../session-request.ts'
import { progressTokenOf } from '../session-request.ts'
import { ProgressSender } from './progress.ts'
import { hasEnded, isReady, TaskWait } from './wait.ts'

/** The result, or `undefined` when the session has no such method. Resolves to `undefined` when the client has cancelled. */
export function serveTask(host: LegacyHost, incoming: SessionRequest): Promise<Result | undefined> | undefined {
  const { tasks } = host.app
  const { request, session, caller } = incoming
  const principal = caller?.principal
  const { revision } = session
  if (tasks === undefined || !revision.tasks) return undefined
  const { method, params = {} } = request
  switch (method) {
    case 'tasks/get':
      return tasks.get(params['taskId'], principal).then((task) => withProgress(task, olderTask(task, revision)))
    case 'tasks/result':
      return waitForResult(host, tasks, incoming)
    case 'tasks/cancel':
      return cancel(tasks, params['taskId'], principal, revision)
    case 'tasks/list':
      // A caller without a principal has no tasks of its own to list.
      return principal === undefined ? undefined : list(tasks, principal, params['cursor'], revision)
    case 'tasks/input_response':
      return revision.rounds && takeInput(tasks, params, principal)
    default:
      return undefined
  }
}

/** Adds how far the task is, as on 2026-07-28. */
function withProgress({ progress }: FollowedTask, task: Result): Result {
  return progress === undefined ? task : { ...task, _meta: { [META_PROGRESS]: progress } }
}

async function cancel(
  tasks: Tasks,
  taskId: unknown,
  principal: string | undefined,
  revision: OlderRevision,
): Promise<Result> {
  let task = await tasks.get(taskId, principal)
  if (!hasEnded(task)) {
    await tasks.cancel(taskId, principal)
    task = await tasks.get(taskId, principal)
    // If not cancelled now, the task ended by itself between the two calls.
    if (task.status === 'cancelled') return olderTask(task, revision)
  }
  throw invalidParams(
    `The task has already ended with status "${String(olderTask(task, revision)['status'])}", so it cannot be cancelled.`,
  )
}

async function list(tasks: Tasks, principal: string, cursor: unknown, revision: OlderRevision): Promise<Result> {
  const page = await tasks.list(principal, cursor)
  return { ...page, tasks: page.tasks.map((task) => olderTask(task, revision)) }
}

/** Always acknowledged: a question whose answer does not fit is asked again. */
async function takeInput(
  tasks: Tasks,
  { _meta: meta, taskId, inputResponses }: Record<string, unknown>,
  principal: string | undefined,
): Promise<Result> {
  const related = isObject(meta) ? meta[META_RELATED_TASK] : undefined
  const id = isObject(related) ? related['taskId'] : taskId
  if (typeof id !== 'string') throw invalidParams(`_meta["${META_RELATED_TASK}"].taskId must name the task`)
  await tasks.update(id, inputResponses, principal)
  return { _meta: relatedTo(id) }
}

async function waitForResult(
  host: LegacyHost,
  tasks: Tasks,
  { request, session, outlet, caller }: SessionRequest,
): Promise<Result | undefined> {
  const { id, params } = request
  const { revision } = session
  const task = await tasks.get(params?.['taskId'], caller?.principal)
  if (isReady(task, revision)) return resultOf(revision, task)
  const { taskId } = task
  const notify = (text: string): boolean => outlet.notify(text)
  const token = progressTokenOf(request)
  // Without a token of its own, the request gets the progress that the call asked for, on its stream.
  const ofCall = token === undefined ? session.progress.get(taskId)?.reporter : undefined
  const endRedirect = ofCall?.redirect(notify)
  const wait = new TaskWait({
    host,
    session,
    outlet,
    taskId,
    progress: token === undefined ? ofCall : new ProgressSender(token, notify),
    follow: (tell, gone) => tasks.follow(taskId, tell, gone),
    answer: (inputResponses) => tasks.update(taskId, inputResponses, caller?.principal),
  })
  session.enter(id, wait)
  try {
    host.waits.add(wait)
    // After `run`, so that the client gets the reason.
    const waited = wait.run()
    if (host.app.handover.draining) wait.interrupt()
    const ready = await waited
    return ready && resultOf(revision, ready)
  } finally {
    session.calls.delete(id)
    host.waits.delete(wait)
    endRedirect?.()
  }
}

/** Returns the result that the call would have had. Throws the error that it would have failed with. */
function resultOf(
  revision: OlderRevision,
  { taskId, status, inputRequests = {}, result = {}, error }: DetailedTask,
): Result {
  const related = relatedTo(taskId)
  switch (status) {
    case 'input_required':
      return {
        resultType: 'input_required',
        inputRequests: olderQuestions(revision, inputRequests, taskId),
        _meta: related,
      }
    case 'failed': {
      const { code = INTERNAL_ERROR, message = 'Internal error', data } = error ?? {}
      // These revisions have no error for a missing capability. The model can act on a result that says so.
      if (code === MISSING_CAPABILITY) return { ...errorResult(message), _meta: related }
      throw new ProtocolError(code, message, data)
    }
    case 'cancelled':
      throw invalidParams('The task was cancelled, so it has no result.')
    default: {
      const { _meta: meta, ...rest } = result
      const { [META_SERVER_INFO]: _server, ...own } = isObject(meta) ? meta : {}
      return { ...rest, _meta: { ...own, ...related } }
    }
  }
}

function relatedTo(taskId: string): Record<string, { taskId: string }> {
  return { [META_RELATED_TASK]: { taskId } }
}
