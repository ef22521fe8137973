// Tasks of servers of 2025-11-25 and 2026-06-XX, by the same functions as those of 2026-07-28.
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { randomUUID } from 'node:crypto'
import {
  InMemoryTaskMessageQueue,
  InMemoryTaskStore,
} from '@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { Client, ClientOptions } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { serve } from 'mcp-rally/node'
import { afterEach, describe, expect, test } from 'vitest'
import { olderTasksApp } from '../tasks/older-app.mjs'
import { textOf } from './wires.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (let close = closing.pop(); close !== undefined; close = closing.pop()) await close()
})

const values: Readonly<Record<string, unknown>> = { confirm: true, region: 'north', input: 'Hi' }
const ANSWERERS: ClientOptions = {
  onElicit: ({ form }) => ({
    action: 'accept',
    content: Object.fromEntries(Object.keys(form.properties).map((name) => [name, values[name]])),
  }),
}

async function open(revision: string, options: ClientOptions = ANSWERERS): Promise<Client> {
  const { url, close } = await serve(olderTasksApp(), { port: 0, handleSignals: false, drainMs: 100 })
  closing.push(close)
  const client = await connect(url, { revision, ...options })
  closing.push(() => client.close())
  return client
}

async function started(client: Client, tool: string, args = {}) {
  const last = await client.startTool(tool, args)
  if (last.kind !== 'task') throw new Error('It is no task.')
  return last.task
}

describe.each(['2025-11-25', '2026-06-XX', '2026-02-03-draft'])('in %s', (revision) => {
  test('a tool that runs only as a task is called as one, and its result is returned', async () => {
    const client = await open(revision)
    expect(textOf(await client.callTool('always'))).toBe('Always.')
    await client.listTools()
    expect(textOf(await client.callTool('always'))).toBe('Always.')
    expect(textOf(await client.callTool('never'))).toBe('Never.')
  })

  test('a tool that may be a task is started as one, and its questions are answered', async () => {
    const client = await open(revision)
    const task = await started(client, 'echo')
    expect(textOf(await task.result())).toBe('Echo: Hi')
    expect(await task.status()).toMatchObject({ status: 'completed', result: { content: [{ text: 'Echo: Hi' }] } })
    expect(await client.startTool('never')).toMatchObject({ kind: 'done' })
  })

  test('a task asks before and after it becomes one', async () => {
    const client = await open(revision)
    const task = await started(client, 'provision', { name: 'web' })
    expect(textOf(await task.result())).toBe('vm web in north, in the background')
  })

  test('a task is saved, and another client goes on with it', async () => {
    const first = await open(revision)
    const task = await started(first, 'always')
    const saved: unknown = JSON.parse(JSON.stringify(task))
    expect(saved).toMatchObject({ revision, tool: 'always' })
    expect(textOf(await first.task(saved as never).result())).toBe('Always.')
    expect(textOf(await first.task(task.id).result())).toBe('Always.')
  })

  test('a task is cancelled, and one that nobody has is gone', async () => {
    const client = await open(revision, { ...ANSWERERS, onElicit: () => new Promise(() => {}) })
    const task = await started(client, 'echo')
    await task.cancel()
    expect(await task.status()).toMatchObject({ status: 'cancelled' })
    await expect(task.result()).rejects.toMatchObject({ code: 'TASK_CANCELLED' })
    await expect(client.task('none').status()).rejects.toMatchObject({ code: 'TASK_GONE' })
  })

  test('its states are followed to the end', async () => {
    const client = await open(revision)
    const task = await started(client, 'always')
    const states: string[] = []
    for await (const { status } of task.updates()) states.push(status)
    expect(states.at(-1)).toBe('completed')
  })
})

test.each(['2026-06-XX', '2026-02-03-draft'])(
  'in %s the questions of a task are answered by hand',
  async (revision) => {
    const client = await open(revision, { can: ['elicitation.form'] })
    const task = await started(client, 'echo')
    for await (const state of task.updates()) {
      if (state.status === 'input_required')
        await task.answer({ echo_input: { action: 'accept', content: { input: 'Ho' } } })
    }
    expect(textOf(await task.result())).toBe('Echo: Ho')
  },
)

test("the official v1 server's tool that requires a task is called", async () => {
  const taskStore = new InMemoryTaskStore()
  const mcp = new McpServer(
    { name: 'official', version: '1' },
    {
      capabilities: { tasks: { requests: { tools: { call: {} } }, cancel: {} } },
      taskStore,
      taskMessageQueue: new InMemoryTaskMessageQueue(),
    },
  )
  mcp.experimental.tasks.registerToolTask(
    'slow',
    { description: 'Takes its time', execution: { taskSupport: 'required' } },
    {
      createTask: async ({ taskStore: store }) => {
        const task = await store.createTask({ ttl: 60_000, pollInterval: 100 })
        setTimeout(() => {
          void store.storeTaskResult(task.taskId, 'completed', { content: [{ type: 'text', text: 'Slowly.' }] })
        }, 50)
        return { task }
      },
      getTask: ({ taskId, taskStore: store }) => store.getTask(taskId),
      getTaskResult: async ({ taskId, taskStore: store }) => (await store.getTaskResult(taskId)) as never,
    },
  )
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID })
  await mcp.connect(transport)
  const http = createServer((request, response) => void transport.handleRequest(request, response))
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  closing.push(async () => {
    taskStore.cleanup()
    http.close()
    http.closeAllConnections()
  })
  const client = await connect(`http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`)
  closing.push(() => client.close())
  expect(client.revision).toBe('2025-11-25')
  expect(textOf(await client.callTool('slow'))).toBe('Slowly.')
})
