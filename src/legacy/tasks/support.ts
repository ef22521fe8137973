// Which calls of a session become tasks: what the client asks for, and what the tool has to say to it.
import { METHOD_NOT_FOUND, ProtocolError } from '../../protocol/errors.ts'
import { isObject } from '../../protocol/json.ts'
import type { Result } from '../../protocol/revisions/rounds.ts'
import { mapped } from '../../protocol/revisions/older.ts'
import { bitsOf } from '../../server/capabilities.ts'
import { invalidParams } from '../../server/request.ts'
import type { Target } from '../../server/round.ts'
import type { LegacyHost } from '../host.ts'
import type { Session } from '../session.ts'

/** What a call that is to be a task says of it. */
export interface TaskWish {
  readonly ttlMs: number | undefined
}

/** Whether calls may become tasks in this session. */
export function hasTasks({ app }: LegacyHost, { revision }: Session): boolean {
  return app.tasks !== undefined && revision.tasks
}

/** A hundred years, which every store can count. */
const LONGEST_TTL_MS = 3_153_600_000_000

/** Whether a call is to be a task. Throws where its tool will not have that, or nothing else. */
export function readWish(tool: Target, { task }: Record<string, unknown>): TaskWish | undefined {
  if (task === undefined || task === null) {
    if (tool.task === 'always') throw onlyAsTask()
    return undefined
  }
  if (tool.task === 'never') {
    throw new ProtocolError(METHOD_NOT_FOUND, `The tool "${tool.target}" is never a task: call it without "task".`)
  }
  const ttl = isObject(task) ? (task['ttl'] ?? undefined) : null
  if (ttl === undefined) return { ttlMs: undefined }
  if (Number.isSafeInteger(ttl) && Number(ttl) > 0) return { ttlMs: Math.min(Number(ttl), LONGEST_TTL_MS) }
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

/** A page of tools, with what each has to do with tasks. */
export function withTaskSupport({ app: { registry } }: LegacyHost, page: Result): Result {
  const supportOf = (name: unknown): string => SUPPORT[registry.tools.get(String(name))?.task ?? 'never']
  return mapped(page, 'tools', (tool) => ({
    ...tool,
    execution: { taskSupport: supportOf(tool['name']) },
  }))
}
