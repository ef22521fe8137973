import { expect, test } from 'vitest'
import type { TaskRecord } from '../store/tasks.ts'
import { ShownTasks } from './shown-tasks.ts'

function task(id: string, change: Partial<TaskRecord> = {}): TaskRecord {
  return { id, owner: 'ada', version: 3, state: '{}', status: 'input_required', ...change } as TaskRecord
}

test('a task that waits for an answer is taken once, by its owner', () => {
  const shown = new ShownTasks()
  shown.add(task('a'))
  expect(shown.take('a', 'bob')).toBeUndefined()
  expect(shown.take('a', 'ada')).toEqual({ id: 'a', owner: 'ada', version: 3, state: '{}' })
  expect(shown.take('a', 'ada')).toBeUndefined()
})

test('it is as it was shown last', () => {
  const shown = new ShownTasks()
  for (const version of [3, 5]) shown.add(task('a', { version }))
  expect(shown.take('a', 'ada')?.version).toBe(5)
})

test.each([
  ['waits for nothing', { status: 'working' }],
  ['has a long state', { state: 'x'.repeat(5_000) }],
] as const)('a task that %s is not kept', (_what, change) => {
  const shown = new ShownTasks()
  shown.add(task('a', change))
  expect(shown.take('a', 'ada')).toBeUndefined()
})

test('the oldest of more than 1,000 is dropped', () => {
  const shown = new ShownTasks()
  for (let i = 0; i <= 1_000; i += 1) shown.add(task(`task ${i}`))
  expect(shown.take('task 0', 'ada')).toBeUndefined()
  expect(shown.take('task 1', 'ada')).toBeDefined()
  expect(shown.take('task 1000', 'ada')).toBeDefined()
})
