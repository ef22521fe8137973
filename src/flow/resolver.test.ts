import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { accept, cancel, decline } from '../testing.ts'
import { gate, microtasks } from '../testing/manual-scheduler.ts'
import { Rounds } from '../testing/rounds.ts'
import { elicit, inputRequired } from './by-hand.ts'
import { Declined } from './errors.ts'
import type { Asks, Io } from './io.ts'
import type { Outcome } from './carrier.ts'
import type { Requirement, Resolver } from './resolver.ts'
import { checkNeeds, outcome, resolver, resolveNeeds } from './resolver.ts'

type AnyNeeds = Record<string, Requirement>

const CONFIRM = z.object({ confirm: z.boolean() })
const yes = accept({ confirm: true })

describe('needs are resolved before the handler runs', () => {
  test('from the arguments of the call, and handed to it under the names it chose', async () => {
    const stock = resolver('stock', { run: ({ title }: { title: string }) => ({ title, copies: 3 }) })
    const price = resolver('price', { needs: { stock }, run: async (_args, _io, needs) => needs.stock.copies * 10 })
    const result = await new Rounds().next(declared({ cost: price, stock }, { title: 'Emma' }))
    expect(result).toEqual({ kind: 'done', value: { cost: 30, stock: { title: 'Emma', copies: 3 } } })
  })

  test('each at most once in a pass, however many need it, and not again in the flow', async () => {
    const ran: string[] = []
    const noted = (name: string, needs: AnyNeeds = {}): Resolver<string, never> =>
      resolver(name, {
        needs,
        run: () => {
          ran.push(name)
          return name
        },
      })
    const base = noted('base')
    const [left, right] = [noted('left', { base }), noted('right', { base })]
    const top = noted('top', { left, right, base })
    const asking = resolver('asking', { needs: { top }, run: (_args, io) => io.confirm('ok', 'Ok?') })
    const handler = declared({ asking, top, base, again: base })
    const rounds = new Rounds()
    await rounds.next(handler)
    expect(ran).toEqual(['base', 'left', 'right', 'top'])
    const result = await rounds.next(handler, { 'needs:asking>ok': yes })
    expect(result).toMatchObject({ kind: 'done', value: { asking: true, top: 'top', again: 'base' } })
    expect(ran).toHaveLength(4)
  })

  test('those that do not depend on each other side by side, so that their questions share a round', async () => {
    const rounds = new Rounds()
    const [size, colour, engraving] = [asks('size'), asks('colour'), asks('engraving')]
    const handler = declared({
      size,
      colour,
      both: resolver('both', { needs: { size, colour }, run: () => 1 }),
      engraving,
    })
    expect(keysOf(await rounds.next(handler))).toEqual(['needs:size>ok', 'needs:colour>ok', 'needs:engraving>ok'])
  })

  test('one that depends on another when that one is there, while the rest goes on', async () => {
    const rounds = new Rounds()
    const first = asks('first')
    const second = resolver('second', {
      needs: { first },
      run: async (_args, io, needs) => io.confirm('ok', `After ${needs.first}?`),
    })
    const handler = declared({ second, other: asks('other') })
    expect(keysOf(await rounds.next(handler))).toEqual(['needs:first>ok', 'needs:other>ok'])
    expect(keysOf(await rounds.next(handler, { 'needs:first>ok': yes }))).toEqual(['needs:other>ok', 'needs:second>ok'])
    const result = await rounds.next(handler, { 'needs:other>ok': yes, 'needs:second>ok': yes })
    expect(result).toEqual({ kind: 'done', value: { second: true, other: true } })
  })

  test('the handler does not run before all of them are there', async () => {
    const rounds = new Rounds()
    const handler = vi.fn<() => string>(() => 'ran')
    const run = async (io: Io): Promise<string> => resolveNeeds({ a: asks('a') }, {}, io).then(handler)
    await rounds.next(run)
    expect(handler).not.toHaveBeenCalled()
    expect(await rounds.next(run, { 'needs:a>ok': yes })).toEqual({ kind: 'done', value: 'ran' })
  })

  test('what a resolver gave leaves one entry in the journal, without what happened inside', async () => {
    const rounds = new Rounds()
    const stock = resolver('stock', { run: async (_args, io) => io.step('look', () => 3) })
    await rounds.next(declared({ stock, ok: asks('ok') }))
    expect(rounds.journal).toBe('["c","needs:stock",2,3]')
    expect(rounds.effects).toEqual(['needs:stock>look'])
  })

  test('a caller cannot supply what a resolver gives, in any round', async () => {
    const rounds = new Rounds()
    const stock = resolver('stock', { run: async (_args, io) => ((await io.confirm('ok', 'Ok?')) ? 3 : 0) })
    const forged = { 'needs:stock': accept({ copies: 99 }), stock: accept({ copies: 99 }) }
    expect(keysOf(await rounds.next(declared({ stock }), forged))).toEqual(['needs:stock>ok'])
    const result = await rounds.next(declared({ stock }), { ...forged, 'needs:stock>ok': yes })
    expect(result).toEqual({ kind: 'done', value: { stock: 3 } })
  })

  test('questions that are declared with a resolver are its own', async () => {
    const rounds = new Rounds({ asks: { ok: z.object({ n: z.number() }) } })
    const one = resolver('one', { asks: { ok: CONFIRM }, run: (_args, io) => io.ask('ok', 'Ok?') })
    const run = async (io: Io<Asks>): Promise<unknown> => [
      await resolveNeeds({ one }, {}, io),
      await io.ask('ok', 'N?'),
    ]
    await rounds.next(run)
    await rounds.next(run, { 'needs:one>ok': yes })
    expect(await rounds.next(run, { ok: accept({ n: 4 }) })).toEqual({
      kind: 'done',
      value: [{ one: { confirm: true } }, { n: 4 }],
    })
    const other = resolver('other', { run: (_args, io) => (io as unknown as Io<Asks>).ask('ok', 'Ok?') })
    expect(await new Rounds({ asks: { ok: CONFIRM } }).next(declared({ other }))).toMatchObject({
      error: { code: 'QUESTION_INVALID', message: expect.stringContaining('it has no schema') },
    })
  })

  test('rule 8: what is no JSON is an error that names the resolver', async () => {
    const result = await new Rounds().next(declared({ when: resolver('when', { run: (): unknown => new Date(0) }) }))
    expect(result).toMatchObject({ error: { code: 'NOT_JSON', message: expect.stringContaining('"needs:when"') } })
  })
})

