// Questions of a task: shown at once, answered as they come, under wire keys that are never used again.
import type { Rally } from 'mcp-rally'
import { elicit, inputRequired, outcome, resolver } from 'mcp-rally'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { TaskChange } from '../../src/store/tasks.ts'
import { gate } from '../../src/testing/manual-scheduler.ts'
import { accept } from '../wire/messages.ts'
import { Caller } from './caller.ts'
import type { Instance } from './office.ts'
import { LEASE_MS, Office, opened } from './office.ts'

const N = z.object({ n: z.number() })
const YES = accept({ confirm: true })

function confirming(app: Rally): void {
  app.tool('ask', { task: 'always' }, async (_args, io) => `${await io.confirm('sure', 'Sure?')}`)
}

function asking(app: Rally): void {
  app.tool('ask', { task: 'always' }, async (_args, io) => {
    const [a, b] = await Promise.all([io.ask('a', 'A?', N), io.ask('b', 'B?', N)])
    return `${a.n} ${b.n}`
  })
}

/** The tool of a deploy that asks in these words. */
function inWords(text: string): (app: Rally) => void {
  return (app) => {
    app.tool('ask', { task: 'always' }, async (_args, io) => {
      const { n } = await io.ask('a', text, N)
      return `${text} ${n} ${await io.confirm('sure', 'Sure?')}`
    })
  }
}

/** Resolves once the instance has let go of a task. */
function letGo({ view }: Instance): Promise<void> {
  return view.seen('change', (_id, _belief, change) => (change as TaskChange).release === true)
}

