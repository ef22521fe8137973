import type { Rally } from 'mcp-rally'
import { outcome, resolver } from 'mcp-rally'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { META_CAPABILITIES } from '../../src/protocol/revisions/2026-07-28.ts'
import { accept, askedIn, call, errorOf, request, resultOf, textOf as toolText } from '../wire/messages.ts'
import type { Kind } from './kinds.ts'
import { kinds } from './kinds.ts'
import { ask, makeApp, responseOf } from './messages.ts'
import type { Wire } from './wires.ts'
import { hosts } from './wires.ts'

const OK = z.object({ ok: z.boolean() })

function shopApp({ register }: Kind): { app: Rally; runs: string[] } {
  const { app } = makeApp()
  const runs: string[] = []
  const stock = resolver('stock', {
    run: async (_args: unknown, io) => {
      runs.push('stock')
      return io.step('look', () => {
        runs.push('look')
        return { copies: 3 }
      })
    },
  })
  const price = resolver('price', {
    needs: { stock },
    asks: { fine: OK },
    run: async (_args, io, needs) => (await io.ask('fine', `One of ${needs.stock.copies}?`)).ok,
  })
  const gift = resolver('gift', {
    needs: { stock },
    run: async (_args: unknown, io) => io.confirm('wrap', 'As a gift?'),
  })
  register(app, 'order', (_io, needs) => JSON.stringify(needs), { needs: { stock, price, gift } })
  register(app, 'either', (_io, needs) => JSON.stringify(needs), { needs: { price: outcome(price) } })
  return { app, runs }
}

const cases = hosts.flatMap((host) => kinds.map((kind) => ({ host, kind })))

describe.each(cases)('what $kind.kind declares over $host.name', ({ host, kind }) => {
  const { request: toRequest, textOf, failureOf } = kind
  const { app, runs } = shopApp(kind)
  let wire: Wire

  beforeAll(async () => {
    wire = await host.open(app)
  })
  afterAll(() => wire.close())

  test('is resolved before the handler runs, in one round where nothing depends on another, and once', async () => {
    runs.length = 0
    const first = askedIn(await ask(wire, toRequest('order')))
    expect(first.messages).toEqual({ 'needs:price>fine': 'One of 3?', 'needs:gift>wrap': 'As a gift?' })
    expect(runs).toEqual(['stock', 'look'])
    const inputResponses = { 'needs:price>fine': accept({ ok: true }), 'needs:gift>wrap': accept({ confirm: false }) }
    const done = await ask(wire, toRequest('order', { inputResponses, requestState: first.state }))
    expect(JSON.parse(textOf(done))).toEqual({ stock: { copies: 3 }, price: true, gift: false })
    expect(runs).toEqual(['stock', 'look'])
  })

  test.each([
    ['decline', 'The user declined the question "needs:price>fine". Nothing further was done.'],
    ['cancel', 'The user cancelled the question "needs:price>fine". Nothing further was done.'],
  ])('ends the call in so many words on a %s', async (action, text) => {
    const { state } = askedIn(await ask(wire, toRequest('order')))
    const round = { inputResponses: { 'needs:price>fine': { action } }, requestState: state }
    expect(failureOf(await ask(wire, toRequest('order', round)))).toBe(text)
  })

  test.each(['decline', 'cancel'])('is the outcome where that was asked for, on a %s too', async (action) => {
    const { state } = askedIn(await ask(wire, toRequest('either')))
    const round = { inputResponses: { 'needs:price>fine': { action } }, requestState: state }
    expect(JSON.parse(textOf(await ask(wire, toRequest('either', round))))).toEqual({ price: { action } })
  })

  test('is the outcome where that was asked for, with the value of an answer', async () => {
    const { state } = askedIn(await ask(wire, toRequest('either')))
    const round = { inputResponses: { 'needs:price>fine': accept({ ok: true }) }, requestState: state }
    const done = textOf(await ask(wire, toRequest('either', round)))
    expect(JSON.parse(done)).toEqual({ price: { action: 'accept', value: true } })
  })

  test('cannot be supplied from outside: only questions take answers', async () => {
    runs.length = 0
    const inputResponses = {
      stock: accept({ copies: 99 }),
      'needs:stock': accept({ copies: 99 }),
      'needs:stock>look': accept({ copies: 99 }),
      'needs:price': accept({ ok: true }),
      price: accept({ ok: true }),
    }
    const { messages, state } = askedIn(await ask(wire, toRequest('order', { inputResponses })))
    expect(Object.keys(messages)).toEqual(['needs:price>fine', 'needs:gift>wrap'])
    const again = { ...inputResponses, 'needs:gift>wrap': accept({ confirm: true }) }
    const second = await ask(wire, toRequest('order', { inputResponses: again, requestState: state }))
    expect(askedIn(second).messages).toEqual({ 'needs:price>fine': 'One of 3?' })
    expect(runs).toEqual(['stock', 'look'])
  })

  test('asks only what the client can answer', async () => {
    const response = await ask(wire, toRequest('order', {}, { [META_CAPABILITIES]: {} }))
    expect(errorOf(response)).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { elicitation: { form: {} } } },
    })
  })
})

