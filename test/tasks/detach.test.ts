// From rounds to a task in the middle of a call: the journal moves, and nothing is asked or done again.
import type { Rally } from 'mcp-rally'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { accept, askedIn, resultOf } from '../wire/messages.ts'
import { Caller } from './caller.ts'
import { Office } from './office.ts'

interface Done {
  readonly key: string
  readonly idempotencyKey: string
}

const SIZE = z.object({ size: z.number() })

/** A tool that asks and works on both sides of its detach, and what it did. */
class Provisioning {
  readonly done: Done[] = []

  tools = (app: Rally): void => {
    app.tool('provision', { input: z.object({ name: z.string() }), asks: { size: SIZE } }, async ({ name }, io) => {
      const did = (key: string): Promise<string> =>
        io.step(key, ({ idempotencyKey }) => {
          this.done.push({ key, idempotencyKey })
          return key
        })
      const quote = await did('quote')
      const { size } = await io.ask('size', `${quote}: how large?`)
      await did('reserve')
      await io.detach()
      const started = io.now()
      await did('create')
      const region = await io.choose('region', 'Where?', ['eu', 'us'])
      await did('start')
      return `${name}, ${size} in ${region}, ${io.uuid('id')}, ${started <= io.now()}`
    })
  }

  get keys(): string[] {
    return this.done.map(({ key }) => key)
  }
}

const SMALL = { size: accept({ size: 2 }) }

async function firstRound(caller: Caller): Promise<string> {
  return askedIn(await caller.call('provision', { name: 'vm' })).state
}

