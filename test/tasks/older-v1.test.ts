// The official v1 client and its experimental tasks, over HTTP and standard streams.
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { CallToolResult, ElicitResult, Task } from '@modelcontextprotocol/sdk/types.js'
import {
  CallToolResultSchema,
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { serve } from 'mcp-rally/node'
import { afterEach, describe, expect, test } from 'vitest'
import { olderProblems } from '../legacy/spec.ts'
import { olderTasksApp } from './older-app.mjs'

const PROCESS = fileURLToPath(new URL('./older-process.mjs', import.meta.url))
const RELATED = 'io.modelcontextprotocol/related-task'

interface Asked {
  method: string
  taskId: unknown
}

interface Peer {
  client: Client
  /** What it was asked, in order. */
  asked: Asked[]
  /** What the user says to a form that asks this. */
  answers: Record<string, ElicitResult[]>
  problems: string[]
  close: () => Promise<void>
}

let peer: Peer
afterEach(async () => {
  await peer.close()
  if (peer.problems.length > 0) throw new Error(`The revision does not allow this: ${peer.problems.join('; ')}`)
})

const overHttp = async (): Promise<Peer> => {
  const { url, close } = await serve(olderTasksApp(), {
    port: 0,
    drainMs: 100,
    handleSignals: false,
    authenticate: () => ({ principal: 'ada' }),
  })
  return connect(new StreamableHTTPClientTransport(new URL(url)), close)
}
const overStreams = (): Promise<Peer> =>
  connect(new StdioClientTransport({ command: process.execPath, args: [PROCESS] }), async () => {})

describe.each([
  ['HTTP', overHttp],
  ['stdio', overStreams],
])('the v1 client over %s', (name, open) => {
  const opened = async (answers: Peer['answers'] = {}): Promise<void> => {
    peer = await open()
    Object.assign(peer.answers, answers)
  }

  test('learns that there are tasks, and for which tools', async () => {
    await opened()
    expect(peer.client.getServerCapabilities()?.tasks).toEqual({
      ...(name === 'HTTP' && { list: {} }),
      cancel: {},
      requests: { tools: { call: {} } },
    })
    const { tools } = await peer.client.listTools()
    const support = Object.fromEntries(tools.map((tool) => [tool.name, tool.execution?.taskSupport]))
    expect(support).toMatchObject({ always: 'required', echo: 'optional', provision: 'optional', never: 'forbidden' })
  })

  test('makes a task, is asked through the request for its result, and gets the result', async () => {
    await opened({ 'Please provide the input string to echo back': [{ action: 'accept', content: { input: 'Hi' } }] })
    await peer.client.listTools()
    const messages = await messagesOf('echo')
    expect(messages[0]).toMatchObject({ type: 'taskCreated', task: { status: 'working', pollInterval: 100 } })
    const { taskId } = (messages[0] as { task: Task }).task
    expect(messages.at(-1)).toEqual({
      type: 'result',
      result: { content: [{ type: 'text', text: 'Echo: Hi' }], _meta: { [RELATED]: { taskId } } },
    })
    expect(peer.asked).toMatchObject([{ method: 'elicitation/create', taskId }])
    expect(await peer.client.experimental.tasks.getTask(taskId)).toMatchObject({ taskId, status: 'completed' })
  })

  test('is asked several things at once, each of which belongs to the task', async () => {
    await opened({ 'Where to?': [{ action: 'accept', content: { choice: 'sea' } }] })
    const { taskId } = await begin('trip')
    expect(textOf(await resultOf(taskId))).toBe('sea, All in all., 1')
    expect(peer.asked.map(({ method }) => method).toSorted()).toEqual([
      'elicitation/create',
      'roots/list',
      'sampling/createMessage',
    ])
    expect(peer.asked.every((asked) => asked.taskId === taskId)).toBe(true)
  })

  test('is asked one thing after the other, and again where an answer does not fit', async () => {
    await opened({
      'Provision a? It costs.': [{ action: 'accept', content: { confirm: true } }],
      'Where?': [
        { action: 'accept', content: { region: 7 } },
        { action: 'accept', content: { region: 'north' } },
      ],
    })
    const { taskId } = await begin('provision', { name: 'a' })
    expect(textOf(await resultOf(taskId))).toBe('vm a in north, in the background')
    expect(peer.asked).toHaveLength(3)
  })

  test('is told the progress of the task with the token of the call, while it polls', async () => {
    await opened()
    const told: unknown[] = []
    const onprogress = (progress: unknown): void => void told.push(progress)
    await peer.client.listTools()
    const options = { task: { ttl: 60_000 }, onprogress }
    const stream = peer.client.experimental.tasks.callToolStream({ name: 'copy' }, CallToolResultSchema, options)
    for await (const message of stream) if (message.type === 'error') throw message.error
    expect(told.length).toBeGreaterThan(0)
    expect(told).toContainEqual({ progress: 3, total: 3, message: 'File 3' })
  })

  test('visits a page for a task', async () => {
    await opened({ 'Please sign in.': [{ action: 'accept' }] })
    const { taskId } = await begin('page')
    expect(textOf(await resultOf(taskId))).toBe('Signed in.')
  })

  test('declines, which is what the task then comes to', async () => {
    await opened({ 'Please provide the input string to echo back': [{ action: 'decline' }] })
    const { taskId } = await begin('echo')
    const result = await resultOf(taskId)
    expect(result.isError).toBe(true)
    expect(textOf(result)).toMatch(/The user declined the question "echo_input"/)
    expect(await peer.client.experimental.tasks.getTask(taskId)).toMatchObject({ status: 'failed' })
  })

  test('gets content of every kind, in the words of its revision', async () => {
    await opened()
    const adds = await begin('adds')
    expect((await resultOf(adds.taskId)).structuredContent).toEqual({ sum: 3 })
    const lists = await begin('lists')
    const listed = await resultOf(lists.taskId)
    expect(listed).not.toHaveProperty('structuredContent')
    expect(textOf(listed)).toBe('[1,2]')
  })

  test('hears of failures as the call would have told them', async () => {
    await opened()
    await peer.client.listTools()
    const wrong = await messagesOf('wrong')
    expect(wrong.at(-1)).toMatchObject({
      type: 'error',
      error: { message: expect.stringContaining('failed') as string },
    })
    const { taskId } = (wrong[0] as { task: Task }).task
    expect(await resultOf(taskId)).toMatchObject({ isError: true, content: [{ text: 'The disk is full.' }] })
    const refused = await begin('refuses')
    await expect(resultOf(refused.taskId)).rejects.toMatchObject({ code: -32050, data: { day: 'Sunday' } })
  })

  test('cancels a task while it waits for the result, and cannot cancel it again', async () => {
    await opened()
    const { taskId } = await begin('forever')
    const waiting = resultOf(taskId)
    waiting.catch(() => {})
    const { tasks } = peer.client.experimental
    expect(await tasks.cancelTask(taskId)).toMatchObject({ taskId, status: 'cancelled' })
    await expect(waiting).rejects.toMatchObject({ code: -32602 })
    await expect(tasks.cancelTask(taskId)).rejects.toMatchObject({ code: -32602 })
    expect(await tasks.getTask(taskId)).toMatchObject({ status: 'cancelled' })
  })

  test('leaves while it waits, is asked nothing more, and may come back', async () => {
    await opened()
    const { taskId } = await begin('echo')
    const left = new AbortController()
    const asked = new Promise<AbortSignal>((resolve) => {
      peer.client.setRequestHandler(ElicitRequestSchema, (_request, { signal }) => {
        resolve(signal)
        return new Promise(() => {})
      })
    })
    const waiting = resultOf(taskId, { signal: left.signal })
    const question = await asked
    const withdrawn = new Promise<void>((resolve) => question.addEventListener('abort', () => resolve()))
    left.abort('Enough')
    await expect(waiting).rejects.toThrow(/Enough/)
    await withdrawn
    expect(await peer.client.experimental.tasks.getTask(taskId)).toMatchObject({ status: 'input_required' })
    peer.client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { input: 'back' } }))
    expect(textOf(await resultOf(taskId))).toBe('Echo: back')
  })

  test('calls tools without tasks as ever, except those that are always tasks', async () => {
    await opened({
      'Provision b? It costs.': [{ action: 'accept', content: { confirm: true } }],
      'Where?': [{ action: 'accept', content: { region: 'south' } }],
    })
    const called = await peer.client.callTool({ name: 'provision', arguments: { name: 'b' } })
    expect(textOf(called as CallToolResult)).toBe('vm b in south, while you waited')
    expect(peer.asked.map(({ taskId }) => taskId)).toEqual([undefined, undefined])
    await expect(peer.client.callTool({ name: 'always' })).rejects.toMatchObject({ code: -32601 })
    await expect(begin('never')).rejects.toMatchObject({ code: -32601 })
    expect(textOf((await peer.client.callTool({ name: 'never' })) as CallToolResult)).toBe('Never.')
  })
})

