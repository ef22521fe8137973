// What TypeScript knows of a handler: everything from its declarations, nothing from annotations.
import { expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import type { Io } from '../../src/flow/io.ts'
import type { StepContext } from '../../src/flow/step.ts'
import type { Requirements, ResolverOutcome, ResolvedNeeds } from '../../src/flow/resolver.ts'
import { outcome, resolver } from '../../src/flow/resolver.ts'
import { harsh } from '../../src/testing.ts'

declare const io: Io<{ size: z.ZodObject<{ size: z.ZodEnum<{ S: 'S'; M: 'M' }> }> }>

type None = { kind: 'none' }
type Some = { kind: 'some'; n: number }
declare const none: None | Some

const stock = resolver('stock', { run: ({ title }: { title: string }) => ({ title, copies: 3 }) })

test('a resolver without needs takes the arguments that its run names', () => {
  expectTypeOf(stock.run).parameter(0).toEqualTypeOf<{ title: string }>()
  expectTypeOf<ResolvedNeeds<{ stock: typeof stock }>>().toEqualTypeOf<{
    readonly stock: { title: string; copies: number }
  }>()
})

test('a resolver knows what it needs from the declarations alone', () => {
  resolver('backorder', {
    needs: { stock, careful: outcome(stock) },
    run: (args, _io, needs) => {
      expectTypeOf(args).toEqualTypeOf<{ title: string }>()
      expectTypeOf(needs.stock).toEqualTypeOf<{ title: string; copies: number }>()
      expectTypeOf(needs.careful).toEqualTypeOf<ResolverOutcome<{ title: string; copies: number }>>()
      // @ts-expect-error: it is not among the needs.
      return needs.price
    },
  })
})

test('a resolver asks what it declared, and gives what its run gives', () => {
  const backorder = resolver('backorder', {
    needs: { stock },
    asks: { ok: z.object({ confirm: z.boolean() }) },
    run: async (_args, inner, needs) => (needs.stock.copies > 0 ? { confirm: false } : inner.ask('ok', 'Order it in?')),
  })
  expectTypeOf<ResolvedNeeds<{ backorder: typeof backorder }>['backorder']>().toEqualTypeOf<{ confirm: boolean }>()
  // What it needs takes arguments, and so does it.
  expectTypeOf(backorder.run).parameter(0).toExtend<{ title: string }>()
})

test('a resolver takes the arguments of all that it needs, and its own', () => {
  const price = resolver('price', { run: ({ currency }: { currency: 'EUR' | 'USD' }) => currency.length })
  const offer = resolver('offer', { needs: { stock, price }, run: ({ rebate }: { rebate: number }) => rebate })
  expectTypeOf(offer.run)
    .parameter(0)
    .toEqualTypeOf<{ rebate: number } & { title: string } & { currency: 'EUR' | 'USD' }>()
})

test('needs fit a call only where its arguments have what they take', () => {
  expectTypeOf<{ stock: typeof stock }>().toExtend<Requirements<{ title: string; env: string }>>()
  expectTypeOf<{ stock: typeof stock }>().not.toExtend<Requirements<{ env: string }>>()
})

test('a missing need is an error when it is written', () => {
  // @ts-expect-error: there is no such resolver.
  resolver('broken', { needs: { nothing: undefined }, run: () => 1 })
})

test('a declared question has its type, with an index too, and an undeclared one needs a schema', () => {
  expectTypeOf(io.ask('size', 'Size?')).resolves.toEqualTypeOf<{ size: 'S' | 'M' }>()
  expectTypeOf(io.ask('size[3]', 'Size?')).resolves.toEqualTypeOf<{ size: 'S' | 'M' }>()
  expectTypeOf(io.ask('n', 'N?', z.object({ n: z.number() }))).resolves.toEqualTypeOf<{ n: number }>()
  // @ts-expect-error: it is not declared, and has no schema.
  expectTypeOf(io.ask('n', 'N?')).resolves.toBeNever()
})

test('what stands in for an answer that does not come in time is JSON, and the options of a question are no schema', () => {
  const schema = z.object({ n: z.number() })
  const sized = io.ask('size', 'Size?', { withinMs: 5, otherwise: null })
  expectTypeOf(sized).resolves.toEqualTypeOf<{ size: 'S' | 'M' } | null>()
  expectTypeOf(io.ask('size', 'Size?', { withinMs: 5 })).resolves.toEqualTypeOf<{ size: 'S' | 'M' }>()
  const made = io.ask('n', 'N?', schema, { withinMs: 5, otherwise: none })
  expectTypeOf(made).resolves.toEqualTypeOf<{ n: number } | None | Some>()
  expectTypeOf(io.event('e', schema, { withinMs: 5, otherwise: 1 })).resolves.toEqualTypeOf<{ n: number } | 1>()
  const flagged = io.ask('n', 'N?', schema, { withinMs: 5, otherwise: false })
  expectTypeOf(flagged).resolves.toEqualTypeOf<{ n: number } | false>()
  const listed = io.ask('n', 'N?', z.object({ list: z.array(z.string()) }), { withinMs: 5, otherwise: { list: ['a'] } })
  expectTypeOf(listed).resolves.toEqualTypeOf<{ list: string[] }>()
  // @ts-expect-error: with undefined, Expired is thrown
  void io.ask('n', 'N?', schema, { withinMs: 5, otherwise: undefined })
  // @ts-expect-error: so it is for an event
  void io.event('e', schema, { withinMs: 5, otherwise: Math.random() < 1 ? 'late' : undefined })
  // @ts-expect-error: JSON makes a string of a Date
  void io.ask('size', 'Size?', { withinMs: 5, otherwise: new Date() })
  // @ts-expect-error: so it does with a schema
  void io.ask('n', 'N?', schema, { withinMs: 5, otherwise: { at: new Date() } })
  // @ts-expect-error: JSON has no functions
  void io.event('e', schema, { withinMs: 5, otherwise: () => 1 })
  // @ts-expect-error: it needs a deadline
  void io.ask('size', 'Size?', { otherwise: null })
  // @ts-expect-error: there is no such option
  void io.ask('size', 'Size?', { withinMs: 5, otherwize: null })
  // @ts-expect-error: it is not declared
  void io.ask('n', 'N?', { withinMs: 5 })
})

test('what the other calls give', () => {
  expectTypeOf(io.elicit('size', 'Size?')).resolves.toEqualTypeOf<
    { action: 'accept'; content: { size: 'S' | 'M' } } | { action: 'decline' } | { action: 'cancel' }
  >()
  expectTypeOf(io.choose('c', 'C?', ['x', { value: 'y', title: 'Y' }])).resolves.toEqualTypeOf<'x' | 'y'>()
  expectTypeOf(io.confirm('c', 'C?')).resolves.toEqualTypeOf<boolean>()
  expectTypeOf(io.step('s', () => Promise.resolve(1))).resolves.toEqualTypeOf<number>()
  expectTypeOf(io.scope('s', (inner) => inner.ask('size', 'Size?'))).resolves.toEqualTypeOf<{ size: 'S' | 'M' }>()
  expectTypeOf<keyof StepContext>().toEqualTypeOf<'attempt' | 'idempotencyKey' | 'signal' | 'progress' | 'log'>()
})

test('what is read by hand has the type of its schema', () => {
  expectTypeOf(io.responses.accepted('n', z.object({ n: z.number() }))).toEqualTypeOf<{ n: number } | undefined>()
  expectTypeOf(io.responses.state(z.object({ step: z.number() }))).toEqualTypeOf<{ step: number } | undefined>()
  expectTypeOf(io.responses.state()).toEqualTypeOf<unknown>()
})

test('the testing kit types a handler from its options', () => {
  void harsh(
    async ({ title }, inner, needs) => {
      expectTypeOf(title).toEqualTypeOf<string>()
      expectTypeOf(needs.stock.copies).toEqualTypeOf<number>()
      expectTypeOf(inner.ask('n', 'N?')).resolves.toEqualTypeOf<{ n: number }>()
      return needs.stock.copies
    },
    { args: { title: 'Emma' }, needs: { stock }, asks: { n: z.object({ n: z.number() }) } },
  ).then(({ result }) => expectTypeOf(result).toEqualTypeOf<number | undefined>())
})
