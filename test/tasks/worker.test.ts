// How an instance works on tasks: how many at a time and whose, until when, and what it keeps in memory.
import type { Rally, RallyOptions } from 'mcp-rally'
import { MemoryStore, rally } from 'mcp-rally'
import { serve } from 'mcp-rally/node'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { TaskChange, TaskStore } from '../../src/store/tasks.ts'
import type { Gate } from '../../src/testing/manual-scheduler.ts'
import { gate, microtasks } from '../../src/testing/manual-scheduler.ts'
import { accept } from '../wire/messages.ts'
import { Caller } from './caller.ts'
import { LEASE_MS, Office, opened } from './office.ts'

const YES = accept({ confirm: true })
const MB = 1024 * 1024

/** Asks two things, the first of them while a step runs that is soon over. */
function asking(app: Rally): void {
  app.tool('two', { task: 'always' }, async (_args, io) => {
    const [a, b] = await Promise.all([io.confirm('a', 'A?'), io.confirm('b', 'B?'), io.step('beside', microtasks)])
    return `${a} ${b}`
  })
}

/** A tool whose calls run until they are let go, and how many of whom run. */
class Crowd {
  readonly running: string[] = []
  readonly aborted: string[] = []
  most = 0
  readonly #gates = new Map<string, Gate<void>>()
  #changed = gate()

  tools = (app: Rally): void => {
    app.tool(
      'work',
      { task: 'always', input: { type: 'object', properties: { of: { type: 'string' } } } },
      async (args, io) => {
        const of = String((args as { of?: unknown }).of)
        for (const key of ['one', 'two']) {
          await io.step(key, async ({ signal }) => {
            const name = `${of} ${key}`
            this.running.push(name)
            this.most = Math.max(this.most, this.running.length)
            this.#tell()
            signal.addEventListener('abort', () => {
              this.aborted.push(name)
              this.#tell()
            })
            await this.#gate(name).promise
            this.running.splice(this.running.indexOf(name), 1)
          })
        }
        return of
      },
    )
  }

  letGo(...names: string[]): void {
    for (const name of names) this.#gate(name).open()
  }

  async until(isSo: (crowd: this) => boolean): Promise<void> {
    while (!isSo(this)) await this.#changed.promise
  }

  #gate(name: string): Gate<void> {
    const known = this.#gates.get(name) ?? gate()
    this.#gates.set(name, known)
    return known
  }

  #tell(): void {
    const { open } = this.#changed
    this.#changed = gate()
    open()
  }
}

function crowded(options: Partial<RallyOptions> = {}): { office: Office; crowd: Crowd; app: Rally } {
  const [office, crowd] = [new Office(), new Crowd()]
  return { office, crowd, app: office.instance(crowd.tools, options).app }
}

/** A task that has lost four workers. */
async function lost({ tasks }: { readonly tasks: TaskStore }, front: Caller, dueMs = 0): Promise<string> {
  const id = await front.begin('work', { of: 'lost' })
  const task = await tasks.read(id)
  const state = { ...(JSON.parse(task?.state ?? '{}') as object), losses: { bytes: 2, count: 4, waits: true } }
  await tasks.change(id, { version: task?.version ?? 0 }, { state: JSON.stringify(state), dueMs })
  return id
}

function soon(): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, 20))
}

