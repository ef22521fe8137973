// Tasks in sessions: what the extension of 2026-07-28 says of them, in the words of the revisions that had them before.
import { derivedUuid } from '../flow/derive.ts'
import { INTERNAL_ERROR, METHOD_NOT_FOUND, MISSING_CAPABILITY, ProtocolError } from '../protocol/errors.ts'
import { isObject } from '../protocol/json.ts'
import type { InputRequests } from '../protocol/messages.ts'
import { META_RELATED_TASK, META_SERVER_INFO } from '../protocol/meta.ts'
import type { OlderRevision, Result } from '../protocol/revisions/index.ts'
import { mapped } from '../protocol/revisions/older.ts'
import type { NeutralTask } from '../protocol/revisions/tasks.ts'
import { olderTask } from '../protocol/revisions/tasks.ts'
import { bitsOf } from '../server/capabilities.ts'
import { errorText } from '../server/content.ts'
import type { RequestInfo } from '../server/request.ts'
import { invalidParams } from '../server/request.ts'
import type { Carried } from '../server/round.ts'
import type { Tasks } from '../server/tasks.ts'
import type { LegacyHost, Outlet } from './host.ts'
import type { Request } from './messages.ts'
import type { Session } from './session.ts'
import { isOver, isReady, TaskWait } from './task-wait.ts'

/** What a call that is to be a task says of it. */
export interface TaskWish {
  readonly ttlMs: number | undefined
}

interface Caller {
  readonly tasks: Tasks
  readonly info: RequestInfo
  readonly principal: string | undefined
}

/** Whether calls may become tasks in this session. */
export function hasTasks({ app }: LegacyHost, { revision }: Session): boolean {
  return app.tasks !== undefined && revision.tasks
}

/** Whether a call is to be a task. Throws where its tool will not have that, or nothing else. */
export function readWish(tool: Carried, { task }: Record<string, unknown>): TaskWish | undefined {
  if (task === undefined || task === null) {
    if (tool.task === 'always') throw onlyAsTask()
    return undefined
  }
  if (tool.task === 'never') {
    throw new ProtocolError(METHOD_NOT_FOUND, `The tool "${tool.target}" is never a task: call it without "task".`)
  }
  const ttl = isObject(task) ? (task['ttl'] ?? undefined) : null
  if (ttl === undefined || (Number.isSafeInteger(ttl) && Number(ttl) > 0)) return { ttlMs: ttl as TaskWish['ttlMs'] }
  throw invalidParams('task must be an object, and its ttl a whole number of milliseconds above 0')
}

export function onlyAsTask(): ProtocolError {
  return new ProtocolError(METHOD_NOT_FOUND, 'This goes on as a task only: call it with "task" in its params.')
}

/** The capabilities of a request that tasks come into. */
export function withTasks(capabilities: number): number {
  return capabilities | bitsOf(['tasks'])
}

/** What a client that asks for it gets of each mode; where the revision cannot defer the making of a task, it is one at once. */
const SUPPORT = { always: 'required', optional: 'optional', detach: 'optional', never: 'forbidden' } as const

/** The text of a list of tools, with what each has to do with tasks. */
export function withTaskSupport({ app: { registry } }: LegacyHost, listText: string): string {
  const supportOf = (name: unknown): string => SUPPORT[registry.tools.get(String(name))?.task ?? 'never']
  const listed = mapped(JSON.parse(listText) as Result, 'tools', (tool) => ({
    ...tool,
    execution: { taskSupport: supportOf(tool['name']) },
  }))
  return JSON.stringify(listed)
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

async function find(caller: Caller, taskId: unknown): Promise<NeutralTask> {
  return JSON.parse(await served(caller, 'tasks/get', { taskId })) as NeutralTask
}

async function cancel(caller: Caller, taskId: unknown): Promise<string> {
  let task = await find(caller, taskId)
  if (!isOver(task)) {
    await served(caller, 'tasks/cancel', { taskId })
    task = await find(caller, taskId)
    // Or it came to its end by itself just then.
    if (task.status === 'cancelled') return JSON.stringify(olderTask(task))
  }
  throw invalidParams(`The task is over, as ${String(olderTask(task)['status'])}: there is nothing left to cancel.`)
}

async function list({ tasks, principal }: Caller, cursor: unknown): Promise<string> {
  const page = JSON.parse(await tasks.list(principal, cursor)) as Result
  return JSON.stringify(mapped(page, 'tasks', (task) => olderTask(task as unknown as NeutralTask)))
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
    follow: (tell, gone) => caller.tasks.follow([taskId], tell, gone),
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
  { taskId, status, inputRequests = {}, result = {}, error }: NeutralTask,
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
