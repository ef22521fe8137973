// How a task ends: with a result, an error, a cancellation, or because its time is over.
import type { Rally } from 'mcp-rally'
import { ProtocolError } from 'mcp-rally'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { META_CAPABILITIES, TASKS_EXTENSION } from '../../src/protocol/revisions/2026-07-28.ts'
import { gate, microtasks } from '../../src/testing/manual-scheduler.ts'
import { accept, errorOf } from '../wire/messages.ts'
import { Caller, task } from './caller.ts'
import type { Instance } from './office.ts'
import { Office, opened } from './office.ts'

const WITHOUT_SAMPLING = { [META_CAPABILITIES]: { elicitation: {}, extensions: { [TASKS_EXTENSION]: {} } } }
const YES = accept({ confirm: true })
const NOT_FOUND = { code: -32602, message: expect.stringContaining('Task not found') }

/** A tool with one step that runs until it is told to stop, or for good. */
class Long {
  readonly running = gate()
  readonly aborted = gate()
  readonly work = gate()
  went = false

  tools = (app: Rally): void => {
    app.tool('long', { task: 'always' }, async (_args, io) => {
      await io.step('work', ({ signal }) => {
        signal.addEventListener('abort', () => this.aborted.open())
        this.running.open()
        return this.work.promise
      })
      this.went = true
      return 'Done.'
    })
    app.tool('ask', { task: 'always' }, async (_args, io) => `${await io.confirm('sure', 'Sure?')}`)
  }
}

/** What the instance writes from now on. */
function written({ view }: Instance): string[] {
  const operations: string[] = []
  view.after = (operation) => {
    if (operation === 'change' || operation === 'append') operations.push(operation)
  }
  return operations
}

describe('a handler', () => {
  test.each<{ what: string; tools: (app: Rally) => unknown; end: object }>([
    {
      what: 'that throws ends as a completed task whose result is an error',
      tools: (app) =>
        app.tool('end', { task: 'always' }, () => {
          throw new TypeError('No such service')
        }),
      end: { status: 'completed', result: { isError: true, content: [{ text: 'No such service' }] } },
    },
    {
      what: 'that throws a protocol error on purpose ends as a failed task with it',
      tools: (app) =>
        app.tool('end', { task: 'always' }, () => {
          throw new ProtocolError(-32000, 'Too many of these', { limit: 3 })
        }),
      end: {
        status: 'failed',
        statusMessage: 'Too many of these',
        error: { code: -32000, message: 'Too many of these', data: { limit: 3 } },
      },
    },
    {
      what: 'that breaks a rule of the flow ends as a failed task with -32603',
      tools: (app) =>
        app.tool('end', { task: 'always' }, async (_args, io) => {
          await io.step('same', () => 1)
          return `${await io.step('same', () => 2)}`
        }),
      end: { status: 'failed', error: { code: -32603, data: { code: 'KEY_REUSED' } } },
    },
    {
      what: 'whose journal outgrows its limit ends as a failed task with -32603',
      tools: (app) =>
        app.tool('end', { task: 'always' }, async (_args, io) => {
          for (let i = 0; i < 10; i += 1) await io.step(`much[${i}]`, () => 'x'.repeat(1_000))
          return 'Done.'
        }),
      end: { status: 'failed', error: { code: -32603, data: { code: 'JOURNAL_TOO_LARGE' } } },
    },
    {
      what: 'that takes longer than its tool allows ends as a failed task with -32603',
      tools: (app) =>
        app.tool('end', { task: 'always', timeoutMs: 1 }, async (_args, io) =>
          io.step('never', () => new Promise<string>(() => {})),
        ),
      end: { status: 'failed', error: { code: -32603, data: { code: 'TIME_LIMIT' } } },
    },
    {
      what: 'whose result does not fit its schema ends as a failed task with -32603',
      tools: (app) =>
        app.tool('end', { task: 'always', output: z.object({ n: z.number() }) }, () => ({ n: 'many' }) as never),
      end: { status: 'failed', error: { code: -32603 } },
    },
    {
      what: 'whose result is no JSON ends as a completed task whose result is an error',
      tools: (app) => app.tool('end', { task: 'always' }, () => ({ content: [1n] }) as never),
      end: { status: 'completed', result: { isError: true } },
    },
    {
      what: 'that is called with wrong arguments ends as a completed task whose result is an error',
      tools: (app) => app.tool('end', { task: 'always', input: z.object({ n: z.number() }) }, () => 'Done.'),
      end: { status: 'completed', result: { isError: true } },
    },
    {
      what: 'whose question needs what the client did not declare ends as a failed task with -32021',
      tools: (app) =>
        app.tool('end', { task: 'always' }, async (_args, io) => {
          await io.sample('model', { messages: [], maxTokens: 1 })
          return 'Done.'
        }),
      end: { status: 'failed', error: { code: -32021 } },
    },
    {
      what: 'whose structured result fits ends as a completed task with it',
      tools: (app) => app.tool('end', { task: 'always', output: z.object({ n: z.number() }) }, () => ({ n: 1 })),
      end: { status: 'completed', result: { structuredContent: { n: 1 } } },
    },
  ])('$what', async ({ tools, end }) => {
    const { caller } = opened(tools, { tasks: { maxJournalBytes: 4_000 } })
    const id = await caller.begin('end', {}, {}, WITHOUT_SAMPLING)
    expect(await caller.ended(id)).toMatchObject(end)
  })
})

