// What an author sees while writing a handler: types that follow from the schemas, and mistakes underlined.
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import type { ContentBlock, ElicitationAnswer, Io, StepContext, ToolResult } from 'mcp-rally'
import { rally } from 'mcp-rally'
import * as v from 'valibot'
import { describe, expectTypeOf, test } from 'vitest'
import { z } from 'zod'

const app = rally({ name: 'types', version: '1.0.0' })

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

  test('are none where there is no input', () => {
    app.tool('none', {}, (args) => {
      expectTypeOf(args['anything']).toEqualTypeOf<unknown>()
      // @ts-expect-error: nothing is known of it
      return args['anything'].toUpperCase()
    })
    app.tool('none_too', { description: 'Takes nothing' }, () => 'done')
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
    const sure = async (io: Io<typeof asks>): Promise<boolean> => (await io.ask('confirm', 'Sure?')).confirm
    app.tool('scope', { asks }, async (_args, io) => {
      const inner = await io.scope('inner', async (scoped) => {
        // @ts-expect-error: no such key here either
        await scoped.ask('confrim', 'Sure?')
        return scoped.ask('city', 'Where?')
      })
      expectTypeOf(inner).toEqualTypeOf<{ city: string }>()
      expectTypeOf(await sure(io)).toEqualTypeOf<boolean>()
    })
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
  expectTypeOf(app.tool('one', {}, () => 'done').tool('two', {}, () => 'done')).toEqualTypeOf<typeof app>()
})
