// What a task survives: a store that is slow, fails or is gone, workers that die, and deploys.
import type { Rally } from 'mcp-rally'
import { elicit, inputRequired } from 'mcp-rally'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import type { TaskChange } from '../../src/store/tasks.ts'
import type { Gate } from '../../src/testing/manual-scheduler.ts'
import { gate, microtasks } from '../../src/testing/manual-scheduler.ts'
import { accept } from '../wire/messages.ts'
import { Caller } from './caller.ts'
import { LEASE_MS, Office, opened } from './office.ts'

const N = z.object({ n: z.number() })
const YES = accept({ confirm: true })

/** A tool of three steps, each of which says that it runs and ends when it is told to. */
class Steps {
  readonly done: { key: string; idempotencyKey: string; on: string }[] = []
  readonly #running = new Map<string, Gate<string>>()
  readonly #gates = new Map<string, Gate<string>>()

  /** By the name of the instance. */
  tools(on: string, version?: string): (app: Rally) => void {
    return (app) => {
      app.tool('work', { task: 'always', ...(version && { version }) }, async (_args, io) => {
        const results: string[] = []
        for (const key of ['one', 'two', 'three']) {
          const step = io.step(key, ({ idempotencyKey, signal }) => {
            this.done.push({ key, idempotencyKey, on })
            signal.addEventListener('abort', () => this.#gate(this.#running, `${key} aborted on ${on}`).open(''))
            this.#gate(this.#running, `${key} on ${on}`).open('')
            return this.#gate(this.#gates, key).promise
          })
          results.push(await step)
        }
        return results.join()
      })
    }
  }

  /** Resolves once the step runs there, or has been told there to stop: "one on a", "one aborted on a". */
  async heard(what: string): Promise<void> {
    await this.#gate(this.#running, what).promise
  }

  finish(...keys: string[]): void {
    for (const key of keys) this.#gate(this.#gates, key).open(key)
  }

  get ran(): string[] {
    return this.done.map(({ key, on }) => `${key} on ${on}`)
  }

  #gate(gates: Map<string, Gate<string>>, name: string): Gate<string> {
    const known = gates.get(name) ?? gate<string>()
    gates.set(name, known)
    return known
  }
}

function asking(app: Rally): void {
  app.tool('ask', { task: 'always' }, async (_args, io) => `${await io.confirm('sure', 'Sure?')}`)
}

function adding(app: Rally): void {
  app.tool('long', { task: 'always' }, async (_args, io) => {
    let sum = 0
    for (let i = 0; i < 12; i += 1) sum += await io.step(`add[${i}]`, () => i)
    return `${sum}`
  })
}

/** The tool of a deploy that asks in these words. */
function inWords(text: string): (app: Rally) => void {
  return (app) => {
    app.tool('ask', { task: 'always' }, async (_args, io) => {
      const [{ n }, sure] = [await io.ask('a', text, N), await io.confirm('sure', 'Sure?')]
      return `${text} ${n} ${sure} ${await io.confirm('last', 'Last?')}`
    })
  }
}

/** The tool of a deploy under this version; the second one has a step more. */
function ofVersion(version: string): (app: Rally) => void {
  return (app) => {
    app.tool('ask', { task: 'always', version }, async (_args, io) => {
      const first = await io.confirm('first', 'First?')
      if (version === '2') await io.step('new', () => 1)
      return `${version} ${first} ${await io.confirm('second', 'Second?')}`
    })
  }
}

function fails(times: number): () => void {
  let left = times
  return () => {
    left -= 1
    if (left >= 0) throw new Error('The disk is full.')
  }
}

/** So long that no lease runs out while the clock of the store runs ahead. */
const PATIENT = { tasks: { leaseMs: 1_000_000_000 } }

