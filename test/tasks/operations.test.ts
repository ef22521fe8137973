// What operators do with tasks: list, look into, cancel, answer, retry and delete them.
import type { Rally, TaskListOptions, TaskPruneOptions, TaskTimelineEntry } from 'mcp-rally'
import { MemoryStore, rally, ToolError } from 'mcp-rally'
import { sqlite } from 'mcp-rally/sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import type { Store } from '../../src/store/store.ts'
import { gate } from '../../src/testing/manual-scheduler.ts'
import { accept } from '../wire/messages.ts'
import { Caller } from './caller.ts'
import type { Instance } from './office.ts'
import { LEASE_MS, Office, opened } from './office.ts'

/** What the world outside of the tasks does. */
class World {
  readonly ran: { key: string; idempotencyKey: string; on: string }[] = []
  broken = new Set<string>()

  get keys(): string[] {
    return this.ran.map(({ key }) => key)
  }

  /** Three steps, with a question after the first and one after the third. */
  order =
    (on = 'one') =>
    (app: Rally): void => {
      app.tool('order', { task: 'always', input: z.object({ item: z.string() }) }, async ({ item }, io) => {
        const step = (key: string): Promise<string> =>
          io.step(key, ({ idempotencyKey }) => {
            this.ran.push({ key, idempotencyKey, on })
            if (this.broken.has(key)) throw new Error(`${key} is down`)
            return `${key} ${item}`
          })
        await step('reserve')
        const size = await io.choose('size', 'Which size?', ['S', 'L'])
        await step('charge')
        const note = await io.choose('note', 'Which note?', ['none', 'thanks'])
        await step('ship')
        return `${item} ${size} ${note}`
      })
    }
}

function failing(app: Rally): void {
  app.tool('fails', { task: 'always' }, () => {
    throw new Error('No.')
  })
}

async function answered(caller: Caller, id: string, key: string, choice: string): Promise<void> {
  await caller.asked(id, key)
  await caller.update(id, { [key]: accept({ choice }) })
}

/** An order whose third step has failed. */
async function failedOrder(): Promise<{ world: World; caller: Caller; office: Office; id: string; app: Rally }> {
  const world = new World()
  world.broken.add('ship')
  const { caller, office, instance } = opened(world.order())
  const id = await caller.begin('order', { item: 'hat' })
  await answered(caller, id, 'size', 'L')
  await answered(caller, id, 'note', 'thanks')
  expect((await caller.ended(id)).result?.isError).toBe(true)
  return { world, caller, office, id, app: instance.app }
}

function staffed(): { app: Rally; ada: Caller; bob: Caller } {
  const { office, instance } = opened((app) => {
    app.tool('ok', { task: 'always' }, () => 'Fine.')
    app.tool('throws', { task: 'always' }, () => {
      throw new ToolError('No.')
    })
    app.tool('says', { task: 'always' }, () => ({ content: [], isError: true }))
    app.tool('asks', { task: 'always' }, async (_args, io) => String(await io.confirm('sure', 'Sure?')))
  })
  return {
    app: instance.app,
    ada: new Caller(office, instance.app, 'ada'),
    bob: new Caller(office, instance.app, 'bob'),
  }
}

describe('list', () => {
  test('has the tasks of all principals, the newest first, with their outcomes', async () => {
    const { app, ada, bob } = staffed()
    const ids = [await ada.begin('ok'), await bob.begin('throws'), await ada.begin('says'), await ada.begin('asks')]
    for (const id of [ids[0], ids[2]]) await ada.ended(id ?? '')
    await bob.ended(ids[1] ?? '')
    await ada.asked(ids[3] ?? '', 'sure')
    const { tasks, next } = await app.tasks.list()
    expect(next).toBeUndefined()
    expect(tasks.map(({ id }) => id)).toEqual(ids.toReversed())
    expect(tasks.map(({ tool, status, outcome, principal }) => [tool, status, outcome, principal])).toEqual([
      ['asks', 'input_required', undefined, 'ada'],
      ['says', 'completed', 'error', 'ada'],
      ['throws', 'completed', 'error', 'bob'],
      ['ok', 'completed', 'ok', 'ada'],
    ])
  })

  test('is filtered by status, outcome, tool, principal and time, and has pages', async () => {
    const { app, ada, bob } = staffed()
    const [ok, thrown, asking] = [await ada.begin('ok'), await bob.begin('throws'), await bob.begin('asks')]
    await ada.ended(ok)
    await bob.ended(thrown)
    await bob.asked(asking, 'sure')
    const ids = async (options: Parameters<Rally['tasks']['list']>[0]): Promise<string[]> =>
      (await app.tasks.list(options)).tasks.map(({ id }) => id)
    expect(await ids({ status: 'input_required' })).toEqual([asking])
    expect(await ids({ outcome: 'error' })).toEqual([thrown])
    expect(await ids({ outcome: 'ok' })).toEqual([ok])
    expect(await ids({ outcome: 'cancelled' })).toEqual([])
    expect(await ids({ tool: 'ok' })).toEqual([ok])
    expect(await ids({ tool: 'o' })).toEqual([])
    expect(await ids({ principal: 'bob' })).toEqual([asking, thrown])
    expect(await ids({ principal: null })).toEqual([])
    expect(await ids({ principal: 'bob', status: 'completed' })).toEqual([thrown])
    expect(await ids({ before: new Date(0) })).toEqual([])
    const { tasks, next = '' } = await app.tasks.list({ limit: 2 })
    expect(tasks).toHaveLength(2)
    expect(await ids({ before: next })).toEqual([ok])
  })

  test('refuses a wrong position, limit or time', async () => {
    const { app } = opened(() => {}).instance
    await expect(app.tasks.list({ before: 'what' })).rejects.toMatchObject({
      code: 'TASK_CURSOR',
      message: expect.stringMatching(/^app\.tasks\.list\(\): `before` must be .*, got "what"\. Leave it out/),
    })
    for (const before of ['12:30', '1790000000000:', ''])
      await expect(app.tasks.list({ before })).rejects.toMatchObject({ code: 'TASK_CURSOR' })
    await expect(app.tasks.list({ before: new Date(Number.NaN) })).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    await expect(app.tasks.list({ limit: 0 })).rejects.toThrow(
      'app.tasks.list(): `limit` must be a whole number from 1 to 1000, got 0.',
    )
  })
})