describe('a task that is cancelled', () => {
  test('while it works has its step told to stop, and nothing is written of it any more', async () => {
    const long = new Long()
    const { caller, instance } = opened(long.tools)
    const id = await caller.begin('long')
    await long.running.promise
    await caller.cancel(id)
    await long.aborted.promise
    expect((await caller.get(id)).status).toBe('cancelled')
    const writes = written(instance)
    long.work.open()
    await microtasks()
    expect([writes, long.went, (await caller.get(id)).status]).toEqual([[], false, 'cancelled'])
    expect(instance.logged).toEqual([])
  })

  test('on another instance than the one that works on it is told there to stop', async () => {
    const long = new Long()
    const office = new Office()
    office.instance(long.tools)
    const front = new Caller(office, office.instance(long.tools, { tasks: { concurrency: 0 } }).app)
    const id = await front.begin('long')
    await long.running.promise
    await front.cancel(id)
    await long.aborted.promise
    expect((await front.get(id)).status).toBe('cancelled')
  })

  test('of which no news comes is told to stop when its lease is renewed', async () => {
    const long = new Long()
    const { caller, instance } = opened(long.tools, { tasks: { leaseMs: 90 } })
    const id = await caller.begin('long')
    await long.running.promise
    instance.view.deaf = true
    await caller.cancel(id)
    await long.aborted.promise
  })

  test('between its claim and its first step records nothing', async () => {
    const long = new Long()
    const { office, caller, instance } = opened(long.tools)
    const front = new Caller(office, office.instance(long.tools, { tasks: { concurrency: 0 } }).app)
    const [claimed, goesOn] = [gate(), gate()]
    // The look with which it began to work.
    await instance.view.seen('claim')
    instance.view.after = (operation) => {
      if (operation !== 'claim') return
      claimed.open()
      return goesOn.promise
    }
    const id = await front.begin('long')
    await claimed.promise
    await front.cancel(id)
    const refused = instance.view.seen('append')
    goesOn.open()
    long.work.open()
    await refused
    await microtasks()
    expect([long.went, (await caller.get(id)).status]).toEqual([false, 'cancelled'])
  })

  test('while it waits for input asks nothing any more, and takes no answer', async () => {
    const { caller } = opened(new Long().tools)
    const id = await caller.begin('ask')
    await caller.asked(id, 'sure')
    await caller.cancel(id)
    await caller.update(id, { sure: YES })
    expect(await caller.get(id)).toMatchObject({ status: 'cancelled' })
  })

  test('after its end stays as it ended, however often', async () => {
    const { caller } = opened(new Long().tools)
    const id = await caller.begin('ask')
    await caller.asked(id, 'sure')
    await caller.update(id, { sure: YES })
    const before = await caller.ended(id)
    await caller.cancel(id)
    await caller.cancel(id)
    await caller.update(id, { sure: { action: 'decline' } })
    expect(await caller.get(id)).toEqual(before)
  })
})

describe('a task that has outlived its ttl', () => {
  const TTL_MS = 60_000

  test('is as if it had never been, for whoever asks', async () => {
    const { office, caller } = opened(new Long().tools, { tasks: { ttlMs: TTL_MS } })
    const id = await caller.begin('ask')
    await caller.asked(id, 'sure')
    expect(await caller.get(id)).toMatchObject({ ttlMs: TTL_MS })
    office.elapse(TTL_MS)
    for (const message of [
      task('tasks/get', id),
      task('tasks/cancel', id),
      task('tasks/update', id, { inputResponses: {} }),
    ]) {
      expect(errorOf(await caller.send(message))).toEqual(NOT_FOUND)
    }
  })

  test('is not worked on any longer: its step is told to stop when its lease is to be renewed', async () => {
    const long = new Long()
    const { office, caller, instance } = opened(long.tools, { tasks: { ttlMs: TTL_MS, leaseMs: 90 } })
    await caller.begin('long')
    await long.running.promise
    const writes = written(instance)
    office.elapse(TTL_MS)
    await long.aborted.promise
    long.work.open()
    await microtasks()
    expect([writes, long.went]).toEqual([[], false])
  })

  test('is swept by the instances that work', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const { office, caller, instance } = opened(new Long().tools, { tasks: { ttlMs: TTL_MS } })
    for (let i = 0; i < 3; i += 1) await caller.asked(await caller.begin('ask'), 'sure')
    office.elapse(TTL_MS)
    const swept = instance.view.seen('sweep')
    vi.advanceTimersByTime(10_000)
    await swept
    expect(await office.tasks.sweep()).toBe(0)
  })

  test('is kept for ever where there is none', async () => {
    const { office, caller } = opened(new Long().tools, { tasks: { ttlMs: null } })
    const id = await caller.begin('ask')
    await caller.asked(id, 'sure')
    office.elapse(100 * 365 * 86_400_000)
    expect(await caller.get(id)).toMatchObject({ status: 'input_required', ttlMs: null })
  })
})

test('what a task is told with is what the app says of tasks', async () => {
  const { caller } = opened(new Long().tools, { tasks: { pollMs: 250, ttlMs: 5_000 } })
  expect(await caller.get(await caller.begin('ask'))).toMatchObject({ pollIntervalMs: 250, ttlMs: 5_000 })
})