describe('the v1 client whom somebody has authenticated', () => {
  test('lists its tasks', async () => {
    peer = await overHttp()
    const made = [await begin('adds'), await begin('wrong')]
    for (const { taskId } of made) await resultOf(taskId)
    const { tasks, nextCursor } = await peer.client.experimental.tasks.listTasks()
    const standing = tasks.map(({ taskId, status }) => [taskId, status])
    expect(Object.fromEntries(standing)).toEqual({
      [made[0]?.taskId ?? '']: 'completed',
      [made[1]?.taskId ?? '']: 'failed',
    })
    expect(nextCursor).toBeUndefined()
  })
})

async function messagesOf(name: string): Promise<object[]> {
  const messages: object[] = []
  for await (const message of peer.client.experimental.tasks.callToolStream({ name })) messages.push(message)
  return messages
}

async function begin(name: string, args: Record<string, unknown> = {}): Promise<Task> {
  const stream = peer.client.experimental.tasks.callToolStream({ name, arguments: args }, CallToolResultSchema, {
    task: { ttl: 60_000 },
  })
  for await (const message of stream) {
    if (message.type === 'taskCreated') return message.task
    if (message.type === 'error') throw message.error
  }
  throw new Error('There is no task.')
}

function resultOf(taskId: string, options: { signal?: AbortSignal } = {}): Promise<CallToolResult> {
  return peer.client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema, options)
}

