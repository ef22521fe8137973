import { expect, test } from 'vitest'
import type { TaskRecord } from '../store/tasks.ts'
import { readCursor, taskText, taskValue } from './view.ts'

test.each(['[1.5,"a"]', '[1e308,"a"]', '[1e19,"a"]', '[-1,"a"]', '["1","a"]', '[1]', '{}', 'x'])(
  'a cursor that holds %s is refused before a store sees it',
  (content) => {
    expect(() => readCursor(Buffer.from(content).toString('base64url'))).toThrow('Invalid cursor')
  },
)

const record: TaskRecord = {
  id: 'ab'.repeat(32),
  owner: '',
  request: '{}',
  state: '{"shown":{"confirm~2":{"key":"confirm","pin":"p","asked":2,"text":"{\\"method\\":\\"roots/list\\"}"}}}',
  status: 'working',
  message: undefined,
  pollMs: 1_000,
  ttlMs: 60_000,
  createdAt: 1_785_196_800_000,
  updatedAt: 1_785_196_800_001,
  outcome: undefined,
  version: 1,
}

test.each<Partial<TaskRecord>>([
  {},
  { ttlMs: null, message: 'half "way" \n\u2028' },
  { message: '3/4\u001f' },
  { status: 'input_required' },
  { status: 'completed', outcome: '{"content":[],"isError":true}' },
  { status: 'failed', outcome: '{"code":-32603,"message":"no"}' },
  { status: 'cancelled', message: 'The client cancelled it.' },
])('the text of a task is its value as JSON: %j', (change) => {
  const task = { ...record, ...change }
  expect(JSON.parse(`{${taskText(task)}}`)).toEqual(taskValue(task))
})