describe('the places of an instance', () => {
  test('are never taken by more tasks than there are, and each that is freed is taken at once', async () => {
    const { office, crowd, app } = crowded({ tasks: { concurrency: 3 } })
    const caller = new Caller(office, app)
    const names = Array.from({ length: 9 }, (_, i) => `${i}`)
    const ids = await Promise.all(names.map((of) => caller.begin('work', { of })))
    await crowd.until(({ running }) => running.length === 3)
    await microtasks()
    expect(crowd.running).toHaveLength(3)
    for (const of of names) crowd.letGo(`${of} one`, `${of} two`)
    expect(await Promise.all(ids.map((id) => caller.said(id)))).toEqual(names)
    expect(crowd.most).toBe(3)
  })

  test('are not all taken by one principal: another one gets in at once', async () => {
    const { office, crowd, app } = crowded({ tasks: { concurrency: 4 } })
    const [greedy, modest] = [new Caller(office, app, 'greedy'), new Caller(office, app, 'modest')]
    for (let i = 0; i < 10; i += 1) await greedy.begin('work', { of: `greedy-${i}` })
    await crowd.until(({ running }) => running.length === 3)
    await microtasks()
    expect(crowd.running).toHaveLength(3)
    const id = await modest.begin('work', { of: 'modest' })
    await crowd.until(({ running }) => running.includes('modest one'))
    crowd.letGo('modest one', 'modest two')
    expect(await modest.said(id)).toBe('modest')
  })

  test('are given to principals in turn, however many tasks each of them has', async () => {
    const [office, crowd] = [new Office(), new Crowd()]
    const front = office.instance(crowd.tools, { tasks: { concurrency: 0 } }).app
    const began: string[] = []
    const names: string[] = []
    for (let i = 0; i < 6; i += 1) names.push(`many-${i}`)
    const [many, few] = [new Caller(office, front, 'many'), new Caller(office, front, 'few')]
    const ids = [
      ...(await Promise.all(names.map((of) => many.begin('work', { of })))),
      await few.begin('work', { of: 'few-0' }),
      await few.begin('work', { of: 'few-1' }),
    ]
    for (const of of [...names, 'few-0', 'few-1']) crowd.letGo(`${of} one`, `${of} two`)
    const { view } = office.instance(crowd.tools, { tasks: { concurrency: 1 } })
    view.after = (operation, _result, ...args) => {
      if (operation !== 'append') return
      const index = ids.indexOf((args[0] as { id: string }).id)
      const name = index < 6 ? 'many' : 'few'
      if (String(args[1]).includes('"one"')) began.push(name)
    }
    await Promise.all(ids.slice(0, 6).map((id) => many.said(id)))
    expect(began.slice(0, 4).filter((name) => name === 'few')).toHaveLength(2)
  })
})

describe('a task that has lost four workers', () => {
  const LEASE = 100

  test('runs alone for one lease: after that, the instance runs others beside it, and says so', async () => {
    const [office, crowd] = [new Office(), new Crowd()]
    const front = new Caller(office, office.instance(crowd.tools, { tasks: { concurrency: 0 } }).app)
    await lost(office, front)
    const { logged } = office.instance(crowd.tools, { tasks: { leaseMs: LEASE } })
    await crowd.until(({ running }) => running.includes('lost one'))
    const began = performance.now()
    await front.begin('work', { of: 'other' })
    await crowd.until(({ running }) => running.includes('other one'))
    expect(performance.now() - began).toBeGreaterThan(LEASE / 2)
    expect(crowd.running).toEqual(['lost one', 'other one'])
    expect(logged.join()).toMatch(/has run alone for 100 ms/)
  })

  test('runs alone also if others were claimed together with it', async () => {
    const [store, crowd] = [new MemoryStore(), new Crowd()]
    const app = (concurrency: number): Rally => {
      const made = rally({ name: 'a', version: '1', store, tasks: { concurrency } })
      crowd.tools(made)
      onTestFinished(() => made.interrupt())
      return made
    }
    const front = new Caller({ changed: soon }, app(0))
    crowd.letGo('lost one', 'lost two', 'other one', 'other two')
    const [id, other] = [await lost(store, front), await front.begin('work', { of: 'other' })]
    app(32).work()
    expect([await front.said(id), await front.said(other)]).toEqual(['lost', 'other'])
    expect(crowd.most).toBe(1)
  })

  test('waits for long after the instance could not run it alone, because another task runs on', async () => {
    const [office, crowd] = [new Office(), new Crowd()]
    const front = new Caller(office, office.instance(crowd.tools, { tasks: { concurrency: 0 } }).app)
    const id = await lost(office, front, LEASE / 4)
    const { view, logged } = office.instance(crowd.tools, { tasks: { leaseMs: LEASE } })
    await front.begin('work', { of: 'other' })
    await crowd.until(({ running }) => running.includes('other one'))
    const released = view.seen('change', (task, _precondition, change) => {
      const { release, dueMs } = change as TaskChange
      return task === id && release === true && (dueMs ?? 0) > 3 * LEASE
    })
    office.elapse(LEASE / 2)
    await released
    expect(logged.join()).toMatch(/could not run alone/)
    expect(crowd.running).toEqual(['other one'])
  })
})

