// Tasks of our own server, in each way there is to it. What goes over the wire is held against the schema of the extension.
import { EventEmitter, once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { MemoryStore } from 'mcp-rally'
import type { AppLike, Client, ClientOptions, FormAnswer, FormQuestion, SavedTask, TaskState } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { serve } from 'mcp-rally/node'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { specValidator } from '../spec/validate.ts'
import { taskApp } from './task-app.mjs'
import { textOf } from './wires.ts'

const SERVER = fileURLToPath(new URL('./task-app.mjs', import.meta.url))

function newStore(): MemoryStore {
  const store = new MemoryStore()
  onTestFinished(() => store.close())
  return store
}

async function connected(to: Parameters<typeof connect>[0], options?: ClientOptions): Promise<Client> {
  const client = await connect(to, options)
  onTestFinished(() => client.close())
  return client
}

const ways: readonly { name: string; to: () => Promise<Parameters<typeof connect>> }[] = [
  { name: 'memory', to: async () => [checked(taskApp(newStore()))] },
  {
    name: 'HTTP',
    to: async () => {
      const serving = await serve(taskApp(newStore()), { port: 0, handleSignals: false })
      onTestFinished(() => serving.close())
      return [serving.url]
    },
  },
  {
    name: 'app.fetch',
    to: async () => {
      const app = taskApp(newStore())
      return ['http://localhost/mcp', { fetch: (url, init) => app.fetch(new Request(url, init)) }]
    },
  },
  { name: 'stdio', to: async () => [{ command: process.execPath, args: [SERVER, '--stdio'] }] },
]

const DEFINITIONS: Readonly<Record<string, string>> = {
  'tasks/get': 'GetTaskRequest GetTaskResult',
  'tasks/update': 'UpdateTaskRequest UpdateTaskResult',
  'tasks/cancel': 'CancelTaskRequest CancelTaskResult',
}

/** The same app; what is sent and got that is wrong fails the test. */
function checked(app: AppLike): AppLike {
  const problems: string[] = []
  const check = (message: unknown, definition: string): void => {
    for (const problem of specValidator(definition, 'ext-tasks')(message)) problems.push(`${definition}: ${problem}`)
  }
  onTestFinished(() => {
    if (problems.length > 0) throw new Error(problems.join('\n'))
  })
  return {
    async dispatch(message, context) {
      const { method } = message as { method: string }
      const [request, response] = DEFINITIONS[method]?.split(' ') ?? []
      if (request !== undefined) check(message, request)
      const notify = (text: string): unknown => {
        const told = JSON.parse(text) as { method: string }
        if (told.method === 'notifications/tasks') check(told, 'TaskStatusNotification')
        return context.notify(text)
      }
      const reply = await app.dispatch(message, { ...context, notify })
      const { result } = JSON.parse(reply?.text ?? '{}') as { result?: { resultType: string } }
      if (result !== undefined && response !== undefined) check(result, response)
      if (result?.resultType === 'task') check(result, 'CreateTaskResult')
      return reply
    },
  }
}

/** Says yes, goes to the north, and counts to 4. */
const answering = (): { options: ClientOptions; asked: string[] } => {
  const asked: string[] = []
  const answers: Record<string, object> = {
    cost: { confirm: true },
    region: { choice: 'eu-north' },
    sure: { confirm: true },
  }
  const onElicit = ({ key }: FormQuestion): FormAnswer => {
    asked.push(key)
    return { action: 'accept', content: { count: 4, ...answers[key] } }
  }
  return { options: { onElicit }, asked }
}

const accept = (content: Record<string, string | number | boolean>) => ({ action: 'accept', content }) as const

describe.each(ways)('over $name', ({ to }) => {
  test('a call that asks, detaches and asks again comes to its result', async () => {
    const { options, asked } = answering()
    const [server, more] = await to()
    const client = await connected(server, { ...more, ...options })
    expect(textOf(await client.callTool('provision_vm', { name: 'web' }))).toBe('web runs in eu-north')
    expect(asked).toEqual(['cost', 'region'])
  })

  test('a tool that is started is left, seen to, answered and waited for by hand', async () => {
    const [server, more] = await to()
    const client = await connected(server, { ...more, onElicit: () => accept({ confirm: true }) })
    const begun = await client.startTool('waits')
    if (begun.kind !== 'task') throw new Error('It became no task.')
    const statuses: string[] = []
    for await (const state of client.task(JSON.parse(JSON.stringify(begun.task)) as SavedTask)) {
      statuses.push(state.status)
      if (state.status === 'input_required') await begun.task.answer({ sure: accept({ confirm: false }) })
    }
    expect(statuses.at(-1)).toBe('completed')
    expect(textOf(await begun.task.result())).toBe('false')
  })

  test('a task is cancelled', async () => {
    const [server, more] = await to()
    const client = await connected(server, { ...more, can: ['elicitation.form'] })
    const begun = await client.startTool('waits')
    if (begun.kind !== 'task') throw new Error('It became no task.')
    await begun.task.cancel()
    await expect(begun.task.result()).rejects.toMatchObject({ code: 'TASK_CANCELLED' })
  })
})

describe('a task of our own server', () => {
  test('asks again under another key where an answer did not fit, and both are asked at once', async () => {
    const asked: string[] = []
    const client = await connected(checked(taskApp(newStore())), {
      onElicit: ({ key, message }) => {
        asked.push(key)
        return accept({ count: /must be even/.test(message) || key.startsWith('other') ? 4 : 3 })
      },
    })
    await client.listTools()
    expect(await client.callTool('pairs')).toMatchObject({ structuredContent: { pairs: 4 } })
    expect(asked).toHaveLength(3)
    expect(asked.slice(0, 2)).toEqual(['one', 'other'])
    expect(asked[2]).toMatch(/^one~/)
  })

  test('tells of its progress as it goes', async () => {
    const maker = new EventEmitter()
    const made = once(maker, 'made')
    const app = taskApp(newStore(), {}, async () => void (await made))
    const client = await connected(checked(app), answering().options)
    const begun = await client.startTool('provision_vm', { name: 'web' })
    if (begun.kind !== 'task') throw new Error('It became no task.')
    const seen: TaskState[] = []
    for await (const state of begun.task) {
      seen.push(state)
      if (state.message === 'Making web.') maker.emit('made')
      if (state.status === 'input_required') await begun.task.answer({ region: accept({ choice: 'us-east' }) })
    }
    expect(seen.map(({ message }) => message)).toContain('Making web.')
    expect(seen.at(-1)).toMatchObject({ status: 'completed', result: { content: [{ text: 'web runs in us-east' }] } })
  })

  test('that throws comes to a result that says so, and one that refuses rejects with the error inside', async () => {
    const client = await connected(checked(taskApp(newStore())))
    expect(await client.callTool('fails')).toMatchObject({ isError: true, content: [{ text: 'It is broken.' }] })
    await expect(client.callTool('refuses')).rejects.toMatchObject({ rpcCode: -32050, data: { left: 0 } })
  })

  test('is cancelled by a caller who aborts', async () => {
    const app = checked(taskApp(newStore()))
    const controller = new AbortController()
    const client = await connected(app, {
      onElicit: () => {
        controller.abort()
        return new Promise(() => {})
      },
    })
    const rounds = client.rounds({ tool: 'waits' }, { signal: controller.signal })
    const { value: round } = await rounds.next()
    if (round?.kind !== 'task') throw new Error('It became no task.')
    await expect(rounds.next()).rejects.toMatchObject({ code: 'ABORTED' })
    await vi.waitFor(async () => expect(await round.task.status()).toMatchObject({ status: 'cancelled' }))
  })

  test('is nobody else`s to see', async () => {
    const serving = await serve(taskApp(newStore()), {
      port: 0,
      handleSignals: false,
      authenticate: (request) => ({ principal: request.header('x-user') ?? 'nobody' }),
    })
    onTestFinished(() => serving.close())
    const can = ['elicitation.form'] as const
    const ada = await connected(serving.url, { can, headers: { 'X-User': 'ada' } })
    const eve = await connected(serving.url, { can, headers: { 'X-User': 'eve' } })
    const begun = await ada.startTool('waits')
    if (begun.kind !== 'task') throw new Error('It became no task.')
    const stolen = eve.task(begun.task.id)
    await expect(stolen.status()).rejects.toMatchObject({ code: 'TASK_GONE' })
    await expect(stolen.cancel()).rejects.toMatchObject({ code: 'TASK_GONE' })
    await expect(stolen.result()).rejects.toMatchObject({ code: 'TASK_GONE' })
    expect(['working', 'input_required']).toContain((await begun.task.status()).status)
  })

  test('is finished by the server that replaces one that drains', async () => {
    const store = newStore()
    const first = await serve(taskApp(store), { port: 0, handleSignals: false })
    const second = await serve(taskApp(store), { port: 0, handleSignals: false })
    onTestFinished(() => second.close())
    let { url } = first
    const user = new EventEmitter()
    const asked = once(user, 'asked')
    const client = await connected(first.url, {
      fetch: (_url, init) => fetch(url, init),
      onElicit: async () => {
        user.emit('asked')
        await once(user, 'answers')
        return accept({ confirm: true })
      },
    })
    const call = client.callTool('waits')
    await asked
    ;({ url } = second)
    await first.close()
    user.emit('answers')
    expect(textOf(await call)).toBe('true')
  })

  test('needs a client that takes tasks', async () => {
    const client = await connected(taskApp(newStore()), { tasks: false })
    await expect(client.callTool('fails')).rejects.toMatchObject({ rpcCode: -32021 })
    const { options } = answering()
    const inline = await connected(taskApp(newStore()), { ...options, tasks: false })
    expect(textOf(await inline.callTool('provision_vm', { name: 'web' }))).toBe('web runs in eu-north')
  })
})