describe('what a tool declares', () => {
  const stock = resolver('stock', { run: ({ title }: { title: string }) => title.length })

  test('gets the arguments, and is not among them', async () => {
    const { app } = makeApp()
    const input = z.looseObject({ title: z.string() })
    app.tool('order', { input, needs: { stock } }, (args, _io, needs) => JSON.stringify([args, needs]))
    const response = await responseOf(app, call('order', { title: 'Emma', stock: 99, needs: { stock: 99 } }))
    expect(JSON.parse(toolText(response))).toEqual([{ title: 'Emma', stock: 99, needs: { stock: 99 } }, { stock: 4 }])
  })

  test('is not shown to clients', async () => {
    const { app } = makeApp()
    app.tool('order', { input: z.object({ title: z.string() }), needs: { stock } }, () => '')
    const { tools } = resultOf(await responseOf(app, request('tools/list'))) as { tools: object[] }
    expect(JSON.stringify(tools)).not.toContain('stock')
    expect(tools).toMatchObject([{ inputSchema: { properties: { title: {} }, required: ['title'] } }])
  })

  test('is not resolved for arguments that are not valid', async () => {
    const { app } = makeApp()
    let runs = 0
    const counted = resolver('counted', { run: () => (runs += 1) })
    app.tool('order', { input: z.object({ title: z.string() }), needs: { counted } }, () => '')
    expect(resultOf(await responseOf(app, call('order', { title: 1 })))).toMatchObject({ isError: true })
    expect(runs).toBe(0)
  })

  test('fails the call with its own error', async () => {
    const { app } = makeApp()
    const broken = resolver('broken', {
      run: (): string => {
        throw new Error('No such warehouse.')
      },
    })
    app.tool('order', { needs: { broken } }, () => '')
    expect(resultOf(await responseOf(app, call('order')))).toMatchObject({
      isError: true,
      content: [{ text: 'No such warehouse.' }],
    })
  })

  test('is checked when the app is built', () => {
    const { app } = makeApp()
    expect(() => app.tool('order', { needs: { stock: undefined as never } }, () => '')).toThrow(
      'Tool "order": stock is missing. Create it with resolver(...) before it is used.',
    )
    const loop = resolver('loop', { needs: {}, run: () => 1 })
    Object.assign(loop.needs, { loop })
    expect(() => app.prompt('order', { needs: { loop } }, () => '')).toThrow('Prompt "order": loop > loop is a cycle.')
    expect(() => app.resourceTemplate('a://{b}', { name: 'b', needs: { loop } }, () => '')).toThrow(
      'Resource template a://{b}: loop > loop is a cycle.',
    )
  })
})