describe('an instance that drains', () => {
  test('hands a task over at its next step, and takes up no other', async () => {
    const { office, crowd, app } = crowded()
    const caller = new Caller(office, app)
    const id = await caller.begin('work', { of: 'a' })
    await crowd.until(({ running }) => running.includes('a one'))
    app.drain()
    let idle = false
    const resting = app.idle().then(() => (idle = true))
    await caller.begin('work', { of: 'b' })
    await microtasks()
    expect([idle, crowd.running]).toEqual([false, ['a one']])
    crowd.letGo('a one')
    await resting
    expect([crowd.running, crowd.aborted]).toEqual([[], []])
    // It is due at once, and nobody has to wait for a lease.
    const next = new Crowd()
    next.letGo('a two', 'b one', 'b two')
    const { app: other } = office.instance(next.tools)
    expect(await new Caller(office, other).said(id)).toBe('a')
  })

  test('keeps its claim on what it still works on, however long that takes', async () => {
    const [office, crowd] = [new Office(), new Crowd()]
    const drained = office.instance(crowd.tools, { tasks: { leaseMs: 60 } })
    const caller = new Caller(office, drained.app)
    const id = await caller.begin('work', { of: 'a' })
    await crowd.until(({ running }) => running.includes('a one'))
    drained.app.drain()
    for (let i = 0; i < 4; i += 1) {
      await drained.view.seen('renew')
      office.elapse(50)
      expect(await office.tasks.claim({ after: '', leaseMs: 1 })).toBeUndefined()
    }
    crowd.letGo('a one', 'a two')
    await drained.app.idle()
    const { app: other } = office.instance(crowd.tools)
    expect(await new Caller(office, other).said(id)).toBe('a')
  })

  test('leaves a task whose question is open to somebody who goes on with what is beside it', async () => {
    const office = new Office()
    const [first, second] = [gate(), gate()]
    const tools = (app: Rally): void => {
      app.tool('both', { task: 'always' }, async (_args, io) => {
        const sure = io.confirm('sure', 'Sure?')
        await io.step('first', () => first.promise)
        await io.step('second', () => second.open())
        return `${await sure}`
      })
    }
    const { app } = office.instance(tools)
    const id = await new Caller(office, app).begin('both')
    await new Caller(office, app).asked(id, 'sure')
    app.drain()
    first.open()
    await app.idle()
    const caller = new Caller(office, office.instance(tools).app)
    await second.promise
    // The question is the same all the time.
    await caller.asked(id, 'sure')
    await caller.update(id, { sure: YES })
    expect(await caller.said(id)).toBe('true')
  })

  test('leaves a task that was answered while it was parked to somebody else at once', async () => {
    const { office, caller, instance } = opened(asking)
    const id = await caller.begin('two')
    await caller.asked(id, 'a', 'b')
    const [parking, goesOn] = [gate(), gate()]
    instance.view.before = (operation, ...args) => {
      if (operation !== 'change' || !(args[2] as TaskChange).release) return
      parking.open()
      return goesOn.promise
    }
    await caller.update(id, { a: YES })
    await parking.promise
    const front = new Caller(office, office.instance(asking, { tasks: { concurrency: 0 } }).app)
    await front.update(id, { b: YES })
    instance.app.drain()
    goesOn.open()
    await instance.app.idle()
    office.instance(asking)
    expect(await front.said(id)).toBe('true true')
  })

  test('and is interrupted hands over now: its step is told to stop, and runs again elsewhere', async () => {
    const { office, crowd, app } = crowded()
    const id = await new Caller(office, app).begin('work', { of: 'a' })
    await crowd.until(({ running }) => running.includes('a one'))
    app.interrupt()
    await app.idle()
    expect(crowd.aborted).toEqual(['a one'])
    const next = new Crowd()
    next.letGo('a one', 'a two')
    expect(await new Caller(office, office.instance(next.tools).app).said(id)).toBe('a')
  })

  test('and is interrupted before its handler used io runs it elsewhere from the top', async () => {
    const office = new Office()
    const [began, never] = [gate(), gate<string>()]
    const { app } = office.instance((each) =>
      each.tool('plain', { task: 'always' }, () => {
        began.open()
        return never.promise
      }),
    )
    const id = await new Caller(office, app).begin('plain')
    await began.promise
    app.interrupt()
    await app.idle()
    const { app: other } = office.instance((each) => each.tool('plain', { task: 'always' }, () => 'Done.'))
    expect(await new Caller(office, other).said(id)).toBe('Done.')
  })

  test('rests at once where it works on nothing, and also where its store cannot be reached', async () => {
    const { app } = opened(() => {}).instance
    app.drain()
    await app.idle()
    const { instance } = opened(() => {})
    instance.view.before = () => {
      throw new Error('The store is down.')
    }
    instance.view.nudge()
    while (instance.logged.length === 0) await microtasks()
    instance.app.drain()
    await instance.app.idle()
    expect(instance.logged).toEqual([expect.stringContaining('The store failed. Until it works again')])
  })

  test('listens to its store no more', async () => {
    const { instance, caller, office } = opened(new Crowd().tools)
    expect(instance.view.listeners).toBe(1)
    instance.app.drain()
    await instance.app.idle()
    expect(instance.view.listeners).toBe(0)
    // Nor ever again, whatever it is asked.
    instance.app.work()
    const id = await caller.begin('work', { of: 'a' })
    office.elapse(LEASE_MS)
    expect([instance.view.listeners, (await caller.get(id)).status]).toEqual([0, 'working'])
  })
})