describe('questions', () => {
  test('are shown at once, while the step beside them goes on', async () => {
    const work = gate<string>()
    const { caller } = opened((app) =>
      app.tool('both', { task: 'always' }, async (_args, io) => {
        const [sure, done] = await Promise.all([io.confirm('sure', 'Sure?'), io.step('work', () => work.promise)])
        return `${sure} ${done}`
      }),
    )
    const id = await caller.begin('both')
    expect(await caller.asked(id, 'sure')).toEqual({ sure: 'Sure?' })
    work.open('worked')
    // Parked now: the same question, under the same key.
    expect(await caller.asked(id, 'sure')).toEqual({ sure: 'Sure?' })
    await caller.update(id, { sure: YES })
    expect(await caller.said(id)).toBe('true worked')
  })

  test('that are answered while a step runs settle while it runs, and what follows them goes on', async () => {
    const work = gate<string>()
    const { caller } = opened((app) =>
      app.tool('both', { task: 'always' }, async (_args, io) => {
        const asked = io.confirm('first', 'First?').then(() => io.confirm('second', 'Second?'))
        const worked = io.step('work', () => work.promise)
        return `${await asked} ${await worked}`
      }),
    )
    const id = await caller.begin('both')
    await caller.asked(id, 'first')
    await caller.update(id, { first: YES })
    await caller.asked(id, 'second')
    await caller.update(id, { second: YES })
    expect((await caller.get(id)).status).toBe('working')
    work.open('worked')
    expect(await caller.said(id)).toBe('true worked')
  })

  test('are answered a few at a time, and the task waits for the rest', async () => {
    const seen: string[] = []
    const { caller } = opened((app) =>
      app.tool('three', { task: 'always' }, async (_args, io) => {
        const one = async (key: string): Promise<number> => {
          const { n } = await io.ask(key, `${key}?`, N)
          return io.step(`did-${key}`, () => {
            seen.push(key)
            return n
          })
        }
        return (await Promise.all([one('a'), one('b'), one('c')])).join()
      }),
    )
    const id = await caller.begin('three')
    await caller.asked(id, 'a', 'b', 'c')
    await caller.update(id, { b: accept({ n: 2 }) })
    await caller.asked(id, 'a', 'c')
    await caller.update(id, { c: accept({ n: 3 }), a: accept({ n: 1 }) })
    expect(await caller.said(id)).toBe('1,2,3')
    expect(seen[0]).toBe('b')
    expect(seen.toSorted()).toEqual(['a', 'b', 'c'])
  })

  test('that this instance has shown are answered without another read of the task', async () => {
    const { caller, instance } = opened(confirming)
    const id = await caller.begin('ask')
    await caller.asked(id, 'sure')
    const reads: unknown[] = []
    instance.view.before = (operation, ...args) => void (operation === 'read' && reads.push(args))
    await caller.update(id, { sure: YES })
    expect(reads).toEqual([])
    expect(await caller.said(id)).toBe('true')
  })

  test('that have changed since this instance showed them keep the answers that others took', async () => {
    const office = new Office()
    const front = new Caller(office, office.instance(asking, { tasks: { concurrency: 0 } }).app)
    const id = await front.begin('ask')
    const other = new Caller(office, office.instance(asking).app)
    await front.asked(id, 'a', 'b')
    await other.update(id, { a: accept({ n: 1 }) })
    await front.update(id, { a: accept({ n: 3 }), b: accept({ n: 2 }) })
    expect(await front.said(id)).toBe('1 2')
  })

  test('that are answered on one instance wake a parked task on another', async () => {
    const office = new Office()
    const { app, view } = office.instance(confirming)
    const id = await new Caller(office, app).begin('ask')
    await new Caller(office, app).asked(id, 'sure')
    view.kill()
    const front = new Caller(office, office.instance(confirming, { tasks: { concurrency: 0 } }).app)
    office.instance(confirming)
    await front.update(id, { sure: YES })
    expect(await front.said(id)).toBe('true')
  })

  test('that are declined or cancelled throw Declined, and elicit tells which', async () => {
    const { caller } = opened((app) =>
      app
        .tool('ask', { task: 'always' }, async (_args, io) => JSON.stringify(await io.ask('n', 'N?', N)))
        .tool('elicit', { task: 'always' }, async (_args, io) => (await io.elicit('n', 'N?', N)).action),
    )
    const answered = async (tool: string, action: string): Promise<string> => {
      const id = await caller.begin(tool)
      await caller.asked(id, 'n')
      await caller.update(id, { n: { action } })
      const { result } = await caller.ended(id)
      return `${result?.isError === true} ${result?.content[0]?.text}`
    }
    expect(await answered('ask', 'decline')).toMatch(/^true The user declined the question "n"/)
    expect(await answered('ask', 'cancel')).toMatch(/^true The user cancelled the question "n"/)
    expect(await answered('elicit', 'decline')).toBe('false decline')
  })

  test('inside a scope that is over are shown no more', async () => {
    const { caller } = opened((app) =>
      app.tool('race', { task: 'always' }, async (_args, io) => {
        const first = await io.scope('race', (inner) =>
          Promise.race([inner.confirm('one', 'One?'), inner.confirm('two', 'Two?')]),
        )
        return `${first} ${await io.confirm('three', 'Three?')}`
      }),
    )
    const id = await caller.begin('race')
    await caller.asked(id, 'race>one', 'race>two')
    await caller.update(id, { 'race>two': YES })
    await caller.asked(id, 'three')
    // It was shown once, and is nobody's now.
    await caller.update(id, { 'race>one': YES })
    await caller.update(id, { three: YES })
    expect(await caller.said(id)).toBe('true true')
  })
})

