// What TypeScript knows of prompts, resources and templates: their variables from the template alone.
import type {
  Bus,
  ChangeEvent,
  CompletionContext,
  CompletionFunction,
  ChangeNotifier,
  PromptMessage,
  TemplateVariables,
} from 'mcp-rally'
import { inputRequired, outcome, rally, resolver } from 'mcp-rally'
import { describe, expectTypeOf, test } from 'vitest'
import { z } from 'zod'

const app = rally({ name: 'types', version: '1.0.0' })
const named = { name: 'x' }
const asks = { scope: z.object({ all: z.boolean() }) }

describe('the variables of a template', () => {
  test('are texts where they are always there', () => {
    expectTypeOf<TemplateVariables<'x://{id}'>>().toEqualTypeOf<Readonly<{ id: string }>>()
    expectTypeOf<TemplateVariables<'x://{+path}'>>().toEqualTypeOf<Readonly<{ path: string }>>()
    expectTypeOf<TemplateVariables<'x://{a,b}/{c}'>>().toEqualTypeOf<Readonly<{ a: string; b: string; c: string }>>()
    expectTypeOf<TemplateVariables<'x://{id:3}'>>().toEqualTypeOf<Readonly<{ id: string }>>()
    expectTypeOf<TemplateVariables<'x://{user.name}'>>().toEqualTypeOf<Readonly<{ 'user.name': string }>>()
  })

  test('may be missing behind the other operators', () => {
    expectTypeOf<TemplateVariables<'x://f{?q}'>>().toEqualTypeOf<Readonly<{ q?: string }>>()
    expectTypeOf<TemplateVariables<'x://f{?q,limit}{&more}'>>().toEqualTypeOf<
      Readonly<{ q?: string; limit?: string; more?: string }>
    >()
    expectTypeOf<TemplateVariables<'x://f{#a}'>>().toEqualTypeOf<Readonly<{ a?: string }>>()
    expectTypeOf<TemplateVariables<'x://f{.a}'>>().toEqualTypeOf<Readonly<{ a?: string }>>()
    expectTypeOf<TemplateVariables<'x://f{/a}'>>().toEqualTypeOf<Readonly<{ a?: string }>>()
    expectTypeOf<TemplateVariables<'x://f{;a}'>>().toEqualTypeOf<Readonly<{ a?: string }>>()
  })

  test('are lists where they are exploded', () => {
    expectTypeOf<TemplateVariables<'x://{rest*}'>>().toEqualTypeOf<Readonly<{ rest: string[] }>>()
    expectTypeOf<TemplateVariables<'x://{+rest*}'>>().toEqualTypeOf<Readonly<{ rest: string[] }>>()
    expectTypeOf<TemplateVariables<'x://{id}{/path*}{?tag*,q}'>>().toEqualTypeOf<
      Readonly<{ id: string; path?: string[]; tag?: string[]; q?: string }>
    >()
  })

  test('are anything where the template is not known', () => {
    expectTypeOf<TemplateVariables<string>>().toEqualTypeOf<Readonly<Record<string, string | string[] | undefined>>>()
  })

  test('reach the reader', () => {
    app.resourceTemplate('x://{id}{/path*}{?q}', { ...named, asks }, async ({ id, path, q }, io) => {
      expectTypeOf(id).toEqualTypeOf<string>()
      expectTypeOf(path).toEqualTypeOf<string[] | undefined>()
      expectTypeOf(q).toEqualTypeOf<string | undefined>()
      expectTypeOf(await io.ask('scope', 'All?')).toEqualTypeOf<{ all: boolean }>()
      // @ts-expect-error: it was not declared
      await io.ask('other', 'All?')
      return id
    })
    // @ts-expect-error: there is no such variable
    app.resourceTemplate('x://{id}', named, ({ other }) => other)
  })
})

test('a handler with needs cannot take its rounds by hand', () => {
  const stock = resolver('stock', { run: () => 3 })
  const again = inputRequired({ state: 1 })
  const written = { resultType: 'input_required', requestState: 'again' } as const
  app.tool('free', { needs: {} }, () => again)
  app.prompt('free', {}, () => again)
  app.prompt('written', {}, () => written)
  app.resource('x://written', { name: 'written' }, async () => written)
  // @ts-expect-error: needs are asked through io
  app.tool('order', { needs: { stock } }, () => written)
  // @ts-expect-error: needs are asked through io
  app.prompt('order', { needs: { stock } }, () => written)
  // @ts-expect-error: needs are asked through io
  app.tool('order', { needs: { stock } }, () => again)
  // @ts-expect-error: needs are asked through io
  app.prompt('order', { needs: { stock } }, () => again)
  // @ts-expect-error: needs are asked through io
  app.resource('x://order', { name: 'order', needs: { stock } }, async () => again)
  // @ts-expect-error: needs are asked through io
  app.resourceTemplate('x://{id}', { name: 'order', needs: { stock } }, () => again)
})