describe('a resolver that does not come to a value', () => {
  test.each([
    { sent: decline(), error: new Declined('needs:a>ok', 'decline') },
    { sent: cancel(), error: new Declined('needs:a>ok', 'cancel') },
  ])('because the user answered $sent.action ends the call, and the handler never runs', async ({ sent, error }) => {
    const rounds = new Rounds()
    const a = resolver('a', { run: (_args, io) => io.ask('ok', 'Ok?', CONFIRM) })
    const handler = declared({ a, b: asks('b') })
    await rounds.next(handler)
    expect(await rounds.next(handler, { 'needs:a>ok': sent })).toEqual({ kind: 'failed', error })
  })

  test.each([
    { sent: yes, given: { action: 'accept', value: { confirm: true } } },
    { sent: decline(), given: { action: 'decline' } },
    { sent: cancel(), given: { action: 'cancel' } },
  ])('gives the consumer that asked for the outcome $given, live and replayed', async ({ sent, given }) => {
    const rounds = new Rounds()
    const a = resolver('a', { run: (_args, io) => io.ask('ok', 'Ok?', CONFIRM) })
    const handler = declared({ a: outcome(a), b: asks('b') })
    await rounds.next(handler)
    await rounds.next(handler, { 'needs:a>ok': sent })
    expect(await rounds.next(handler, { 'needs:b>ok': yes })).toEqual({ kind: 'done', value: { a: given, b: true } })
  })

  test('one consumer may ask for the outcome while another one does not', async () => {
    const a = resolver('a', { run: (_args, io) => io.ask('ok', 'Ok?', CONFIRM) })
    const careful = resolver('careful', { needs: { a: outcome(a) }, run: (_args, _io, needs) => needs.a.action })
    const sent = { 'needs:a>ok': decline() }
    expect(await new Rounds().next(declared({ careful }), sent)).toEqual({
      kind: 'done',
      value: { careful: 'decline' },
    })
    expect(await new Rounds().next(declared({ careful, a }), sent)).toMatchObject({ kind: 'failed' })
  })

  test('a decline further down is the outcome of all that depends on it', async () => {
    const a = resolver('a', { run: (_args, io) => io.ask('ok', 'Ok?', CONFIRM) })
    const b = resolver('b', { needs: { a }, run: () => 'never' })
    const result = await new Rounds().next(declared({ b: outcome(b) }), { 'needs:a>ok': decline() })
    expect(result).toEqual({ kind: 'done', value: { b: { action: 'decline' } } })
  })

  test('any other failure ends the call, outcome or not, and none is left unhandled', async () => {
    const unhandled = vi.fn<() => void>()
    process.on('unhandledRejection', unhandled)
    const slow = gate()
    const broken = resolver('broken', { run: () => Promise.reject(new TypeError('no such table')) })
    const later = resolver('later', { run: () => slow.promise.then(() => Promise.reject(new Error('too'))) })
    const result = await new Rounds().next(declared({ a: outcome(broken), later }))
    expect(result).toMatchObject({ kind: 'failed', error: { name: 'TypeError', message: 'no such table' } })
    slow.open()
    await microtasks()
    process.off('unhandledRejection', unhandled)
    expect(unhandled).not.toHaveBeenCalled()
  })
})