function textOf({ content }: CallToolResult): string {
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('\n')
}

async function connect(transport: Transport, stop: () => Promise<void>): Promise<Peer> {
  const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }
  const client = new Client({ name: 'v1', version: '1.0.0' }, { capabilities })
  const asked: Asked[] = []
  const answers: Peer['answers'] = {}
  const note = (method: string, params: { _meta?: Record<string, unknown> | undefined } = {}): void => {
    const related = params._meta?.[RELATED] as { taskId: string } | undefined
    asked.push({ method, taskId: related?.taskId })
  }
  client.setRequestHandler(ElicitRequestSchema, ({ method, params }) => {
    note(method, params)
    const known = Object.keys(answers).find((message) => params.message.startsWith(message)) ?? ''
    return answers[known]?.shift() ?? { action: 'cancel' }
  })
  client.setRequestHandler(CreateMessageRequestSchema, ({ method, params }) => {
    note(method, params)
    return { role: 'assistant', content: { type: 'text', text: 'All in all.' }, model: 'model' }
  })
  client.setRequestHandler(ListRootsRequestSchema, ({ method, params }) => {
    note(method, params)
    return { roots: [{ uri: 'file:///one' }] }
  })
  const problems = watch(transport)
  await client.connect(transport)
  return {
    client,
    asked,
    answers,
    problems,
    close: async () => {
      await client.close()
      await stop()
    },
  }
}

/** Holds what comes in against the revision. */
function watch(transport: Transport): string[] {
  const problems: string[] = []
  const sent = new Map<unknown, string>()
  const send = transport.send.bind(transport)
  transport.send = (message, options) => {
    const { id, method, params } = message as { id?: unknown; method?: string; params?: { task?: object } }
    const isTask = method === 'tools/call' && params?.task !== undefined
    if (method !== undefined) sent.set(id, isTask ? 'tools/call as a task' : method)
    return send(message, options)
  }
  let listener: Transport['onmessage']
  Object.defineProperty(transport, 'onmessage', {
    get: () => listener,
    set: (wanted: typeof listener) => {
      listener = (message, extra) => {
        const { id, method } = message as { id?: unknown; method?: string }
        problems.push(...olderProblems(message, method === undefined ? sent.get(id) : undefined))
        wanted?.(message, extra)
      }
    },
  })
  return problems
}
