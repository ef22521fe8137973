// The idempotency key of a first round: what it is bound to, what it must look like, and who gets a record.
import type { RallyOptions } from 'mcp-rally'
import { MemoryOnceStore, rally, send } from 'mcp-rally'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { accept, askedIn, errorOf, request, resultOf, textOf } from '../wire/messages.ts'
import { KEYS } from './messages.ts'

const META_KEY = 'com.mcp-rally/idempotency-key'
const KEY = '0123456789abcdef0123456789abcdef'
const OTHER_KEY = 'fedcba9876543210fedcba9876543210'

interface Call {
  readonly app?: ReturnType<typeof instance>
  readonly key?: unknown
  readonly name?: string
  readonly args?: object
  readonly principal?: string
  readonly round?: object
}

/** One instance of a fleet. `order` returns the idempotency key of its step. */
function instance(options: Partial<RallyOptions> = {}) {
  const ran: string[] = []
  const app = rally({ name: 'shop', version: '1', keys: KEYS, logger: { warn() {}, error() {} }, ...options })
  const input = z.object({ item: z.string() })
  for (const name of ['order', 'return']) {
    app.tool(name, { input }, (_args, io) =>
      io.step('book', ({ idempotencyKey }) => {
        ran.push(idempotencyKey)
        return idempotencyKey
      }),
    )
  }
  app.tool('ask', { input }, async (_args, io) => {
    const booked = await io.step('book', ({ idempotencyKey }) => idempotencyKey)
    return `${booked} ${await io.confirm('sure', 'Sure?')}`
  })
  return { app, ran }
}

async function call({ app: { app } = instance(), key = KEY, name = 'order', ...rest }: Call): Promise<object> {
  const { args = { item: 'tea' }, principal, round = {} } = rest
  const meta = key === undefined ? {} : { [META_KEY]: key }
  const message = request('tools/call', { name, arguments: args, ...round }, meta)
  return (await send(app, message, principal === undefined ? {} : { principal })) ?? {}
}

const stepKey = async (of: Call): Promise<string> => textOf(await call(of))

describe('the flow of a first round with an idempotency key', () => {
  test('is the same on every instance with the same keys, also where arguments are in another order', async () => {
    const first = await stepKey({ principal: 'ada', args: { item: 'tea' } })
    expect(await stepKey({ principal: 'ada', args: { item: 'tea' } })).toBe(first)
    expect(first).toMatch(/^[\w-]{22}$/)
  })

  test.each<[string, Call]>([
    ['key', { principal: 'ada', key: OTHER_KEY }],
    ['principal', { principal: 'bob' }],
    ['caller, who is not known', {}],
    ['tool', { principal: 'ada', name: 'return' }],
    ['argument', { principal: 'ada', args: { item: 'milk' } }],
    [
      'secret of the server',
      { principal: 'ada', app: instance({ keys: ['another secret of the tests, long enough'] }) },
    ],
    ['server', { principal: 'ada', app: instance({ name: 'other shop' }) }],
  ])('is another one for another %s', async (_what, other) => {
    expect(await stepKey(other)).not.toBe(await stepKey({ principal: 'ada' }))
  })

  test('is another one each time without a key', async () => {
    const app = instance()
    const message = request('tools/call', { name: 'order', arguments: { item: 'tea' } })
    expect(textOf(await send(app.app, message))).not.toBe(textOf(await send(app.app, message)))
  })

  test('goes on after its questions with the id that it began with', async () => {
    const app = instance()
    const one = askedIn(await call({ app, name: 'ask' }))
    const two = askedIn(await call({ app, name: 'ask' }))
    const yes = { sure: accept({ confirm: true }) }
    const ends = await Promise.all(
      [one, two].map(({ state }) => stepKey({ app, name: 'ask', round: { inputResponses: yes, requestState: state } })),
    )
    expect(ends[0]).toMatch(/^[\w-]{22} true$/)
    expect(ends[0]).toBe(ends[1])
  })

  test.each([
    ['too short', 'a'.repeat(21)],
    ['too long', 'a'.repeat(65)],
    ['of other characters', `${'a'.repeat(30)} `],
    ['with a line break', `${'a'.repeat(30)}\n`],
    ['a number', 7],
    ['null', null],
    ['an object', { a: 1 }],
  ])('is not begun where the key is %s', async (_what, key) => {
    const app = instance()
    expect(errorOf(await call({ app, key }))).toMatchObject({
      code: -32602,
      message: expect.stringContaining(`${META_KEY} must be a string of 22 to 64`),
    })
    expect(app.ran).toEqual([])
  })
})

