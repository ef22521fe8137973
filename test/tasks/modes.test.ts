// When a call becomes a task: `task` on the tool, `io.detach()`, and what the client and the app have.
import type { Rally, RallyOptions } from 'mcp-rally'
import { rally, send } from 'mcp-rally'
import { describe, expect, test } from 'vitest'
import { TASKS_EXTENSION } from '../../src/protocol/revisions/2026-07-28.ts'
import { call, errorOf, request, resultOf, textOf } from '../wire/messages.ts'
import { Caller, WITH_TASKS } from './caller.ts'
import { Office } from './office.ts'

const MISSING = {
  code: -32021,
  message: expect.stringContaining('task'),
  data: { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } },
}

const MODES = ['always', 'optional', 'never', undefined] as const
type Mode = (typeof MODES)[number]

/** A tool that says how its handler went on. */
function tool(app: Rally, task: Mode, required?: boolean): void {
  app.tool('work', { ...(task && { task }) }, async (_args, io) => {
    const detached = await io.detach({ ...(required && { required }) })
    return detached ? 'in the background' : 'inline'
  })
}

function without(options: Partial<RallyOptions> = {}): Rally {
  return rally({ name: 'office', version: '1.0.0', ...options })
}

async function listed(app: Rally): Promise<unknown> {
  return resultOf(await send(app, request('server/discover')))['capabilities']
}

describe('a call of a tool whose handler detaches', () => {
  test.each<{ task: Mode }>([{ task: 'always' }, { task: 'optional' }, { task: undefined }])(
    'becomes a task where the client has them (task: $task), and there detach gives true',
    async ({ task }) => {
      const office = new Office()
      const { app } = office.instance((each) => tool(each, task))
      const caller = new Caller(office, app)
      expect(await caller.said(await caller.begin('work'))).toBe('in the background')
    },
  )

  test('goes on inline where the tool is never a task, and there detach gives false', async () => {
    const office = new Office()
    const { app } = office.instance((each) => tool(each, 'never'))
    expect(textOf(await new Caller(office, app).call('work'))).toBe('inline')
  })

  test.each<{ task: Mode }>([{ task: 'optional' }, { task: 'never' }, { task: undefined }])(
    'goes on inline where the client has no tasks (task: $task), and there detach gives false',
    async ({ task }) => {
      const office = new Office()
      const { app } = office.instance((each) => tool(each, task))
      expect(textOf(await new Caller(office, app).send(call('work')))).toBe('inline')
    },
  )

  test.each<{ task: Mode }>([{ task: 'optional' }, { task: 'never' }, { task: undefined }])(
    'goes on inline where the app has no store (task: $task), whatever the client has',
    async ({ task }) => {
      const app = without()
      tool(app, task)
      expect(textOf(await send(app, request('tools/call', { name: 'work' }, WITH_TASKS)))).toBe('inline')
    },
  )

  test('that must be a task ends with -32021 where the client has none', async () => {
    const office = new Office()
    const { app } = office.instance((each) => tool(each, undefined, true))
    expect(errorOf(await new Caller(office, app).send(call('work')))).toEqual(MISSING)
  })

  test.each([{ client: 'with tasks' }, { client: 'without tasks' }])(
    'that must be a task fails where the tool never is one, and says so to a client $client',
    async ({ client }) => {
      const office = new Office()
      const { app } = office.instance((each) => tool(each, 'never', true))
      const caller = new Caller(office, app)
      expect(errorOf(await (client === 'with tasks' ? caller.call('work') : caller.send(call('work'))))).toEqual({
        code: -32603,
        message: expect.stringMatching(/^Tool "work": io\.detach.* never becomes one\. .*`task: 'never'`/) as string,
        data: { code: 'TASK_NEVER' },
      })
    },
  )

  test('that must be a task fails in a prompt, which never is one', async () => {
    const office = new Office()
    const { app } = office.instance((each) =>
      each.prompt('work', {}, async (_args, io) => String(await io.detach({ required: true }))),
    )
    const response = await new Caller(office, app).send(request('prompts/get', { name: 'work' }, WITH_TASKS))
    expect(errorOf(response)).toMatchObject({ data: { code: 'TASK_NEVER' } })
  })

  test('that must be a task fails where the app has no store, and says so: the client is not to blame', async () => {
    const alone = without()
    tool(alone, undefined, true)
    expect(errorOf(await send(alone, request('tools/call', { name: 'work' }, WITH_TASKS)))).toEqual({
      code: -32603,
      message: 'io.detach({ required: true }) needs a store, and the app has none. Pass one to rally({ store }).',
      data: { code: 'STORE_REQUIRED' },
    })
  })
})