test('a filter that no task can match is refused, by name', async () => {
  const { tasks } = opened(() => {}).instance.app
  const filters = [
    { status: 'bogus', says: /`status` must be one of working, input_required, .*, got "bogus"\.$/ },
    { outcome: 'failed', says: /`outcome` must be one of ok, error, gave_up, cancelled, got "failed"\.$/ },
    { tool: 5, says: /`tool` must be a string, got 5\.$/ },
    { principal: 5, says: /`principal` must be a string or null, got 5\.$/ },
  ]
  for (const { says, ...filter } of filters) {
    const message = expect.stringMatching(says)
    await expect(tasks.list(filter as TaskListOptions)).rejects.toMatchObject({ code: 'OPTION_INVALID', message })
  }
  const bogus = { olderThanMs: 0, outcome: 'failed' } as unknown as TaskPruneOptions
  await expect(tasks.prune(bogus)).rejects.toThrow('app.tasks.prune(): `outcome` must be one of')
  await expect(tasks.prune(undefined as unknown as TaskPruneOptions)).rejects.toThrow(
    'app.tasks.prune(): `olderThanMs` must be a number of at least 0, got undefined.',
  )
})

test('an app without a store, and a store without these functions, say what is missing', async () => {
  await expect(rally({ name: 'a', version: '1' }).tasks.list()).rejects.toThrow('`app.tasks` needs a store.')
  const { tasks, once, mailbox } = new MemoryStore()
  const own = new Proxy(tasks, { get: (target, name) => (name === 'find' ? undefined : Reflect.get(target, name)) })
  const store: Store = { tasks: own, once, mailbox, close: async () => {} }
  const { tasks: operations } = rally({ name: 'a', version: '1', store })
  await expect(operations.list()).rejects.toMatchObject({ code: 'STORE_UNSUPPORTED' })
})

