// The example of a persistent tool in the first draft, message by message: its steps 1 to 12, on each wire.
import { afterEach, describe, expect, test } from 'vitest'
import type { Talk } from '../dialects/wires.ts'
import { wires } from '../dialects/wires.ts'
import { olderTasksApp } from './older-app.mjs'

const SESSION = { revision: '2026-02-03-draft', capabilities: { elicitation: { form: {} } } }
const RELATED = 'io.modelcontextprotocol/related-task'

const ask = (id: number, method: string, params: object): object => ({ jsonrpc: '2.0', id, method, params })

let talk: Talk
afterEach(() => talk.close())

/** Polls, as the draft's client does. */
async function until(status: string, taskId: string): Promise<Record<string, unknown>> {
  for (let id = 100; ; id += 1) {
    const said = await talk.say(ask(id, 'tasks/get', { taskId }))
    const { result } = said as { result: { status: string; pollInterval: number } }
    if (result.status === status) return said
    await new Promise((resolve) => void setTimeout(resolve, 20))
  }
}

describe.each(wires)('The first draft over $name', (wire) => {
  test('a task asks, takes the answer in a message without a method, and completes', async () => {
    talk = await wire.open(olderTasksApp(), SESSION)
    // Steps 1 and 2.
    const created = await talk.say(ask(1, 'tools/call', { name: 'echo', task: { ttl: 60_000 } }))
    expect(created).toMatchObject({
      id: 1,
      result: { task: { taskId: expect.any(String), status: 'Working', createdAt: expect.any(String), ttl: 60_000 } },
    })
    const { taskId } = (created as { result: { task: { taskId: string } } }).result.task
    // Steps 3 and 4.
    expect(await until('input_required', taskId)).toMatchObject({ result: { taskId, ttl: 60_000, pollInterval: 100 } })
    // Steps 5 and 6.
    expect(await talk.say(ask(3, 'tasks/result', { taskId }))).toEqual({
      jsonrpc: '2.0',
      id: 3,
      input_requests: {
        echo_input: {
          method: 'elicitation/create',
          params: {
            mode: 'form',
            message: 'Please provide the input string to echo back',
            requestedSchema: {
              type: 'object',
              properties: { input: { type: 'string' } },
              required: ['input'],
            },
          },
        },
      },
      _meta: { [RELATED]: { taskId } },
    })
    // Steps 7 and 8.
    const answer = {
      jsonrpc: '2.0',
      id: 4,
      input_responses: { echo_input: { result: { action: 'accept', content: { input: 'Hello World!' } } } },
      _meta: { [RELATED]: { taskId } },
    }
    expect(await talk.say(answer)).toEqual({ jsonrpc: '2.0', id: 4, result: { _meta: { [RELATED]: { taskId } } } })
    // Steps 9 and 10.
    expect(await until('Completed', taskId)).toMatchObject({ result: { taskId, status: 'Completed' } })
    // Steps 11 and 12.
    expect(await talk.say(ask(6, 'tasks/result', { taskId }))).toMatchObject({
      id: 6,
      result: { content: [{ type: 'text', text: 'Echo: Hello World!' }], _meta: { [RELATED]: { taskId } } },
    })
  })

  test('answers to no task, or to none in particular, are refused', async () => {
    talk = await wire.open(olderTasksApp(), SESSION)
    const input_responses = { echo_input: { result: { action: 'decline' } } }
    const said = await talk.say({ jsonrpc: '2.0', id: 1, input_responses, _meta: { [RELATED]: { taskId: 'none' } } })
    expect(said).toMatchObject({ id: 1, error: { code: -32602 } })
    expect(await talk.say({ jsonrpc: '2.0', id: 2, input_responses })).toMatchObject({ id: 2, error: { code: -32602 } })
    const bare = { jsonrpc: '2.0', id: 4, input_responses: { echo_input: { action: 'decline' } } }
    expect(await talk.say(bare)).toMatchObject({ id: 4, error: { code: -32602 } })
    const wrong = {
      jsonrpc: '2.0',
      id: 3,
      input_responses: { echo_input: 7 },
      _meta: { [RELATED]: { taskId: 'none' } },
    }
    expect(await talk.say(wrong)).toMatchObject({ id: 3, error: { code: -32602 } })
  })
})
