// Events from outside: a token that a handler hands out, and what somebody sends with it, from any process and over HTTP.
import { once } from 'node:events'
import type { IncomingMessage, RequestListener } from 'node:http'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Io, Rally, RallyOptions } from 'mcp-rally'
import { Expired, MemoryStore, rally } from 'mcp-rally'
import { nodeHandler } from 'mcp-rally/node'
import { sqlite } from 'mcp-rally/sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { gate } from '../../src/testing/manual-scheduler.ts'
import { Folder } from '../stores/folder.ts'
import { accept } from '../wire/messages.ts'
import { Caller } from './caller.ts'
import { Office } from './office.ts'

const HOUR = 3_600_000
const PAID = z.object({ amount: z.number().positive() })

/** Hands out tokens, as a mail would. */
class Post {
  readonly tokens: string[] = []
  readonly #waiting: ((token: string) => void)[] = []

  send(token: string): void {
    this.tokens.push(token)
    for (const resolve of this.#waiting.splice(0)) resolve(token)
  }

  next(): Promise<string> {
    return new Promise((resolve) => void this.#waiting.push(resolve))
  }
}

function invoice(post: Post, withinMs?: number): (app: Rally) => void {
  return (app) => {
    app.tool('invoice', { task: 'always' }, async (_args, io) => {
      const paid = withinMs === undefined ? io.event('paid', PAID) : io.event('paid', PAID, { withinMs })
      await io.step('mail', () => post.send(paid.token))
      try {
        const { amount } = await paid
        const again = await io.step('book', () => `booked ${amount}`)
        return `${again} ${paid.token === post.tokens[0]}`
      } catch (error) {
        return error instanceof Expired ? `expired ${error.key}` : 'other'
      }
    })
  }
}

/** Quotes the token in a question, and asks another one after the event. */
function quoting(version: string, hasDeadline: boolean, tokens: string[] = []): (app: Rally) => void {
  return (app) => {
    app.tool('quotes', { task: 'always', version }, async (_args, io) => {
      const paid = hasDeadline
        ? io.event('paid', PAID, { withinMs: HOUR, otherwise: { amount: 0 } })
        : io.event('paid', PAID)
      tokens.push(paid.token)
      await io.confirm('told', `Pay with ${paid.token}?`)
      const { amount } = await paid
      await io.confirm('sure', 'Sure?')
      return `${amount} ${version}`
    })
  }
}

/** The task has asked everything in the first version, after the event expired. */
async function expiredInFirstVersion(): Promise<{ office: Office; id: string; token: string }> {
  const office = new Office()
  office.shareClock()
  const tokens: string[] = []
  const first = office.instance(quoting('1', true, tokens))
  const caller = new Caller(office, first.app)
  const id = await caller.begin('quotes')
  await caller.asked(id, 'told')
  await caller.update(id, { told: accept({ confirm: true }) })
  await caller.until(id, ({ status }) => status === 'working')
  office.elapse(HOUR + 1)
  await caller.asked(id, 'sure')
  first.view.kill()
  return { office, id, token: tokens[0] ?? '' }
}

function opened(withinMs?: number): { office: Office; post: Post; app: Rally; caller: Caller; logged: string[] } {
  const office = new Office()
  office.shareClock()
  const post = new Post()
  const { app, logged } = office.instance(invoice(post, withinMs))
  return { office, post, app, caller: new Caller(office, app), logged }
}

/** A tool that returns the event. */
function echoing(options: Partial<RallyOptions> = {}): ReturnType<typeof opened> {
  const office = new Office()
  const post = new Post()
  const { app, logged } = office.instance((each) => {
    each.tool('echo', { task: 'always' }, async (_args, io) => {
      const event = io.event('event', z.json())
      await io.step('mail', () => post.send(event.token))
      return JSON.stringify(await event)
    })
  }, options)
  return { office, post, app, caller: new Caller(office, app), logged }
}

function deep(levels: number): unknown {
  return JSON.parse('['.repeat(levels) + ']'.repeat(levels))
}

/** Resolves with the address of a server that listens. */
async function listening(listener: RequestListener): Promise<AddressInfo> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return server.address() as AddressInfo
}

function json(body: unknown): RequestInit {
  return { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
}

describe('an event in a task', () => {
  test('comes from an instance that does not have the tool, and the first one wins', async () => {
    const { office, post, caller } = opened()
    const sent = post.next()
    const id = await caller.begin('invoice')
    const token = await sent
    const other = office.built(() => {}).app
    expect(await other.signal(token, { amount: 7 })).toBe('accepted')
    expect(await other.signal(token, { amount: 8 })).toBe('repeated')
    expect(await caller.said(id)).toBe('booked 7 true')
    expect(post.tokens).toHaveLength(1)
    // A webhook that is sent again after the end.
    expect(await other.signal(token, { amount: 9 })).toBe('repeated')
  })

  test.each([
    { what: 'has the tool', tools: invoice },
    { what: 'does not have it', tools: () => () => {} },
  ])('is not run by a process that only sends it and $what', async ({ tools }) => {
    const { office, post, caller, app } = opened()
    const sent = post.next()
    const id = await caller.begin('invoice')
    const token = await sent
    app.drain()
    await app.idle()
    const sender = office.built(tools(post))
    let claims = 0
    sender.view.before = (operation) => {
      if (operation === 'claim') claims += 1
    }
    expect(await sender.app.signal(token, { amount: 7 })).toBe('accepted')
    await new Promise((resolve) => void setTimeout(resolve, 20))
    expect({ claims, logged: sender.logged }).toEqual({ claims: 0, logged: [] })
    office.instance(invoice(post))
    expect(await caller.said(id)).toBe('booked 7 true')
  })

  test('that is posted to an instance sets it to work, like any request', async () => {
    const { office, post, caller, app } = opened()
    const sent = post.next()
    const id = await caller.begin('invoice')
    const token = await sent
    app.drain()
    await app.idle()
    const { app: next } = office.built(invoice(post))
    const { status } = await next.fetch(new Request(`http://127.0.0.1/events/${token}`, json({ amount: 7 })))
    expect(status).toBe(200)
    expect(await caller.said(id)).toBe('booked 7 true')
  })

  test('is sent by operators, by its key', async () => {
    const { post, caller, app } = opened()
    const sent = post.next()
    const id = await caller.begin('invoice')
    await sent
    await expect.poll(() => app.tasks.signal(id, 'piad', {}).catch(String)).toContain('It waits for "paid"')
    await expect(app.tasks.signal(id, 'paid', { amount: -1 })).rejects.toMatchObject({ code: 'EVENT_MISMATCH' })
    expect(await app.tasks.signal(id, 'paid', { amount: 7 })).toBe('accepted')
    expect(await caller.said(id)).toBe('booked 7 true')
    await expect(app.tasks.signal(id, 'paid', { amount: 7 })).rejects.toMatchObject({ code: 'TASK_ENDED' })
    await expect(app.tasks.signal('nobody', 'paid', {})).rejects.toMatchObject({ code: 'TASK_UNKNOWN' })
  })

  test('counts for the task that retries, and so do the tokens that were handed out before', async () => {
    const office = new Office()
    const post = new Post()
    const broken = new Set(['check', 'ship'])
    const { app } = office.instance((each) => {
      each.tool('order', { task: 'always' }, async (_args, io) => {
        const [approval, paid] = [io.event('approval', z.string()), io.event('paid', PAID)]
        await io.step('mail', () => {
          post.send(approval.token)
          post.send(paid.token)
        })
        await io.step('check', () => {
          if (broken.has('check')) throw new Error('check is down')
        })
        const by = await approval
        await io.step('ship', () => {
          if (broken.has('ship')) throw new Error('ship is down')
        })
        return `${by} ${(await paid).amount}`
      })
    })
    const caller = new Caller(office, app)
    const first = await caller.begin('order')
    await caller.ended(first)
    const [approval = '', paid = ''] = post.tokens
    broken.delete('check')
    const second = await app.tasks.retry(first)
    expect(await app.signal(approval, 'ada')).toBe('accepted')
    expect((await caller.ended(second.id)).result?.isError).toBe(true)
    broken.delete('ship')
    // The approval is cut off with the step before it, and is not asked for again.
    const third = await app.tasks.retry(second.id, { from: 'check' })
    expect(await app.signal(approval, 'bob')).toBe('repeated')
    expect(await app.signal(paid, { amount: 3 })).toBe('accepted')
    expect(await caller.said(third.id)).toBe('ada 3')
    expect(post.tokens).toHaveLength(2)
  })

  test('is kept for a retry if it came while a step ran that then failed, and the store sent no event', async () => {
    const office = new Office()
    const [running, go] = [gate(), gate()]
    let isDown = true
    const tokens: string[] = []
    const { app, view } = office.instance((each) => {
      each.tool('order', { task: 'always' }, async (_args, io) => {
        const paid = io.event('paid', PAID)
        await io.step('charge', async () => {
          tokens.push(paid.token)
          running.open()
          await go.promise
          if (isDown) throw new Error('down')
        })
        return String((await paid).amount)
      })
    })
    const caller = new Caller(office, app)
    const id = await caller.begin('order')
    await running.promise
    // The next write of the journal finds it, and the one that ends the task must, too.
    const ending = gate()
    view.deaf = true
    view.before = async (operation, ...args) => {
      const { status } = (args[2] ?? {}) as { status?: string }
      if (operation !== 'change' || status !== 'completed' || tokens.length > 1) return
      tokens.push('sent')
      expect(await office.built(() => {}).app.signal(tokens[0] ?? '', { amount: 7 })).toBe('accepted')
      ending.open()
    }
    go.open()
    await ending.promise
    expect((await caller.ended(id)).result?.isError).toBe(true)
    isDown = false
    view.deaf = false
    const { id: retried } = await app.tasks.retry(id)
    expect(await caller.said(retried)).toBe('7')
  })

  test('that comes while a step runs is kept until it is awaited', async () => {
    const office = new Office()
    const [running, go] = [gate(), gate()]
    let token = ''
    const { app } = office.instance((each) => {
      each.tool('slow', { task: 'always' }, async (_args, io) => {
        const paid = io.event('paid', PAID)
        await io.step('long', async () => {
          token = paid.token
          running.open()
          await go.promise
        })
        return String((await paid).amount)
      })
    })
    const caller = new Caller(office, app)
    const id = await caller.begin('slow')
    await running.promise
    expect(await app.signal(token, { amount: 3 })).toBe('accepted')
    go.open()
    expect(await caller.said(id)).toBe('3')
  })

  test('and its token survive the death of the worker that had received it', async () => {
    const office = new Office()
    office.shareClock()
    const post = new Post()
    const first = office.instance(invoice(post))
    const caller = new Caller(office, first.app)
    const sent = post.next()
    const id = await caller.begin('invoice')
    const token = await sent
    // The first write after the event has come: the worker dies before it.
    const front = office.built(() => {}).app
    expect(await front.signal(token, { amount: 5 })).toBe('accepted')
    first.view.kill()
    const second = office.instance(invoice(post))
    for (let i = 0; i < 10; i += 1) office.elapse(10_000)
    expect(await new Caller(office, second.app).said(id)).toMatch(/^booked 5/)
    expect(await front.signal(token, { amount: 6 })).toBe('repeated')
  })

  test('has the same token in every pass, from the first thing on that was recorded after it', async () => {
    const office = new Office()
    const post = new Post()
    const first = office.instance(invoice(post))
    const appended = new Promise<void>((resolve) => {
      first.view.before = (operation, ...args) => {
        const isMailed = operation === 'append' || (args[2] as { journal?: string } | undefined)?.journal !== undefined
        if (isMailed) setImmediate(resolve)
      }
    })
    const id = await new Caller(office, first.app).begin('invoice')
    await appended
    first.view.kill()
    const second = office.instance(invoice(post))
    for (let i = 0; i < 10; i += 1) office.elapse(10_000)
    const front = office.built(() => {}).app
    expect(await front.signal(post.tokens[0] ?? '', { amount: 5 })).toBe('accepted')
    expect(await new Caller(office, second.app).said(id)).toBe('booked 5 true')
    expect(post.tokens).toHaveLength(1)
  })

  test('with a wrong value is refused by its schema, and stays open', async () => {
    const { post, app, caller } = opened()
    const sent = post.next()
    const id = await caller.begin('invoice')
    const token = await sent
    // The state with the schema is in the store once the task waits.
    await expect
      .poll(() => app.signal(token, { amount: 'seven' }).catch((error: unknown) => error))
      .toMatchObject({ code: 'EVENT_MISMATCH', message: expect.stringMatching(/amount/) })
    expect(await app.signal(token, { amount: 7 })).toBe('accepted')
    expect(await caller.said(id)).toBe('booked 7 true')
  })

  test('with a wrong value does not take the place of the right one if it comes before the schema is stored', async () => {
    const office = new Office()
    const outcomes: unknown[] = []
    const { app, logged } = office.instance((each) => {
      each.tool('early', { task: 'always' }, async (_args, io) => {
        const paid = io.event('paid', PAID)
        const signal = (amount: unknown) => async (): Promise<void> => {
          outcomes.push(await app.signal(paid.token, { amount }).catch((error: { code: string }) => error.code))
        }
        await io.step('invoice', signal('seven'))
        await io.step('again', signal('eight'))
        await io.step('right', signal(9))
        await io.step('more', signal(10))
        return String((await paid).amount)
      })
    })
    const caller = new Caller(office, app)
    expect(await caller.said(await caller.begin('early'))).toBe('9')
    expect(outcomes).toEqual(['accepted', 'EVENT_MISMATCH', 'accepted', 'repeated'])
    expect(logged).toEqual([])
  })

  test('that the handler is about to refuse gives its place to the next one, which is not lost', async () => {
    const office = new Office()
    const [checking, go] = [gate(), gate()]
    const by = z.string().refine(async () => {
      checking.open()
      await go.promise
      return true
    })
    let token = ''
    const { app, logged } = office.instance((each) => {
      each.tool('slow', { task: 'always' }, async (_args, io) => {
        const paid = io.event('paid', PAID.extend({ by }))
        await io.step('mail', async () => {
          token = paid.token
          await app.signal(token, { amount: 'seven', by: 'ada' })
        })
        return String((await paid).amount)
      })
    })
    const caller = new Caller(office, app)
    const id = await caller.begin('slow')
    await checking.promise
    expect(await app.signal(token, { amount: 9, by: 'bob' })).toBe('accepted')
    go.open()
    expect(await caller.said(id)).toBe('9')
    expect(logged.join()).toMatch(/event \\?"paid\\?" does not match its schema/)
    expect(await app.signal(token, { amount: 9, by: 'bob' })).toBe('repeated')
  })

  test('that only the handler can refuse is logged, and the next one counts', async () => {
    const office = new Office()
    const post = new Post()
    const even = PAID.refine(({ amount }) => amount % 2 === 0, 'must be even')
    const { app, logged } = office.instance((each) => {
      each.tool('even', { task: 'always' }, async (_args, io) => {
        const paid = io.event('paid', even)
        await io.step('mail', () => post.send(paid.token))
        return String((await paid).amount)
      })
    })
    const caller = new Caller(office, app)
    const sent = post.next()
    const id = await caller.begin('even')
    const token = await sent
    expect(await app.signal(token, { amount: 3 })).toBe('accepted')
    await expect.poll(() => logged.join()).toMatch(/event \\?"paid\\?" does not match its schema \(must be even\)/)
    await expect.poll(() => app.signal(token, { amount: 4 })).toBe('accepted')
    expect(await caller.said(id)).toBe('4')
  })

  test('expires, and is refused after that', async () => {
    const { office, post, app, caller } = opened(HOUR)
    const sent = post.next()
    const id = await caller.begin('invoice')
    const token = await sent
    await caller.until(id, ({ status }) => status === 'working')
    office.elapse(HOUR + 1)
    expect(await caller.said(id)).toBe('expired paid')
    await expect(app.signal(token, { amount: 7 })).rejects.toMatchObject({ code: 'EVENT_REFUSED' })
  })

  describe('that has expired, in another version of the tool', () => {
    test('has the same token, so a question that quotes it is not asked again', async () => {
      const { office, id } = await expiredInFirstVersion()
      const next = new Caller(office, office.instance(quoting('2', true)).app)
      await next.update(id, { sure: accept({ confirm: true }) })
      expect(await next.said(id)).toBe('0 2')
    })

    test('is open again if it has no deadline there', async () => {
      const { office, id, token } = await expiredInFirstVersion()
      const { app } = office.instance(quoting('2', false))
      const next = new Caller(office, app)
      await next.update(id, { sure: accept({ confirm: true }) })
      // Until this version has reached it, it counts as expired.
      await expect.poll(() => app.signal(token, { amount: 7 }).catch(({ code }) => code)).toBe('accepted')
      expect(await next.said(id)).toBe('7 2')
    })
  })

  test('that was received until its deadline counts, even if no worker looked at it before', async () => {
    const { office, post, caller } = opened(HOUR)
    const sent = post.next()
    const id = await caller.begin('invoice')
    const token = await sent
    await caller.until(id, ({ status }) => status === 'working')
    const front = office.built(() => {}).app
    office.elapse(HOUR - 1)
    expect(await front.signal(token, { amount: 1 })).toBe('accepted')
    office.elapse(2)
    expect(await caller.said(id)).toBe('booked 1 true')
  })

  test.each([
    { first: 'event', said: 'event 1' },
    { first: 'answer', said: 'answer 2' },
  ])('races with a question and a sleep: the $first came first', async ({ first, said }) => {
    const office = new Office()
    office.shareClock()
    const post = new Post()
    const { app } = office.instance((each) => {
      each.tool('race', { task: 'always' }, async (_args, io) => {
        const paid = io.event('paid', PAID)
        await io.step('mail', () => post.send(paid.token))
        return Promise.race([
          io.sleep('night', HOUR).then(() => 'night'),
          paid.then(({ amount }) => `event ${amount}`),
          io.ask('n', 'N?', z.object({ n: z.number() })).then(({ n }) => `answer ${n}`),
        ])
      })
    })
    const caller = new Caller(office, app)
    const sent = post.next()
    const id = await caller.begin('race')
    const token = await sent
    await caller.asked(id, 'n')
    if (first === 'event') await app.signal(token, { amount: 1 })
    await caller.update(id, { n: accept({ n: 2 }) })
    expect(await caller.said(id)).toBe(said)
    if (first !== 'event') await expect(app.signal(token, { amount: 1 })).rejects.toThrow(/refused/)
  })

  test('cannot be sent by the client as an answer, with the call or later', async () => {
    const { office, post, caller } = opened(HOUR)
    const sent = post.next()
    const forged = { paid: accept({ amount: 9 }) }
    const id = await caller.begin('invoice', {}, { inputResponses: { paid: accept({ amount: 9 }) } })
    await sent
    await caller.until(id, ({ status }) => status === 'working')
    await caller.update(id, forged)
    office.elapse(HOUR + 1)
    expect(await caller.said(id)).toBe('expired paid')
  })

  test('needs a task: in a plain call the error says what to do', async () => {
    const office = new Office()
    const { app } = office.instance((each) => {
      each.tool('plain', {}, async (_args, io) => String((await io.event('paid', PAID)).amount))
    })
    const caller = new Caller(office, app)
    expect(await caller.call('plain')).toMatchObject({
      error: {
        message: expect.stringMatching(/needs a task.*task: 'always'.*io\.detach/),
        data: { code: 'EVENT_NEEDS_TASK' },
      },
    })
  })

  test.each([
    ['an empty text', ''],
    ['some text', 'sg1.AAAA'],
    ['a number', 7],
    ['a long text', `sg1.${'A'.repeat(100_000)}`],
  ])('does not open for %s', async (_what, token) => {
    const { app } = opened()
    await expect(app.signal(token as string, { amount: 1 })).rejects.toMatchObject({ code: 'EVENT_REFUSED' })
  })

  test('does not open under another key or audience, and not once a character has changed', async () => {
    const { office, post, caller } = opened()
    const sent = post.next()
    await caller.begin('invoice')
    const token = await sent
    const others: Partial<RallyOptions>[] = [{ keys: ['another secret of tests, also long enough'] }, { audience: 'x' }]
    for (const options of others) {
      const { app } = office.built(() => {}, options)
      await expect(app.signal(token, { amount: 1 })).rejects.toMatchObject({ code: 'EVENT_REFUSED' })
    }
    const { app } = office.built(() => {})
    const changed = token.slice(0, -3) + (token.at(-3) === 'A' ? 'B' : 'A') + token.slice(-2)
    await expect(app.signal(changed, { amount: 1 })).rejects.toMatchObject({ code: 'EVENT_REFUSED' })
    await expect(app.signal(token, { amount: 1, text: 'x'.repeat(70_000) })).rejects.toMatchObject({
      code: 'EVENT_MISMATCH',
    })
  })

  test('has at most 64 levels, wherever it comes from', async () => {
    const { app, caller, post } = echoing()
    const sent = post.next()
    const id = await caller.begin('echo')
    const token = await sent
    const problem = { code: 'NOT_JSON', message: expect.stringContaining('nested past 64 levels') }
    await expect(app.signal(token, deep(65))).rejects.toMatchObject(problem)
    await expect.poll(() => app.tasks.signal(id, 'event', deep(65)).catch((error) => error)).toMatchObject(problem)
    expect(await app.signal(token, deep(64))).toBe('accepted')
    expect(await caller.said(id)).toBe('['.repeat(64) + ']'.repeat(64))
  })

  test.each<[what: string, uses: (io: Io) => unknown]>([
    ['a sleep', (io) => [io.event('k', PAID), io.sleep('k', 300)]],
    ['a question', (io) => [io.event('k', PAID, { withinMs: HOUR }), io.ask('k', 'K?', PAID, { withinMs: 100 })]],
    ['a step', (io) => [io.event('k', PAID), io.step('k', () => 1)]],
    ['a step before it', (io) => [io.step('k', () => 1), io.event('k', PAID)]],
    ['a scope', (io) => [io.event('k', PAID), io.scope('k', () => 1)]],
    ['another event', (io) => [io.event('k', PAID), io.event('k', PAID)]],
  ])('and %s cannot have the same key, also if nothing awaits the event', async (_what, uses) => {
    const office = new Office()
    const { app } = office.instance((each) => {
      each.tool('twice', { task: 'always' }, async (_args, io) => {
        uses(io)
        await io.sleep('night', HOUR)
      })
    })
    const caller = new Caller(office, app)
    const { error } = await caller.ended(await caller.begin('twice'))
    expect(error?.message).toContain('the key "k" is used twice in one flow')
  })

  test('needs a store', () => {
    expect(() => rally({ name: 'a', version: '1' }).signal('t')).toThrow(/app\.signal\(\) needs a store/)
  })
})

describe('POST /events/<token>', () => {
  interface Served {
    readonly app: Rally
    readonly post: (path: string, init: RequestInit) => Promise<Response>
  }

  const hosts: Record<string, (app: Rally) => Promise<Served['post']>> = {
    'app.fetch': async (app) => (path, init) => app.fetch(new Request(`http://127.0.0.1${path}`, init)),
    node: async (app) => {
      const { port } = await listening(nodeHandler(app))
      return (path, init) => fetch(`http://127.0.0.1:${port}${path}`, init)
    },
  }

  const stores = { memory: () => new MemoryStore(), sqlite: () => sqlite(new Folder().file('tasks.db')) }

  test.each([
    ['app.fetch', 'memory'],
    ['node', 'sqlite'],
  ] as const)('on %s, with a store in %s', async (host, kind) => {
    const store = stores[kind]()
    const post = new Post()
    const urls: (string | undefined)[] = []
    const app = rally({
      name: 'shop',
      version: '1.0.0',
      keys: ['a secret of the tests of events, long enough'],
      store,
      tasks: { eventsUrl: 'https://shop.example/base/events/' },
      http: { authenticate: () => ({ principal: 'nobody' }) },
    })
    onTestFinished(async () => {
      app.interrupt()
      await app.idle()
      await store.close()
    })
    app.tool('invoice', { task: 'always' }, async (_args, io) => {
      const paid = io.event('paid', PAID)
      await io.step('mail', () => {
        urls.push(paid.url)
        post.send(paid.token)
      })
      return String((await paid).amount)
    })
    app.work()
    const caller = new Caller({ changed: () => new Promise((resolve) => void setTimeout(resolve, 20)) }, app)
    const sent = post.next()
    const id = await caller.begin('invoice')
    const token = await sent
    expect(urls).toEqual([`https://shop.example/base/events/${token}`])
    const send = await hosts[host]?.(app)
    if (send === undefined) throw new Error('The host is missing.')
    const path = `/base/events/${token}`
    const statuses: [string, RequestInit, number][] = [
      [path, { method: 'GET' }, 405],
      [path, { method: 'OPTIONS' }, 204],
      [path, { ...json({}), headers: { 'content-type': 'text/plain' } }, 415],
      [path, { ...json({}), body: '{' }, 400],
      [path, { ...json({}), body: '['.repeat(65) + ']'.repeat(65) }, 400],
      [`${path}x`, { ...json({}), body: '1e999' }, 400],
      [path, { ...json({}), body: '{"amount":1e999}' }, 400],
      [path, json({ amount: 1, text: 'x'.repeat(70_000) }), 413],
      [`${path}x`, json({ amount: 1 }), 404],
    ]
    for (const [at, init, status] of statuses) {
      const response = await send(at, init)
      expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([status, '*'])
    }
    const infinite = await send(path, { ...json({}), body: '{"amount":1e999}' })
    expect(await infinite.json()).toEqual({
      error: 'the value of the event: $.amount is Infinity, which is not a number in JSON. Use null or a string.',
    })
    await expect.poll(async () => (await send(path, json({ amount: -1 }))).status).toBe(422)
    const accepted = await send(path, json({ amount: 12 }))
    expect([accepted.status, await accepted.json()]).toEqual([200, { status: 'accepted' }])
    expect(accepted.headers.get('access-control-allow-origin')).toBe('*')
    expect(await (await send(path, json({ amount: 13 }))).json()).toEqual({ status: 'repeated' })
    expect(await caller.said(id)).toBe('12')
  })

  test('reads no more than 64 KiB of a body that does not say how long it is', async () => {
    const { app } = opened()
    const endless = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new Uint8Array(65_537).fill(32)),
    })
    const tooLarge = { error: 'The body is larger than 65536 bytes.' }
    const init: RequestInit = { ...json({}), body: endless, duplex: 'half' }
    const fetched = await app.fetch(new Request('http://127.0.0.1/events/token', init))
    expect([fetched.status, await fetched.json()]).toEqual([413, tooLarge])
    const { port } = await listening(nodeHandler(app))
    const headers = { 'content-type': 'application/json' }
    const sent = request({ port, path: '/events/token', method: 'POST', headers })
    sent.write(' '.repeat(65_537))
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    expect([response.statusCode, JSON.parse(await text(response)) as unknown]).toEqual([413, tooLarge])
    expect(response.headers['access-control-allow-origin']).toBe('*')
    sent.destroy()
  })

