// The group that a task counts in, if its tool has a limit on how many run at a time.
import { hash } from 'node:crypto'
import type { Caller } from '../flow/caller.ts'
import { RallyError } from '../protocol/errors.ts'
import { shown } from '../protocol/text.ts'
import type { Check } from '../schema/validator.ts'
import type { TaskGroup } from '../store/tasks.ts'
import type { TaskConcurrency } from './tasks.ts'

export type TaskGroupOf = (args: unknown, caller: Caller | undefined) => Promise<TaskGroup | undefined>

export function readTaskGroup<Args>(tool: string, concurrency: TaskConcurrency<Args>, check: Check): TaskGroupOf {
  const { limit, key = () => '' } = concurrency
  if (!Number.isSafeInteger(limit) || limit < 1) {
    throw new RallyError(
      'TOOL_INVALID',
      `Tool "${tool}": \`task.concurrency.limit\` must be a whole number of at least 1, got ${shown(limit)}.`,
    )
  }
  if (typeof key !== 'function') {
    throw new RallyError(
      'TOOL_INVALID',
      `Tool "${tool}": \`task.concurrency.key\` must be a function, got ${shown(key)}.`,
    )
  }
  return async (args, caller) => {
    const checked = await check(args)
    // They are not valid. The task says so as soon as it runs.
    if (!('value' in checked)) return undefined
    const group: unknown = key({ caller, args: checked.value as Args })
    if (group === undefined) return undefined
    // A digest: the store can tell groups apart, but never learns their keys.
    if (typeof group === 'string') return { name: hash('sha256', JSON.stringify([tool, group]), 'base64url'), limit }
    // An unhandled rejection would end the process.
    if (group instanceof Promise) group.catch(() => {})
    const got = group instanceof Promise ? 'a promise' : shown(group)
    throw new RallyError(
      'HANDLER_INVALID',
      `Tool "${tool}": \`task.concurrency.key\` must return a string or undefined, got ${got}.`,
    )
  }
}