describe('serve', () => {
  test('closes once the task under way has been handed over', async () => {
    const { office, crowd, app } = crowded()
    const { close } = await serve(app, { port: 0, drainMs: 600_000, handleSignals: false })
    const id = await new Caller(office, app).begin('work', { of: 'a' })
    await crowd.until(({ running }) => running.includes('a one'))
    let closed = false
    const closing = close().then(() => (closed = true))
    await microtasks()
    expect(closed).toBe(false)
    crowd.letGo('a one')
    await closing
    const next = new Crowd()
    next.letGo('a two')
    expect(await new Caller(office, office.instance(next.tools).app).said(id)).toBe('a')
  })

  test('interrupts the task under way at its limit, and closes', async () => {
    const { crowd, office, app } = crowded()
    const { close } = await serve(app, { port: 0, drainMs: 20, handleSignals: false })
    await new Caller(office, app).begin('work', { of: 'a' })
    await crowd.until(({ running }) => running.includes('a one'))
    await close()
    expect(crowd.aborted).toEqual(['a one'])
  })

  test('works on tasks before anybody has asked it anything', async () => {
    const [office, crowd] = [new Office(), new Crowd()]
    const front = new Caller(office, office.instance(crowd.tools, { tasks: { concurrency: 0 } }).app)
    const id = await front.begin('work', { of: 'a' })
    crowd.letGo('a one', 'a two')
    const idle = office.built(crowd.tools)
    const { close } = await serve(idle.app, { port: 0, handleSignals: false })
    onTestFinished(close)
    expect(await front.said(id)).toBe('a')
  })
})

