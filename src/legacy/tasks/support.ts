// Which calls of a session become tasks: what the client requests, and what the tool allows.
import { noTask } from '../../flow/errors.ts'
import { METHOD_NOT_FOUND, ProtocolError } from '../../protocol/errors.ts'
import { isObject } from '../../protocol/json.ts'
import type { Result } from '../../protocol/revisions/rounds.ts'
import { mapped } from '../../protocol/revisions/older.ts'
import { bitsOf } from '../../server/capabilities.ts'
import { aroundRound } from '../../server/middleware.ts'
import { invalidParams } from '../../server/request.ts'
import type { RoundRequest, Target } from '../../server/round.ts'
import { newTask } from '../../server/round.ts'
import type { LegacyHost } from '../host.ts'
import type { Session } from '../session.ts'

/** What a call that requests a task says about it. */
export interface RequestedTask {
  readonly ttlMs: number | undefined
}

/** True if calls may become tasks in this session. */
export function hasTasks({ app }: LegacyHost, { revision }: Session): boolean {
  return app.tasks !== undefined && revision.tasks
}

/** A hundred years, which every store can represent. */
const MAX_TTL_MS = 3_153_600_000_000

/** Returns `undefined` if the call requests no task. Throws if the tool never runs as a task, or only as one. */
export function readRequestedTask(tool: Target, { task }: Record<string, unknown>): RequestedTask | undefined {
  if (task === undefined || task === null) {
    if (tool.task === 'always') throw taskRequired()
    return undefined
  }
  if (tool.task === 'never') {
    throw new ProtocolError(METHOD_NOT_FOUND, `Tool "${tool.target}" never runs as a task. Call it without "task".`)
  }
  const ttl = isObject(task) ? (task['ttl'] ?? undefined) : null
  if (ttl === undefined) return { ttlMs: undefined }
  if (Number.isSafeInteger(ttl) && Number(ttl) > 0) return { ttlMs: Math.min(Number(ttl), MAX_TTL_MS) }
  throw invalidParams('task must be an object, and its ttl must be a whole number of milliseconds above 0')
}

export function taskRequired(): ProtocolError {
  return new ProtocolError(METHOD_NOT_FOUND, 'This call runs only as a task. Add "task" to its params.')
}

/** Creates the task of a call before anything of it runs. Returns the result of the call. */
export async function createTask({ app }: LegacyHost, target: Target, round: RoundRequest): Promise<Result | string> {
  const { tasks } = app
  if (tasks === undefined) throw noTask()
  const start = newTask(app, target, round)
  const create = async (): Promise<Result> => ({ resultType: 'task', ...(await tasks.create(start)) })
  if (app.middleware.length === 0) return create()
  const flow = { id: start.claims.flowId, round: 0 }
  return aroundRound(app, { target, request: round, flow, carrier: 'store' }, create)
}

/** Adds the capability for tasks, which clients of these revisions do not declare. */
export function withTasks(capabilities: number): number {
  return capabilities | bitsOf(['tasks'])
}

/** The `taskSupport` of each mode. These revisions cannot create a task later in a call, so `detach` is a task from the start. */
const SUPPORT = { always: 'required', optional: 'optional', detach: 'optional', never: 'forbidden' } as const

/** Adds to each tool of the page whether it runs as a task. */
export function withTaskSupport({ app: { registry } }: LegacyHost, page: Result): Result {
  const supportOf = (name: unknown): string => SUPPORT[registry.tools.get(String(name))?.task ?? 'never']
  return mapped(page, 'tools', (tool) => ({
    ...tool,
    execution: { taskSupport: supportOf(tool['name']) },
  }))
}