describe('get', () => {
  test('tells what happened, when, by whom, and what it came to', async () => {
    const { app, id } = await failedOrder()
    const details = await app.tasks.get(id)
    expect(details).toMatchObject({
      id,
      tool: 'order',
      arguments: { item: 'hat' },
      status: 'completed',
      outcome: 'error',
      canRetry: true,
      result: { isError: true },
    })
    expect(brief(details.timeline)).toEqual([
      'claim  released',
      'step reserve completed "reserve hat"',
      'ask size accept {"choice":"L"}',
      'claim  released',
      'step charge completed "charge hat"',
      'ask note accept {"choice":"thanks"}',
      'claim  ended',
      'step ship failed Error: ship is down',
      'end  error',
    ])
    for (const { type, worker, at, until } of details.timeline) {
      if (type !== 'end') expect(worker).toBe(details.timeline[0]?.worker)
      if (type !== 'end') expect(until?.getTime()).toBeGreaterThanOrEqual(at.getTime())
    }
    expect(details.timeline[0]?.worker).toMatch(/:\d+$/)
  })

  test('shows no payload if that is wished, or what a function makes of it', async () => {
    const { app, id } = await failedOrder()
    const details = await app.tasks.get(id, { redact: true })
    expect(details).not.toHaveProperty('arguments')
    expect(details).not.toHaveProperty('result')
    expect(details.timeline.filter((entry) => 'value' in entry)).toEqual([])
    expect(JSON.stringify(details)).not.toMatch(/hat|thanks/)
    const marked = await app.tasks.get(id, { redact: (_payload, { kind, key }) => `${kind} ${key ?? ''}` })
    expect(marked).toMatchObject({ arguments: 'arguments ', result: 'result ' })
    expect(marked.timeline.flatMap(({ value }) => value ?? [])).toEqual([
      'step reserve',
      'answer size',
      'step charge',
      'answer note',
    ])
  })

  test('keeps no message that callers may not read, but the reference that the log has', async () => {
    const { caller, instance } = opened(
      (app) => {
        app.tool('connects', { task: 'always' }, async (_args, io) => {
          await io.step('driver', () => {
            throw Object.assign(new Error('no route to postgres://me:secret@db'), { code: 'ECONNREFUSED' })
          })
        })
        app.tool('says', { task: 'always' }, (_args, io) =>
          io.step('own', () => {
            throw new ToolError('The shop is closed.')
          }),
        )
      },
      { showErrors: false },
    )
    const stepOf = async (tool: string): Promise<string | undefined> => {
      const id = await caller.begin(tool)
      await caller.ended(id)
      const { timeline } = await instance.app.tasks.get(id)
      return timeline.find(({ type }) => type === 'step')?.error
    }
    const [, reference = 'none'] =
      /^Error ECONNREFUSED\. Reference: (\S+)$/.exec((await stepOf('connects')) ?? '') ?? []
    expect(instance.logged.join()).toContain(reference)
    expect(await stepOf('says')).toBe('ToolError: The shop is closed.')
  })

  test('shows no text of a result that reports a failure if that is wished', async () => {
    const { caller, instance } = opened((app) => {
      app.tool('pay', { task: 'always' }, () => ({
        content: [{ type: 'text', text: 'Card 4242 was refused.' }],
        isError: true,
      }))
    })
    const id = await caller.begin('pay')
    await caller.ended(id)
    expect((await instance.app.tasks.get(id)).timeline.at(-1)).toMatchObject({ error: 'Card 4242 was refused.' })
    expect(JSON.stringify(await instance.app.tasks.get(id, { redact: true }))).not.toContain('4242')
    const masked = await instance.app.tasks.get(id, {
      redact: () => ({ content: [{ type: 'text', text: 'Card **** was refused.' }] }),
    })
    expect(masked.timeline.at(-1)).toMatchObject({ how: 'error', error: 'Card **** was refused.' })
  })

  test('shows the status message and the errors of steps in any case', async () => {
    const { caller, instance } = opened((app) => {
      app.tool('pay', { task: 'always' }, async (_args, io) => {
        io.progress(1, 2, 'Paying with card 4242.')
        await io.step('charge', () => {
          throw new ToolError('Card 4242 was refused.')
        })
      })
    })
    const id = await caller.begin('pay')
    await caller.ended(id)
    const details = await instance.app.tasks.get(id, { redact: true })
    expect(details.message).toBe('Paying with card 4242.')
    expect(details.timeline.find(({ type }) => type === 'step')?.error).toBe('ToolError: Card 4242 was refused.')
    expect(details.timeline.at(-1)).toMatchObject({ type: 'end', how: 'error' })
    expect(details.timeline.at(-1)).not.toHaveProperty('error')
  })

  test('of a task that waits: its questions, and since when', async () => {
    const world = new World()
    const { caller, instance } = opened(world.order())
    const id = await caller.begin('order', { item: 'hat' })
    await caller.asked(id, 'size')
    const details = await instance.app.tasks.get(id)
    expect(details.questions).toMatchObject({ size: { params: { message: 'Which size?' } } })
    expect(brief(details.timeline)).toEqual([
      'claim  released',
      'step reserve completed "reserve hat"',
      'ask size open',
    ])
    expect(details).toMatchObject({ canRetry: false, status: 'input_required' })
    const hidden = await instance.app.tasks.get(id, { redact: true })
    expect(hidden).not.toHaveProperty('questions')
  })

  test('of a task that has ended well: the timeline without payloads, because its journal is deleted', async () => {
    const world = new World()
    const { caller, instance } = opened(world.order())
    const id = await caller.begin('order', { item: 'hat' })
    await answered(caller, id, 'size', 'S')
    await answered(caller, id, 'note', 'none')
    expect(await caller.said(id)).toBe('hat S none')
    const { timeline, outcome, canRetry } = await instance.app.tasks.get(id)
    expect({ outcome, canRetry }).toEqual({ outcome: 'ok', canRetry: false })
    expect(brief(timeline).filter((line) => !line.startsWith('claim'))).toEqual([
      'step reserve completed',
      'ask size accept',
      'step charge completed',
      'ask note accept',
      'step ship completed',
      'end  ok',
    ])
  })

  test.each([undefined, 60_000])('of a task that waits for an event, within %s ms', async (withinMs) => {
    const office = new Office()
    const tokens: string[] = []
    let isDown = true
    const { app } = office.instance((each) => {
      each.tool('invoice', { task: 'always' }, async (_args, io) => {
        const paid = withinMs ? io.event('paid', z.number(), { withinMs }) : io.event('paid', z.number())
        await io.step('mail', () => void tokens.push(paid.token))
        const amount = await paid
        await io.step('book', () => {
          if (isDown) throw new Error('down')
        })
        return `${amount}`
      })
    })
    const caller = new Caller(office, app)
    const id = await caller.begin('invoice')
    const waits = async (task: string): Promise<string[]> =>
      brief((await app.tasks.get(task)).timeline).filter((line) => line.includes(' paid '))
    await expect.poll(() => waits(id)).toEqual(['wait paid waiting'])
    await app.signal(tokens[0] ?? '', 7)
    await caller.ended(id)
    expect(await waits(id)).toEqual(['wait paid over 7'])
    isDown = false
    const { id: retried } = await app.tasks.retry(id)
    expect(await caller.said(retried)).toBe('7')
    expect(await waits(retried)).toEqual(['wait paid over'])
  })

  test('of sleeps, attempts and deadlines', async () => {
    const office = new Office()
    office.shareClock()
    const { app } = office.instance((each) => {
      each.tool('slow', { task: 'always' }, async (_args, io) => {
        await io.sleep('night', 60_000)
        await io.step(
          'load',
          ({ attempt }) => {
            if (attempt < 2) throw new Error('db down')
          },
          { retries: 3, backoff: { firstMs: 30_000, maxMs: 30_000 } },
        )
        await io.ask('sure', 'Sure?', z.object({ yes: z.boolean() }), { withinMs: 60_000, otherwise: { yes: false } })
        return 'Done.'
      })
    })
    const caller = new Caller(office, app)
    const id = await caller.begin('slow')
    const sleeping = async (until: (entries: string[]) => boolean): Promise<void> => {
      while (!until(brief((await app.tasks.get(id)).timeline))) await office.changed()
    }
    await sleeping((lines) => lines.includes('claim  released') && lines.includes('wait night waiting'))
    expect(await app.tasks.get(id)).toMatchObject({ dueAt: new Date(office.now + 60_000) })
    office.elapse(60_001)
    await sleeping((lines) => lines.includes('wait load waiting') && !lines.includes('claim  running'))
    office.elapse(60_001)
    await caller.asked(id, 'sure')
    office.elapse(60_001)
    await caller.said(id)
    const { timeline } = await app.tasks.get(id)
    expect(brief(timeline).filter((line) => !line.startsWith('claim'))).toEqual([
      'wait night over',
      'step load failed Error: db down',
      'wait load over',
      'step load #2 completed',
      'ask sure expired',
      'end  ok',
    ])
  })

  test('of a lost worker: its name, and what it did, from the journal', async () => {
    const office = new Office()
    const blocked = gate()
    const reached = gate()
    const tools = (app: Rally): void => {
      app.tool('work', { task: 'always' }, async (_args, io) => {
        await io.step('one', () => 1)
        await io.step('two', async () => {
          reached.open()
          await blocked.promise
        })
      })
    }
    const first = office.instance(tools, { tasks: { worker: 'web-1' } })
    const id = await new Caller(office, first.app).begin('work')
    await reached.promise
    const running = await first.app.tasks.get(id)
    expect(running).toMatchObject({ worker: 'web-1' })
    expect(brief(running.timeline)).toEqual(['claim  running', 'step one completed 1'])
    first.view.kill()
    blocked.open()
    const second = office.instance(tools, { tasks: { worker: 'web-2' } })
    office.skipWaits()
    office.elapse(LEASE_MS + 1)
    await new Caller(office, second.app).said(id)
    const { timeline } = await second.app.tasks.get(id)
    expect(timeline.map(({ type, key = '', how, worker }) => [type, key, how, worker])).toEqual([
      ['claim', '', 'lost', 'web-1'],
      ['step', 'one', 'completed', 'web-1'],
      ['claim', '', 'ended', 'web-2'],
      ['step', 'two', 'completed', 'web-2'],
      ['end', '', 'ok', undefined],
    ])
  })

  test('of a task that no worker could run: it gave up, and can be retried', async () => {
    const office = new Office()
    const world = new World()
    const front = office.instance(world.order(), { tasks: { concurrency: 0 } })
    const caller = new Caller(office, front.app)
    const id = await caller.begin('order', { item: 'hat' })
    office.skipWaits()
    const worker = office.instance(() => {}, { tasks: { worker: 'web-1' } })
    await caller.ended(id)
    const { app } = front
    const details = await app.tasks.get(id)
    expect(details).toMatchObject({ status: 'failed', outcome: 'gave_up', canRetry: true })
    expect((await app.tasks.list({ outcome: 'gave_up' })).tasks.map((task) => task.id)).toEqual([id])
    // A hundred claims in which nothing happened are one row.
    expect(brief(details.timeline)).toEqual(['claim  released', 'claim  ended', 'end  gave_up'])
    expect(details.timeline.at(-1)?.error).toMatch(/after 120 retries\. This instance has no tool "order"/)
    worker.app.interrupt()
    office.instance(world.order())
    const retried = await app.tasks.retry(id)
    await answered(caller, retried.id, 'size', 'S')
    await answered(caller, retried.id, 'note', 'none')
    expect(await caller.said(retried.id)).toBe('hat S none')
  })

  test('of a call that became a task in the middle: what was done before', async () => {
    const { caller, instance } = opened((app) => {
      app.tool('late', {}, async (_args, io) => {
        await io.step('before', () => 1)
        await io.detach()
        await io.step('after', () => 2)
        return 'Done.'
      })
    })
    const id = await caller.begin('late')
    await caller.said(id)
    const { timeline } = await instance.app.tasks.get(id)
    expect(timeline.find(({ key }) => key === 'before')).toMatchObject({ type: 'step', how: 'completed' })
    expect(timeline.find(({ key }) => key === 'before')).not.toHaveProperty('worker')
    expect(brief(timeline).at(-1)).toBe('end  ok')
  })

  test('of tasks that earlier versions ended, with their outcome and without a timeline', async () => {
    const { office, instance } = opened(() => {})
    const request = JSON.stringify({
      tool: 'old',
      args: {},
      flowId: 'f',
      startedAt: 1,
      round: 0,
      revision: 'r',
      declared: 0,
      can: 0,
    })
    const state = JSON.stringify({ version: null, carry: null, passes: 1, shown: {}, wires: {}, answers: {} })
    const ends = {
      fine: { status: 'completed', outcome: '{"content":[]}' },
      thrown: { status: 'completed', outcome: '{"content":[{"type":"text","text":"No."}],"isError":true}' },
      broken: { status: 'failed', outcome: '{}', message: 'Internal error' },
      lost: { status: 'failed', outcome: '{}', message: 'The task failed: 5 workers were lost while they ran it.' },
    } as const
    for (const [id, change] of Object.entries(ends)) {
      await office.tasks.create({
        id,
        owner: '',
        request,
        state,
        journal: '[]',
        message: undefined,
        pollMs: 1,
        ttlMs: null,
      })
      await office.tasks.change(id, {}, change)
    }
    const { tasks } = instance.app
    expect((await tasks.list()).tasks.map(({ id, outcome }) => `${id} ${outcome}`)).toEqual([
      'lost gave_up',
      'broken error',
      'thrown error',
      'fine ok',
    ])
    expect((await tasks.get('thrown')).timeline).toMatchObject([{ type: 'end', how: 'error', error: 'No.' }])
    await expect(tasks.retry('thrown')).rejects.toThrow('the task cannot be retried: its journal was not kept')
  })

  test('of a task that does not exist says so', async () => {
    const { app } = opened(() => {}).instance
    await expect(app.tasks.get('none')).rejects.toMatchObject({ code: 'TASK_UNKNOWN' })
    await expect(app.tasks.cancel('none')).rejects.toMatchObject({ code: 'TASK_UNKNOWN' })
    await expect(app.tasks.retry('none')).rejects.toMatchObject({ code: 'TASK_UNKNOWN' })
    await expect(app.tasks.answer('none', {})).rejects.toMatchObject({ code: 'TASK_UNKNOWN' })
  })
})