describe('a task that waits', () => {
  test('holds nothing of its handler, and neither does one that is over or was cancelled', async () => {
    const frames: WeakRef<object>[] = []
    const { caller } = opened((app) =>
      app.tool('hold', { task: 'always', input: { type: 'object' } }, async (args, io) => {
        const held = { much: 'x'.repeat(1_000) }
        frames.push(new WeakRef(held))
        io.signal.addEventListener('abort', () => held.much.length)
        if ('work' in (args as object)) await io.step('work', untilAborted)
        io.progress(1, 2, 'Half')
        await io.confirm('sure', 'Sure?')
        return held.much
      }),
    )
    const parked = await caller.begin('hold')
    await caller.asked(parked, 'sure')
    const done = await caller.begin('hold')
    await caller.asked(done, 'sure')
    await caller.update(done, { sure: YES })
    await caller.said(done)
    const cancelled = await caller.begin('hold', { work: true })
    while (frames.length < 4) await microtasks()
    await caller.cancel(cancelled)
    await caller.ended(cancelled)
    expect(await collectedUntil(() => frames.every((frame) => frame.deref() === undefined))).toBe(true)
    expect(frames).toHaveLength(4)
  })

  test('is one of 10,000 that leave no memory on the instance beside what the store keeps', async () => {
    const { office, caller, instance } = opened((app) =>
      app.tool('ask', { task: 'always' }, async (_args, io) => `${await io.confirm('sure', 'Sure?')}`),
    )
    const records = new Map<string, string>()
    // What the store keeps of a parked task is taken out of it: what then remains is the instance's.
    instance.view.after = async (operation, _result, ...args) => {
      if (operation !== 'change' || !(args[2] as TaskChange).release) return
      await office.tasks.change(String(args[0]), {}, { status: 'cancelled', state: '{}' })
      records.set(String(args[0]), '')
    }
    const park = async (count: number): Promise<void> => {
      const before = records.size
      for (let i = 0; i < count; i += 100) await Promise.all(Array.from({ length: 100 }, () => caller.begin('ask')))
      while (records.size < before + count) await microtasks()
      office.elapse(86_400_000)
      while ((await office.tasks.sweep()) > 0);
    }
    await park(500)
    await collectedUntil(() => true)
    const before = process.memoryUsage().heapUsed
    await park(10_000)
    expect(await collectedUntil(() => process.memoryUsage().heapUsed < before + 4 * MB)).toBe(true)
  })
})

test('a task that has ended is garbage that a minor collection takes', async () => {
  const { office, caller } = opened((app) =>
    app.tool('work', { task: 'always' }, async (_args, io) => {
      await io.step('one', () => 1)
      return 'done'
    }),
  )
  const leftBy = async (count: number): Promise<number> => {
    minorCollections()
    const before = process.memoryUsage().heapUsed
    for (let i = 0; i < count; i += 1) await caller.said(await caller.begin('work'))
    office.elapse(86_400_000)
    while ((await office.tasks.sweep()) > 0);
    minorCollections()
    return (process.memoryUsage().heapUsed - before) / count
  }
  await leftBy(1_000)
  const bytes = [await leftBy(300), await leftBy(300), await leftBy(300)]
  expect(bytes.toSorted((a, b) => a - b)[1]).toBeLessThan(11_000)
})

function minorCollections(): void {
  const { gc } = globalThis
  if (gc === undefined) throw new Error('Run the tests with --expose-gc.')
  for (let i = 0; i < 3; i += 1) gc({ type: 'minor' })
}

function untilAborted({ signal }: { signal: AbortSignal }): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve()))
}

async function collectedUntil(holds: () => boolean): Promise<boolean> {
  const { gc } = globalThis
  if (gc === undefined) throw new Error('Run the tests with --expose-gc.')
  for (let tries = 0; tries < 50; tries += 1) {
    await microtasks()
    gc()
    if (tries >= 3 && holds()) return true
  }
  return false
}
