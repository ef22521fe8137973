// Tasks in a real terminal: a line that moves, questions in between, and a way back.
import { MemoryStore } from 'mcp-rally'
import { serve } from 'mcp-rally/node'
import { describe, expect, onTestFinished, test } from 'vitest'
import { taskApp } from '../client/task-app.mjs'
import type { TaskServerOptions, Told } from '../client/task-server.ts'
import { answerOf, asking, completed, TASK_ID, TaskServer } from '../client/task-server.ts'
import { gate } from '../../src/testing/manual-scheduler.ts'
import { HOSTILE } from './app.ts'
import { KEYS, Terminal } from './terminal.ts'

const { enter, down, escape, ctrlC } = KEYS

async function servedCloud(): Promise<string> {
  const store = new MemoryStore()
  const serving = await serve(taskApp(store), { port: 0, handleSignals: false })
  onTestFinished(async () => {
    await serving.close()
    await store.close()
  })
  return serving.url
}

async function served(told: Told = {}, options: TaskServerOptions = {}): Promise<{ server: TaskServer; url: string }> {
  const server = new TaskServer(told, { tells: true, ...options })
  return { server, url: await server.listen() }
}

test('a task is followed on one line, asks its question, and its result is all that is left', async () => {
  const { server, url } = await served(
    { statusMessage: 'Finding a machine.' },
    { onUpdate: (_responses, at) => at.become({ status: 'working', statusMessage: 'Copying.' }) },
  )
  const terminal = new Terminal(['task', url, TASK_ID])
  await terminal.shows(/^Working: Finding a machine\.$/)
  await server.listened()
  server.become({ status: 'working', statusMessage: 'Found one.' })
  await terminal.shows(/^Working: Found one\.$/)
  server.become(asking('name'))
  await terminal.shows(/Esc leaves a question, Ctrl-C leaves the task running\.[^]*Your name\?/)
  expect(terminal.text).not.toContain('Working')
  await terminal.answer('name', `Ada${enter}`)
  await terminal.shows(/Working: Copying\.$/)
  server.become(completed('Hello, Ada.'))
  expect(await terminal.ended).toBe(0)
  expect(terminal.text).not.toContain('Working')
  expect(terminal.text.split('\n').at(-1)).toBe('Hello, Ada.')
  expect(server.sent('tasks/update')).toEqual([{ taskId: TASK_ID, inputResponses: { name: answerOf('Ada') } }])
})