test('an id that is not a string is a mistake of the caller, and not an outage of the store', async () => {
  const store = sqlite(':memory:')
  onTestFinished(() => store.close())
  const { tasks } = rally({ name: 'shop', version: '1', store })
  const none = undefined as unknown as string
  const calls = {
    get: () => tasks.get(none),
    cancel: () => tasks.cancel(none),
    answer: () => tasks.answer(none, {}),
    signal: () => tasks.signal(none, 'paid', 1),
    retry: () => tasks.retry(none),
  }
  for (const [name, call] of Object.entries(calls)) {
    await expect(call()).rejects.toMatchObject({
      code: 'OPTION_INVALID',
      message: `app.tasks.${name}(): \`id\` must be the id of a task, a string, got undefined.`,
    })
  }
})

describe('retry', () => {
  test('continues with the step that failed, under the same idempotency keys, in a new task of the same owner', async () => {
    const { app, caller, world, id } = await failedOrder()
    world.broken.clear()
    const retried = await app.tasks.retry(id)
    expect(retried).toMatchObject({ tool: 'order', retryOf: id, status: 'working' })
    expect(await caller.said(retried.id)).toBe('hat L thanks')
    expect(world.keys).toEqual(['reserve', 'charge', 'ship', 'ship'])
    const [, , first, second] = world.ran
    expect(second?.idempotencyKey).toBe(first?.idempotencyKey)
    expect(await app.tasks.get(id)).toMatchObject({ outcome: 'error', retriedAs: retried.id, canRetry: false })
    const { timeline, outcome } = await app.tasks.get(retried.id)
    expect(outcome).toBe('ok')
    expect(brief(timeline).filter((line) => !line.startsWith('claim'))).toEqual([
      'step reserve completed',
      'ask size accept',
      'step charge completed',
      'ask note accept',
      'step ship failed Error: ship is down',
      'retry ship made',
      'step ship completed',
      'end  ok',
    ])
  })

  test('from an earlier step does all again that settled after it, and holds the answers', async () => {
    const { app, caller, world, id } = await failedOrder()
    world.broken.clear()
    const retried = await app.tasks.retry(id, { from: 'charge' })
    // Nobody is asked for the note again: the question is the same.
    expect(await caller.said(retried.id)).toBe('hat L thanks')
    expect(world.keys).toEqual(['reserve', 'charge', 'ship', 'charge', 'ship'])
  })

  test('from a question asks it again, and keeps the answers to later ones', async () => {
    const { app, caller, world, id } = await failedOrder()
    world.broken.clear()
    const retried = await app.tasks.retry(id, { from: 'size' })
    await answered(caller, retried.id, 'size', 'S')
    expect(await caller.said(retried.id)).toBe('hat S thanks')
    expect(world.keys).toEqual(['reserve', 'charge', 'ship', 'charge', 'ship'])
  })

  test('asks a later question again if it has changed', async () => {
    let size = 'L'
    let isDown = true
    const { caller, instance } = opened((app) => {
      app.tool('order', { task: 'always' }, async (_args, io) => {
        const stock = await io.step('stock', () => size)
        const yes = await io.confirm('fits', `Is ${stock} right?`)
        await io.step('ship', () => {
          if (isDown) throw new Error('down')
        })
        return `${stock} ${yes}`
      })
    })
    const id = await caller.begin('order')
    await caller.asked(id, 'fits')
    await caller.update(id, { fits: accept({ confirm: true }) })
    await caller.ended(id)
    ;[size, isDown] = ['S', false]
    const retried = await instance.app.tasks.retry(id, { from: 'stock' })
    expect(await caller.asked(retried.id, 'fits')).toEqual({ fits: expect.stringContaining('Is S right?') })
    await caller.update(retried.id, { fits: accept({ confirm: true }) })
    expect(await caller.said(retried.id)).toBe('S true')
  })

  test('sleeps again what was slept after that', async () => {
    const office = new Office()
    office.shareClock()
    let isDown = true
    const { app } = office.instance((each) => {
      each.tool('slow', { task: 'always' }, async (_args, io) => {
        await io.step('one', () => 1)
        await io.sleep('night', 60_000)
        await io.step('two', () => {
          if (isDown) throw new Error('down')
        })
        return 'Done.'
      })
    })
    const caller = new Caller(office, app)
    const id = await caller.begin('slow')
    await asleepIn(office, app, id)
    office.elapse(60_001)
    await caller.ended(id)
    isDown = false
    const retried = await app.tasks.retry(id, { from: 'one' })
    await asleepIn(office, app, retried.id)
    office.elapse(60_001)
    expect(await caller.said(retried.id)).toBe('Done.')
  })

  test.each(['expires', 'is declined'])('asks again what %s inside a scope, with a new deadline', async (how) => {
    const office = new Office()
    office.shareClock()
    const { app } = office.instance((each) => {
      each.tool('scoped', { task: 'always' }, async (_args, io) => {
        await io.step('one', () => 1)
        return io.scope('s', async (inner) => {
          const { n } = await inner.ask('q', 'N?', z.object({ n: z.number() }), { withinMs: 60_000 })
          return `got ${n}`
        })
      })
    })
    const caller = new Caller(office, app)
    const id = await caller.begin('scoped')
    await caller.asked(id, 's>q')
    if (how === 'expires') office.elapse(60_001)
    else await caller.update(id, { 's>q': { action: 'decline' } })
    expect((await caller.ended(id)).result?.isError).toBe(true)
    const { id: retried } = await app.tasks.retry(id)
    await caller.asked(retried, 's>q')
    await caller.update(retried, { 's>q': accept({ n: 4 }) })
    expect(await caller.said(retried)).toBe('got 4')
  })

  test.each([undefined, 'q'])('asks again what no answer was valid for, from %s', async (from) => {
    const { caller, instance } = opened((app) => {
      app.tool('often', { task: 'always' }, async (_args, io) => {
        const { n } = await io.ask('q', 'N?', z.object({ n: z.number() }))
        return `got ${n}`
      })
    })
    const id = await caller.begin('often')
    for (const wire of ['q', 'q~2', 'q~3']) {
      await caller.asked(id, wire)
      await caller.update(id, { [wire]: accept({ n: 'none' }) })
    }
    expect((await caller.ended(id)).result?.content[0]?.text).toMatch(/asked 3 times/)
    const { id: retried } = await instance.app.tasks.retry(id, from === undefined ? {} : { from })
    await caller.asked(retried, 'q')
    // As often as the first time.
    await caller.update(retried, { q: accept({ n: 'none' }) })
    await caller.asked(retried, 'q~2')
    await caller.update(retried, { 'q~2': accept({ n: 4 }) })
    expect(await caller.said(retried)).toBe('got 4')
  })

  test('waits for an event in a scope that is done again, and takes it: its value is gone with the scope', async () => {
    const office = new Office()
    office.shareClock()
    let isDown = true
    const tokens: string[] = []
    const { app } = office.instance((each) => {
      each.tool('order', { task: 'always' }, async (_args, io) => {
        await io.step('one', () => 1)
        const first = await io.scope('first', async (inner) => {
          const seen = inner.event('seen', z.string())
          await inner.step('mail', () => void tokens.push(seen.token))
          return await seen
        })
        return io.scope('second', async (inner) => {
          const paid = inner.event('paid', z.number())
          await inner.step('invoice', () => void tokens.push(paid.token))
          const amount = await paid
          await inner.sleep('night', 60_000)
          await inner.step('charge', () => {
            if (isDown) throw new Error('down')
          })
          return `${first} ${amount}`
        })
      })
    })
    const caller = new Caller(office, app)
    const id = await caller.begin('order')
    await expect.poll(() => tokens.length).toBe(1)
    expect(await app.signal(tokens[0] ?? '', 'ada')).toBe('accepted')
    await expect.poll(() => tokens.length).toBe(2)
    expect(await app.signal(tokens[1] ?? '', 7)).toBe('accepted')
    await asleepIn(office, app, id)
    office.elapse(61_000)
    expect((await caller.ended(id)).result?.isError).toBe(true)
    const second = await app.tasks.retry(id)
    // The scope that is kept has its event.
    expect(await app.signal(tokens[0] ?? '', 'bob')).toBe('repeated')
    expect(await app.signal(tokens[1] ?? '', 8)).toBe('accepted')
    await asleepIn(office, app, second.id)
    office.elapse(61_000)
    expect((await caller.ended(second.id)).result?.isError).toBe(true)
    isDown = false
    // Now the scope that succeeded is done again, too.
    const third = await app.tasks.retry(second.id, { from: 'one' })
    expect(await app.signal(tokens[0] ?? '', 'eve')).toBe('accepted')
    expect(await app.signal(tokens[1] ?? '', 9)).toBe('accepted')
    await asleepIn(office, app, third.id)
    office.elapse(61_000)
    expect(await caller.said(third.id)).toBe('eve 9')
  })

  test('asks again what was answered in a scope that is done again: the journal had only the result', async () => {
    const office = new Office()
    office.shareClock()
    let isDown = true
    const { app } = office.instance((each) => {
      each.tool('scoped', { task: 'always' }, async (_args, io) => {
        await io.step('one', () => 1)
        const yes = await io.scope('s', (inner) => inner.confirm('q', 'Sure?'))
        await io.sleep('night', 60_000)
        await io.step('two', () => {
          if (isDown) throw new Error('down')
        })
        return `said ${yes}`
      })
    })
    const caller = new Caller(office, app)
    const id = await caller.begin('scoped')
    await caller.asked(id, 's>q')
    await caller.update(id, { 's>q': accept({ confirm: true }) })
    await asleepIn(office, app, id)
    office.elapse(61_000)
    await caller.ended(id)
    isDown = false
    const { id: retried } = await app.tasks.retry(id, { from: 'one' })
    await caller.asked(retried, 's>q')
    await caller.update(retried, { 's>q': accept({ confirm: false }) })
    await asleepIn(office, app, retried)
    office.elapse(61_000)
    expect(await caller.said(retried)).toBe('said false')
  })

  test('keeps the tokens of events that it cuts off, and gives one that has expired a new deadline', async () => {
    const office = new Office()
    office.shareClock()
    let isDown = true
    const tokens: string[] = []
    const { app } = office.instance((each) => {
      each.tool('quotes', { task: 'always' }, async (_args, io) => {
        await io.step('one', () => 1)
        const paid = io.event('paid', z.number())
        const seen = io.event('seen', z.number(), { withinMs: 60_000 })
        await io.confirm('sure', `Pay with ${paid.token}? Seen with ${seen.token}?`)
        await io.step('two', () => void tokens.push(paid.token, seen.token))
        const amount = await paid
        await io.step('three', () => {
          if (isDown) throw new Error('down')
        })
        return `${amount} ${await seen}`
      })
    })
    const caller = new Caller(office, app)
    const id = await caller.begin('quotes')
    await caller.asked(id, 'sure')
    await caller.update(id, { sure: accept({ confirm: true }) })
    await expect.poll(() => tokens.length).toBe(2)
    await app.signal(tokens[0] ?? '', 7)
    await caller.ended(id)
    isDown = false
    office.elapse(60_001)
    const { id: retried } = await app.tasks.retry(id, { from: 'one' })
    await expect.poll(() => tokens.length).toBe(4)
    expect(tokens.slice(2)).toEqual(tokens.slice(0, 2))
    // Its schema is known again, too.
    await expect.poll(() => app.signal(tokens[1] ?? '', 'eight').catch(String)).toContain('must be number')
    expect(await app.signal(tokens[1] ?? '', 8)).toBe('accepted')
    expect(await caller.said(retried)).toBe('7 8')
  })

  test('is reached by all tokens after the tasks before it were deleted, also by those that it hands out itself', async () => {
    const office = new Office()
    let isDown = true
    const tokens: string[] = []
    const { app } = office.instance((each) => {
      each.tool('order', { task: 'always' }, async (_args, io) => {
        const seen = io.event('seen', z.string())
        const paid = io.event('paid', z.number())
        await io.step('mail', () => void tokens.push(seen.token))
        await io.step('charge', () => {
          if (isDown) throw new Error('down')
        })
        await io.step('invoice', () => void tokens.push(paid.token))
        return `${await seen} ${await paid}`
      })
    })
    const caller = new Caller(office, app)
    const first = await caller.begin('order')
    await caller.ended(first)
    const second = await app.tasks.retry(first)
    await caller.ended(second.id)
    isDown = false
    const third = await app.tasks.retry(second.id)
    await expect.poll(() => tokens.length).toBe(2)
    expect(await app.tasks.prune({ olderThanMs: 0 })).toBe(2)
    const [seen = '', paid = ''] = tokens
    // A process that has never seen the tasks.
    const other = office.built(() => {}).app
    expect(await other.signal(seen, 'ada')).toBe('accepted')
    expect(await other.signal(paid, 7)).toBe('accepted')
    expect(await caller.said(third.id)).toBe('ada 7')
    expect(await other.signal(paid, 8)).toBe('repeated')
    await app.tasks.prune({ olderThanMs: 0 })
    await expect(other.signal(paid, 9)).rejects.toMatchObject({ code: 'EVENT_REFUSED' })
  })

  test('waits again for the event that it begins with, as long as the first time', async () => {
    const office = new Office()
    office.shareClock()
    let isDown = true
    const tokens: string[] = []
    const { app } = office.instance((each) => {
      each.tool('order', { task: 'always' }, async (_args, io) => {
        const paid = io.event('paid', z.number(), { withinMs: 60_000, otherwise: 0 })
        const seen = io.event('seen', z.string(), { withinMs: 60_000, otherwise: 'nobody' })
        await io.step('mail', () => void tokens.push(paid.token, seen.token))
        const amount = await paid
        const by = await seen
        await io.step('charge', () => {
          if (isDown) throw new Error('down')
        })
        return `${amount} ${by}`
      })
    })
    const caller = new Caller(office, app)
    const id = await caller.begin('order')
    await asleepIn(office, app, id)
    const [paid = '', seen = ''] = tokens
    await app.signal(paid, 7)
    await asleepIn(office, app, id)
    office.elapse(60_001)
    expect((await caller.ended(id)).result?.isError).toBe(true)
    const second = await app.tasks.retry(id)
    // It has expired, and what the handler did then is kept.
    await expect(app.signal(seen, 'ada')).rejects.toMatchObject({ code: 'EVENT_REFUSED' })
    expect((await caller.ended(second.id)).result?.isError).toBe(true)
    isDown = false
    const third = await app.tasks.retry(second.id, { from: 'paid' })
    await asleepIn(office, app, third.id)
    await expect(app.signal(paid, 'seven')).rejects.toMatchObject({ code: 'EVENT_MISMATCH' })
    office.elapse(59_000)
    expect(await app.signal(paid, 8)).toBe('accepted')
    await asleepIn(office, app, third.id)
    expect(await app.signal(seen, 'ada')).toBe('accepted')
    expect(await caller.said(third.id)).toBe('8 ada')
  })

  test('of a step that was out of attempts has all of them again', async () => {
    const attempts: number[] = []
    let isDown = true
    const { caller, instance } = opened((app) => {
      app.tool('load', { task: 'always' }, (_args, io) =>
        io.step(
          'load',
          ({ attempt }) => {
            attempts.push(attempt)
            if (isDown) throw new Error('db down')
            return 'Loaded.'
          },
          { retries: 2, backoff: { firstMs: 1, maxMs: 1 } },
        ),
      )
    })
    const id = await caller.begin('load')
    await caller.ended(id)
    isDown = false
    const retried = await instance.app.tasks.retry(id)
    expect(await caller.said(retried.id)).toBe('Loaded.')
    expect(attempts).toEqual([1, 2, 3, 1])
  })

  test('of one that fails again can be retried in turn, and a second retry of the first is refused', async () => {
    const { app, caller, world, id } = await failedOrder()
    const second = await app.tasks.retry(id)
    await caller.ended(second.id)
    await expect(app.tasks.retry(id)).rejects.toThrow(`it was retried already, as ${second.id}.`)
    world.broken.clear()
    const third = await app.tasks.retry(second.id)
    expect(await caller.said(third.id)).toBe('hat L thanks')
    expect(
      new Set(world.ran.filter(({ key }) => key === 'ship').map(({ idempotencyKey }) => idempotencyKey)).size,
    ).toBe(1)
  })

  test('continues with the step that failed if the handler threw an error around it', async () => {
    let isDown = true
    const { caller, instance } = opened((app) => {
      app.tool('wraps', { task: 'always' }, async (_args, io) => {
        try {
          return await io.step('load', () => {
            if (isDown) throw new Error('db down')
            return 'Loaded.'
          })
        } catch (cause) {
          throw new Error('Cannot load.', { cause })
        }
      })
    })
    const id = await caller.begin('wraps')
    await caller.ended(id)
    isDown = false
    expect(await caller.said((await instance.app.tasks.retry(id)).id)).toBe('Loaded.')
  })

  test('names the keys there are if it is asked for one that is not', async () => {
    const { app, id } = await failedOrder()
    await expect(app.tasks.retry(id, { from: 'chrage' })).rejects.toMatchObject({
      code: 'TASK_NOT_RETRYABLE',
      message:
        'app.tasks.retry(): the task cannot be retried: its journal has no entry for `from`, got "chrage". Use one of "reserve", "size", "charge", "note", "ship".',
    })
  })

  test('is refused for a task that runs, has ended well, or was cancelled', async () => {
    const world = new World()
    const { caller, instance } = opened(world.order())
    const { tasks } = instance.app
    const id = await caller.begin('order', { item: 'hat' })
    await caller.asked(id, 'size')
    await expect(tasks.retry(id)).rejects.toThrow('it has not ended')
    await tasks.cancel(id)
    await expect(tasks.retry(id)).rejects.toThrow('it was cancelled')
    await expect(tasks.cancel(id)).rejects.toMatchObject({ code: 'TASK_ENDED' })
    expect(await tasks.get(id)).toMatchObject({ status: 'cancelled', outcome: 'cancelled' })
  })

  test('is possible for `keepFailedMs`, also beyond the ttl, and never with 0', async () => {
    const office = new Office()
    const { app } = office.instance(failing, { tasks: { ttlMs: 1_000, keepFailedMs: 5_000 } })
    const caller = new Caller(office, app)
    const id = await caller.begin('fails')
    await caller.ended(id)
    office.elapse(4_900)
    expect(await app.tasks.get(id)).toMatchObject({ canRetry: true })
    office.elapse(200)
    await expect(app.tasks.get(id)).rejects.toMatchObject({ code: 'TASK_UNKNOWN' })

    const { instance, caller: other } = opened(failing, { tasks: { keepFailedMs: 0 } })
    const gone = await other.begin('fails')
    await other.ended(gone)
    expect(await instance.app.tasks.get(gone)).toMatchObject({ outcome: 'error', canRetry: false })
    await expect(instance.app.tasks.retry(gone)).rejects.toThrow('its journal was not kept')
  })
})

