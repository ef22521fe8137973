// What TypeScript knows of a server's tools, from an app whose tools were registered in one chain.
import type { App, Rally } from 'mcp-rally'
import { rally } from 'mcp-rally'
import type { CallToolResult, Client, ServerTypes, TypedTools } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import * as v from 'valibot'
import { type } from 'arktype'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { expectTypeOf, test } from 'vitest'
import { z } from 'zod'

const app = rally({ name: 'types', version: '1.0.0' })
  .tool(
    'deploy',
    {
      input: z.object({
        env: z.enum(['prod', 'test']),
        count: z.string().transform(Number),
        dry: z.boolean().default(false),
      }),
      output: z.object({ at: z.string(), count: z.number().default(1) }),
    },
    ({ env }) => ({ at: env }),
  )
  .use((_call, next) => next())
  .tool('get-weather', {}, () => 'Sunny')
  .prompt('greet', {}, () => 'Hi')
  .tool('find', { input: type({ 'text?': 'string' }), output: type({ found: 'string[]' }) }, () => ({ found: [] }))
  .tool('plain', { input: { type: 'object' }, output: { type: 'object' } }, () => ({}))
  .tool('shout', { input: toStandardJsonSchema(v.object({ text: v.string() })) }, ({ text }) => text)

declare const client: Client<typeof app>

const extend = <A extends App>(given: A) => given.tool('add', { input: z.object({ a: z.number() }) }, () => '')

test('the arguments are those before validation, and the result is that after it', () => {
  const { deploy } = client.tools
  expectTypeOf(deploy).parameter(0).toEqualTypeOf<{ env: 'prod' | 'test'; count: string; dry?: boolean | undefined }>()
  expectTypeOf(deploy).returns.resolves.toEqualTypeOf<{ at: string; count: number }>()
  void deploy({ env: 'prod', count: '3' }, { timeoutMs: 1_000 })
  // @ts-expect-error: it is not one of the values
  void deploy({ env: 'elsewhere', count: '3' })
  // @ts-expect-error: count is missing
  void deploy({ env: 'prod' })
  // @ts-expect-error: the arguments are missing
  void deploy()
  // @ts-expect-error: there is no such option
  void deploy({ env: 'prod', count: '3' }, { patience: 1 })
})

test('a tool without an output schema returns the whole result, and arguments that nothing requires may be left out', () => {
  expectTypeOf(client.tools['get-weather']()).resolves.toEqualTypeOf<CallToolResult>()
  expectTypeOf(client.tools.find()).resolves.toEqualTypeOf<{ found: string[] }>()
  expectTypeOf(client.tools.find({ text: 'x' })).resolves.toEqualTypeOf<{ found: string[] }>()
  expectTypeOf(client.tools.shout).parameter(0).toEqualTypeOf<{ text: string }>()
})

test('a plain JSON Schema takes and returns any object', () => {
  expectTypeOf(client.tools.plain({ a: 1 })).resolves.toEqualTypeOf<Record<string, unknown>>()
})

test('only the tools of the type are there', () => {
  expectTypeOf<keyof typeof client.tools>().toEqualTypeOf<'deploy' | 'get-weather' | 'find' | 'plain' | 'shout'>()
  // @ts-expect-error: there is no such tool
  void client.tools.other
})

test('statements leave the type of the app as it is', () => {
  const stated = rally({ name: 'types', version: '1.0.0' })
  stated.tool('deploy', {}, () => '')
  expectTypeOf(stated).toEqualTypeOf<Rally>()
  expectTypeOf<TypedTools<typeof stated>>().toEqualTypeOf<{}>()
})

test('without a type there are no tools', async () => {
  const untyped = await connect('http://127.0.0.1:3000/mcp')
  expectTypeOf(untyped).toEqualTypeOf<Client>()
  expectTypeOf(untyped.tools).toEqualTypeOf<{}>()
})

test('a chain goes on in a function that takes any app', () => {
  expectTypeOf<keyof TypedTools<ReturnType<typeof extend<typeof app>>>>().toEqualTypeOf<
    'add' | 'deploy' | 'get-weather' | 'find' | 'plain' | 'shout'
  >()
})

test('a client with types is a client, and not the other way round', () => {
  expectTypeOf(client).toExtend<Client>()
  // @ts-expect-error: its tools are not known
  expectTypeOf<Client<typeof app>>().toExtend<Client<ServerTypes<{ other: { input: {} } }>>>()
  // @ts-expect-error: its tools are not known
  expectTypeOf<Client>().toExtend<Client<typeof app>>()
})

test('what is written by hand, or by `rally types`, is used the same way', () => {
  type Server = ServerTypes<{ 'say-hi': { input: { name: string }; output: { text: string } }; now: { input: {} } }>
  const written = {} as Client<Server>
  expectTypeOf(written.tools['say-hi']({ name: 'Ada' })).resolves.toEqualTypeOf<{ text: string }>()
  expectTypeOf(written.tools.now()).resolves.toEqualTypeOf<CallToolResult>()
})