describe('a first round that is repeated under its key', () => {
  test('runs once where the app has a record and knows the caller: many at once get the same response', async () => {
    const once = new MemoryOnceStore()
    const [one, two] = [instance({ once }), instance({ once })]
    const calls = [one, two, one, two].map((app) => call({ app, principal: 'ada' }))
    const texts = new Set((await Promise.all(calls)).map(textOf))
    expect(texts.size).toBe(1)
    expect([...one.ran, ...two.ran]).toHaveLength(1)
  })

  test('gets the same question from the record', async () => {
    const app = instance({ once: new MemoryOnceStore() })
    const one = askedIn(await call({ app, name: 'ask', principal: 'ada' }))
    expect(askedIn(await call({ app, name: 'ask', principal: 'ada' })).state).toBe(one.state)
  })

  test('is refused with other answers', async () => {
    const app = instance({ once: new MemoryOnceStore() })
    await call({ app, principal: 'ada' })
    const round = { inputResponses: { sure: accept({ confirm: true }) } }
    expect(errorOf(await call({ app, principal: 'ada', round }))).toEqual({
      code: -32602,
      message: `Invalid params: ${META_KEY}: it was already used with other answers`,
    })
    expect(app.ran).toHaveLength(1)
  })

  test('has no record for callers that are not known, who could read those of others', async () => {
    const app = instance({ once: new MemoryOnceStore() })
    expect(await stepKey({ app })).toBe(await stepKey({ app }))
    expect(app.ran).toHaveLength(2)
  })

  test('that failed runs again', async () => {
    let tries = 0
    const { app } = instance({ once: new MemoryOnceStore() })
    app.prompt('once', {}, () => {
      tries += 1
      if (tries === 1) throw new Error('Not now.')
      return 'Now.'
    })
    const message = request('prompts/get', { name: 'once' }, { [META_KEY]: KEY })
    expect(errorOf(await send(app, message, { principal: 'ada' }))).toMatchObject({ code: expect.any(Number) })
    expect(resultOf(await send(app, message, { principal: 'ada' }))).toMatchObject({ messages: [{}] })
  })
})

const extensionOf = async (options: Partial<RallyOptions>, principal?: string): Promise<unknown> => {
  const response = await send(instance(options).app, request('server/discover'), principal ? { principal } : {})
  const { capabilities } = resultOf(response) as { capabilities: { extensions?: Record<string, unknown> } }
  return capabilities.extensions?.[META_KEY]
}

describe('a server says that it knows repeats', () => {
  test('and whether it records them for this caller', async () => {
    expect(await extensionOf({}, 'ada')).toEqual({ records: false })
    expect(await extensionOf({ once: new MemoryOnceStore() })).toEqual({ records: false })
    expect(await extensionOf({ once: new MemoryOnceStore() }, 'ada')).toEqual({ records: true })
  })

  test('but not with keys of its own process, or a codec', async () => {
    const app = rally({ name: 'shop', version: '1' })
    expect(JSON.stringify(await send(app, request('server/discover')))).not.toContain(META_KEY)
    const codec = { seal: (text: string) => text, open: (text: string) => text }
    const coded = rally({ name: 'shop', version: '1', codec })
    expect(JSON.stringify(await send(coded, request('server/discover')))).not.toContain(META_KEY)
  })
})