describe('a wait that is too long for a plain call says what to do', () => {
  const HOUR = 3_600_000
  const wait = (app: Rally, task: Mode): Rally =>
    app
      .tool('nap', { ...(task !== undefined && { task }) }, async (_args, io) => io.sleep('nap', HOUR))
      .tool('ask', { ...(task !== undefined && { task }) }, async (_args, io) => {
        await io.ask('sure', 'Sure?', { type: 'object', properties: {} }, { withinMs: HOUR })
      })
      .prompt('nap', {}, async (_args, io) => {
        await io.sleep('nap', HOUR)
        return 'woke'
      })
  const LONGER = 'The sleep "nap" waits 3600000 ms, and the limit here is 300000 ms.'

  test.each([
    {
      what: 'where the flow can become a task',
      app: () => new Office().instance((each) => wait(each, undefined)).app,
      message: request('tools/call', { name: 'nap' }, WITH_TASKS),
      says: `${LONGER} Call io.detach() before it, so that the flow continues as a task, or wait less.`,
    },
    {
      what: 'to a client without tasks',
      app: () => new Office().instance((each) => wait(each, undefined)).app,
      message: call('nap'),
      says: `${LONGER} The client does not support tasks, which may wait longer. Wait less, or raise \`timeoutMs\`.`,
    },
    {
      what: 'in a tool that never is a task',
      app: () => new Office().instance((each) => wait(each, 'never')).app,
      message: request('tools/call', { name: 'nap' }, WITH_TASKS),
      says: `${LONGER} A tool with \`task: 'never'\` cannot become a task, which may wait longer. Wait less, or raise \`timeoutMs\`.`,
    },
    {
      what: 'in an app without a store',
      app: () => wait(without(), undefined),
      message: request('tools/call', { name: 'nap' }, WITH_TASKS),
      says: `${LONGER} Pass a store to rally({ store }) and call io.detach() before it, so that the flow continues as a task. Wait less, or raise \`timeoutMs\`.`,
    },
    {
      what: 'in a prompt',
      app: () => new Office().instance((each) => wait(each, undefined)).app,
      message: request('prompts/get', { name: 'nap' }, WITH_TASKS),
      says: `${LONGER} Only tools become tasks, which may wait longer. Wait less, or raise \`timeoutMs\`.`,
    },
    {
      what: 'of a deadline',
      app: () => new Office().instance((each) => wait(each, undefined)).app,
      message: call('ask'),
      says: 'The deadline of the question "sure" waits 3600000 ms, and the limit here is 600000 ms. The client does not support tasks, which may wait longer. Wait less, or raise `ttl`.',
    },
  ])('$what', async ({ app, message, says }) => {
    expect(errorOf(await send(app(), message))).toMatchObject({ message: says, data: { code: 'WAIT_TOO_LONG' } })
  })
})

describe('a tool that is always a task', () => {
  test('is refused with -32021 to a client without tasks, before its handler runs', async () => {
    const office = new Office()
    let ran = false
    const { app } = office.instance((each) =>
      each.tool('work', { task: 'always' }, () => {
        ran = true
        return 'done'
      }),
    )
    expect(errorOf(await new Caller(office, app).send(call('work')))).toEqual(MISSING)
    expect(ran).toBe(false)
  })

  test('cannot be registered on an app without a store', () => {
    expect(() => without().tool('work', { task: 'always' }, () => 'done')).toThrow(
      `Tool "work": \`task: 'always'\` needs a store. Pass one to rally({ store }).`,
    )
  })
})

describe('a tool that is a task where possible', () => {
  test('asks in rounds where the client has no tasks, and in the task where it has', async () => {
    const office = new Office()
    const { app } = office.instance((each) =>
      each.tool('work', { task: 'optional' }, async (_args, io) =>
        (await io.confirm('sure', 'Sure?')) ? 'yes' : 'no',
      ),
    )
    const caller = new Caller(office, app)
    expect(resultOf(await caller.send(call('work')))).toMatchObject({ resultType: 'input_required' })
    const id = await caller.begin('work')
    expect(await caller.asked(id, 'sure')).toEqual({ sure: 'Sure?' })
  })
})

test('a task mode that does not exist is an error when the tool is registered', () => {
  expect(() => without().tool('work', { task: 'sometimes' as 'always' }, () => 'done')).toThrow(
    `Tool "work": \`task\` must be 'always', 'optional' or 'never', or an object with it as \`mode\`, got "sometimes".`,
  )
})

test.each([null, 'tasks.db', () => {}, {}, { tasks: {} }])('a store that is none, such as %s, is an error', (store) => {
  expect(() => rally({ name: 'storeless', version: '1', store: store as never })).toThrow(
    /^`store` must be a Store\. Create one with sqlite/,
  )
})

test.each([
  [{ pollMs: 0 }, '`tasks.pollMs` must be a whole number of at least 1, got 0.'],
  [{ leaseMs: 1.5 }, '`tasks.leaseMs` must be a whole number of at least 1, got 1.5.'],
  [{ leaseMs: 2_147_483_648 }, '`tasks.leaseMs` must be at most 2147483647, got 2147483648.'],
  [{ ttlMs: -1 }, '`tasks.ttlMs` must be a whole number of at least 1, got -1.'],
  [{ maxJournalBytes: Number.NaN }, '`tasks.maxJournalBytes` must be a whole number of at least 1, got NaN.'],
  [{ concurrency: -1 }, '`tasks.concurrency` must be a whole number of at least 0, got -1.'],
  [{ keepFailedMs: -3 }, '`tasks.keepFailedMs` must be a whole number of at least 0, got -3.'],
])('the options %j are an error when the app is built', (tasks, message) => {
  expect(() => without({ tasks })).toThrow(message)
})

test('an instance with no room for tasks makes them, and leaves them to the others', async () => {
  const office = new Office()
  const { app } = office.instance((each) => tool(each, 'always'), { tasks: { concurrency: 0 } })
  const caller = new Caller(office, app)
  const id = await caller.begin('work')
  expect((await caller.get(id)).status).toBe('working')
  office.instance((each) => tool(each, 'always'))
  expect(await caller.said(id)).toBe('in the background')
})

test('discovery lists the extension where there is a store, and only there', async () => {
  const office = new Office()
  const { app } = office.instance(() => {})
  expect(await listed(app)).toHaveProperty(['extensions', TASKS_EXTENSION], {})
  expect(await listed(without())).not.toHaveProperty('extensions')
})
