// io.step(key, run, { once }): no pass of the flow, wherever it runs, does again what one has done.
import type { App, OnceStore } from 'mcp-rally'
import { MemoryOnceStore, MemoryStore, rally, send } from 'mcp-rally'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { gate, microtasks } from '../../src/testing/manual-scheduler.ts'
import type { Round } from '../wire/messages.ts'
import { accept, askedIn, call, errorOf, resultOf, textOf } from '../wire/messages.ts'

/** A bank that charges once, on as many instances as one likes. A state may be used again: only the step is guarded. */
class Bank {
  readonly charges: string[] = []
  /** What the charge does, and gives. */
  charge: (signal: AbortSignal) => unknown = () => 'charged'
  readonly #store: OnceStore

  constructor(store: OnceStore = new MemoryOnceStore()) {
    this.#store = store
  }

  instance(): App {
    const app = rally({
      name: 'bank',
      version: '1.0.0',
      keys: ['a secret of the single-use tests, long enough'],
      logger: { warn() {}, error() {} },
    })
    app.tool('pay', {}, async (_args, io) => {
      await io.confirm('pay', 'Pay?')
      const receipt = await io.step(
        'charge',
        ({ idempotencyKey, signal }) => {
          this.charges.push(idempotencyKey)
          return this.charge(signal)
        },
        { once: this.#store },
      )
      await io.step('mail', () => {})
      return { content: [{ type: 'text', text: shown(receipt) }] }
    })
    return app
  }

  async begin(): Promise<Round> {
    const { state } = askedIn(await send(this.instance(), call('pay')))
    return { requestState: state, inputResponses: { pay: accept({ confirm: true }) } }
  }
}

function pay(app: App, round: Round, signal?: AbortSignal): Promise<object | undefined> {
  return send(app, call('pay', {}, round), { ...(signal && { signal }) })
}

afterEach(() => void vi.useRealTimers())

describe('a step that is done once', () => {
  test.each([
    { once: new MemoryStore() as unknown as OnceStore, got: 'an object' },
    { once: true as unknown as OnceStore, got: 'true' },
    { once: null as unknown as OnceStore, got: 'null' },
  ])('needs a OnceStore, and $got is a mistake of the author, not an outage', async ({ once, got }) => {
    const bank = new Bank(once)
    expect(textOf(await pay(bank.instance(), await bank.begin()))).toBe(
      `The step "charge": \`once\` must be a OnceStore, got ${got}. Pass \`store.once\`.`,
    )
    expect(bank.charges).toEqual([])
  })

  test('is not done again from a rewound state, which gets its result', async () => {
    const bank = new Bank()
    bank.charge = () => `receipt ${bank.charges.length}`
    const round = await bank.begin()
    expect(textOf(await pay(bank.instance(), round))).toBe('"receipt 1"')
    expect(textOf(await pay(bank.instance(), round))).toBe('"receipt 1"')
    expect(bank.charges).toHaveLength(1)
  })

  test('is done by one of many passes at once, and the others wait for its result', async () => {
    const bank = new Bank()
    const reached = gate()
    const goOn = gate()
    bank.charge = async () => {
      reached.open()
      await goOn.promise
      return `receipt ${bank.charges.length}`
    }
    const round = await bank.begin()
    const instances = [bank.instance(), bank.instance()]
    const responses = Array.from({ length: 10 }, (_, i) => pay(instances[i % 2] as App, round))
    await reached.promise
    await microtasks()
    goOn.open()
    expect(new Set((await Promise.all(responses)).map(textOf))).toEqual(new Set(['"receipt 1"']))
    expect(bank.charges).toHaveLength(1)
  })

  test('is done for each flow by itself', async () => {
    const bank = new Bank()
    for (const round of [await bank.begin(), await bank.begin()]) await pay(bank.instance(), round)
    expect(new Set(bank.charges).size).toBe(2)
  })

  test.each([
    { what: 'nothing', value: undefined },
    { what: 'null', value: null },
    { what: 'an empty text', value: '' },
    { what: 'false', value: false },
    { what: 'an object', value: { a: [1, null, { b: 'c' }] } },
  ])('gives $what alike to the pass that did it, to a rewound one and to a replay', async ({ value }) => {
    const bank = new Bank()
    bank.charge = () => value
    const round = await bank.begin()
    const [live, rewound] = [await pay(bank.instance(), round), await pay(bank.instance(), round)]
    const draining = bank.instance()
    draining.drain()
    const { requestState } = resultOf(await pay(draining, round))
    const replayed = await pay(bank.instance(), { requestState })
    expect([live, rewound, replayed].map(textOf)).toEqual([shown(value), shown(value), shown(value)])
    expect(bank.charges).toHaveLength(1)
  })

  test('is free again when it failed', async () => {
    const bank = new Bank()
    bank.charge = () => {
      throw new Error('No funds.')
    }
    const round = await bank.begin()
    const failed = await pay(bank.instance(), round)
    expect(resultOf(failed)).toMatchObject({ isError: true })
    expect(textOf(failed)).toBe('No funds.')
    bank.charge = () => 'charged'
    expect(textOf(await pay(bank.instance(), round))).toBe('"charged"')
    expect(bank.charges).toHaveLength(2)
    expect(new Set(bank.charges).size).toBe(1)
  })

  test('that gives what is no JSON fails the call with an error that names it, as any step does', async () => {
    const bank = new Bank()
    bank.charge = () => new Map()
    const response = await pay(bank.instance(), await bank.begin())
    expect(JSON.stringify(response)).toContain('the step \\"charge\\": $ is a Map')
  })

  test('is not begun by a pass that was cancelled while it waited for another one', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const bank = new Bank()
    const reached = gate()
    bank.charge = (signal) => {
      reached.open()
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new Error('aborted')))
      })
    }
    const round = await bank.begin()
    const [first, second] = [new AbortController(), new AbortController()]
    const holding = pay(bank.instance(), round, first.signal)
    await reached.promise
    const waiting = pay(bank.instance(), round, second.signal)
    await microtasks()
    second.abort()
    expect(await waiting).toBeUndefined()
    first.abort()
    expect(await holding).toBeUndefined()
    // The key is free now. Were the second one still waiting for it, it would look again within that time.
    await vi.advanceTimersByTimeAsync(5_000)
    expect(bank.charges).toHaveLength(1)
  })

  test('runs again after an interruption, in the pass that takes the flow over', async () => {
    const bank = new Bank()
    const reached = gate()
    bank.charge = (signal) => {
      reached.open()
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new Error('aborted')))
      })
    }
    const first = bank.instance()
    const interrupted = pay(first, await bank.begin())
    await reached.promise
    first.interrupt()
    const { requestState } = resultOf(await interrupted)
    bank.charge = () => 'charged'
    expect(textOf(await pay(bank.instance(), { requestState }))).toBe('"charged"')
    expect(bank.charges).toHaveLength(2)
  })

  test('runs again when its holder died, once the claim has lapsed', async () => {
    let now = 0
    const bank = new Bank(new MemoryOnceStore(() => now))
    const reached = gate()
    bank.charge = () => {
      reached.open()
      return new Promise(() => {})
    }
    const round = await bank.begin()
    const dead = new AbortController()
    const lost = pay(bank.instance(), round, dead.signal)
    await reached.promise
    bank.charge = () => 'charged'
    now += 31_000
    expect(textOf(await pay(bank.instance(), round))).toBe('"charged"')
    dead.abort()
    expect(await lost).toBeUndefined()
  })

  test('does not fail where the store cannot be asked: the client is told to try again, and the next round runs it', async () => {
    let isDown = true
    const store = new MemoryOnceStore()
    const bank = new Bank({
      claim: async (...args) => {
        if (isDown) throw new Error('The store is down.')
        return store.claim(...args)
      },
      renew: (...args) => store.renew(...args),
      settle: (...args) => store.settle(...args),
      release: (...args) => store.release(...args),
    })
    const begun = await bank.begin()
    const response = await pay(bank.instance(), begun)
    expect(errorOf(response)).toMatchObject({ code: -32603, data: { retryAfterMs: 1000 } })
    expect(bank.charges).toEqual([])
    isDown = false
    expect(textOf(await pay(bank.instance(), begun))).toBe('"charged"')
    expect(bank.charges).toHaveLength(1)
  })
})

function shown(value: unknown): string {
  return value === undefined ? 'undefined' : JSON.stringify(value)
}