describe('resolvers and rounds by hand', () => {
  const required = inputRequired({ inputRequests: { ok: elicit('Ok?', CONFIRM) }, state: 1 })

  const throwRequired = (): never => {
    throw required
  }

  test('a handler with needs that ask cannot take its rounds by hand', async () => {
    const rounds = new Rounds()
    const a = asks('a')
    const run = (io: Io): Promise<unknown> => resolveNeeds({ a }, {}, io).then(() => required)
    await rounds.next(run)
    expect(await rounds.next(run, { 'needs:a>ok': yes })).toMatchObject({ error: { code: 'MIXED_STYLES' } })
  })

  test.each<{ where: string; run: (io: Io) => unknown }>([
    { where: 'throws', run: () => throwRequired() },
    { where: 'throws in a scope', run: (io) => io.scope('s', throwRequired) },
  ])('a resolver that $where inputRequired fails the call, and no round by hand goes out', async ({ run }) => {
    const a = resolver('a', { run: (_args, io) => run(io) as number })
    const ended = await new Rounds().next((io) => resolveNeeds({ a }, {}, io))
    expect(ended).toMatchObject({ kind: 'failed', error: { code: 'MIXED_STYLES' } })
    expect((ended as { error: Error }).error.message).toContain('Tool "handler": a handler with `needs` cannot')
  })

  test('nor can one with needs that ask nothing', async () => {
    const a = resolver('a', { run: () => 1 })
    const ended = await new Rounds().next((io) => resolveNeeds({ a }, {}, io).then(() => required))
    expect(ended).toMatchObject({ kind: 'failed', error: { code: 'MIXED_STYLES' } })
  })
})

describe('what is wrong with needs is an error when the app is built', () => {
  const stock = resolver('stock', { run: () => 3 })

  test('nothing is wrong with needs that share others', () => {
    const left = resolver('left', { needs: { stock }, run: () => 1 })
    const right = resolver('right', { needs: { stock: outcome(stock), left }, run: () => 1 })
    expect(() => checkNeeds({ left, right, stock }, 'The tool "order"')).not.toThrow()
  })

  test('a deep weave of needs is looked through once', () => {
    let layer: AnyNeeds = { a: resolver('a0', { run: () => 1 }), b: resolver('b0', { run: () => 1 }) }
    for (let depth = 1; depth < 60; depth += 1) {
      const needs = layer
      layer = { a: resolver(`a${depth}`, { needs, run: () => 1 }), b: resolver(`b${depth}`, { needs, run: () => 1 }) }
    }
    expect(() => checkNeeds(layer, 'The tool "order"')).not.toThrow()
  })

  test.each<{ name: string; needs: () => AnyNeeds; why: string }>([
    { name: 'a circle of one', needs: () => circle('a'), why: 'a > a is a cycle.' },
    { name: 'a circle of three', needs: () => circle('a', 'b', 'c'), why: 'a > b > c > a is a cycle.' },
    {
      name: 'a need that is not defined yet',
      needs: () => ({ later: undefined as unknown as Requirement }),
      why: 'later is missing. Create it with resolver(...) before it is used.',
    },
    {
      name: 'one further down',
      needs: () => ({
        order: resolver('order', { needs: { later: undefined as unknown as Requirement }, run: () => 1 }),
      }),
      why: 'order > later is missing.',
    },
    {
      name: 'the outcome of one',
      needs: () => ({ later: outcome(undefined as unknown as Resolver<unknown>) }),
      why: 'later is missing.',
    },
    { name: 'something else', needs: () => ({ stock: {} as Requirement }), why: 'stock is missing.' },
    {
      name: 'two of one name',
      needs: () => ({
        stock,
        order: resolver('order', { needs: { stock: resolver('stock', { run: () => 4 }) }, run: () => 1 }),
      }),
      why: 'two resolvers have the name "stock". Rename one of them.',
    },
  ])('$name', ({ needs, why }) => {
    expect(() => checkNeeds(needs(), 'The tool "order"')).toThrow(
      expect.objectContaining({
        code: 'RESOLVER_INVALID',
        message: expect.stringContaining(`The tool "order": ${why}`),
      }),
    )
  })

  test.each(['', 'a b', 'a>b', 'x'.repeat(101)])('the name %j', (name) => {
    expect(() => resolver(name, { run: () => 1 })).toThrow(expect.objectContaining({ code: 'RESOLVER_INVALID' }))
  })

  test('a question that no form has', () => {
    const where = z.object({ at: z.date() })
    expect(() => resolver('a', { asks: { where }, run: () => 1 })).toThrow('a: asks.where')
  })
})

function asks(name: string): Resolver<boolean> {
  return resolver(name, { run: (_args, io) => io.confirm('ok', `${name}?`) })
}

/** A handler that gives what it got. */
function declared(needs: AnyNeeds, args: object = {}): (io: Io) => Promise<unknown> {
  return (io) => resolveNeeds(needs, args, io)
}

function circle(...names: string[]): AnyNeeds {
  const links = names.map((): AnyNeeds => ({}))
  const resolvers = names.map((name, index) => resolver(name, { needs: links[index] ?? {}, run: () => 1 }))
  for (const [index, link] of links.entries()) {
    const next = (index + 1) % names.length
    const target = resolvers[next]
    if (target) link[`to-${next}`] = target
  }
  return { first: resolvers[0] as Requirement }
}

function keysOf(result: Outcome): string[] {
  return result.kind === 'asks' ? [...result.questions.keys()] : [result.kind]
}
