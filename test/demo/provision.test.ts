// The demo's task: confirmed in the call, carried by a store from there on, whatever becomes of the process.
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { MemoryStore, type Rally, send } from 'mcp-rally'
import { describe, expect, test } from 'vitest'
import { demoApp } from '../../examples/tools.ts'
import { folder, jsonFile } from '../cli/cli.ts'
import type { WireTask } from '../drill/task-wire.ts'
import { getTask, post, taskCall, taskIn, updateTask } from '../drill/task-wire.ts'
import type { WireRequest } from '../wire/messages.ts'
import { accept, askedIn, call, errorOf, textOf } from '../wire/messages.ts'
import { runDemo, shell, startDemo } from './demo-process.ts'

const NAMED = { name: 'web' }
const YES = { cost: accept({ confirm: true }) }
const IN_EUROPE = { region: accept({ choice: 'eu-west' }) }
const RUNS = /^web runs in eu-west at 198\.51\.100\.\d{1,3}$/

type Send = (message: WireRequest) => Promise<object>

/** Confirms the cost, and gives the task that the call then is. */
async function begin(sending: Send): Promise<string> {
  const { state, messages } = askedIn(await sending(taskCall('provision_vm', NAMED)))
  expect(messages).toEqual({ cost: 'web will cost 0.12 EUR an hour. Provision it?' })
  const made = taskIn(await sending(taskCall('provision_vm', NAMED, { requestState: state, inputResponses: YES })))
  expect(made).toMatchObject({ resultType: 'task', status: 'working' })
  return made.taskId
}

/** Looks until it stands as wanted, and gives all that it was seen to say on the way. */
async function until(sending: Send, id: string, wanted: (task: WireTask) => boolean): Promise<[WireTask, Set<string>]> {
  const said = new Set<string>()
  for (;;) {
    const task = taskIn(await sending(getTask(id)))
    if (task.statusMessage !== undefined) said.add(task.statusMessage.replace(/:.*/, ''))
    if (wanted(task)) return [task, said]
    await setTimeout(20)
  }
}

const asks = ({ status }: WireTask): boolean => status === 'input_required'
const isOver = ({ status }: WireTask): boolean => status !== 'input_required' && status !== 'working'

function through(app: Rally): Send {
  return async (message) => (await send(app, message)) ?? {}
}

async function temporaryFile(): Promise<string> {
  return join(await folder(), 'tasks.db')
}

describe('provision_vm', () => {
  const KEYS = ['a secret of the tests of the demo, long enough']
  const WORK_MS = 20

  test('confirms in the call, goes on as a task that says what it does, and asks for a region in the middle', async () => {
    // Long enough for each piece of work to be seen: what is said is gathered for a tenth of a second.
    const sending = through(demoApp({ keys: KEYS, store: new MemoryStore() }, 500))
    const id = await begin(sending)
    const [{ inputRequests = {} }, before] = await until(sending, id, asks)
    expect([...before]).toEqual(['Reserving a machine', 'Copying the image'])
    expect(inputRequests['region']?.params).toMatchObject({
      message: 'Where should web run?',
      requestedSchema: { properties: { choice: { enum: ['eu-west', 'us-east', 'ap-south'] } } },
    })
    await sending(updateTask(id, IN_EUROPE))
    const [{ status, result }, after] = await until(sending, id, isOver)
    expect(status).toBe('completed')
    expect(result?.content[0]?.text).toMatch(RUNS)
    expect([...after].slice(-3)).toEqual(['Wiring the network', 'Booting', 'Ready'])
  })

  test('provisions nothing, and makes no task, where the cost is not confirmed', async () => {
    const sending = through(demoApp({ keys: KEYS, store: new MemoryStore() }, WORK_MS))
    const { state } = askedIn(await sending(taskCall('provision_vm', NAMED)))
    const inputResponses = { cost: accept({ confirm: false }) }
    const done = await sending(taskCall('provision_vm', NAMED, { requestState: state, inputResponses }))
    expect(textOf(done)).toBe('Nothing was provisioned.')
  })

  test.each([
    { what: 'for a client that has no tasks', options: { store: new MemoryStore() } },
    { what: 'where there is no store', options: {} },
  ])('goes on in the call $what', async ({ options }) => {
    const sending = through(demoApp({ keys: KEYS, ...options }, WORK_MS))
    const first = askedIn(await sending(call('provision_vm', NAMED)))
    const second = askedIn(
      await sending(call('provision_vm', NAMED, { requestState: first.state, inputResponses: YES })),
    )
    expect(second.messages).toEqual({ region: 'Where should web run?' })
    const last = { requestState: second.state, inputResponses: IN_EUROPE }
    expect(textOf(await sending(call('provision_vm', NAMED, last)))).toMatch(RUNS)
  })
})