describe('what a template needs', () => {
  const file = resolver('file', { run: ({ id }: { id: string }) => ({ id, size: 1 }) })

  test('is resolved from its variables', () => {
    app.resourceTemplate('x://{id}', { ...named, needs: { file } }, (_variables, _io, needs) => {
      expectTypeOf(needs.file).toEqualTypeOf<{ id: string; size: number }>()
      return needs.file.id
    })
    // @ts-expect-error: it takes an id
    app.resourceTemplate('x://{other}', { ...named, needs: { file } }, () => '')
    // @ts-expect-error: the id may be missing
    app.resourceTemplate('x://f{?id}', { ...named, needs: { file } }, () => '')
  })

  test('has an outcome where that was asked for', () => {
    app.prompt(
      'p',
      { arguments: z.object({ id: z.string() }), needs: { file: outcome(file) } },
      (_args, _io, needs) => {
        if (needs.file.action === 'accept') expectTypeOf(needs.file.value).toEqualTypeOf<{ id: string; size: number }>()
        // @ts-expect-error: there is no value
        else void needs.file.value
        return ''
      },
    )
  })
})

test('the arguments of a prompt are what their schema makes of them', () => {
  const schema = z.object({ code: z.string(), lines: z.string().transform(Number).optional() })
  app.prompt('p', { arguments: schema, asks }, async ({ code, lines }, io) => {
    expectTypeOf(code).toEqualTypeOf<string>()
    expectTypeOf(lines).toEqualTypeOf<number | undefined>()
    expectTypeOf(await io.ask('scope', 'All?')).toEqualTypeOf<{ all: boolean }>()
    return code
  })
})

test('a prompt gives a text, a block, messages, a whole result, or another round', () => {
  const messages: PromptMessage[] = [{ role: 'assistant', content: { type: 'text', text: 'Hi' } }]
  app.prompt('p', {}, () => 'Hi')
  app.prompt('p', {}, () => ({ type: 'text', text: 'Hi' }))
  app.prompt('p', {}, async () => messages)
  app.prompt('p', {}, () => ({ messages, description: 'Greets' }))
  app.prompt('p', {}, () => inputRequired({ state: 1 }))
  // @ts-expect-error: it must say something
  app.prompt('p', {}, () => {})
  // @ts-expect-error: nobody has this role
  app.prompt('p', {}, () => [{ role: 'system', content: { type: 'text', text: 'Hi' } }])
})

test('a resource gives a text, bytes, contents, a whole result, nothing, or another round', () => {
  app.resource('a://b', { ...named, asks }, async (io) => {
    expectTypeOf(await io.ask('scope', 'All?')).toEqualTypeOf<{ all: boolean }>()
    return 'Hi'
  })
  app.resource('a://b', named, () => Uint8Array.of(1))
  app.resource('a://b', named, () => ({ text: 'Hi' }))
  app.resource('a://b', named, async () => [{ blob: 'AA==', mimeType: 'image/png' }])
  app.resource('a://b', named, () => ({ contents: [], ttlMs: 1, cacheScope: 'private' }))
  app.resource('a://b', named, () => undefined)
  app.resource('a://b', named, () => inputRequired({ state: 1 }))
  // @ts-expect-error: it needs a name
  app.resource('a://b', {}, () => 'Hi')
  // @ts-expect-error: a number is no contents
  app.resource('a://b', named, () => 7)
  // @ts-expect-error: there is no such scope
  app.resource('a://b', { ...named, cacheScope: 'shared' }, () => 'Hi')
})

interface Rate {
  currency: string
  rate: number
}

test('a method of your own returns an object, also one whose type is an interface', () => {
  const rate: Rate = { currency: 'EUR', rate: 1 }
  app.method('com.example/rate', {}, () => rate)
  app.method('com.example/rate', {}, async () => rate)
  app.method('com.example/rate', {}, () => ({ rates: [rate] }))
  // @ts-expect-error: a string is not an object
  app.method('com.example/rate', {}, () => 'EUR')
  // @ts-expect-error: a string is not an object
  app.method('com.example/rate', {}, async () => 'EUR')
  // @ts-expect-error: an array is not an object
  app.method('com.example/rate', {}, async () => [rate])
  // @ts-expect-error: it must return something
  app.method('com.example/rate', {}, () => {})
})

test('a completion is a list, or a function of what was typed and filled in', () => {
  expectTypeOf<CompletionFunction>().parameters.toEqualTypeOf<[value: string, context: CompletionContext]>()
  const complete = { a: async (value: string) => ({ values: [value], total: 1, hasMore: false }) }
  app.prompt('p', { arguments: z.object({ a: z.string() }), complete }, () => '')
  app.resourceTemplate('a://{b}', { ...named, complete: { b: ['c'] } }, () => '')
  // @ts-expect-error: values are texts
  app.resourceTemplate('a://{b}', { ...named, complete: { b: [1] } }, () => '')
})

test('a bus carries plain changes', () => {
  expectTypeOf<Parameters<Bus['publish']>[0]>().toEqualTypeOf<ChangeEvent>()
  expectTypeOf<ChangeEvent['type']>().toEqualTypeOf<'tools' | 'prompts' | 'resources' | 'updated'>()
  expectTypeOf<ChangeNotifier['resourceUpdated']>().parameters.toEqualTypeOf<[uri: string]>()
})

test('only drafts can be opted into', () => {
  rally({ name: 'types', version: '1.0.0', revisions: ['2026-06-XX', '2026-02-03-draft'] })
  // @ts-expect-error: releases are spoken anyway
  expectTypeOf(rally).toBeCallableWith({ name: 'types', version: '1.0.0', revisions: ['2025-11-25'] })
})
