// Tasks in sessions: what the extension of 2026-07-28 says of them, in the words of the revisions that had them before.
import { derivedUuid } from '../flow/derive.ts'
import { INTERNAL_ERROR, METHOD_NOT_FOUND, MISSING_CAPABILITY, ProtocolError } from '../protocol/errors.ts'
import { isObject } from '../protocol/json.ts'
import type { InputRequests, DetailedTask } from '../protocol/messages.ts'
import { META_RELATED_TASK, olderTask } from '../protocol/revisions/older.ts'
import { META_SERVER_INFO } from '../protocol/revisions/2026-07-28.ts'
import type { OlderRevision } from '../protocol/revisions/older.ts'
import { errorText } from '../server/content.ts'
import type { RequestInfo } from '../server/request.ts'
import { invalidParams } from '../server/request.ts'
import type { Tasks } from '../server/tasks.ts'
import type { LegacyHost, Outlet } from './host.ts'
import type { Request } from './messages.ts'
import type { Session } from './session.ts'
import { hasEnded, isReady, TaskWait } from './task-wait.ts'
import { withTasks } from './task-wish.ts'

interface Caller {
  readonly tasks: Tasks
  readonly info: RequestInfo
  readonly principal: string | undefined
}

/** Gives the text of the result, or nothing where the session has no such method. */
export function serveTask(
  host: LegacyHost,
  session: Session,
  request: Request,
  outlet: Outlet,
  principal: string | undefined,
): Promise<string | undefined> | undefined {
  const { tasks } = host.app
  const { revision, capabilities } = session
  if (tasks === undefined || !revision.tasks) return undefined
  const info = {
    revision: revision.name,
    capabilities: withTasks(capabilities),
    logLevel: undefined,
    progressToken: undefined,
  }
  const caller = { tasks, info, principal }
  const { method, params } = request
  switch (method) {
    case 'tasks/get':
      return find(caller, params['taskId']).then((task) => JSON.stringify(olderTask(task)))
    case 'tasks/result':
      return waitForResult(host, session, request, outlet, caller)
    case 'tasks/cancel':
      return cancel(caller, params['taskId'])
    case 'tasks/list':
      // Nobody in particular has no tasks of their own.
      return principal === undefined ? undefined : list(caller, params['cursor'])
    case 'tasks/input_response':
      return revision.rounds && takeInput(caller, params)
    default:
      return undefined
  }
}

async function find(caller: Caller, taskId: unknown): Promise<DetailedTask> {
  return JSON.parse(await served(caller, 'tasks/get', { taskId })) as DetailedTask
}

async function cancel(caller: Caller, taskId: unknown): Promise<string> {
  let task = await find(caller, taskId)
  if (!hasEnded(task)) {
    await served(caller, 'tasks/cancel', { taskId })
    task = await find(caller, taskId)
    // Or it came to its end by itself just then.
    if (task.status === 'cancelled') return JSON.stringify(olderTask(task))
  }
  throw invalidParams(`The task is over, as ${String(olderTask(task)['status'])}: there is nothing left to cancel.`)
}

async function list({ tasks, principal }: Caller, cursor: unknown): Promise<string> {
  const page = await tasks.list(principal, cursor)
  return JSON.stringify({ ...page, tasks: page.tasks.map(olderTask) })
}

/** Acknowledged, whatever comes of it: what does not fit is asked again. */
async function takeInput(
  caller: Caller,
  { _meta: meta, taskId, inputResponses }: Record<string, unknown>,
): Promise<string> {
  const related = isObject(meta) ? meta[META_RELATED_TASK] : undefined
  const id = isObject(related) ? related['taskId'] : taskId
  if (typeof id !== 'string') throw invalidParams(`_meta["${META_RELATED_TASK}"].taskId must name the task`)
  await served(caller, 'tasks/update', { taskId: id, inputResponses })
  return JSON.stringify({ _meta: relatedTo(id) })
}

async function waitForResult(
  host: LegacyHost,
  session: Session,
  { id, params }: Request,
  outlet: Outlet,
  caller: Caller,
): Promise<string | undefined> {
  const { revision } = session
  const task = await find(caller, params['taskId'])
  if (isReady(task, revision)) return resultText(revision, task)
  const { taskId } = task
  const wait = new TaskWait({
    host,
    session,
    outlet,
    taskId,
    follow: (tell, gone) => caller.tasks.follow(taskId, tell, gone),
    answer: (inputResponses) => served(caller, 'tasks/update', { taskId, inputResponses }),
  })
  session.enter(id, wait)
  try {
    host.waits.add(wait)
    // It is told why it does not wait.
    const waited = wait.run()
    if (host.app.handover.draining) wait.interrupt()
    const ready = await waited
    return ready && resultText(revision, ready)
  } finally {
    session.calls.delete(id)
    host.waits.delete(wait)
  }
}

/** What the call would have come to. Throws what it would have failed with. */
function resultText(
  revision: OlderRevision,
  { taskId, status, inputRequests = {}, result = {}, error }: DetailedTask,
): string {
  const related = relatedTo(taskId)
  switch (status) {
    case 'input_required':
      return JSON.stringify({
        resultType: 'input_required',
        inputRequests: asked(revision, taskId, inputRequests),
        _meta: related,
      })
    case 'failed': {
      const { code = INTERNAL_ERROR, message = 'Internal error', data } = error ?? {}
      // These revisions have no error for it, and a result is what the model can do something about.
      if (code === MISSING_CAPABILITY) return errorText(message, JSON.stringify(related))
      throw new ProtocolError(code, message, data)
    }
    case 'cancelled':
      throw invalidParams('The task was cancelled: it has no result.')
    default: {
      const { _meta: meta, ...rest } = result
      const { [META_SERVER_INFO]: _server, ...own } = isObject(meta) ? meta : {}
      return JSON.stringify({ ...rest, _meta: { ...own, ...related } })
    }
  }
}

function asked(revision: OlderRevision, taskId: string, questions: InputRequests): object {
  const written = Object.entries(questions).map(([key, question]) => [
    key,
    revision.question(question, derivedUuid(taskId, `visit ${key}`)),
  ])
  return Object.fromEntries(written) as object
}

async function served(
  { tasks, info, principal }: Caller,
  method: string,
  params: Record<string, unknown>,
): Promise<string> {
  const text = await tasks.serve(method, params, info, principal)
  if (text === undefined) throw new ProtocolError(METHOD_NOT_FOUND, `Method not found: ${method}`)
  return text
}

function relatedTo(taskId: string): Record<string, { taskId: string }> {
  return { [META_RELATED_TASK]: { taskId } }
}