describe('the demo on a file', () => {
  test(
    'goes on with a task after kill -9, in the middle of a step and at the question',
    { timeout: 60_000 },
    async () => {
      const file = await temporaryFile()
      const start = async () => {
        const { child, url } = await startDemo({}, ['--store', file])
        const sending: Send = (message) => post(url, message)
        return { child, sending }
      }
      const first = await start()
      const id = await begin(first.sending)
      await until(first.sending, id, ({ statusMessage = '' }) => statusMessage.startsWith('Copying the image'))
      expect(await first.child.kill()).toEqual({ code: null, signal: 'SIGKILL' })

      const second = await start()
      const [, said] = await until(second.sending, id, asks)
      expect([...said]).toEqual(['Copying the image'])
      await second.child.kill()

      const third = await start()
      await third.sending(updateTask(id, IN_EUROPE))
      const [{ status, result }] = await until(third.sending, id, isOver)
      expect(status).toBe('completed')
      expect(result?.content[0]?.text).toMatch(RUNS)
    },
  )

  test('goes on over the standard streams with what was begun there', { timeout: 60_000 }, async () => {
    const file = await temporaryFile()
    const start = () => {
      const child = runDemo(['--store', file, '--stdio'])
      const sending: Send = async (message) => {
        child.say(`${JSON.stringify(message)}\n`)
        const [text] = await child.printed.match(new RegExp(`^.*"id":${message.id},.*$`, 'm'))
        return JSON.parse(text) as object
      }
      return { child, sending }
    }
    const first = start()
    const id = await begin(first.sending)
    await until(first.sending, id, ({ statusMessage = '' }) => statusMessage.startsWith('Copying the image'))
    await first.child.kill()

    const second = start()
    await until(second.sending, id, asks)
    await second.sending(updateTask(id, IN_EUROPE))
    const [{ result }] = await until(second.sending, id, isOver)
    expect(result?.content[0]?.text).toMatch(RUNS)
    second.child.hangUp()
    expect(await second.child.ended).toEqual({ code: 0, signal: null })
  })
})

test('in memory a task ends with its process, and the demo says so', async () => {
  const first = await startDemo()
  await first.child.printed.match(/The task ends with this process/)
  const id = await begin((message) => post(first.url, message))
  await first.child.kill()
  const second = await startDemo()
  expect(errorOf(await post(second.url, getTask(id)))).toMatchObject({ code: -32602 })
})

test(
  'the command it prints provisions a machine, and the process to kill is its own',
  { timeout: 60_000 },
  async () => {
    const { child, url } = await startDemo({}, ['--store', await temporaryFile()])
    const [, command = ''] = await child.printed.match(/^ {2}(npx mcp-rally call .*)$/m)
    const [, pid] = await child.printed.match(/kill -9 (\d+)/)
    expect(Number(pid)).toBe(child.pid)
    expect(command).toBe(`npx mcp-rally call ${url} provision_vm name=web`)
    const answers = await jsonFile({ cost: { confirm: true }, region: { choice: 'eu-west' } })
    const said = await shell(`${command} --answers ${answers}`, { HOME: await folder() })
    expect(said.trim()).toMatch(RUNS)
  },
)
