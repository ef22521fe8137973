// Tasks from a terminal client without a terminal: left, come back to, answered from a file, looked at and cancelled.
import { describe, expect, test } from 'vitest'
import { done } from '../client/scripted.ts'
import type { TaskServerOptions, Told } from '../client/task-server.ts'
import { answerOf, asking, completed, TASK_ID, TaskServer } from '../client/task-server.ts'
import { HOSTILE } from './app.ts'
import { jsonFile, rally, start } from './cli.ts'

async function served(told: Told = {}, options: TaskServerOptions = {}): Promise<{ server: TaskServer; url: string }> {
  const server = new TaskServer(told, options)
  return { server, url: await server.listen() }
}

describe('a call with --detach', () => {
  test('prints the id of the task and nothing else, says how to come back, and does not wait', async () => {
    const { server, url } = await served()
    expect(await rally(['call', url, 'hello_world', '--detach'])).toEqual({
      code: 0,
      stdout: `${TASK_ID}\n`,
      stderr:
        'Round 1: tasks continues as a task.\n' +
        `The task runs on the server. Follow it with: npx mcp-rally task ${url} ${TASK_ID}\n`,
    })
    expect(server.count('tasks/get')).toBe(0)
  })

  test('prints what a program can take it up with, for scripts', async () => {
    const { url } = await served()
    const { code, stdout, stderr } = await rally(['call', url, 'hello_world', '--detach', '--json'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(JSON.parse(stdout)).toEqual({
      version: 1,
      revision: '2026-07-28',
      taskId: TASK_ID,
      tool: 'hello_world',
      pollIntervalMs: 1,
    })
  })

  test('that is done at once prints its result', async () => {
    const { url } = await served({}, { call: () => done('at once') })
    expect(await rally(['call', url, 'hello_world', '--detach'])).toEqual({ code: 0, stdout: 'at once\n', stderr: '' })
  })

  test('names a task so that a shell takes it for nothing else', async () => {
    const id = `a b'; touch /tmp/x; ${HOSTILE}`
    const { url } = await served({ taskId: id })
    const { stdout, stderr } = await rally(['call', url, 'hello_world', '--detach'])
    expect(stderr).toContain(` 'a b'\\''; touch /tmp/x; red \\x1b]0;owned\\x07`)
    // oxlint-disable-next-line no-control-regex -- what a terminal would act on is what is looked for
    expect(stdout + stderr).not.toMatch(/[\u0000-\u0009\u000B-\u001F\u007F-\u009F\u202E\u200B]/)
  })
})

describe('a call that becomes a task', () => {
  test('is waited for, with a line for each change', async () => {
    const { server, url } = await served({ statusMessage: 'Finding a machine.' })
    const { ended } = start(['call', url, 'hello_world'])
    await server.asked('tasks/get')
    server.become({ status: 'working', statusMessage: 'Copying.' })
    await server.asked('tasks/get', 3)
    server.become(completed('There it is.'))
    const { code, stdout, stderr } = await ended
    expect({ code, stdout: stdout.toString() }).toEqual({ code: 0, stdout: 'There it is.\n' })
    expect(stderr.toString()).toBe(
      'Round 1: tasks continues as a task.\nWorking: Finding a machine.\nWorking: Copying.\n',
    )
  })

  test('says nothing but its result to a script', async () => {
    const { url } = await served(completed('done'))
    const { code, stdout, stderr } = await rally(['call', url, 'hello_world', '--json'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(JSON.parse(stdout)).toMatchObject({ content: [{ text: 'done' }] })
  })

  test('is answered from the file that answers the call', async () => {
    const { server, url } = await served(asking('name'), {
      onUpdate: (_responses, at) => at.become(completed('Hello, Ada.')),
    })
    const answers = await jsonFile({ name: { name: 'Ada' } })
    const { code, stdout } = await rally(['call', url, 'hello_world', '--answers', answers])
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'Hello, Ada.\n' })
    expect(server.sent('tasks/update')).toEqual([{ taskId: TASK_ID, inputResponses: { name: answerOf('Ada') } }])
  })

  test('is left to the server by an interrupt, which says how to come back', async () => {
    const { server, url } = await served()
    const { ended, interrupt } = start(['call', url, 'hello_world'])
    await server.asked('tasks/get', 2)
    interrupt()
    const { code, stderr } = await ended
    expect(code).toBe(130)
    expect(stderr.toString()).toContain(
      `The task keeps running. Return to it with: npx mcp-rally task ${url} ${TASK_ID}\nStopped.\n`,
    )
    expect(server.count('tasks/cancel')).toBe(0)
  })
})

describe('rally task', () => {
  test('comes back to a task, and ends with its result', async () => {
    const { url } = await served(completed('There it is.'))
    expect(await rally(['task', url, TASK_ID])).toEqual({ code: 0, stdout: 'There it is.\n', stderr: '' })
  })

  test.each(['-abc', '--def', '-Hxyz', '--json-', '-e=x'])(
    'takes an id that looks like an option: %s',
    async (taskId) => {
      const { url } = await served({ ...completed('There it is.'), taskId })
      const { stderr } = await rally(['call', url, 'hello_world', '--detach'])
      expect(stderr).toContain(`rally task ${url} ${taskId.includes('=') ? `'${taskId}'` : taskId}\n`)
      expect(await rally(['task', url, taskId, '--json'])).toMatchObject({ code: 0, stderr: '' })
      expect(await rally(['task', url, '--no-wait', '--id', taskId])).toMatchObject({ code: 0, stdout: 'Completed\n' })
    },
  )

  test('sends the answers that the file has, and ends with 4 where it has none', async () => {
    const { server, url } = await served(asking('name', 'town'), {
      onUpdate: (_responses, at) => at.become(asking('town')),
    })
    const answers = await jsonFile({ name: { name: 'Ada' } })
    const { code, stdout, stderr } = await rally(['task', url, TASK_ID, '--answers', answers])
    expect({ code, stdout }).toEqual({ code: 4, stdout: '' })
    expect(stderr).toContain(`The task keeps running. Return to it with: npx mcp-rally task ${url} ${TASK_ID}\n`)
    expect(stderr).toContain(`rally: The server asks "town" (Your town?), a form, and ${answers} has no answer to it.`)
    expect(stderr).toContain('An answer in a file for --answers looks like this: {"town": {"name":"..."}}')
    expect(server.sent('tasks/update')).toEqual([{ taskId: TASK_ID, inputResponses: { name: answerOf('Ada') } }])
  })

  test('that has nobody to ask says so', async () => {
    const { url } = await served(asking('name'))
    const { code, stderr } = await rally(['task', url, TASK_ID])
    expect(code).toBe(4)
    expect(stderr).toContain('and there is no terminal to ask in.')
  })

  test('shows how the task stands and does not wait with --no-wait', async () => {
    const { server, url } = await served(asking('name'))
    const said = await rally(['task', url, TASK_ID, '--no-wait'])
    expect(said).toMatchObject({ code: 0, stdout: 'Waiting for answers\n' })
    expect(said.stderr).toContain('The server asks "name" (Your name?), a form.')
    server.become({ status: 'working', statusMessage: HOSTILE })
    const { stdout } = await rally(['task', url, TASK_ID, '--no-wait'])
    expect(stdout).toMatch(
      /^Working: red \\x1b\]0;owned\\x07 .*\\x9b5A \\u\{202e\}gnp\.exe \\u\{200b\}hidden\\x0dover\n$/,
    )
    const json = await rally(['task', url, TASK_ID, '--no-wait', '--json'])
    expect(JSON.parse(json.stdout)).toMatchObject({ id: TASK_ID, status: 'working', message: HOSTILE })
    expect(server.count('subscriptions/listen')).toBe(0)
  })

  test('has the task cancelled with --cancel, and shows how it stands then', async () => {
    const { server, url } = await served({}, { onCancel: (at) => at.become({ status: 'cancelled' }) })
    expect(await rally(['task', url, TASK_ID, '--cancel'])).toEqual({ code: 0, stdout: 'Cancelled\n', stderr: '' })
    expect(server.count('tasks/cancel')).toBe(1)
  })

  test.each<{ what: string; told: Told; code: number; says: string }>([
    {
      what: 'the tool failed',
      told: completed('No.', { isError: true }),
      code: 1,
      says: 'tasks reports that the call failed.',
    },
    {
      what: 'the task failed',
      told: { status: 'failed', error: { code: -32050, message: 'No quota.' } },
      code: 3,
      says: 'rally: No quota.',
    },
    {
      what: 'the task was cancelled',
      told: { status: 'cancelled' },
      code: 3,
      says: `rally: The task "${TASK_ID}" was cancelled.`,
    },
  ])('ends with $code where $what', async ({ told, code, says }) => {
    const { url } = await served(told)
    const ran = await rally(['task', url, TASK_ID])
    expect(ran.code).toBe(code)
    expect(ran.stderr).toBe(`${says}\n`)
  })

  test('ends with 3 where the server does not know the task', async () => {
    const { url } = await served()
    const { code, stderr } = await rally(['task', url, 'another'])
    expect({ code, stderr }).toEqual({
      code: 3,
      stderr:
        'rally: The server has no task "another" for this caller; it may have been deleted: Failed to retrieve task: Task not found\n',
    })
  })

  test('ends with 4 where the user said no and the tool failed for it', async () => {
    const { url } = await served(asking('name'), {
      onUpdate: (_responses, at) => at.become(completed('Declined.', { isError: true })),
    })
    const answers = await jsonFile({ name: 'decline' })
    const { code, stdout } = await rally(['task', url, TASK_ID, '--answers', answers])
    expect({ code, stdout }).toEqual({ code: 4, stdout: 'Declined.\n' })
  })

  test.each([
    {
      args: ['http://127.0.0.1:9/mcp'],
      says: 'Which task? npx mcp-rally call <server> <tool> --detach prints its id.',
    },
    { args: ['http://127.0.0.1:9/mcp', 'a', 'b'], says: '"b" is not expected' },
    { args: ['a'], says: '"a" is not the URL of a server.' },
  ])('is told what is wrong with $args', async ({ args, says }) => {
    const { code, stderr } = await rally(['task', ...args])
    expect(code).toBe(2)
    expect(stderr).toContain(says)
  })
})
