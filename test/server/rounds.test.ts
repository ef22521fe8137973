import type { Rally } from 'mcp-rally'
import { ProtocolError } from 'mcp-rally'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { META_CAPABILITIES, META_LOG_LEVEL } from '../../src/protocol/revisions/2026-07-28.ts'
import { accept, askedIn, errorOf } from '../wire/messages.ts'
import type { Kind, Run } from './kinds.ts'
import { kinds } from './kinds.ts'
import { ask, makeApp, responseOf } from './messages.ts'
import type { Wire } from './wires.ts'
import { hosts } from './wires.ts'

const CITY = z.object({ city: z.string().min(2) })

/** Something that happens once, and can be waited for before and after. */
class Event {
  happen: () => void = () => {}
  readonly happened = new Promise<void>((resolve) => {
    this.happen = resolve
  })
}

interface Seen {
  effects: string[]
  begun: Event
  cancelled: Event
}

function handlers({ effects, begun, cancelled }: Seen): Record<string, Run> {
  return {
    async sequence(io) {
      const price = await io.step('price', () => {
        effects.push('price')
        return 12
      })
      const { city } = await io.ask('city', 'Where to?', CITY)
      await io.step('book', () => void effects.push(`book ${city}`))
      const sure = await io.confirm('sure', `${city} for ${price}?`)
      return sure ? `Off to ${city}` : 'Staying'
    },
    async together(io) {
      const [{ city }, month, page] = await Promise.all([
        io.ask('city', 'Where to?', CITY),
        io.choose('month', 'When?', ['May', 'June']),
        io.elicit('page', 'A page?', z.object({ page: z.number() })),
      ])
      return `${city} in ${month}, ${page.action}`
    },
    async report(io) {
      io.progress(1, 3, 'looking')
      io.log('info', 'looking')
      await io.step('look', ({ progress, log }) => {
        progress(2, 3, 'found')
        log('warning', { found: 1 }, 'looker')
      })
      await io.ask('city', 'Where to?', CITY)
      io.progress(3, 3, 'done')
      io.log('info', 'done')
      return 'Looked'
    },
    async throws() {
      throw new TypeError('The disk is full.')
    },
    async refuses() {
      throw new ProtocolError(-32602, 'No such month.', { month: 13 })
    },
    async waits(io) {
      io.signal.addEventListener('abort', () => cancelled.happen())
      io.progress(1)
      begun.happen()
      return new Promise<string>(() => {})
    },
    async everything(io) {
      const [, said, roots] = await Promise.all([
        io.visit('page', 'Please sign in.', 'https://example.com/sign-in', { done: () => true }),
        io.sample('model', { messages: [{ role: 'user', content: { type: 'text', text: 'Hi' } }], maxTokens: 10 }),
        io.roots('roots'),
      ])
      return `${said.model}, ${roots.length} root`
    },
    async never() {
      return new Promise<string>(() => {})
    },
  }
}

function tripsApp({ register }: Kind): { app: Rally; seen: Seen } {
  const { app } = makeApp()
  const seen: Seen = { effects: [], begun: new Event(), cancelled: new Event() }
  for (const [name, run] of Object.entries(handlers(seen))) {
    register(app, name, run, name === 'never' ? { timeoutMs: 1 } : {})
  }
  return { app, seen }
}

const cases = hosts.flatMap((host) => kinds.map((kind) => ({ host, kind })))

