// What an author sees while writing a handler: types that follow from the schemas, and mistakes underlined.
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import type { ContentBlock, ElicitationAnswer, Io, NotJson, Recordable, StepContext, ToolResult } from 'mcp-rally'
import { rally, resolver } from 'mcp-rally'
import * as v from 'valibot'
import { describe, expectTypeOf, test } from 'vitest'
import { z } from 'zod'

const app = rally({ name: 'types', version: '1.0.0' })
declare const flow: Io
declare function made<T>(example?: T): T
const sure = (io: Io): Promise<boolean> => io.confirm('sure', 'Sure?')
const result = <T>(run: () => Recordable<T>): Promise<T> => flow.step('key', run)

describe('arguments', () => {
  test('are what a zod schema gives: defaults filled in, transforms done', () => {
    const input = z.object({ env: z.string(), dry: z.boolean().default(true), size: z.string().transform(Number) })
    app.tool('zod', { input }, (args) => {
      expectTypeOf(args).toEqualTypeOf<{ env: string; dry: boolean; size: number }>()
    })
  })

  test('are what a valibot schema gives', () => {
    const input = toStandardJsonSchema(v.object({ env: v.string(), dry: v.optional(v.boolean(), true) }))
    app.tool('valibot', { input }, (args) => {
      expectTypeOf(args).toEqualTypeOf<{ env: string; dry: boolean }>()
    })
  })

  test('are what an arktype schema gives', () => {
    app.tool('arktype', { input: type({ env: 'string', 'count?': 'number' }) }, (args) => {
      expectTypeOf(args).toEqualTypeOf<{ env: string; count?: number }>()
    })
  })

  test('are a record of unknown values where the schema is a JSON Schema literal, which has to be looked at', () => {
    const properties = { env: { type: 'string' } }
    app.tool('json', { input: { type: 'object', properties, required: ['env'] } }, (args) => {
      expectTypeOf(args).toEqualTypeOf<Record<string, unknown>>()
    })
  })

  test('are an empty object where there is no input', () => {
    app.tool('none', {}, (args) => {
      expectTypeOf(args).toEqualTypeOf<{}>()
      // @ts-expect-error: it has no properties
      void args['anything']
    })
    app.tool('none_too', { asks: { sure: z.object({ sure: z.boolean() }) } }, (args) => {
      expectTypeOf(args).toEqualTypeOf<{}>()
    })
    app.prompt('none', {}, (args) => {
      expectTypeOf(args).toEqualTypeOf<{}>()
      return 'done'
    })
  })

  test('can not be taken for something else', () => {
    // @ts-expect-error: env is a string
    app.tool('wrong', { input: z.object({ env: z.string() }) }, ({ env }: { env: number }) => String(env))
  })
})

describe('declared questions', () => {
  const asks = {
    confirm: z.object({ confirm: z.boolean() }),
    city: toStandardJsonSchema(v.object({ city: v.string() })),
    raw: { type: 'object', properties: { name: { type: 'string' } } },
  }

  test('give what their schema gives', () => {
    app.tool('asks', { asks }, async (_args, io) => {
      expectTypeOf(await io.ask('confirm', 'Sure?')).toEqualTypeOf<{ confirm: boolean }>()
      expectTypeOf(await io.ask('city', 'Where?')).toEqualTypeOf<{ city: string }>()
      expectTypeOf(await io.ask('raw', 'Who?')).toEqualTypeOf<Record<string, unknown>>()
    })
  })

  test('may be asked in a loop, with an index in the key', () => {
    app.tool('loop', { asks }, async (_args, io) => {
      for (let i = 0; i < 3; i += 1) {
        expectTypeOf(await io.ask(`confirm[${i}]`, 'Sure?')).toEqualTypeOf<{ confirm: boolean }>()
      }
      expectTypeOf(await io.ask('city[last]', 'Where?')).toEqualTypeOf<{ city: string }>()
    })
  })

  test('can be branched on', () => {
    app.tool('elicit', { asks }, async (_args, io) => {
      const answer = await io.elicit('confirm', 'Sure?')
      expectTypeOf(answer).toEqualTypeOf<ElicitationAnswer<{ confirm: boolean }>>()
      if (answer.action === 'accept') expectTypeOf(answer.content).toEqualTypeOf<{ confirm: boolean }>()
      // @ts-expect-error: only an accepted answer has content
      else void answer.content
      expectTypeOf(await io.elicit('city[1]', 'Where?')).toEqualTypeOf<ElicitationAnswer<{ city: string }>>()
    })
  })

  test('can not be asked by a key that nobody declared', () => {
    app.tool('mistyped', { asks }, async (_args, io) => {
      // @ts-expect-error: no such key
      await io.ask('confrim', 'Sure?')
      // @ts-expect-error: no such key
      await io.ask('confrim[0]', 'Sure?')
      // @ts-expect-error: no such key
      await io.elicit('confirm-0', 'Sure?')
    })
    app.tool('nothing_declared', {}, async (_args, io) => {
      // @ts-expect-error: it has no schema
      await io.ask('confirm', 'Sure?')
    })
  })

  test('are known inside a scope, and in a function that takes the io', () => {
    const confirmed = async (io: Io<typeof asks>): Promise<boolean> => (await io.ask('confirm', 'Sure?')).confirm
    app.tool('scope', { asks }, async (_args, io) => {
      const inner = await io.scope('inner', async (scoped) => {
        // @ts-expect-error: no such key here either
        await scoped.ask('confrim', 'Sure?')
        return scoped.ask('city', 'Where?')
      })
      expectTypeOf(inner).toEqualTypeOf<{ city: string }>()
      expectTypeOf(await confirmed(io)).toEqualTypeOf<boolean>()
    })
  })
})

