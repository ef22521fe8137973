// What the tests of the contract of tasks do again and again.
import { expect } from 'vitest'
import type { ClaimedTask, TaskLease, NewTask, TaskRecord, TaskStatus, TaskStore } from '../../../src/store/tasks.ts'

import type { UnderTest } from '../under-test.ts'
import { LONG_MS, PAST_SHORT_MS, SHORT_MS } from '../under-test.ts'

export { LONG_MS, PAST_SHORT_MS, SHORT_MS } from '../under-test.ts'
/** Time enough to do something before it is over, also by a clock that goes on by itself. */
export const TTL_MS = 1_000
export const PAST_TTL_MS = 1_100

export const ENDS: TaskStatus[] = ['completed', 'failed', 'cancelled']

/** A task as an engine might make one; what is given replaces what is here. */
export function newTask(id: string, given: Partial<NewTask> = {}): NewTask {
  return {
    id,
    owner: 'ada',
    request: '{"name":"deploy"}',
    state: '{"round":1}',
    journal: '[]',
    message: undefined,
    pollMs: 1_000,
    ttlMs: null,
    ...given,
  }
}

export type Hands = ReturnType<typeof handsOn>

export function handsOn(opened: UnderTest<TaskStore>) {
  const { part: tasks, another } = opened
  const elapse = async (ms: number): Promise<void> => opened.elapse(ms)

  const claim = (after = '', leaseMs = LONG_MS, by = tasks): Promise<ClaimedTask | undefined> =>
    by.claim({ after, leaseMs })

  const claimed = async (leaseMs = LONG_MS, by = tasks): Promise<ClaimedTask> => {
    const task = await claim('', leaseMs, by)
    if (task === undefined) throw new Error('A task should be due, but none is.')
    return task
  }

  const made = async (id: string, given: Partial<NewTask> = {}): Promise<TaskRecord> => tasks.create(newTask(id, given))

  const present = async (id: string, by = tasks): Promise<TaskRecord> => {
    const task = await by.read(id)
    if (task === undefined) throw new Error(`"${id}" should exist, but does not.`)
    return task
  }

  /** A task, and the worker that holds it. */
  const heldTask = async (id = 't', given: Partial<NewTask> = {}, leaseMs = LONG_MS): Promise<ClaimedTask> => {
    await made(id, given)
    const task = await claimed(leaseMs)
    expect(task.id).toBe(id)
    return task
  }

  /** Held by a worker whose lease ran out, and by the one that took it over. */
  const takenOver = async (): Promise<{ late: ClaimedTask; successor: ClaimedTask }> => {
    const late = await heldTask('t', {}, SHORT_MS)
    await elapse(PAST_SHORT_MS)
    return { late, successor: await claimed(LONG_MS, another) }
  }

  const park = (held: TaskLease, by = tasks): Promise<number | undefined> =>
    by.change(held.id, { fence: held.fence }, { status: 'input_required', release: true, dueMs: null })

  return { tasks, another, elapse, claim, claimed, made, present, heldTask, takenOver, park }
}