/** Lets the store's clock run until the task is over, for instances that are patient. */
async function outlast(office: Office, caller: Caller, id: string): Promise<ReturnType<Caller['get']>> {
  for (;;) {
    const seen = await caller.get(id)
    if (seen.status !== 'working' && seen.status !== 'input_required') return seen
    office.elapse(60_000)
    await new Promise((resolve) => void setImmediate(resolve))
  }
}

describe('what a step gives', () => {
  test('is in the store before the handler goes on', async () => {
    const steps = new Steps()
    const { caller, instance } = opened(steps.tools('a'))
    const [held, appending] = [gate(), gate()]
    instance.view.before = (operation) => {
      if (operation !== 'append') return
      appending.open()
      return held.promise
    }
    steps.finish('one', 'two', 'three')
    const id = await caller.begin('work')
    await appending.promise
    // As long as it likes.
    for (let turns = 0; turns < 20; turns += 1) await new Promise((resolve) => void setImmediate(resolve))
    expect(steps.ran).toEqual(['one on a'])
    held.open()
    expect(await caller.said(id)).toBe('one,two,three')
  })

  test('that could not be written is heard by nobody: the step runs again, under the same key', async () => {
    const steps = new Steps()
    const { office, caller, instance } = opened(steps.tools('a'), PATIENT)
    const fail = fails(1)
    instance.view.before = (operation) => operation === 'append' && fail()
    steps.finish('one', 'two', 'three')
    const id = await caller.begin('work')
    expect(await outlast(office, caller, id)).toMatchObject({ result: { content: [{ text: 'one,two,three' }] } })
    expect(steps.ran).toEqual(['one on a', 'one on a', 'two on a', 'three on a'])
    expect(steps.done[0]).toEqual(steps.done[1])
    expect(instance.logged).toEqual([expect.stringContaining('The store failed. Until it works again')])
  })

  test('that was written, but the store did not say so, is not done again', async () => {
    const steps = new Steps()
    const { office, caller, instance } = opened(steps.tools('a'), PATIENT)
    let lost = 0
    instance.view.after = (operation) => {
      if (operation === 'append' && (lost += 1) === 1) throw new Error('The connection was lost.')
    }
    steps.finish('one', 'two', 'three')
    const id = await caller.begin('work')
    await outlast(office, caller, id)
    expect(steps.ran).toEqual(['one on a', 'two on a', 'three on a'])
  })
})