  test.each([['"approved"'], ['"5"'], ['null'], ['true'], ['{"by":"ada"}']])(
    'takes %s behind something that has parsed it, or has read it as text',
    async (body) => {
      const { app, caller, post } = echoing()
      const handle = nodeHandler(app)
      const parsers = [(read: string): unknown => JSON.parse(read), (read: string): unknown => read]
      for (const parse of parsers) {
        const sent = post.next()
        const id = await caller.begin('echo')
        const token = await sent
        const { port } = await listening((incoming, response) => {
          void text(incoming).then((read) => handle(Object.assign(incoming, { body: parse(read) }), response))
        })
        const { status } = await fetch(`http://127.0.0.1:${port}/events/${token}`, { ...json(0), body })
        expect(status).toBe(200)
        expect(await caller.said(id)).toBe(body)
      }
    },
  )

  test('is told to try again if the task has no room for the event, or changes too often', async () => {
    const { app, caller, office, post, logged } = echoing({ limits: { maxTaskBytes: 20_000 } })
    const sent = post.next()
    const id = await caller.begin('echo')
    const token = await sent
    const send = (value: unknown): Promise<Response> =>
      app.fetch(new Request(`http://127.0.0.1/events/${token}`, json(value)))
    const noRoom = await send('x'.repeat(30_000))
    const error = 'The server has no room for this event. Try again later.'
    expect([noRoom.status, await noRoom.json()]).toEqual([429, { error }])
    expect(logged.join()).toMatch(/no room for an event.*limits\.maxTaskBytes/)
    const change = office.tasks.change.bind(office.tasks)
    office.tasks.change = async () => undefined
    const busy = await send('x')
    expect([busy.status, busy.headers.get('retry-after')]).toEqual([503, '1'])
    office.tasks.change = change
    expect((await send('x')).status).toBe(200)
    expect(await caller.said(id)).toBe('"x"')
  })

  test.each(['', 'events', 'ftp://a.example/events', 'https://a.example/', 'https://a.example/events?x=1'])(
    'eventsUrl must not be %j',
    (eventsUrl) => {
      const make = (): unknown => rally({ name: 'a', version: '1', store: new MemoryStore(), tasks: { eventsUrl } })
      expect(make).toThrow(/`tasks\.eventsUrl` must be an http or https URL that ends in \/events/)
    },
  )
})
