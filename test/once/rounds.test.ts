// rally({ once }): a state is good for one use, and the same round again for the response that was lost.
import { once } from 'node:events'
import { connect } from 'node:net'
import type { App, OnceStore, RallyOptions } from 'mcp-rally'
import { MemoryOnceStore, rally, send } from 'mcp-rally'
import { serve } from 'mcp-rally/node'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { gate, microtasks } from '../../src/testing/manual-scheduler.ts'
import type { Round } from '../wire/messages.ts'
import { accept, askedIn, call, errorOf, headersOf, resultOf, textOf } from '../wire/messages.ts'

const FROZEN = { code: -32602, message: 'Invalid or expired requestState' }

/** A shop whose states are single-use, on as many instances as one likes. */
class Shop {
  /** Each time the handler got past the question. */
  readonly sales: string[] = []
  /** What happens when the handler got past the question. */
  atSale: () => unknown = () => {}
  readonly #store: OnceStore | null

  constructor(store: OnceStore | null = new MemoryOnceStore()) {
    this.#store = store
  }

  instance(options: Partial<RallyOptions> = {}): App {
    const app = rally({
      ...options,
      name: 'shop',
      version: '1.0.0',
      keys: ['a secret of the single-use tests, long enough'],
      logger: { warn() {}, error() {} },
      ...(this.#store && { once: this.#store }),
    })
    const input = z.object({ item: z.string().default('tea') })
    app.tool('buy', { input, asks: { amount: z.object({ amount: z.number() }) } }, async ({ item }, io) => {
      const { amount } = await io.ask('amount', `How much ${item}?`)
      const sale = crypto.randomUUID()
      this.sales.push(sale)
      await this.atSale()
      await io.confirm('gift', 'As a gift?')
      return `${amount} ${item}, ${sale}`
    })
    return app
  }

  /** Begins a flow and gives the round that answers its question. */
  async begin(principal?: string): Promise<Round & { requestState: string }> {
    const { state } = askedIn(await send(this.instance(), call('buy'), { ...(principal && { principal }) }))
    return { requestState: state, inputResponses: { amount: accept({ amount: 2 }) } }
  }
}

function buy(app: App, round: Round, principal?: string): Promise<object | undefined> {
  return send(app, call('buy', {}, round), { ...(principal && { principal }) })
}

describe('a state that is used again', () => {
  test('of many uses at once one wins: the handler goes on once, and all get the same response', async () => {
    const shop = new Shop()
    shop.atSale = microtasks
    const round = await shop.begin()
    const instances = [shop.instance(), shop.instance()]
    const responses = await Promise.all(Array.from({ length: 30 }, (_, i) => buy(instances[i % 2] as App, round)))
    expect(shop.sales).toHaveLength(1)
    expect(new Set(responses.map((response) => JSON.stringify(resultOf(response)))).size).toBe(1)
  })

  test('without a store every use of it goes on', async () => {
    const shop = new Shop(null)
    const round = await shop.begin()
    await Promise.all([buy(shop.instance(), round), buy(shop.instance(), round)])
    expect(shop.sales).toHaveLength(2)
  })

  test('the same round again gets the recorded response, byte for byte, and the flow goes on from it', async () => {
    const shop = new Shop()
    const round = await shop.begin()
    const [first, again] = [await buy(shop.instance(), round), await buy(shop.instance(), round)]
    expect(JSON.stringify(resultOf(again))).toBe(JSON.stringify(resultOf(first)))
    const last = { requestState: askedIn(again).state, inputResponses: { gift: accept({ confirm: true }) } }
    const [done, doneAgain] = [await buy(shop.instance(), last), await buy(shop.instance(), last)]
    expect(JSON.stringify(resultOf(doneAgain))).toBe(JSON.stringify(resultOf(done)))
    // The value was made anew in the last pass, and what came back is that of the pass which took place.
    expect(textOf(done)).toBe(`2 tea, ${shop.sales[1]}`)
    expect(shop.sales).toHaveLength(2)
  })

  test('the same answers in another order are the same round', async () => {
    const shop = new Shop()
    const { requestState } = await shop.begin()
    const first = { action: 'accept', content: { amount: 2 } }
    const again = { content: { amount: 2 }, action: 'accept' }
    const responses = [
      await buy(shop.instance(), { requestState, inputResponses: { amount: first, other: {} } }),
      await buy(shop.instance(), { requestState, inputResponses: { other: {}, amount: again } }),
    ]
    expect(JSON.stringify(resultOf(responses[1]))).toBe(JSON.stringify(resultOf(responses[0])))
  })

  test.each([
    { what: 'other answers', other: { inputResponses: { amount: accept({ amount: 3 }) } } },
    { what: 'an answer more', other: { inputResponses: { amount: accept({ amount: 2 }), more: accept() } } },
    { what: 'no answers', other: { inputResponses: undefined } },
  ])('with $what is refused, and the first use stays good', async ({ other }) => {
    const shop = new Shop()
    const round = await shop.begin()
    const first = await buy(shop.instance(), round)
    expect(errorOf(await buy(shop.instance(), { ...round, ...other }))).toEqual(FROZEN)
    expect(JSON.stringify(resultOf(await buy(shop.instance(), round)))).toBe(JSON.stringify(resultOf(first)))
    expect(shop.sales).toHaveLength(1)
  })

  test('with other answers is refused already while the first use is under way', async () => {
    const shop = new Shop()
    const goOn = gate()
    const reached = gate()
    shop.atSale = () => {
      reached.open()
      return goOn.promise
    }
    const round = await shop.begin()
    const first = buy(shop.instance(), round)
    await reached.promise
    const other = { ...round, inputResponses: { amount: accept({ amount: 3 }) } }
    expect(errorOf(await buy(shop.instance(), other))).toEqual(FROZEN)
    goOn.open()
    askedIn(await first)
  })

  test('by another principal, for another argument, or cut off is refused, and leaves the state unused', async () => {
    const shop = new Shop()
    const round = await shop.begin('ann')
    const app = shop.instance()
    expect(errorOf(await buy(app, round, 'bob'))).toEqual(FROZEN)
    expect(errorOf(await buy(app, round))).toEqual(FROZEN)
    expect(errorOf(await send(app, call('buy', { item: 'milk' }, round), { principal: 'ann' }))).toEqual(FROZEN)
    const cut = { ...round, requestState: round.requestState.slice(0, -1) }
    expect(errorOf(await buy(app, cut, 'ann'))).toEqual(FROZEN)
    askedIn(await buy(app, round, 'ann'))
    expect(errorOf(await buy(app, round, 'bob'))).toEqual(FROZEN)
    expect(shop.sales).toHaveLength(1)
  })
})

describe('a round that came to nothing frees its state', () => {
  test('when it was cancelled: the repeat goes on', async () => {
    const shop = new Shop()
    const reached = gate()
    shop.atSale = () => {
      reached.open()
      return new Promise(() => {})
    }
    const round = await shop.begin()
    const controller = new AbortController()
    const cancelled = send(shop.instance(), call('buy', {}, round), { signal: controller.signal })
    await reached.promise
    // Waits for the one that is under way, and takes its place.
    shop.atSale = () => {}
    const repeated = buy(shop.instance(), round)
    controller.abort()
    expect(await cancelled).toBeUndefined()
    askedIn(await repeated)
    expect(shop.sales).toHaveLength(2)
  })

  test('when it failed with a protocol error: the repeat goes on, also with other answers', async () => {
    const shop = new Shop()
    const app = shop.instance()
    app.tool('flaky', {}, async (_args, io) => {
      const sure = await io.confirm('sure', 'Sure?')
      // Two steps of one key are an error of the flow.
      for (const key of shop.sales.length === 0 ? ['s', 's'] : ['s']) await io.step(key, () => shop.sales.push(key))
      return `Sure: ${String(sure)}`
    })
    const { state } = askedIn(await send(app, call('flaky')))
    const round = (confirm: boolean): object =>
      call('flaky', {}, { requestState: state, inputResponses: { sure: accept({ confirm }) } })
    expect(errorOf(await send(app, round(true)))).toMatchObject({ data: { code: 'KEY_REUSED' } })
    expect(textOf(await send(app, round(false)))).toBe('Sure: false')
    expect(errorOf(await send(app, round(true)))).toEqual(FROZEN)
  })

  test('but not when the tool failed, which is a response like any other', async () => {
    const shop = new Shop()
    shop.atSale = () => {
      throw new Error('Sold out.')
    }
    const round = await shop.begin()
    const first = await buy(shop.instance(), round)
    expect(resultOf(first)).toMatchObject({ isError: true })
    shop.atSale = () => {}
    expect(JSON.stringify(resultOf(await buy(shop.instance(), round)))).toBe(JSON.stringify(resultOf(first)))
    expect(shop.sales).toHaveLength(1)
  })

  test('when its holder died: the claim lapses with its lease, and what the dead one does later is void', async () => {
    let now = 0
    const shop = new Shop(new MemoryOnceStore(() => now))
    const reached = gate()
    const goOn = gate()
    shop.atSale = () => {
      reached.open()
      return goOn.promise
    }
    const round = await shop.begin()
    const dead = buy(shop.instance(), round)
    await reached.promise
    shop.atSale = () => {}
    now += 31_000
    const alive = await buy(shop.instance(), round)
    askedIn(alive)
    expect(shop.sales).toHaveLength(2)
    goOn.open()
    askedIn(await dead)
    expect(JSON.stringify(resultOf(await buy(shop.instance(), round)))).toBe(JSON.stringify(resultOf(alive)))
    expect(shop.sales).toHaveLength(2)
  })
})

describe('a round that is handed over', () => {
  test('is recorded like any other: its repeat gets the same new state', async () => {
    const shop = new Shop()
    const app = shop.instance()
    const ran: string[] = []
    app.tool('steps', {}, async (_args, io) => {
      for (const key of ['a', 'b', 'c']) await io.step(key, () => ran.push(key))
      return 'done'
    })
    app.drain()
    const { requestState } = resultOf(await send(app, call('steps')))
    const round = call('steps', {}, { requestState })
    const [first, again] = [await send(app, round), await send(app, round)]
    expect(resultOf(first)).toMatchObject({ resultType: 'input_required' })
    expect(JSON.stringify(resultOf(again))).toBe(JSON.stringify(resultOf(first)))
    expect(ran).toEqual(['a', 'b'])
  })
})

describe('over HTTP', () => {
  test('a response that was lost on its way is there for the repeat', async () => {
    const shop = new Shop()
    const serving = await serve(shop.instance(), { port: 0 })
    onTestFinished(() => serving.close())
    const round = await shop.begin()
    const body = JSON.stringify(call('buy', {}, round))
    const headers = { ...headersOf(JSON.parse(body)), Host: 'localhost', 'Content-Length': String(body.length) }
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    const socket = connect(serving.port, '127.0.0.1').pause()
    socket.on('error', () => {})
    const requested = once(serving.server, 'request')
    socket.write(`POST /mcp HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
    const [, response] = (await requested) as [unknown, NodeJS.EventEmitter]
    await once(response, 'finish')
    socket.destroy()

    const repeats = [await post(serving.url, body), await post(serving.url, body)]
    expect(repeats[1]).toBe(repeats[0])
    const { state } = askedIn(JSON.parse(repeats[0] ?? '') as object)
    expect(state).not.toBe('')
    expect(shop.sales).toHaveLength(1)
  })

  test('a client that went away in the middle of its round may send it again', async () => {
    const shop = new Shop()
    const serving = await serve(shop.instance(), { port: 0 })
    onTestFinished(() => serving.close())
    const reached = gate()
    shop.atSale = () => {
      reached.open()
      return new Promise(() => {})
    }
    const round = await shop.begin()
    const message = call('buy', {}, round)
    const controller = new AbortController()
    const { signal } = controller
    const lost = fetch(serving.url, {
      method: 'POST',
      headers: headersOf(message),
      body: JSON.stringify(message),
      signal,
    })
    await reached.promise
    controller.abort()
    await expect(lost).rejects.toThrow('aborted')
    shop.atSale = () => {}
    askedIn(JSON.parse(await post(serving.url, JSON.stringify(message))) as object)
    expect(shop.sales).toHaveLength(2)
  })
})

async function post(url: string, body: string): Promise<string> {
  const response = await fetch(url, { method: 'POST', headers: headersOf(JSON.parse(body)), body })
  return response.text()
}

describe('the records of a caller', () => {
  test('have a limit in bytes, on all instances together, and take nothing from others', async () => {
    const shop = new Shop()
    const limits = { maxRecordBytes: 10_000 }
    const [one, two] = [shop.instance({ limits }), shop.instance({ limits })]
    const buyAs = async (app: App, principal: string): Promise<object | undefined> =>
      buy(app, await shop.begin(principal), principal)
    let bought = 0
    for (; bought < 100; bought += 1) if ('error' in ((await buyAs(one, 'ann')) ?? {})) break
    expect(bought).toBeGreaterThan(3)
    expect(bought).toBeLessThan(40)
    const sales = shop.sales.length
    const { message } = errorOf(await buyAs(two, 'ann'))
    expect(message).toBe(
      'Too many bytes of recorded responses: one caller may store 10000 (limits.maxRecordBytes). Wait until some have outlived their ttl.',
    )
    expect(shop.sales).toHaveLength(sales)
    expect(resultOf(await buyAs(two, 'bob'))).toMatchObject({ resultType: 'input_required' })
  })

  test('are still answered from when there is no room for more', async () => {
    const shop = new Shop()
    const app = shop.instance({ limits: { maxRecordBytes: 2_000 } })
    const first = await shop.begin('ann')
    const response = await buy(app, first, 'ann')
    for (let i = 0; i < 10; i += 1) await buy(app, await shop.begin('ann'), 'ann')
    expect(await buy(app, await shop.begin('ann'), 'ann')).toHaveProperty('error')
    expect(resultOf(await buy(app, first, 'ann'))).toEqual(resultOf(response))
  })
})