describe('a helper', () => {
  const asks = { city: z.object({ city: z.string() }), size: z.object({ size: z.string() }) }
  const where = (io: Io<Pick<typeof asks, 'city'>>): Promise<{ city: string }> => io.ask('city', 'Where?')

  test('takes the io of every handler, whatever that declared', () => {
    app.tool('plain', {}, (_args, io) => void sure(io))
    app.tool('declared', { input: z.object({ n: z.number() }), asks }, async (_args, io) => {
      expectTypeOf(await sure(io)).toEqualTypeOf<boolean>()
      expectTypeOf(await io.scope('inner', (inner) => sure(inner))).toEqualTypeOf<boolean>()
    })
    app.prompt('declared', { asks }, async (_args, io) => String(await sure(io)))
    app.resource('x://a', { name: 'a', asks }, async (io) => String(await sure(io)))
    app.resourceTemplate('x://{id}', { name: 'b', asks }, async (_variables, io) => String(await sure(io)))
    resolver('declared', { asks, run: (_args, io) => sure(io) })
  })

  test('that asks declared questions takes only an io that has them, with these schemas', () => {
    app.tool('has_it', { asks }, async (_args, io) => {
      expectTypeOf(await where(io)).toEqualTypeOf<{ city: string }>()
    })
    // @ts-expect-error: nothing is declared
    app.tool('has_none', {}, (_args, io) => void where(io))
    // @ts-expect-error: another question is declared
    app.tool('has_another', { asks: { size: asks.size } }, (_args, io) => void where(io))
    // @ts-expect-error: its schema is another one
    app.tool('differs', { asks: { city: z.object({ town: z.string() }) } }, (_args, io) => void where(io))
  })
})