test('an operator answers in place of the client', async () => {
  const world = new World()
  const { caller, instance } = opened(world.order())
  const { tasks } = instance.app
  const id = await caller.begin('order', { item: 'hat' })
  await caller.asked(id, 'size')
  await expect(tasks.answer(id, { colour: accept({}) })).rejects.toThrow(
    'app.tasks.answer(): the task does not ask "colour". It asks "size".',
  )
  await expect(tasks.answer(id, {})).rejects.toMatchObject({ code: 'ANSWER_INVALID' })
  await tasks.answer(id, { size: accept({ choice: 'S' }) })
  await caller.asked(id, 'note')
  await tasks.answer(id, { note: accept({ choice: 'none' }) })
  expect(await caller.said(id)).toBe('hat S none')
  await expect(tasks.answer(id, { note: accept({ choice: 'none' }) })).rejects.toMatchObject({ code: 'TASK_ENDED' })
})

test('an answer that no client could send is refused, and changes nothing', async () => {
  const { caller, instance } = opened(new World().order())
  const { tasks } = instance.app
  const id = await caller.begin('order', { item: 'hat' })
  await caller.asked(id, 'size')
  const answer = (answers: unknown): Promise<void> => tasks.answer(id, answers as Parameters<typeof tasks.answer>[1])
  for (const [answers, message] of [
    [null, '`answers` must be an object with an answer for each key, got null.'],
    [undefined, '`answers` must be an object with an answer for each key, got undefined.'],
    ['yes', '`answers` must be an object with an answer for each key, got "yes".'],
    [[], '`answers` must be an object with an answer for each key, got an array.'],
    [
      { size: null },
      'the answer to "size" must be an object such as { action: \'accept\', content: { ... } }, got null.',
    ],
    [{ size: undefined }, 'got undefined.'],
    [{ size: 'S' }, 'got "S".'],
    [{ size: [] }, 'got an array.'],
  ] as const) {
    await expect(answer(answers)).rejects.toMatchObject({
      code: 'ANSWER_INVALID',
      message: expect.stringContaining(message) as string,
    })
  }
  for (const value of [1n, Number.NaN, () => 'S']) {
    await expect(answer({ size: { action: 'accept', content: { choice: value } } })).rejects.toMatchObject({
      code: 'NOT_JSON',
    })
  }
  expect(await tasks.get(id)).toMatchObject({ status: 'input_required', questions: { size: {} } })
  await answer({ size: accept({ choice: 'S' }) })
  await caller.asked(id, 'note')
})