describe('wire keys', () => {
  test('are fresh for a question whose answer did not fit, and it says why it is asked again', async () => {
    const { caller } = opened(asking)
    const id = await caller.begin('ask')
    await caller.asked(id, 'a', 'b')
    await caller.update(id, { a: accept({ n: 'many' }) })
    const messages = await caller.asked(id, 'a~2', 'b')
    expect(messages).toEqual({ 'a~2': expect.stringMatching(/^A\?\n\nThe last answer did not fit: /), b: 'B?' })
    await caller.update(id, { 'a~2': {} })
    await caller.asked(id, 'a~3', 'b')
    await caller.update(id, { 'a~3': accept({ n: 1 }), b: accept({ n: 2 }) })
    expect(await caller.said(id)).toBe('1 2')
  })

  test('and the text behind them stay as they are while other questions are answered', async () => {
    const { caller, instance } = opened(asking)
    const id = await caller.begin('ask')
    await caller.asked(id, 'a', 'b')
    await caller.update(id, { a: accept({ n: 'many' }) })
    const { 'a~2': shown } = await caller.asked(id, 'a~2', 'b')
    const parked = letGo(instance)
    await caller.update(id, { b: accept({ n: 2 }) })
    await parked
    expect(await caller.asked(id, 'a~2')).toEqual({ 'a~2': shown })
    await caller.update(id, { 'a~2': accept({ n: 1 }) })
    expect(await caller.said(id)).toBe('1 2')
  })

  test('are ignored when unknown, answered or superseded, and the rest of the answers counts', async () => {
    const { caller } = opened(asking)
    const id = await caller.begin('ask')
    await caller.asked(id, 'a', 'b')
    await caller.update(id, { b: accept({ n: 2 }), nobody: accept({ n: 9 }), 'a~2': accept({ n: 9 }) })
    await caller.asked(id, 'a')
    await caller.update(id, { b: accept({ n: 9 }) })
    await caller.update(id, { a: accept({ n: 'many' }) })
    await caller.asked(id, 'a~2')
    await caller.update(id, { a: accept({ n: 9 }), 'a~1': accept({ n: 9 }), 'a~3': accept({ n: 9 }) })
    await caller.asked(id, 'a~2')
    await caller.update(id, { 'a~2': accept({ n: 1 }) })
    expect(await caller.said(id)).toBe('1 2')
  })

  test('end with a result that says so when no answer fits three times', async () => {
    const { caller } = opened(asking)
    const id = await caller.begin('ask')
    for (const key of ['a', 'a~2', 'a~3']) {
      await caller.asked(id, key, 'b')
      await caller.update(id, { [key]: accept({ n: 'many' }) })
    }
    expect(await caller.ended(id)).toMatchObject({
      status: 'completed',
      result: { isError: true, content: [{ text: expect.stringContaining('was asked 3 times') }] },
    })
  })

  test('are fresh for a question that a deploy has changed, and its answer is asked for again', async () => {
    const office = new Office()
    const { app, view } = office.instance(inWords('Old?'))
    const before = new Caller(office, app)
    const id = await before.begin('ask')
    await before.asked(id, 'a')
    await before.update(id, { a: accept({ n: 1 }) })
    await before.asked(id, 'sure')
    view.kill()
    const caller = new Caller(office, office.instance(inWords('New?')).app)
    await caller.update(id, { sure: YES })
    const messages = await caller.asked(id, 'a~2')
    expect(messages['a~2']).toBe('New?\n\nThis question has changed since it was last answered.')
    await caller.update(id, { 'a~2': accept({ n: 2 }) })
    // What was answered after it is held, and its question is the same.
    expect(await caller.said(id)).toBe('New? 2 true')
  })

  test('are fresh for a visit that was agreed to and is not done yet', async () => {
    let paid = false
    const { caller } = opened((app) =>
      app.tool('pay', { task: 'always' }, async (_args, io) => {
        await io.visit('pay', 'Pay.', 'https://pay.example', { done: () => paid, waitMs: 1 })
        return 'Paid.'
      }),
    )
    const id = await caller.begin('pay')
    await caller.asked(id, 'pay')
    await caller.update(id, { pay: { action: 'accept' } })
    expect(await caller.asked(id, 'pay~2')).toEqual({ 'pay~2': expect.stringContaining('has not been completed yet') })
    paid = true
    await caller.update(id, { 'pay~2': { action: 'accept' } })
    expect(await caller.said(id)).toBe('Paid.')
  })

  test('stay as they are when another worker takes the task over, also of a question that it has not reached', async () => {
    const office = new Office()
    const [work, paused] = [gate<string>(), gate()]
    const tools = (pause: Promise<void>) => (app: Rally) =>
      app.tool('ask', { task: 'always' }, async (_args, io) => {
        const later = pause.then(() => io.confirm('b', 'B?'))
        const beside = io.step('beside', () => 1)
        const all = Promise.all([io.confirm('a', 'A?'), later, io.step('work', () => work.promise), beside])
        return (await all).join()
      })
    const first = office.instance(tools(Promise.resolve()))
    const id = await new Caller(office, first.app).begin('ask')
    await new Caller(office, first.app).asked(id, 'a', 'b')
    first.view.kill()
    office.elapse(LEASE_MS + 1)
    // This one gets to the second question late, and has shown what it had by then.
    const { app, view } = office.instance(tools(paused.promise))
    await view.seen('change', (_id, _belief, change) => 'status' in (change as TaskChange))
    const caller = new Caller(office, app)
    await caller.asked(id, 'a', 'b')
    await caller.update(id, { b: YES })
    paused.open()
    await caller.asked(id, 'a')
    await caller.update(id, { a: YES })
    work.open('worked')
    expect(await caller.said(id)).toBe('true,true,worked,1')
  })
})