describe('a step', () => {
  interface Order {
    readonly id: string
    note?: string
    lines: readonly { sku: string; pieces: number }[]
  }
  interface Tree {
    name: string
    parent?: Tree
    children: Tree[]
  }
  interface Anything {
    id: string
    [key: string]: unknown
  }
  type Sku = string & { readonly brand: 'sku' }
  type Shape = { kind: 'circle'; radius: number } | { kind: 'point' }
  type Json = string | number | boolean | null | Json[] | { [name: string]: Json }
  type JsonValue = string | number | boolean | null | JsonObject | JsonValue[] | readonly JsonValue[]
  type JsonObject = { [Name in string]: JsonValue }
  type Value = string | number | boolean | null | { [name: string]: Value } | ValueList
  interface ValueList extends Array<Value> {}
  interface Row {
    id: string
    data: JsonValue
  }
  type Term = number | ['add', Term, Term] | ['negate', Term?]
  type Dates = string | Date | Dates[] | { [name: string]: Dates }
  type Gaps = string | undefined | Gaps[]
  class Session {
    readonly user = 'Ann'
    end(): void {}
  }

  test('gives what it returned, where JSON keeps that', () => {
    expectTypeOf(result(() => made<Order>())).resolves.toEqualTypeOf<Order>()
    expectTypeOf(result(() => made<Promise<Order>>())).resolves.toEqualTypeOf<Order>()
    expectTypeOf(result(() => made<Tree>())).resolves.toEqualTypeOf<Tree>()
    expectTypeOf(result(() => made<Anything>())).resolves.toEqualTypeOf<Anything>()
    expectTypeOf(result(() => made<Sku>())).resolves.toEqualTypeOf<Sku>()
    expectTypeOf(result(() => made<Shape | undefined>())).resolves.toEqualTypeOf<Shape | undefined>()
    expectTypeOf(result(() => made<Shape | Promise<Shape>>())).resolves.toEqualTypeOf<Shape>()
    expectTypeOf(result(() => made<readonly [string, number?]>())).resolves.toEqualTypeOf<readonly [string, number?]>()
    expectTypeOf(result(() => made<(string | null)[][]>())).resolves.toEqualTypeOf<(string | null)[][]>()
    expectTypeOf(result(() => made<Record<string, unknown>>())).resolves.toEqualTypeOf<Record<string, unknown>>()
    expectTypeOf(result(() => made<Partial<Order>>())).resolves.toEqualTypeOf<Partial<Order>>()
    expectTypeOf(result(() => made<unknown>())).resolves.toBeUnknown()
    expectTypeOf(result(async () => JSON.parse('1'))).resolves.toBeAny()
    expectTypeOf(result(async () => {})).resolves.toBeVoid()
    expectTypeOf(result(() => undefined)).resolves.toBeUndefined()
    expectTypeOf(result(() => 1)).resolves.toBeNumber()
    expectTypeOf(result(async () => ({ open: true, tags: ['new'] }))).resolves.toEqualTypeOf<{
      open: boolean
      tags: string[]
    }>()
  })

  test('gives a recursive type, such as one for any JSON', () => {
    expectTypeOf(result(() => made<Json>())).resolves.toEqualTypeOf<Json>()
    expectTypeOf(result(async () => made<Json>())).resolves.toEqualTypeOf<Json>()
    expectTypeOf(result(() => made<JsonValue>())).resolves.toEqualTypeOf<JsonValue>()
    expectTypeOf(result(() => made<JsonObject>())).resolves.toEqualTypeOf<JsonObject>()
    expectTypeOf(result(async () => made<Value>())).resolves.toEqualTypeOf<Value>()
    expectTypeOf(result(() => made<Term>())).resolves.toEqualTypeOf<Term>()
    expectTypeOf(result(() => made<Row[]>())).resolves.toEqualTypeOf<Row[]>()
    expectTypeOf(result(async () => ({ row: made<Row>() }))).resolves.toEqualTypeOf<{ row: Row }>()
    expectTypeOf(flow.step('json', () => made<Json>())).resolves.toEqualTypeOf<Json>()
    expectTypeOf(flow.scope('json', async () => made<JsonValue>())).resolves.toEqualTypeOf<JsonValue>()
    resolver('json', { run: async () => made<JsonValue>() })
    resolver('value', { run: () => made<Value>() })
    // @ts-expect-error: JSON makes a string of a Date
    void flow.step('dates', () => made<Dates>())
    // @ts-expect-error: JSON makes null of an undefined item
    void flow.step('gaps', () => made<Gaps>())
    // @ts-expect-error: beside a recursive type, too
    void flow.step('beside', () => made<{ json: Json; at: [Date] }>())
  })

  test('must not return what JSON loses', () => {
    // @ts-expect-error: JSON makes a string of a Date
    void flow.step('date', () => new Date())
    // @ts-expect-error: at any depth
    void flow.step('rows', async () => ({ rows: [{ id: 1, at: new Date() }] }))
    // @ts-expect-error: and in one branch only
    void flow.step('some', () => made<{ at: Date | null }>())
    // @ts-expect-error: or as one of two results
    void flow.step('either', () => made<string | Date>())
    // @ts-expect-error: JSON empties a Map
    void flow.step('map', async () => new Map([['a', 1]]))
    // @ts-expect-error: JSON empties a Set
    void flow.step('set', () => new Set<string>())
    // @ts-expect-error: JSON has no BigInt
    void flow.step('bigint', async () => ({ amount: 1n }))
    // @ts-expect-error: JSON has no functions
    void flow.step('function', () => ({ undo: () => {} }))
    // @ts-expect-error: JSON has no symbols
    void flow.step('symbol', () => Symbol.iterator)
    // @ts-expect-error: JSON has no methods
    void flow.step('class', async () => new Session())
    // @ts-expect-error: a response is read inside the step
    void flow.step('response', () => fetch('https://example.com'))
    // @ts-expect-error: JSON has no bytes
    void flow.step('bytes', () => new Uint8Array(1))
    // @ts-expect-error: a promise inside is not awaited
    void flow.step('promise', () => ({ later: Promise.resolve(1) }))
    // @ts-expect-error: JSON makes null of an undefined item
    void flow.step('items', () => made<(string | undefined)[]>())
    // @ts-expect-error: in a tuple, too
    void flow.step('tuple', () => made<[number, Date?]>())
    // @ts-expect-error: JSON leaves out the index of a match
    void flow.step('match', () => 'a'.match(/a/))
    // @ts-expect-error: so does a scope
    void flow.scope('scope', () => ({ at: new Date() }))
    // @ts-expect-error: and a resolver
    resolver('when', { run: () => new Date() })
  })

  test('names the place and what to do', () => {
    type Told = { at: NotJson<'is a Date, which JSON turns into a string. Use its toISOString().'>; id: number }
    expectTypeOf<Recordable<{ at: Date; id: number }>>().toEqualTypeOf<Told | Promise<Told>>()
  })
})