test('old tasks that have ended are deleted, and no others', async () => {
  const store = new MemoryStore()
  const app = rally({ name: 'shop', version: '1', store, logger: { warn: () => {}, error: () => {} } })
  new World().order()(app)
  app.tool('ok', { task: 'always' }, () => 'Fine.')
  app.tool('throws', { task: 'always' }, () => {
    throw new Error('No.')
  })
  app.work()
  onTestFinished(() => app.interrupt())
  const heard: (() => void)[] = []
  store.tasks.watch(() => {
    for (const hear of heard.splice(0)) hear()
  })
  const caller = new Caller({ changed: () => new Promise((resolve) => void heard.push(resolve)) }, app)
  const [ok, thrown, open] = [
    await caller.begin('ok'),
    await caller.begin('throws'),
    await caller.begin('order', { item: 'hat' }),
  ]
  await caller.ended(ok)
  await caller.ended(thrown)
  await caller.asked(open, 'size')
  expect(await app.tasks.prune({ olderThanMs: 60_000 })).toBe(0)
  for (const wrong of [-1, Number.NaN, null, undefined, '5', [], true, new Date()]) {
    const olderThanMs = wrong as number
    await expect(app.tasks.prune({ olderThanMs })).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  }
  expect(await app.tasks.prune({ olderThanMs: 0, outcome: 'error' })).toBe(1)
  expect(await app.tasks.prune({ olderThanMs: 0 })).toBe(1)
  expect((await app.tasks.list()).tasks.map(({ id }) => id)).toEqual([open])
})