test('the progress of a task is a bar, as that of a call', async () => {
  const store = new MemoryStore()
  const app = taskApp(store)
  const go = gate()
  app.tool('copy', { task: 'always' }, async (_args, io) => {
    io.progress(3, 6, 'Copying')
    await io.step('rest', () => go.promise)
    return 'Copied.'
  })
  const { url, close } = await serve(app, { port: 0, handleSignals: false })
  onTestFinished(close)
  const terminal = new Terminal(['call', url, 'copy'])
  await terminal.shows(/\[#{15}\.{15}\] 50% 3\/6 Copying$/)
  go.open()
  expect(await terminal.ended).toBe(0)
  expect(terminal.text.split('\n').at(-1)).toBe('Copied.')
})

test('a call of our own server asks, goes on as a task, asks again, and ends with its result', async () => {
  const url = await servedCloud()
  const terminal = new Terminal(['call', url, 'provision_vm', 'name=web'])
  await terminal.answer('Confirm', 'y')
  await terminal.shows(/Round 2: cloud continues as a task\./)
  await terminal.shows(/Where should web run\?/)
  await terminal.answer('choice', down + enter)
  expect(await terminal.ended).toBe(0)
  expect(terminal.text.split('\n').at(-1)).toBe('web runs in us-east')
})

test('a call of our own server is left in one terminal, and gone on with in another', async () => {
  const url = await servedCloud()
  const first = new Terminal(['call', url, 'provision_vm', 'name=web', '--detach'])
  await first.answer('Confirm', 'y')
  expect(await first.ended).toBe(0)
  const [, id = ''] = /rally task \S+ (\S+)/.exec(first.raw) ?? []
  const second = new Terminal(['task', url, id])
  await second.answer('choice', ctrlC)
  expect(await second.ended).toBe(130)
  const third = new Terminal(['task', url, id])
  await third.answer('choice', enter)
  expect(await third.ended).toBe(0)
  expect(third.text.split('\n').at(-1)).toBe('web runs in eu-north')
})

test('a call that becomes a task is followed in the same way', async () => {
  const { server, url } = await served({ statusMessage: 'Finding a machine.' })
  const terminal = new Terminal(['call', url, 'hello_world'])
  await terminal.shows(/Round 1: tasks continues as a task\.[^]*\nWorking: Finding a machine\.$/)
  await server.listened()
  server.become(completed('There it is.'))
  expect(await terminal.ended).toBe(0)
  expect(terminal.text.split('\n').at(-1)).toBe('There it is.')
})

describe('Ctrl-C', () => {
  test('leaves the task to the server while it works, and says how to come back', async () => {
    const { server, url } = await served({ statusMessage: 'Copying.' })
    const terminal = new Terminal(['task', url, TASK_ID])
    await terminal.shows(/Working: Copying\./)
    terminal.type(ctrlC)
    expect(await terminal.ended).toBe(130)
    expect(terminal.text.replaceAll('\n', '')).toContain(
      `The task keeps running. Return to it with: npx mcp-rally task ${url} ${TASK_ID}`,
    )
    expect(server.count('tasks/cancel')).toBe(0)
  })

  test('leaves it in the middle of a question too', async () => {
    const { server, url } = await served(asking('name'))
    const terminal = new Terminal(['task', url, TASK_ID])
    await terminal.answer('name', `Ad${ctrlC}`)
    expect(await terminal.ended).toBe(130)
    expect(terminal.text).toMatch(/The task keeps running\. Return to it with:[^]*\nStopped\.$/)
    expect(server.count('tasks/update') + server.count('tasks/cancel')).toBe(0)
  })
})

test('a question that is declined is sent as such', async () => {
  const { server, url } = await served(asking('name'), {
    onUpdate: (_responses, at) => at.become(completed('As you like.')),
  })
  const terminal = new Terminal(['task', url, TASK_ID])
  await terminal.answer('name', escape)
  await terminal.answer('Leave the question', down + enter)
  expect(await terminal.ended).toBe(0)
  expect(server.sent('tasks/update')).toMatchObject([{ inputResponses: { name: { action: 'decline' } } }])
})

test('questions are asked one after the other, and each answer is sent at once', async () => {
  const { server, url } = await served(asking('name', 'town'), {
    onUpdate: (responses, at) => at.become('town' in responses ? completed('Hello.') : asking('town')),
  })
  const terminal = new Terminal(['task', url, TASK_ID])
  await terminal.shows(/Your name\?/)
  await terminal.answer('name', `Ada${enter}`)
  await server.asked('tasks/update')
  await terminal.shows(/Your town\?/)
  await terminal.shows(/Your town\?[^]*\u25C6 {2}name/)
  terminal.type(`Ghent${enter}`)
  expect(await terminal.ended).toBe(0)
  expect(server.sent('tasks/update').map(({ inputResponses }) => inputResponses)).toEqual([
    { name: answerOf('Ada') },
    { town: answerOf('Ghent') },
  ])
})

test('a question that somebody else has answered goes from the screen', async () => {
  const { server, url } = await served(asking('name'))
  const terminal = new Terminal(['task', url, TASK_ID])
  await terminal.shows(/\u25C6 {2}name/)
  await server.listened()
  server.become({ status: 'working', statusMessage: 'Copying.' })
  await terminal.shows(/The server no longer asks this\./)
  server.become(completed('Done without you.'))
  expect(await terminal.ended).toBe(0)
  expect(terminal.text.split('\n').at(-1)).toBe('Done without you.')
  expect(server.count('tasks/update')).toBe(0)
})

test('what a server says of its task does not reach the terminal as anything but text', async () => {
  const { server, url } = await served({ statusMessage: HOSTILE })
  const terminal = new Terminal(['task', url, TASK_ID])
  await terminal.shows(/Working: red \\x1b\]0;owned\\x07/)
  await server.listened()
  server.become({ status: 'cancelled', statusMessage: HOSTILE })
  expect(await terminal.ended).toBe(3)
  // oxlint-disable-next-line no-control-regex -- what a terminal would act on is what is looked for
  expect(terminal.raw).not.toMatch(/\u001B\]0;|\u001B\[2J|\u009B|\u202E|\u200B|\u001B\[31m/)
})