describe('a store that fails', () => {
  test.each(['change', 'append', 'claim', 'renew'] as const)(
    'now and then (%s) delays a task, and no more',
    async (which) => {
      const steps = new Steps()
      const { office, caller, instance } = opened(
        steps.tools('a'),
        which === 'renew' ? { tasks: { leaseMs: 30 } } : PATIENT,
      )
      const fail = fails(1)
      steps.finish('one', 'two')
      const id = await caller.begin('work')
      await steps.heard('three on a')
      instance.view.before = (operation) => operation === which && fail()
      if (which === 'renew') await instance.view.seen('renew')
      steps.finish('three')
      expect(await outlast(office, caller, id)).toMatchObject({ status: 'completed' })
      expect(steps.ran.filter((ran) => ran !== 'three on a')).toEqual(['one on a', 'two on a'])
    },
  )

  test('again and again fails the task in the end, with -32603, and says nothing of why', async () => {
    const steps = new Steps()
    const { office, caller, instance } = opened(steps.tools('a'), PATIENT)
    instance.view.before = (operation) => operation === 'append' && fails(1)()
    steps.finish('one')
    const id = await caller.begin('work')
    expect(await outlast(office, caller, id)).toMatchObject({
      status: 'failed',
      error: { code: -32603, message: 'The task failed after 10 retries. The store failed.' },
      statusMessage: 'The task failed after 10 retries. The store failed.',
    })
    expect(steps.ran.length).toBeGreaterThan(3)
    expect(new Set(steps.done.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1)
  })

  test('and asks for back-off: the task is not due again at once, and later each time', async () => {
    const steps = new Steps()
    const { office, caller, instance } = opened(steps.tools('a'), PATIENT)
    const waits: number[] = []
    instance.view.before = (operation, ...args) => {
      if (operation === 'append') throw new Error('The disk is full.')
      const { dueMs, release } = (args[2] ?? {}) as TaskChange
      if (operation === 'change' && release) waits.push(dueMs ?? 0)
    }
    steps.finish('one')
    await outlast(office, caller, await caller.begin('work'))
    expect(waits[0]).toBeGreaterThan(100)
    expect(waits[3]).toBeGreaterThan(Number(waits[0]) * 2)
    expect(Math.max(...waits)).toBeLessThan(60_000)
  })

  test('when a call becomes a task is an error of that call, and not of the process', async () => {
    const { caller, instance } = opened(asking)
    instance.view.before = (operation) => operation === 'create' && fails(1)()
    expect(await caller.call('ask')).toMatchObject({ error: { code: -32603, data: { retryAfterMs: 1000 } } })
    instance.view.before = (operation) => operation === 'read' && fails(1)()
    const id = await caller.begin('ask')
    await expect(caller.get(id)).rejects.toThrow('store is not available')
  })
})

describe('a worker that dies', () => {
  test('is followed by another when its lease has run out, and nothing recorded is done again', async () => {
    const [office, steps] = [new Office(), new Steps()]
    const first = office.instance(steps.tools('a'))
    const id = await new Caller(office, first.app).begin('work')
    steps.finish('one')
    await steps.heard('two on a')
    first.view.kill()
    const caller = new Caller(office, office.instance(steps.tools('b')).app)
    office.elapse(LEASE_MS - 1)
    expect(await office.tasks.claim({ after: '', leaseMs: 1 })).toBeUndefined()
    office.elapse(1)
    await steps.heard('two on b')
    steps.finish('two', 'three')
    expect(await caller.said(id)).toBe('one,two,three')
    expect(steps.ran).toEqual(['one on a', 'two on a', 'two on b', 'three on b'])
    expect(steps.done[1]?.idempotencyKey).toBe(steps.done[2]?.idempotencyKey)
  })

  test('leaves its task alone as long as it renews its lease', async () => {
    const [office, steps] = [new Office(), new Steps()]
    const { app, view } = office.instance(steps.tools('a'), { tasks: { leaseMs: 60 } })
    const caller = new Caller(office, app)
    const id = await caller.begin('work')
    await steps.heard('one on a')
    office.instance(steps.tools('b'))
    for (let i = 0; i < 4; i += 1) {
      await view.seen('renew')
      office.elapse(50)
    }
    steps.finish('one', 'two', 'three')
    await caller.said(id)
    expect(steps.ran).toEqual(['one on a', 'two on a', 'three on a'])
  })

  test('too often, with nothing recorded in between, fails the task with -32603', async () => {
    const [office, steps] = [new Office(), new Steps()]
    const front = new Caller(office, office.instance(steps.tools('front'), { tasks: { concurrency: 0 } }).app)
    office.skipWaits()
    const id = await front.begin('work')
    let workers = 0
    while ((await front.get(id)).status === 'working' && workers < 20) {
      workers += 1
      const { view } = office.instance(steps.tools(`${workers}`))
      await Promise.race([steps.heard(`one on ${workers}`), front.ended(id)])
      view.kill()
      office.elapse(LEASE_MS)
    }
    expect(await front.get(id)).toMatchObject({
      status: 'failed',
      error: { code: -32603, message: 'The task failed: 5 workers were lost while they ran it.' },
    })
    expect(workers).toBe(6)
  })

  test('that had only claimed a task which waits for its turn does not count', async () => {
    const [office, steps] = [new Office(), new Steps()]
    const front = new Caller(office, office.instance(steps.tools('front'), { tasks: { concurrency: 0 } }).app)
    office.skipWaits()
    const id = await front.begin('work')
    for (const worker of ['a', 'b']) {
      const { view } = office.instance(steps.tools(worker))
      await steps.heard(`one on ${worker}`)
      view.kill()
      office.elapse(LEASE_MS)
    }
    // Counts the loss of `b`, and puts the task off.
    const { view } = office.instance(steps.tools('c'))
    await view.seen('change')
    view.kill()
    office.elapse(60_000)
    for (let deaths = 0; deaths < 10; deaths += 1) {
      const claimer = office.built(steps.tools('claimer'))
      const claimed = gate()
      claimer.view.after = (operation, task) => {
        if (operation !== 'claim' || task === undefined) return
        claimer.view.kill()
        claimed.open()
      }
      claimer.app.work()
      await claimed.promise
      office.elapse(LEASE_MS)
    }
    const last = office.instance(steps.tools('last'))
    await steps.heard('one on last')
    steps.finish('one', 'two', 'three')
    expect(await front.said(id)).toBe('one,two,three')
    expect(last.logged).toEqual([])
  })

  test('as often as it likes does no harm as long as each of them records something', async () => {
    const office = new Office()
    const front = new Caller(office, office.instance(adding, { tasks: { concurrency: 0 } }).app)
    const id = await front.begin('long')
    for (let deaths = 0; deaths < 10; deaths += 1) {
      const { view } = office.instance(adding)
      await view.seen('append')
      view.kill()
      office.elapse(LEASE_MS)
    }
    office.instance(adding)
    expect(await front.said(id)).toBe('66')
  })

  test('loses no answer that it was given and had not recorded', async () => {
    const office = new Office()
    const [work, second] = [gate(), gate()]
    const seen: string[] = []
    const tools = (on: string) => (app: Rally) => {
      app.tool('ask', { task: 'always' }, async (_args, io) => {
        const first = await io.confirm('first', 'First?')
        const both = Promise.all([io.ask('n', 'N?', N), io.confirm('sure', 'Sure?')])
        await io.step('work', ({ progress }) => {
          progress(1, 2, on)
          seen.push(on)
          return work.promise
        })
        return JSON.stringify([first, ...(await both)])
      })
      app.tool('late', { task: 'always' }, async (_args, io) => {
        await io.step('work', ({ progress }) => {
          progress(1, 2, on)
          return second.promise
        })
        return `${await io.confirm('sure', 'Sure?')}`
      })
    }
    const first = office.instance(tools('a'))
    const caller = new Caller(office, first.app)
    const late = await caller.begin('late', {}, { inputResponses: { sure: YES } })
    const id = await caller.begin('ask')
    await caller.asked(id, 'first')
    await caller.update(id, { first: YES })
    await caller.asked(id, 'n', 'sure')
    // It has been offered this answer, and its validation takes it nowhere: the store does not take the record.
    first.view.before = (operation) => operation === 'append' && new Promise(() => {})
    await caller.update(id, { n: accept({ n: 7 }) })
    await caller.until(id, ({ statusMessage }) => statusMessage === 'a')
    await caller.until(late, ({ statusMessage }) => statusMessage === 'a')
    first.view.kill()
    office.elapse(LEASE_MS)
    const next = new Caller(office, office.instance(tools('b'), { tasks: { leaseMs: 300 } }).app)
    const over = Promise.all([next.said(id), next.said(late)])
    // The two are tried one after the other.
    second.open()
    const looks = setInterval(() => office.elapse(100), 50)
    onTestFinished(() => clearInterval(looks))
    await next.until(id, ({ statusMessage }) => statusMessage === 'b')
    await next.asked(id, 'sure')
    await next.update(id, { sure: YES })
    work.open()
    expect(await over).toEqual(['[true,{"n":7},true]', 'true'])
  })

  test('loses no answer to a question by hand', async () => {
    const office = new Office()
    const work = gate()
    const tools = (on: string) => (app: Rally) =>
      app.tool('wizard', { task: 'always' }, async (_args, io) => {
        const answer = io.responses.accepted('n', N)
        if (!answer) return inputRequired({ inputRequests: { n: elicit('N?', N) }, state: 1 })
        await io.step('work', ({ progress }) => {
          progress(1, 2, on)
          return work.promise
        })
        return `${answer.n}`
      })
    const first = office.instance(tools('a'))
    const id = await new Caller(office, first.app).begin('wizard')
    await new Caller(office, first.app).asked(id, 'n')
    await new Caller(office, first.app).update(id, { n: accept({ n: 7 }) })
    await new Caller(office, first.app).until(id, ({ statusMessage }) => statusMessage === 'a')
    first.view.kill()
    office.elapse(LEASE_MS)
    const next = new Caller(office, office.instance(tools('b')).app)
    await next.until(id, ({ statusMessage }) => statusMessage === 'b')
    work.open()
    expect(await next.said(id)).toBe('7')
  })

  test('and was only stopped writes nothing over its successor when it goes on', async () => {
    const [office, steps] = [new Office(), new Steps()]
    const stopped = office.instance(steps.tools('a'))
    const [isStopped, goesOn] = [gate(), gate()]
    const id = await new Caller(office, stopped.app).begin('work')
    await steps.heard('one on a')
    stopped.view.before = (operation) => {
      if (operation === 'append') isStopped.open()
      return operation === 'read' ? undefined : goesOn.promise
    }
    stopped.view.deaf = true
    steps.finish('one')
    await isStopped.promise
    office.elapse(LEASE_MS)
    const caller = new Caller(office, office.instance(steps.tools('b')).app)
    await steps.heard('one on b')
    await steps.heard('two on b')
    const before = await office.tasks.read(id)
    const refused = stopped.view.seen('append')
    goesOn.open()
    await refused
    for (let turns = 0; turns < 20; turns += 1) await new Promise((resolve) => void setImmediate(resolve))
    expect(await office.tasks.read(id)).toEqual(before)
    steps.finish('two', 'three')
    expect(await caller.said(id)).toBe('one,two,three')
    // It goes no further than the step whose record was refused.
    expect(steps.ran).toEqual(['one on a', 'one on b', 'two on b', 'three on b'])
    expect(stopped.logged).toEqual([])
  })

  test('and was only stopped ends nothing over its successor when it goes on', async () => {
    const office = new Office()
    const [running, work, isStopped, goesOn] = [gate(), gate(), gate(), gate()]
    const tools = (on: string) => (app: Rally) => {
      app.tool('end', { task: 'always' }, async (_args, io) => {
        await io.step('one', () => 1)
        if (on === 'a') return 'by a'
        await io.step('more', () => {
          running.open()
          return work.promise
        })
        return 'by b'
      })
    }
    const stopped = office.instance(tools('a'))
    let stops = false
    stopped.view.before = (operation, ...args) => {
      stops ||= operation === 'change' && (args[2] as TaskChange).status === 'completed'
      if (!stops) return
      isStopped.open()
      return goesOn.promise
    }
    stopped.view.deaf = true
    const id = await new Caller(office, stopped.app).begin('end')
    await isStopped.promise
    office.elapse(LEASE_MS)
    const caller = new Caller(office, office.instance(tools('b')).app)
    await running.promise
    const before = await office.tasks.read(id)
    goesOn.open()
    await stopped.view.seen('change')
    expect(await office.tasks.read(id)).toEqual(before)
    work.open()
    expect(await caller.said(id)).toBe('by b')
  })

  test('and was only stopped stops its step when it hears that its claim is gone', async () => {
    const [office, steps] = [new Office(), new Steps()]
    const stopped = office.instance(steps.tools('a'), { tasks: { leaseMs: 60 } })
    const goesOn = gate()
    const id = await new Caller(office, stopped.app).begin('work')
    await steps.heard('one on a')
    stopped.view.before = (operation) => operation === 'renew' && goesOn.promise
    office.elapse(60)
    const caller = new Caller(office, office.instance(steps.tools('b')).app)
    await steps.heard('one on b')
    goesOn.open()
    await steps.heard('one aborted on a')
    steps.finish('one', 'two', 'three')
    await caller.said(id)
    expect(steps.ran).toEqual(['one on a', 'one on b', 'two on b', 'three on b'])
  })

  test('of its own lease goes on as long as no other worker has claimed the task', async () => {
    const [office, steps] = [new Office(), new Steps()]
    const { app, view } = office.instance(steps.tools('a'))
    const caller = new Caller(office, app)
    const id = await caller.begin('work')
    await steps.heard('one on a')
    const again = view.seen('claim')
    office.elapse(LEASE_MS)
    await again
    steps.finish('one', 'two', 'three')
    expect(await caller.said(id)).toBe('one,two,three')
    expect(steps.ran).toEqual(['one on a', 'two on a', 'three on a'])
  })
})

describe('answers and news that cross', () => {
  test('an answer that comes between the last look at a task and its parking is not lost', async () => {
    const { office, caller, instance } = opened((app) =>
      app.tool('two', { task: 'always' }, async (_args, io) => {
        const [a, b] = await Promise.all([io.confirm('a', 'A?'), io.confirm('b', 'B?')])
        return `${a} ${b}`
      }),
    )
    const id = await caller.begin('two')
    await caller.asked(id, 'a', 'b')
    const [parking, goesOn] = [gate(), gate()]
    instance.view.deaf = true
    instance.view.before = (operation, ...args) => {
      if (operation !== 'change' || !(args[2] as TaskChange).release) return
      parking.open()
      return goesOn.promise
    }
    await caller.update(id, { a: YES })
    await parking.promise
    const other = new Caller(office, office.instance(asking, { tasks: { concurrency: 0 } }).app)
    await other.update(id, { b: YES })
    goesOn.open()
    expect(await other.said(id)).toBe('true true')
  })

  test('the journal of a question that has changed is written also when an answer comes meanwhile', async () => {
    const office = new Office()
    const first = office.instance(inWords('Old?'))
    const before = new Caller(office, first.app)
    const id = await before.begin('ask')
    await before.asked(id, 'a')
    await before.update(id, { a: accept({ n: 1 }) })
    await before.asked(id, 'sure')
    first.view.kill()
    const { app, view } = office.instance(inWords('New?'))
    const [parking, goesOn] = [gate(), gate()]
    let parked = 0
    view.before = (operation, ...args) => {
      if (operation !== 'change' || !(args[2] as TaskChange).release || (parked += 1) > 1) return
      parking.open()
      return goesOn.promise
    }
    const caller = new Caller(office, app)
    await caller.update(id, { sure: YES })
    await parking.promise
    // Any change of the task has the same effect as an answer: the parking is tried again on what stands then.
    const { version = 0 } = (await office.tasks.read(id)) ?? {}
    await office.tasks.change(id, { version }, { message: 'Meanwhile.' })
    goesOn.open()
    await caller.asked(id, 'a~2')
    await caller.update(id, { 'a~2': accept({ n: 2 }) })
    await caller.asked(id, 'last')
    await caller.update(id, { last: YES })
    expect(await caller.said(id)).toBe('New? 2 true true')
  })

  test('an answer that comes while another write is on its way is not lost to what that write was told before', async () => {
    const work = gate()
    const { caller, instance } = opened((app) =>
      app.tool('both', { task: 'always' }, async (_args, io) => {
        const [a, b] = [io.ask('a', 'A?', N), io.confirm('b', 'B?')]
        const later = io.step('soon', microtasks).then(() => io.confirm('c', 'C?'))
        await io.step('work', () => work.promise)
        return JSON.stringify([await a, await b, await later])
      }),
    )
    // Each of the writes that show something is slow, so that the next one is waiting by then.
    instance.view.before = (operation, ...args) =>
      operation === 'change' && 'status' in (args[2] as TaskChange) ? microtasks() : undefined
    const id = await caller.begin('both')
    await caller.asked(id, 'a', 'b', 'c')
    await caller.update(id, { a: accept({ n: 'many' }) })
    await caller.asked(id, 'a~2', 'b', 'c')
    await Promise.all([caller.update(id, { b: {} }), caller.update(id, { 'a~2': accept({ n: 2 }), c: {} })])
    await caller.asked(id, 'b~2', 'c~2')
    await Promise.all([caller.update(id, { 'b~2': YES }), caller.update(id, { 'c~2': YES })])
    work.open()
    expect(await caller.said(id)).toBe('[{"n":2},true,true]')
  })

  test('an answer of which no news comes is found when the lease is renewed', async () => {
    const office = new Office()
    const work = gate()
    const tools = (app: Rally): void => {
      app.tool('both', { task: 'always' }, async (_args, io) => {
        const asked = io.confirm('sure', 'Sure?').then((sure) => io.step('heard', () => sure))
        await io.step('work', () => work.promise)
        return `${await asked}`
      })
    }
    const { app, view } = office.instance(tools, { tasks: { leaseMs: 90 } })
    const caller = new Caller(office, app)
    const id = await caller.begin('both')
    await caller.asked(id, 'sure')
    view.deaf = true
    const heard = view.seen('append', (_held, entries) => String(entries).includes('heard'))
    await caller.update(id, { sure: YES })
    await heard
    work.open()
    expect(await caller.said(id)).toBe('true')
  })

  test('an answer of which no news comes is found with the next thing that is written of the task', async () => {
    const office = new Office()
    const [work, speak] = [gate(), gate()]
    const tools = (app: Rally): void => {
      app.tool('both', { task: 'always' }, async (_args, io) => {
        const asked = io.confirm('sure', 'Sure?').then((sure) => io.step('heard', () => sure))
        await io.step('work', async ({ progress }) => {
          await speak.promise
          progress(1, 2, 'Half')
          await work.promise
        })
        return `${await asked}`
      })
    }
    const { app, view } = office.instance(tools)
    const caller = new Caller(office, app)
    const id = await caller.begin('both')
    await caller.asked(id, 'sure')
    view.deaf = true
    await caller.update(id, { sure: YES })
    const heard = view.seen('append', (_held, entries) => String(entries).includes('heard'))
    speak.open()
    await heard
    work.open()
    expect(await caller.said(id)).toBe('true')
  })

  test('a task of which no news comes at all is taken up all the same', async () => {
    const office = new Office()
    const { view } = office.instance(asking)
    view.deaf = true
    const front = new Caller(office, office.instance(asking, { tasks: { concurrency: 0 } }).app)
    const id = await front.begin('ask')
    await front.asked(id, 'sure')
    await front.update(id, { sure: YES })
    expect(await front.said(id)).toBe('true')
  })
})

describe('deploys', () => {
  test('an instance that does not know the tool lets the task go, and one that does goes on with it', async () => {
    const [office, steps] = [new Office(), new Steps()]
    const old = office.instance(asking)
    const front = new Caller(office, office.instance(steps.tools('front'), { tasks: { concurrency: 0 } }).app)
    const letGo = old.view.seen('change', (_id, _belief, change) => (change as TaskChange).release === true)
    const id = await front.begin('work')
    await letGo
    expect((await front.get(id)).status).toBe('working')
    expect(old.logged).toEqual([expect.stringContaining('This instance has no tool "work".')])
    old.view.kill()
    steps.finish('one', 'two', 'three')
    office.instance(steps.tools('new'))
    office.elapse(60_000)
    expect(await front.said(id)).toBe('one,two,three')
  })

  test('where nobody knows the tool the task fails in the end, and says so', async () => {
    const office = new Office()
    office.instance(asking, PATIENT)
    const steps = new Steps()
    const front = new Caller(office, office.instance(steps.tools('front'), { tasks: { concurrency: 0 } }).app)
    const id = await front.begin('work')
    expect(await outlast(office, front, id)).toMatchObject({
      status: 'failed',
      error: { code: -32603, message: 'The task failed after 120 retries. This instance has no tool "work".' },
    })
  })

  test('a task that has done steps goes on under the version that did them, and under no other', async () => {
    const [office, steps] = [new Office(), new Steps()]
    const first = office.instance(steps.tools('a', '1'))
    const id = await new Caller(office, first.app).begin('work')
    steps.finish('one')
    await steps.heard('two on a')
    first.view.kill()
    const next = office.instance(steps.tools('b', '2'))
    const letGo = next.view.seen('change', (_id, _belief, change) => (change as TaskChange).release === true)
    office.elapse(LEASE_MS)
    await letGo
    next.view.kill()
    steps.finish('two', 'three')
    const { app } = office.instance(steps.tools('c', '1'))
    office.elapse(60_000)
    expect(await new Caller(office, app).said(id)).toBe('one,two,three')
    expect(steps.ran).toEqual(['one on a', 'two on a', 'two on c', 'three on c'])
  })

  test('a task is left for its version by many workers, and a store that fails meanwhile does not end it', async () => {
    const [office, steps] = [new Office(), new Steps()]
    const first = office.instance(steps.tools('a', '1'))
    const id = await new Caller(office, first.app).begin('work')
    steps.finish('one')
    await steps.heard('two on a')
    first.view.kill()
    const next = office.instance(steps.tools('b', '2'))
    const changes: unknown[] = []
    next.view.before = (operation) => {
      if (operation === 'change' && changes.push(operation) === 12) throw new Error('The store is away.')
    }
    while (changes.length < 40) {
      office.elapse(60_000)
      await new Promise((resolve) => void setImmediate(resolve))
    }
    next.view.kill()
    steps.finish('two', 'three')
    const { app } = office.instance(steps.tools('c', '1'))
    office.elapse(60_000)
    expect(await new Caller(office, app).said(id)).toBe('one,two,three')
  })

  test('a task that has only asked goes on under another version, with the answers it has', async () => {
    const office = new Office()
    const { app, view } = office.instance(ofVersion('1'))
    const before = new Caller(office, app)
    const id = await before.begin('ask')
    await before.asked(id, 'first')
    await before.update(id, { first: YES })
    await before.asked(id, 'second')
    view.kill()
    const caller = new Caller(office, office.instance(ofVersion('2')).app)
    await caller.update(id, { second: YES })
    expect(await caller.said(id)).toBe('2 true true')
  })
})

test('a task whose record cannot be read fails in the end, and the others go on meanwhile', async () => {
  const { office, caller } = opened(asking, PATIENT)
  const id = '0'.repeat(64)
  const kept = { owner: '', request: 'torn', journal: '[]', message: undefined, pollMs: 1_000, ttlMs: null }
  const state = '{"passes":0,"shown":{},"wires":{},"answers":{}}'
  await office.tasks.create({ id, state, ...kept })
  const good = await caller.begin('ask')
  await caller.asked(good, 'sure')
  await caller.update(good, { sure: YES })
  expect(await caller.said(good)).toBe('true')
  expect(await outlast(office, caller, id)).toMatchObject({ status: 'failed', error: { code: -32603 } })
})

test('a store that fails for one task is no matter of another', async () => {
  const { office, caller, instance } = opened(asking)
  const bad = await caller.begin('ask')
  await caller.asked(bad, 'sure')
  instance.view.before = (operation, id) => {
    if (operation !== 'renew' && operation !== 'claim' && id === bad) throw new Error('The row is torn.')
  }
  const other = new Caller(office, office.instance(asking, { tasks: { concurrency: 0 } }).app)
  await other.update(bad, { sure: YES })
  const good = await caller.begin('ask')
  await caller.asked(good, 'sure')
  await caller.update(good, { sure: YES })
  expect(await caller.said(good)).toBe('true')
})