test('the timeline adds no operation of the store to the life of a task', async () => {
  const world = new World()
  const operations: string[] = []
  const { caller, instance }: { caller: Caller; instance: Instance } = opened(world.order())
  instance.view.after = (operation) => void operations.push(operation)
  const id = await caller.begin('order', { item: 'hat' })
  await answered(caller, id, 'size', 'S')
  await answered(caller, id, 'note', 'none')
  await caller.said(id)
  const writes = operations.filter((operation) => ['create', 'append', 'change'].includes(operation))
  // Three steps and two answers are recorded; it is parked and answered twice, and ends.
  expect(writes.toSorted()).toEqual([...Array(5).fill('append'), ...Array(5).fill('change'), 'create'])
})

/** One line for each entry. */
function brief(timeline: readonly TaskTimelineEntry[]): string[] {
  return timeline.map(({ type, key = '', how, attempt = 1, error, value }) => {
    const [retry, told] = [attempt > 1 ? ` #${attempt}` : '', error !== undefined && type === 'step' ? ` ${error}` : '']
    return `${type} ${key}${retry} ${how}${told}${value === undefined ? '' : ` ${JSON.stringify(value)}`}`
  })
}

/** Resolves once the task sleeps. */
async function asleepIn(office: Office, app: Rally, id: string): Promise<void> {
  for (;;) {
    const changed = office.changed()
    if (((await app.tasks.get(id)).dueAt?.getTime() ?? 0) > office.now) return
    await changed
  }
}