describe('other calls', () => {
  test('give what they were asked for', () => {
    app.tool('others', {}, async (_args, io) => {
      const inline = await io.ask('name', 'Who?', z.object({ name: z.string() }))
      expectTypeOf(inline).toEqualTypeOf<{ name: string }>()
      expectTypeOf(await io.confirm('sure', 'Sure?')).toEqualTypeOf<boolean>()
      expectTypeOf(await io.choose('size', 'Which?', ['small', 'large'])).toEqualTypeOf<'small' | 'large'>()
      const titled = await io.choose('day', 'When?', [{ value: 'mo', title: 'Monday' }])
      expectTypeOf(titled).toEqualTypeOf<'mo'>()
      const step = await io.step('count', (context) => {
        expectTypeOf(context).toEqualTypeOf<StepContext>()
        return { count: 1 }
      })
      expectTypeOf(step).toEqualTypeOf<{ count: number }>()
      expectTypeOf(await io.step('sent', async () => {})).toEqualTypeOf<void>()
      expectTypeOf(io.can('elicitation.form')).toEqualTypeOf<boolean>()
      // @ts-expect-error: no such capability
      io.can('elicitation.fax')
    })
  })
})

describe('results', () => {
  test('without an output schema are a text, content, a whole result, or nothing', () => {
    app.tool('text', {}, () => 'done')
    app.tool('block', {}, () => ({ type: 'text', text: 'done' }))
    app.tool('blocks', {}, async () => [{ type: 'text', text: 'done' }])
    app.tool('whole', {}, () => ({ content: [{ type: 'image', data: '', mimeType: 'image/png' }], isError: true }))
    app.tool('one_or_the_other', { input: z.object({ bare: z.boolean() }) }, async ({ bare }) => {
      if (bare) return 'done'
      return { content: [{ type: 'text', text: 'done' }] }
    })
    app.tool('made_elsewhere', {}, (): ContentBlock[] => [])
    app.tool('made_elsewhere_whole', {}, async (): Promise<ToolResult> => ({ content: [] }))
    app.tool('nothing', {}, () => {})
    app.tool('round', {}, () => ({ resultType: 'input_required', requestState: 'again' }))
    app.tool('asks_by_hand', { output: z.object({ id: z.number() }) }, async () => ({
      resultType: 'input_required',
      inputRequests: {
        name: {
          method: 'elicitation/create',
          params: {
            message: 'Name?',
            requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
          },
        },
      },
    }))
    // @ts-expect-error: there is no such method
    app.tool('fax', {}, () => ({ resultType: 'input_required', inputRequests: { a: { method: 'fax' } } }))
    // @ts-expect-error: an object needs an output schema
    app.tool('object', {}, () => ({ count: 1 }))
    // @ts-expect-error: a number is no content
    app.tool('number', {}, () => 1)
  })

  test('with an output schema are what that takes, or a whole result', () => {
    const state = z.enum(['open', 'done'])
    const output = z.object({ id: z.number(), state, tags: z.array(z.string()).default([]) })
    app.tool('fits', { output }, () => ({ id: 1, state: 'done' }))
    app.tool('fits_later', { output }, async () => ({ id: 1, state: 'open', tags: ['new'] }))
    app.tool('whole', { output }, () => ({ content: [{ type: 'text', text: 'Sorry.' }], isError: true }))
    app.tool('made_elsewhere', { output }, (): z.infer<typeof output> => ({ id: 1, state: 'open', tags: [] }))
    // @ts-expect-error: id is a number
    app.tool('wrong_type', { output }, () => ({ id: '1', state: 'open' }))
    // @ts-expect-error: there is no such state
    app.tool('wrong_literal', { output }, () => ({ id: 1, state: 'closed' }))
    // @ts-expect-error: id is missing
    app.tool('missing', { output }, async () => ({ state: 'open' }))
    // @ts-expect-error: a text is not what it promised
    app.tool('text', { output }, () => 'done')
  })

  test('with a JSON Schema literal as output are an object', () => {
    const output = { type: 'object', properties: { id: { type: 'number' } } }
    app.tool('object', { output }, () => ({ id: 1 }))
    // @ts-expect-error: a text is not what it promised
    app.tool('text', { output }, () => 'done')
  })
})

test('tools are registered in a chain', () => {
  expectTypeOf(app.tool('one', {}, () => 'done').tool('two', {}, () => 'done')).toExtend<typeof app>()
})