describe('other styles', () => {
  test('a handler that takes its rounds by hand sees the answers of a round together', async () => {
    const seen: string[] = []
    const { caller } = opened((app) =>
      app.tool('wizard', { task: 'always' }, async (_args, io) => {
        const name = io.responses.accepted('name', z.object({ name: z.string() }))
        const age = io.responses.accepted('age', N)
        seen.push(`${name?.name} ${age?.n} ${JSON.stringify(io.responses.state())}`)
        if (name && age) return `${name.name} is ${age.n}`
        const inputRequests = { name: elicit('Name?', z.object({ name: z.string() })), age: elicit('Age?', N) }
        return inputRequired({ inputRequests, state: { tries: seen.length } })
      }),
    )
    const id = await caller.begin('wizard')
    await caller.asked(id, 'name', 'age')
    await caller.update(id, { age: accept({ n: 36 }) })
    await caller.asked(id, 'name')
    await caller.update(id, { name: { action: 'decline' } })
    // Asked again, in the same words: other keys.
    await caller.asked(id, 'name~2', 'age~2')
    await caller.update(id, { 'name~2': accept({ name: 'Ada' }), 'age~2': accept({ n: 36 }) })
    expect(await caller.said(id)).toBe('Ada is 36')
    expect(seen).toEqual(['undefined undefined undefined', 'undefined 36 {"tries":1}', 'Ada 36 {"tries":2}'])
  })

  test('a handler that takes its rounds by hand detaches between two of them', async () => {
    const { caller } = opened((app) =>
      app.tool('wizard', {}, async (_args, io) => {
        const detached = await io.detach()
        const answer = io.responses.accepted('n', N)
        return answer ? `${detached} ${answer.n}` : inputRequired({ inputRequests: { n: elicit('N?', N) } })
      }),
    )
    const id = await caller.begin('wizard')
    await caller.asked(id, 'n')
    await caller.update(id, { n: accept({ n: 5 }) })
    expect(await caller.said(id)).toBe('true 5')
  })

  test('a handler that only asks to be run again is run again in a while, and not at once', async () => {
    let runs = 0
    const { office, caller, instance } = opened((app) =>
      app.tool('poll', { task: 'always' }, (_args, io) => {
        runs += 1
        return runs < 3 ? inputRequired({ state: { runs } }) : `${runs} ${JSON.stringify(io.responses.state())}`
      }),
    )
    for (const times of [1, 2]) {
      const waiting = letGo(instance)
      if (times === 1) await caller.begin('poll')
      else office.elapse(60_000)
      await waiting
      expect([runs, await office.tasks.claim({ after: '', leaseMs: 1 })]).toEqual([times, undefined])
    }
    const [task] = await office.tasks.list('', 1)
    office.elapse(60_000)
    expect(await caller.said(task?.id ?? '')).toBe('3 {"runs":2}')
  })

  test('declared needs are resolved in the task, ask there, and are resolved once', async () => {
    const lookups: string[] = []
    const stock = resolver('stock', {
      run: ({ title }: { title: string }, io) =>
        io.step('lookup', () => {
          lookups.push(title)
          return 0
        }),
    })
    const backorder = resolver('backorder', { needs: { stock }, run: (_args, io) => io.confirm('ok', 'Order it in?') })
    const gift = resolver('gift', { run: (_args, io) => io.ask('to', 'For whom?', N) })
    const { caller } = opened((app) =>
      app.tool(
        'order',
        { task: 'always', input: z.object({ title: z.string() }), needs: { stock, backorder, gift: outcome(gift) } },
        async ({ title }, _io, needs) => `${title} ${needs.stock} ${needs.backorder} ${needs.gift.action}`,
      ),
    )
    const id = await caller.begin('order', { title: 'Emma' })
    await caller.asked(id, 'needs:backorder>ok', 'needs:gift>to')
    await caller.update(id, { 'needs:gift>to': { action: 'decline' } })
    await caller.asked(id, 'needs:backorder>ok')
    await caller.update(id, { 'needs:backorder>ok': YES })
    expect(await caller.said(id)).toBe('Emma 0 true decline')
    expect(lookups).toEqual(['Emma'])
  })

  test('a scope that is over leaves only its value in the journal that is kept', async () => {
    const runs: string[] = []
    const work = gate()
    const { caller, instance } = opened((app) =>
      app.tool('scoped', { task: 'always' }, async (_args, io) => {
        const sum = await io.scope('sum', async (inner) => {
          const values = []
          for (let i = 0; i < 3; i += 1) values.push(await inner.step(`part[${i}]`, () => runs.push(`part ${i}`)))
          return values.join('+')
        })
        await io.step('after', () => work.promise)
        return `${sum} ${await io.confirm('sure', 'Sure?')}`
      }),
    )
    let journal: string | undefined
    const replaced = instance.view.seen('change', (_id, _belief, change) => {
      journal = (change as { journal?: string }).journal
      return journal !== undefined
    })
    const id = await caller.begin('scoped')
    await replaced
    expect(journal).toMatch(/^\["c","sum",\d+,"1\+2\+3"\]$/)
    work.open()
    await caller.asked(id, 'sure')
    await caller.update(id, { sure: YES })
    expect(await caller.said(id)).toBe('1+2+3 true')
    expect(runs).toEqual(['part 0', 'part 1', 'part 2'])
  })
})

describe('progress', () => {
  test('becomes the status message, and what a replay passes through again does not', async () => {
    const [first, second] = [gate(), gate()]
    const { caller } = opened((app) =>
      app.tool('long', { task: 'always' }, async (_args, io) => {
        io.progress(1, 3, 'Looking')
        await io.step('look', () => first.promise)
        io.progress(2, 3)
        await io.confirm('sure', 'Sure?')
        await io.step('finish', ({ progress }) => {
          progress(3, 3, 'Finishing')
          return second.promise
        })
        return 'Done.'
      }),
    )
    const id = await caller.begin('long')
    await caller.until(id, ({ statusMessage }) => statusMessage === 'Looking')
    first.open()
    await caller.asked(id, 'sure')
    expect((await caller.get(id)).statusMessage).toBe('2 of 3')
    await caller.update(id, { sure: YES })
    const messages: unknown[] = []
    await caller.until(id, ({ statusMessage }) => {
      messages.push(statusMessage)
      return statusMessage === 'Finishing'
    })
    expect(messages).not.toContain('Looking')
    second.open()
    expect(await caller.ended(id)).toMatchObject({ status: 'completed', statusMessage: 'Finishing' })
  })
})
