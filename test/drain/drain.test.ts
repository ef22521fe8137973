// An app that drains, seen from the wire: calls under way are answered with a state that another instance goes on from.
import type { App } from 'mcp-rally'
import { rally, send } from 'mcp-rally'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Gate } from '../../src/testing/manual-scheduler.ts'
import { gate } from '../../src/testing/manual-scheduler.ts'
import { accept, askedIn, call, errorOf, request, resultOf, textOf } from '../wire/messages.ts'
import { countsOf, deferredState, isDeferred, OPTIONS } from './states.ts'

/** Two instances or more of the same app. Steps that the test holds up wait until it lets them go. */
class Fleet {
  /** The steps that ran, in order. */
  readonly effects: string[] = []
  readonly idempotencyKeys = new Map<string, string[]>()
  readonly #held = new Map<string, { running: Gate<void>; release: Gate<void> }>()

  /** From now on this step says when it runs, and waits to be released. */
  hold(key: string): { running: Promise<void>; release: () => void } {
    const held = { running: gate(), release: gate() }
    this.#held.set(key, held)
    return { running: held.running.promise, release: () => this.#release(key) }
  }

  instance(): App {
    const app = rally(OPTIONS)
    app.tool('count', { input: z.object({ to: z.number() }) }, async ({ to }, io) => {
      let sum = 0
      for (let i = 1; i <= to; i += 1)
        sum += await io.step(`add[${i}]`, (context) => this.#work(`add[${i}]`, context, i))
      return `The sum is ${sum}.`
    })
    app.tool('fan_out', {}, async (_args, io) => {
      const branch = async (name: string): Promise<string> => {
        const first = await io.step(`${name}.first`, (context) => this.#work(`${name}.first`, context, name))
        return io.step(`${name}.second`, (context) => this.#work(`${name}.second`, context, first + first))
      }
      return (await Promise.all([branch('a'), branch('b'), branch('c')])).join(' ')
    })
    app.tool('ask_beside', {}, async (_args, io) => {
      const [sure, sum] = await Promise.all([io.confirm('sure', 'Sure?'), this.#two(io)])
      return `${String(sure)}, ${sum}`
    })
    app.tool('yielding', {}, async (_args, io) => {
      await io.step('s', (context) => this.#work('s', context, 1))
      this.effects.push('before the yield')
      await io.yield()
      this.effects.push('after the yield')
      return 'done'
    })
    app.tool('io_less', {}, async () => {
      await this.#work('io_less', { idempotencyKey: '' }, 1)
      return 'done'
    })
    app.prompt('brief', {}, async (_args, io) => `Sum up ${await this.#two(io)}.`)
    app.resourceTemplate('sums://{name}', { name: 'sums' }, async ({ name }, io) => `${name}: ${await this.#two(io)}`)
    return app
  }

  async #two(io: { step(key: string, run: (context: Context) => Promise<number>): Promise<number> }): Promise<number> {
    const one = await io.step('one', (context) => this.#work('one', context, 1))
    return one + (await io.step('two', (context) => this.#work('two', context, 2)))
  }

  async #work<T>(key: string, { idempotencyKey }: Context, value: T): Promise<T> {
    this.effects.push(key)
    this.idempotencyKeys.set(key, [...(this.idempotencyKeys.get(key) ?? []), idempotencyKey])
    const held = this.#held.get(key)
    held?.running.open()
    await held?.release.promise
    return value
  }

  #release(key: string): void {
    this.#held.get(key)?.release.open()
    this.#held.delete(key)
  }
}

interface Context {
  idempotencyKey: string
}

describe('a drain', () => {
  test('hands a flow over at its next step, with nothing but a state, and another instance finishes it', async () => {
    const fleet = new Fleet()
    const [first, second] = [fleet.instance(), fleet.instance()]
    const step = fleet.hold('add[2]')
    const answer = send(first, call('count', { to: 4 }))
    await step.running
    expect(first.draining).toBe(false)
    first.drain()
    expect(first.draining).toBe(true)
    step.release()
    const response = await answer
    expect(Object.keys(resultOf(response)).toSorted()).toEqual(['_meta', 'requestState', 'resultType'])
    const requestState = deferredState(response)
    expect(fleet.effects).toEqual(['add[1]', 'add[2]'])
    expect(textOf(await send(second, call('count', { to: 4 }, { requestState })))).toBe('The sum is 10.')
    expect(fleet.effects).toEqual(['add[1]', 'add[2]', 'add[3]', 'add[4]'])
  })

  test('lets parallel steps that run settle first, and begins no other', async () => {
    const fleet = new Fleet()
    const [first, second] = [fleet.instance(), fleet.instance()]
    const slow = fleet.hold('c.first')
    const answer = send(first, call('fan_out'))
    first.drain()
    await slow.running
    slow.release()
    const requestState = deferredState(await answer)
    expect(fleet.effects).toEqual(['a.first', 'b.first', 'c.first'])
    expect(textOf(await send(second, call('fan_out', {}, { requestState })))).toBe('aa bb cc')
    expect(fleet.effects.toSorted()).toEqual(['a.first', 'a.second', 'b.first', 'b.second', 'c.first', 'c.second'])
  })

  test('makes an asking round of one in which a question is open', async () => {
    const fleet = new Fleet()
    const [first, second] = [fleet.instance(), fleet.instance()]
    first.drain()
    const { state, messages } = askedIn(await send(first, call('ask_beside')))
    expect(messages).toEqual({ sure: 'Sure?' })
    expect(fleet.effects).toEqual(['one'])
    const round = { requestState: state, inputResponses: { sure: accept({ confirm: true }) } }
    expect(textOf(await send(second, call('ask_beside', {}, round)))).toBe('true, 3')
    expect(fleet.effects).toEqual(['one', 'two'])
  })

  test('comes always, past three deferrals and past round five, and each pass gets on by one step', async () => {
    const fleet = new Fleet()
    const app = fleet.instance()
    app.drain()
    const counts: { round: number; deferrals: number; steps: number }[] = []
    let response = await send(app, call('count', { to: 9 }))
    while (isDeferred(response)) {
      const requestState = deferredState(response)
      counts.push({ ...countsOf(requestState), steps: fleet.effects.length })
      response = await send(app, call('count', { to: 9 }, { requestState }))
    }
    expect(textOf(response)).toBe('The sum is 45.')
    expect(counts).toEqual(Array.from({ length: 8 }, (_, i) => ({ round: i + 1, deferrals: i + 1, steps: i + 1 })))
    expect(fleet.effects).toHaveLength(9)
  })

  test('lets a call finish that needs no further step', async () => {
    const fleet = new Fleet()
    const app = fleet.instance()
    app.drain()
    expect(textOf(await send(app, call('count', { to: 1 })))).toBe('The sum is 1.')
    expect(textOf(await send(app, call('io_less')))).toBe('done')
  })

  test('hands over at io.yield', async () => {
    const fleet = new Fleet()
    const [first, second] = [fleet.instance(), fleet.instance()]
    first.drain()
    const requestState = deferredState(await send(first, call('yielding')))
    expect(fleet.effects).toEqual(['s', 'before the yield'])
    expect(textOf(await send(second, call('yielding', {}, { requestState })))).toBe('done')
    expect(fleet.effects).toEqual(['s', 'before the yield', 'before the yield', 'after the yield'])
  })

  test.each([
    { method: 'prompts/get', params: { name: 'brief' }, has: 'Sum up 3.' },
    { method: 'resources/read', params: { uri: 'sums://three' }, has: 'three: 3' },
  ])('hands over $method as it does tools', async ({ method, params, has }) => {
    const fleet = new Fleet()
    const [first, second] = [fleet.instance(), fleet.instance()]
    first.drain()
    const requestState = deferredState(await send(first, request(method, params)))
    expect(JSON.stringify(await send(second, request(method, { ...params, requestState })))).toContain(has)
    expect(fleet.effects).toEqual(['one', 'two'])
  })
})

describe('app.interrupt', () => {
  test('answers at once with what is recorded; only the step that ran runs again, under the same key', async () => {
    const fleet = new Fleet()
    const [first, second] = [fleet.instance(), fleet.instance()]
    const step = fleet.hold('add[3]')
    const answer = send(first, call('count', { to: 4 }))
    await step.running
    first.interrupt()
    expect(first.draining).toBe(true)
    const requestState = deferredState(await answer)
    step.release()
    expect(textOf(await send(second, call('count', { to: 4 }, { requestState })))).toBe('The sum is 10.')
    expect(fleet.effects).toEqual(['add[1]', 'add[2]', 'add[3]', 'add[3]', 'add[4]'])
    const keys = fleet.idempotencyKeys.get('add[3]')
    expect(keys).toHaveLength(2)
    expect(new Set(keys).size).toBe(1)
  })

  test('is an error to a call that recorded nothing to go on from', async () => {
    const fleet = new Fleet()
    const app = fleet.instance()
    const step = fleet.hold('io_less')
    const answer = send(app, call('io_less'))
    await step.running
    app.interrupt()
    expect(errorOf(await answer)).toMatchObject({ code: -32603, data: { code: 'INTERRUPTED' } })
    step.release()
  })

  test('ends every call under way', async () => {
    const fleet = new Fleet()
    const app = fleet.instance()
    const [counting, summing] = [fleet.hold('add[1]'), fleet.hold('one')]
    const answers = [send(app, call('count', { to: 2 })), send(app, request('prompts/get', { name: 'brief' }))]
    await Promise.all([counting.running, summing.running])
    app.interrupt()
    expect((await Promise.all(answers)).map(isDeferred)).toEqual([true, true])
    counting.release()
    summing.release()
  })
})