describe('a flow that detaches', () => {
  test('asks in rounds before it, and in the task after it, and does and asks nothing twice', async () => {
    const [office, work] = [new Office(), new Provisioning()]
    const caller = new Caller(office, office.instance(work.tools).app)
    const first = await caller.call('provision', { name: 'vm' })
    expect(askedIn(first).messages).toEqual({ size: 'quote: how large?' })
    const round = { requestState: askedIn(first).state, inputResponses: SMALL }
    const id = await caller.begin('provision', { name: 'vm' }, round)
    expect(await caller.asked(id, 'region')).toEqual({ region: 'Where?' })
    await caller.update(id, { region: accept({ choice: 'eu' }) })
    expect(await caller.said(id)).toMatch(/^vm, 2 in eu, [0-9a-f-]{36}, true$/)
    expect(work.keys).toEqual(['quote', 'reserve', 'create', 'start'])
  })

  test('goes on as a task on another instance, under the same idempotency keys', async () => {
    const [office, here, there] = [new Office(), new Provisioning(), new Provisioning()]
    const { app } = office.instance(here.tools, { tasks: { concurrency: 0 } })
    const caller = new Caller(office, app)
    const round = { requestState: await firstRound(caller), inputResponses: SMALL }
    const id = await caller.begin('provision', { name: 'vm' }, round)
    // The same last round again: its steps are done again, before the task and under the same keys.
    expect(await caller.begin('provision', { name: 'vm' }, round)).toBe(id)
    expect(here.done.map(({ key }) => key)).toEqual(['quote', 'reserve', 'reserve'])
    expect(here.done[1]).toEqual(here.done[2])
    const { view } = office.instance(there.tools)
    await caller.asked(id, 'region')
    view.kill()
    // The worker that takes it over after its question does nothing again, and has the same keys for what is left.
    const third = new Provisioning()
    office.elapse(60_000)
    office.instance(third.tools)
    await caller.update(id, { region: accept({ choice: 'us' }) })
    expect(await caller.said(id)).toContain('vm, 2 in us')
    expect([there.keys, third.keys]).toEqual([['create'], ['start']])
    const all = [...here.done, ...there.done, ...third.done]
    expect(new Set(all.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(4)
  })

  test('makes one task, however often and however close together its last round is repeated', async () => {
    const [office, work] = [new Office(), new Provisioning()]
    const callers = [work, work].map(({ tools }) => new Caller(office, office.instance(tools).app))
    const [one, other] = callers as [Caller, Caller]
    const round = { requestState: await firstRound(one), inputResponses: SMALL }
    const ids = await Promise.all(
      Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? one : other).begin('provision', { name: 'vm' }, round)),
    )
    const [id = ''] = ids
    expect(new Set(ids)).toEqual(new Set([id]))
    await one.asked(id, 'region')
    await other.update(id, { region: accept({ choice: 'eu' }) })
    await one.said(id)
    expect(work.keys.filter((key) => key === 'create' || key === 'start')).toEqual(['create', 'start'])
    // Also when it is over.
    expect(resultOf(await other.call('provision', { name: 'vm' }, round))).toMatchObject({
      resultType: 'task',
      taskId: id,
      status: 'completed',
    })
  })

  test('makes one task where states are single-use, and its last round is done once', async () => {
    const [office, work] = [new Office(), new Provisioning()]
    const { app } = office.instance(work.tools, { once: office.once })
    const caller = new Caller(office, app)
    const round = { requestState: await firstRound(caller), inputResponses: SMALL }
    const begin = (): Promise<object | undefined> => caller.call('provision', { name: 'vm' }, round)
    const results = (await Promise.all([begin(), begin(), begin()])).map((response) => resultOf(response))
    expect(new Set(results.map((result) => JSON.stringify(result))).size).toBe(1)
    await caller.asked(String(results[0]?.['taskId']), 'region')
    expect(work.keys).toEqual(['quote', 'reserve', 'create'])
  })

  test('takes questions that were open beside it along, and their answers', async () => {
    const office = new Office()
    const { app } = office.instance((each) =>
      each.tool('ask', {}, async (_args, io) => {
        const asked = Promise.all([io.confirm('one', 'One?'), io.confirm('two', 'Two?')])
        await io.step('look', () => 1)
        await io.detach()
        return (await asked).join()
      }),
    )
    const caller = new Caller(office, app)
    // An answer to what was never shown, in the first round: it is for whatever that round asks.
    const id = await caller.begin('ask', {}, { inputResponses: { two: accept({ confirm: true }) } })
    expect(await caller.asked(id, 'one')).toEqual({ one: 'One?' })
    await caller.update(id, { one: { action: 'decline' } })
    expect(await caller.said(id)).toBe('false,true')
  })

  test('detaches inside a scope, which then ends in the task', async () => {
    const office = new Office()
    const runs: string[] = []
    const { app } = office.instance((each) =>
      each.tool('scoped', {}, async (_args, io) =>
        io.scope('part', async (inner) => {
          await inner.step('before', () => void runs.push('before'))
          const detached = await inner.detach()
          await inner.step('after', () => void runs.push('after'))
          return `${detached}`
        }),
      ),
    )
    const caller = new Caller(office, app)
    expect(await caller.said(await caller.begin('scoped'))).toBe('true')
    expect(runs).toEqual(['before', 'after'])
  })

  test('lets the steps beside it finish first, and does not do them again', async () => {
    const office = new Office()
    const runs: string[] = []
    const { app } = office.instance((each) =>
      each.tool('beside', {}, async (_args, io) => {
        const beside = io.step('beside', async () => {
          await new Promise((resolve) => void setImmediate(resolve))
          runs.push('beside')
          return 'done'
        })
        await io.detach()
        return beside
      }),
    )
    const caller = new Caller(office, app)
    expect(await caller.said(await caller.begin('beside'))).toBe('done')
    expect(runs).toEqual(['beside'])
  })

  test('cannot detach inside a step', async () => {
    const office = new Office()
    const { app } = office.instance((each) =>
      each.tool('wrong', {}, async (_args, io) => io.step('inside', async () => `${await io.detach()}`)),
    )
    expect(await new Caller(office, app).call('wrong')).toMatchObject({
      error: { code: -32603, data: { code: 'NESTED_CALL' } },
    })
  })
})

test('what came with the call itself answers the first questions of a task from the start', async () => {
  const office = new Office()
  const { app } = office.instance((each) =>
    each.tool('ask', { task: 'always' }, async (_args, io) => {
      await io.step('look', () => 1)
      return `${await io.confirm('sure', 'Sure?')}`
    }),
  )
  const caller = new Caller(office, app)
  const id = await caller.begin('ask', {}, { inputResponses: { sure: accept({ confirm: true }), other: accept() } })
  expect(await caller.said(id)).toBe('true')
})
