// What a task waits for: sleeps, deadlines, the next attempt of a step. The worker is released meanwhile, and any instance continues.
import type { Io, Rally } from 'mcp-rally'
import { MemoryStore, rally, send } from 'mcp-rally'
import { connect } from 'mcp-rally/client'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { TaskChange } from '../../src/store/tasks.ts'
import type { Gate } from '../../src/testing/manual-scheduler.ts'
import { gate } from '../../src/testing/manual-scheduler.ts'
import { accept, call, errorOf } from '../wire/messages.ts'
import { Caller } from './caller.ts'
import type { Instance } from './office.ts'
import { LEASE_MS, Office } from './office.ts'

/** An office whose instances have the clock of the store. */
function timed(): Office {
  const office = new Office()
  office.shareClock()
  return office
}

/** Resolves with how long the instance releases its next task for, once it has released it. */
function released({ view }: Instance): Promise<number | null | undefined> {
  return new Promise((resolve) => {
    const { after } = view
    view.after = (operation, result, ...args) => {
      const { release, dueMs } = (args[2] ?? {}) as TaskChange
      if (operation === 'change' && release === true) resolve(dueMs)
      return after(operation, result, ...args)
    }
  })
}

describe('a step with retries in a task', () => {
  const seen: { by: string; attempt: number; idempotencyKey: string }[] = []
  const tool =
    (by: string) =>
    (app: Rally): void => {
      app.tool('load', { task: 'always' }, async (_args, io) =>
        io.step(
          'load',
          ({ attempt, idempotencyKey }) => {
            seen.push({ by, attempt, idempotencyKey })
            if (attempt < 3) throw new Error('db down')
            return `loaded at attempt ${attempt}`
          },
          { retries: 3, backoff: { firstMs: 60_000 } },
        ),
      )
    }

  test('releases the worker until the next attempt is due, and another instance makes it', async () => {
    const office = timed()
    const first = office.instance(tool('first'))
    const caller = new Caller(office, first.app)
    const firstRelease = released(first)
    const id = await caller.begin('load')
    const dueMs = (await firstRelease) ?? 0
    expect(dueMs).toBeGreaterThanOrEqual(45_000)
    expect(dueMs).toBeLessThanOrEqual(75_000)
    first.view.kill()
    const second = office.instance(tool('second'))
    const secondRelease = released(second)
    office.elapse(dueMs - 1)
    expect(seen).toHaveLength(1)
    office.elapse(1)
    office.elapse((await secondRelease) ?? 0)
    expect(await new Caller(office, second.app).said(id)).toBe('loaded at attempt 3')
    expect(seen.map(({ by, attempt }) => `${by} ${attempt}`)).toEqual(['first 1', 'second 2', 'second 3'])
    expect(new Set(seen.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1)
  })

  test('fails when the next attempt is due after the end of the task', async () => {
    const office = timed()
    const { app } = office.instance(tool('first'), { tasks: { ttlMs: 30_000 } })
    const caller = new Caller(office, app)
    const { result } = await caller.ended(await caller.begin('load'))
    expect(result).toMatchObject({ isError: true, content: [{ text: 'db down' }] })
  })

  test('keeps its count when the worker dies while another step runs', async () => {
    const office = timed()
    const attempts: number[] = []
    const busy = gate()
    const tools = (app: Rally): void => {
      app.tool('two', { task: 'always' }, async (_args, io) => {
        const load = io.step(
          'load',
          ({ attempt }) => {
            attempts.push(attempt)
            if (attempt < 3) throw new Error('db down')
            return 'loaded'
          },
          { retries: 3, backoff: { firstMs: 60_000 } },
        )
        await Promise.all([load, io.step('beside', () => busy.promise)])
        return 'done'
      })
    }
    const first = office.instance(tools)
    const shown = first.view.seen('change')
    const id = await new Caller(office, first.app).begin('two')
    await shown
    first.view.kill()
    expect(attempts).toEqual([1])
    busy.open()
    const second = office.instance(tools)
    office.elapse(LEASE_MS + 1)
    for (let waits = 0; waits < 2; waits += 1) {
      const dueMs = await released(second)
      office.elapse(dueMs ?? 0)
    }
    expect(await new Caller(office, second.app).said(id)).toBe('done')
    expect(attempts).toEqual([1, 2, 3])
  })

  test('stays in the pass for waits of less than a second', async () => {
    const office = new Office()
    const { app, view } = office.instance((each) => {
      each.tool('quick', { task: 'always' }, async (_args, io) =>
        io.step(
          'quick',
          ({ attempt }) => {
            if (attempt === 1) throw new Error('busy')
            return `attempt ${attempt}`
          },
          { retries: 1, backoff: { firstMs: 5 } },
        ),
      )
    })
    let claims = 0
    view.after = (operation, result) => void (operation === 'claim' && result !== undefined && (claims += 1))
    const caller = new Caller(office, app)
    expect(await caller.said(await caller.begin('quick'))).toBe('attempt 2')
    expect(claims).toBe(1)
  })
})

const HOUR = 3_600_000
const YES = accept({ yes: true })
const FORM = { type: 'object', properties: { yes: { type: 'boolean' } }, required: ['yes'] } as const

const napping = (app: Rally): void => {
  app.tool('nap', { task: 'always' }, async (_args, io) => {
    const before = await io.step('before', () => Date.now())
    await io.sleep('nap', HOUR)
    return String((await io.step('after', () => Date.now())) - before)
  })
}

test.each<{ of: string; wait: (io: Io, key: string) => Promise<unknown> }>([
  { of: 'sleeps', wait: (io, key) => io.sleep(key, 100) },
  {
    of: 'waits of retries',
    wait: (io, key) =>
      io.step(
        key,
        ({ attempt }) => {
          if (attempt === 1) throw new Error('busy')
        },
        { retries: 1, backoff: { firstMs: 100 } },
      ),
  },
])('short $of do not add up to the time limit of a pass', async ({ wait }) => {
  const app = rally({ name: 'waits', version: '1', store: new MemoryStore(), tasks: { timeoutMs: 400, pollMs: 50 } })
  app.tool('poll', { task: 'always' }, async (_args, io) => {
    for (let look = 0; look < 6; look += 1) await wait(io, `look[${look}]`)
    return 'done'
  })
  const client = await connect(app)
  expect(await client.callTool('poll')).toMatchObject({ content: [{ text: 'done' }] })
})

test('sleeps of a plain call add up to its time limit', async () => {
  const app = rally({ name: 'waits', version: '1', timeoutMs: 200, logger: { warn() {}, error() {} } })
  app.tool('naps', {}, async (_args, io) => {
    for (let nap = 0; nap < 8; nap += 1) await io.sleep(`nap[${nap}]`, 100)
  })
  expect(errorOf(await send(app, call('naps')))).toMatchObject({ data: { code: 'TIME_LIMIT' } })
})

describe('a sleep in a task', () => {
  test('releases the worker, and another instance wakes it when it is due: not before, and not later', async () => {
    const office = timed()
    const first = office.instance(napping)
    const release = released(first)
    const id = await new Caller(office, first.app).begin('nap')
    expect(await release).toBe(HOUR)
    first.view.kill()
    const second = office.instance(napping)
    const caller = new Caller(office, second.app)
    office.elapse(HOUR - 1)
    expect(await caller.get(id)).toMatchObject({ status: 'working' })
    office.elapse(1)
    expect(await caller.said(id)).toBe(String(HOUR))
  })

  test('keeps its due time when the worker dies while a step runs beside it', async () => {
    const office = timed()
    const busy = gate()
    const woke: number[] = []
    const tools = (app: Rally): void => {
      app.tool('both', { task: 'always' }, async (_args, io) => {
        await Promise.all([
          io.sleep('nap', HOUR).then(() => woke.push(office.now)),
          io.step('beside', () => busy.promise),
        ])
        return 'done'
      })
    }
    const first = office.instance(tools)
    const began = office.now
    const shown = first.view.seen('change')
    const id = await new Caller(office, first.app).begin('both')
    await shown
    first.view.kill()
    busy.open()
    office.elapse(HOUR / 2)
    const second = office.instance(tools)
    const release = released(second)
    office.elapse(0)
    expect(await release).toBe(HOUR / 2)
    office.elapse(HOUR / 2)
    expect(await new Caller(office, second.app).said(id)).toBe('done')
    expect(woke).toEqual([began + HOUR])
  })

  test('fails if the task has less time left', async () => {
    const office = timed()
    const tools = (app: Rally): void => {
      app.tool('twice', { task: 'always' }, async (_args, io) => {
        await io.sleep('nap', HOUR / 2)
        await io.sleep('again', 0.75 * HOUR)
        return 'woke'
      })
    }
    const instance = office.instance(tools, { tasks: { ttlMs: HOUR } })
    const caller = new Caller(office, instance.app)
    const release = released(instance)
    const id = await caller.begin('twice')
    office.elapse((await release) ?? 0)
    const { error } = await caller.ended(id)
    expect(error).toMatchObject({
      message:
        'The sleep "again" waits 2700000 ms, and the limit here is 3600000 ms, of which 1800000 ms are left. The task is deleted before that: raise `tasks.ttlMs`, or wait less.',
      data: { code: 'WAIT_TOO_LONG' },
    })
  })

  test('longer than the task lives fails it, and says so', async () => {
    const office = timed()
    const { app } = office.instance(napping, { tasks: { ttlMs: HOUR / 2 } })
    const caller = new Caller(office, app)
    const { error } = await caller.ended(await caller.begin('nap'))
    expect(error).toMatchObject({
      message: expect.stringMatching(/raise `tasks.ttlMs`/),
      data: { code: 'WAIT_TOO_LONG' },
    })
  })
})

const asking = (app: Rally): void => {
  app.tool('ask', { task: 'always' }, async (_args, io) => {
    const answer = await io.ask('sure', 'Sure?', FORM, { withinMs: HOUR, otherwise: 'nobody' })
    return JSON.stringify(answer)
  })
}

describe('a deadline in a task', () => {
  test('may be as long as the life of the task, because an answer may come in time', async () => {
    const office = timed()
    const instance = office.instance(asking, { tasks: { ttlMs: HOUR } })
    const caller = new Caller(office, instance.app)
    const id = await caller.begin('ask')
    await caller.asked(id, 'sure')
    office.elapse(HOUR / 2)
    await caller.update(id, { sure: YES })
    expect(await caller.said(id)).toContain('true')
  })

  test('fires by itself, and the question is not open any more', async () => {
    const office = timed()
    const instance = office.instance(asking)
    const caller = new Caller(office, instance.app)
    const id = await caller.begin('ask')
    await caller.asked(id, 'sure')
    office.elapse(HOUR)
    expect(await caller.said(id)).toBe('"nobody"')
  })

  test('does not hurt an answer that was received in time, though no worker was there', async () => {
    const office = timed()
    const first = office.instance(asking)
    const id = await new Caller(office, first.app).begin('ask')
    await new Caller(office, first.app).asked(id, 'sure')
    first.view.kill()
    const front = office.instance(asking, { tasks: { concurrency: 0 } })
    const caller = new Caller(office, front.app)
    office.elapse(HOUR - 1)
    await caller.update(id, { sure: YES })
    office.elapse(HOUR)
    office.instance(asking)
    expect(await caller.said(id)).toBe('{"yes":true}')
  })

  test('beats an answer that was received later', async () => {
    const office = timed()
    const first = office.instance(asking)
    const id = await new Caller(office, first.app).begin('ask')
    await new Caller(office, first.app).asked(id, 'sure')
    first.view.kill()
    const front = office.instance(asking, { tasks: { concurrency: 0 } })
    const caller = new Caller(office, front.app)
    office.elapse(HOUR + 1)
    await caller.update(id, { sure: YES })
    office.instance(asking)
    expect(await caller.said(id)).toBe('"nobody"')
  })
})

describe('what another instance wrote in time, and no event told', () => {
  const BESIDE = 100
  const N = z.object({ n: z.number() })

  interface Told {
    token?: string
    readonly expired: Gate<void>
  }

  /** Waits beside a step that runs until the wait is over. */
  function beside(
    wait: (io: Io, told: Told) => Promise<unknown>,
    told: Told = { expired: gate() },
  ): (app: Rally) => void {
    return (app) => {
      app.tool('beside', { task: 'always' }, async (_args, io) => {
        const over = gate()
        const step = io.step('step', () => over.promise)
        const value = await wait(io, told)
        over.open()
        await step
        return String(value)
      })
    }
  }

  test.each([
    {
      of: 'a deadline',
      wait: async (io: Io) => (await io.ask('n', 'N?', N, { withinMs: BESIDE, otherwise: { n: 0 } })).n,
    },
    {
      of: 'a sleep',
      wait: (io: Io) => Promise.race([io.sleep('s', BESIDE).then(() => 0), io.ask('n', 'N?', N).then(({ n }) => n)]),
    },
    {
      of: 'a deadline that passed before it was reached',
      wait: async (io: Io, told: Told) => {
        const event = io.event('n', z.number(), { withinMs: BESIDE, otherwise: 0 })
        await io.step('mail', () => event.token)
        await io.step('long', () => {
          told.token = event.token
          return told.expired.promise
        })
        return event
      },
    },
  ])('counts when $of is over', async ({ wait }) => {
    const office = timed()
    const told: Told = { expired: gate() }
    const { app, view } = office.instance(beside(wait, told))
    const { app: other } = office.instance(beside(wait), { tasks: { concurrency: 0 } })
    const caller = new Caller(office, other)
    const id = await new Caller(office, app).begin('beside')
    const isReached = async (): Promise<boolean> =>
      told.token !== undefined || (await caller.get(id)).status === 'input_required'
    await expect.poll(isReached).toBe(true)
    view.deaf = true
    if (told.token !== undefined) expect(await other.signal(told.token, 7)).toBe('accepted')
    else await caller.update(id, { n: accept({ n: 7 }) })
    office.elapse(BESIDE)
    told.expired.open()
    expect(await caller.said(id)).toBe('7')
  })

  test('counts each by its own deadline, in whichever order they are found', async () => {
    const office = timed()
    const tools = beside(async (io) => {
      const late = io.confirm('a', 'A?')
      const soon = io.ask('b', 'B?', N, { withinMs: BESIDE, otherwise: { n: 0 } })
      return (await Promise.all([late, soon]))[1].n
    })
    const { app, view } = office.instance(tools)
    const { app: other } = office.instance(tools, { tasks: { concurrency: 0 } })
    const caller = new Caller(office, other)
    const id = await new Caller(office, app).begin('beside')
    await caller.asked(id, 'a', 'b')
    view.deaf = true
    await caller.update(id, { b: accept({ n: 7 }) })
    const looked = gate()
    const looks = view.seen('versions')
    view.before = (operation) => (operation === 'versions' ? looked.promise : undefined)
    office.elapse(BESIDE + 1)
    await caller.update(id, { a: accept({ confirm: true }) })
    looked.open()
    await looks
    expect(await caller.said(id)).toBe('7')
  })
})