describe.each(cases)('$kind.kind over $host.name', ({ host, kind }) => {
  const { request, textOf, failureOf } = kind
  const { app, seen } = tripsApp(kind)
  let wire: Wire

  beforeAll(async () => {
    wire = await host.open(app)
  })
  afterAll(() => wire.close())

  test('rule 7: takes several rounds, replays what is recorded, and does each step once', async () => {
    seen.effects.length = 0
    const first = askedIn(await ask(wire, request('sequence')))
    expect(first.messages).toEqual({ city: 'Where to?' })
    const answered = { inputResponses: { city: accept({ city: 'Rome' }) }, requestState: first.state }
    const second = askedIn(await ask(wire, request('sequence', answered)))
    expect(second.messages).toEqual({ sure: 'Rome for 12?' })
    const confirmed = { inputResponses: { sure: accept({ confirm: true }) }, requestState: second.state }
    expect(textOf(await ask(wire, request('sequence', confirmed)))).toBe('Off to Rome')
    expect(seen.effects).toEqual(['price', 'book Rome'])
  })

  test('rule 2: asks together what is asked together, and keeps the answers that came first', async () => {
    const first = askedIn(await ask(wire, request('together')))
    expect(Object.keys(first.messages)).toEqual(['city', 'month', 'page'])
    const some = { city: accept({ city: 'Oslo' }), page: { action: 'decline' } }
    const second = askedIn(await ask(wire, request('together', { inputResponses: some, requestState: first.state })))
    expect(second.messages).toEqual({ month: 'When?' })
    const rest = { inputResponses: { month: accept({ choice: 'May' }) }, requestState: second.state }
    expect(textOf(await ask(wire, request('together', rest)))).toBe('Oslo in May, decline')
  })

  test('rule 6: takes answers to the first pass that came without a state', async () => {
    const inputResponses = {
      city: accept({ city: 'Oslo' }),
      month: accept({ choice: 'June' }),
      page: accept({ page: 1 }),
      unasked: accept(),
    }
    expect(textOf(await ask(wire, request('together', { inputResponses })))).toBe('Oslo in June, accept')
  })

  test('rule 5: asks again, saying why, when an answer does not fit, and gives up after three times', async () => {
    let { state } = askedIn(await ask(wire, request('sequence')))
    const wrong = { city: accept({ city: 'X' }) }
    for (let times = 2; times <= 3; times += 1) {
      const again = askedIn(await ask(wire, request('sequence', { inputResponses: wrong, requestState: state })))
      expect(again.messages['city']).toMatch(/^Where to\?\n\nThe last answer did not fit: city/)
      state = again.state
    }
    const last = await ask(wire, request('sequence', { inputResponses: wrong, requestState: state }))
    expect(failureOf(last)).toMatch(/^The question "city" was asked 3 times, and no answer was valid\./)
  })

  test.each([
    ['decline', 'The user declined the question "city". Nothing further was done.'],
    ['cancel', 'The user cancelled the question "city". Nothing further was done.'],
  ])('ends in so many words on a %s', async (action, text) => {
    const { state } = askedIn(await ask(wire, request('sequence')))
    const round = { inputResponses: { city: { action } }, requestState: state }
    const response = await ask(wire, request('sequence', round))
    expect(failureOf(response)).toBe(text)
    if ('error' in (response ?? {})) expect(errorOf(response).data).toEqual({ code: 'DECLINED', action })
  })

  test('tells an error by its message alone, and an error of the protocol as it is', async () => {
    expect(failureOf(await ask(wire, request('throws')))).toBe('The disk is full.')
    const refused = errorOf(await ask(wire, request('refuses')))
    expect(refused).toEqual({ code: -32602, message: 'No such month.', data: { month: 13 } })
  })

  test('refuses to ask what the client cannot answer, and names the capability', async () => {
    const exchange = wire.open(request('sequence', {}, { [META_CAPABILITIES]: { sampling: {} } }))
    const { response, status } = await exchange.answer()
    expect(errorOf(response)).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { elicitation: { form: {} } } },
    })
    expect(status).toBe(host.isHttp ? 400 : undefined)
  })

  test('asks for a visit, a sample and the roots', async () => {
    const { state } = askedIn(await ask(wire, request('everything')))
    const inputResponses = {
      page: accept(),
      model: { role: 'assistant', content: { type: 'text', text: 'Hello' }, model: 'm-1' },
      roots: { roots: [{ uri: 'file:///home' }] },
    }
    const done = await ask(wire, request('everything', { inputResponses, requestState: state }))
    expect(textOf(done)).toBe('m-1, 1 root')
  })

  test('reports progress and log before the result, and repeats nothing that a replay skips', async () => {
    const meta = { progressToken: 'p', [META_LOG_LEVEL]: 'info' }
    const first = await wire.open(request('report', {}, meta)).answer()
    expect(first.notifications.map(({ params }) => params)).toEqual([
      { progressToken: 'p', progress: 1, total: 3, message: 'looking' },
      { level: 'info', data: 'looking' },
      { progressToken: 'p', progress: 2, total: 3, message: 'found' },
      { level: 'warning', logger: 'looker', data: { found: 1 } },
    ])
    const { state } = askedIn(first.response)
    const round = { inputResponses: { city: accept({ city: 'Rome' }) }, requestState: state }
    const second = await wire.open(request('report', round, meta)).answer()
    expect(second.notifications.map(({ params }) => params)).toEqual([
      { progressToken: 'p', progress: 3, total: 3, message: 'done' },
      { level: 'info', data: 'done' },
    ])
    expect(textOf(second.response)).toBe('Looked')
  })

  test('aborts its signal when the request is cancelled, and sends nothing more', async () => {
    const exchange = wire.open(request('waits', {}, { progressToken: 1 }))
    await seen.begun.happened
    // Over HTTP there is a stream to close once something has come on it.
    await exchange.next()
    exchange.cancel()
    await seen.cancelled.happened
    expect(await exchange.next()).toBeUndefined()
  })
})

describe.each(kinds)('$kind', (each) => {
  const { request, textOf } = each

  test('goes on on another instance that shares the keys', async () => {
    const { app: one } = tripsApp(each)
    const { app: other, seen } = tripsApp(each)
    const { state } = askedIn(await responseOf(one, request('sequence')))
    const answered = { inputResponses: { city: accept({ city: 'Rome' }) }, requestState: state }
    const second = askedIn(await responseOf(other, request('sequence', answered)))
    const confirmed = { inputResponses: { sure: accept({ confirm: false }) }, requestState: second.state }
    expect(textOf(await responseOf(one, request('sequence', confirmed)))).toBe('Staying')
    expect(seen.effects).toEqual(['book Rome'])
  })

  test('fails with an error of its own past its time limit', async () => {
    const error = errorOf(await responseOf(tripsApp(each).app, request('never')))
    expect(error).toEqual({
      code: -32603,
      message:
        'The pass took longer than 1 ms. Split long work into several steps, run it as a task, or raise timeoutMs.',
      data: { code: 'TIME_LIMIT' },
    })
  })
})
