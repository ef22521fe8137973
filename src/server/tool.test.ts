import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import type { Rally, RallyOptions, Schema } from 'mcp-rally'
import { rally, send } from 'mcp-rally'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { specValidator } from '../../test/spec/validate.ts'
import { call, errorOf, request, resultOf, textOf } from '../../test/wire/messages.ts'
import { checkMessage } from '../../test/wire/spec.ts'

function newApp(options: Partial<RallyOptions> = {}): Rally {
  return rally({ name: 'tools', version: '1', logger: { warn() {}, error() {} }, ...options })
}

/** Calls a tool and holds the response against the specification. */
async function ask(app: Rally, name: string, args: object = {}): Promise<object | undefined> {
  const response = await send(app, call(name, args))
  checkMessage(response, 'tools/call')
  return response
}

interface Listed {
  name: string
  inputSchema: Record<string, unknown>
  outputSchema?: Record<string, unknown>
}

async function listed(app: Rally): Promise<Listed[]> {
  const response = await send(app, request('tools/list'))
  checkMessage(response, 'tools/list')
  const { tools } = resultOf(response) as { tools: Listed[] }
  expect(tools.flatMap(specValidator('Tool'))).toEqual([])
  return tools
}

describe('an input schema', () => {
  const schemas: readonly { library: string; schema: Schema }[] = [
    { library: 'zod', schema: z.object({ id: z.number().int(), tags: z.array(z.string()).optional() }) },
    {
      library: 'valibot',
      schema: toStandardJsonSchema(
        v.object({ id: v.pipe(v.number(), v.integer()), tags: v.optional(v.array(v.string())) }),
      ),
    },
    { library: 'arktype', schema: type({ id: 'number.integer', 'tags?': 'string[]' }) },
    {
      library: 'JSON Schema',
      schema: {
        type: 'object',
        properties: { id: { type: 'integer' }, tags: { type: 'array', items: { type: 'string' } } },
        required: ['id'],
      },
    },
  ]

  test.each(schemas)('of $library is listed, and lets only what fits it reach the handler', async ({ schema }) => {
    const seen: unknown[] = []
    const app = newApp().tool('find', { input: schema }, (args) => {
      seen.push(args)
      return 'Found'
    })
    const [tool] = await listed(app)
    expect(tool?.inputSchema).toMatchObject({
      type: 'object',
      required: ['id'],
      properties: { id: { type: 'integer' } },
    })
    expect(textOf(await ask(app, 'find', { id: 7, tags: ['a'] }))).toBe('Found')
    for (const wrong of [{}, { id: '7' }, { id: 7.5 }, { id: null }]) {
      const result = resultOf(await ask(app, 'find', wrong))
      expect(result).toMatchObject({
        isError: true,
        content: [{ text: expect.stringMatching(/^Invalid arguments for find: .*id/) }],
      })
    }
    const result = resultOf(await ask(app, 'find', { id: 7, tags: ['a', 1] }))
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(/tags(\[1\]|\/1)/) }] })
    expect(seen).toEqual([{ id: 7, tags: ['a'] }])
  })

  test('gives the handler what comes out of it: defaults, transforms, and nothing it does not know', async () => {
    const input = z.object({ name: z.string().trim(), limit: z.number().default(10) })
    const app = newApp().tool('find', { input }, (args) => JSON.stringify(args))
    expect(textOf(await ask(app, 'find', { name: ' ada ', more: 1 }))).toBe('{"name":"ada","limit":10}')
    const [tool] = await listed(app)
    expect(tool?.inputSchema['required']).toEqual(['name'])
  })

  test('may be asynchronous', async () => {
    const input = z.object({ id: z.number() }).refine(async ({ id }) => id > 0, 'id is not known')
    const app = newApp().tool('find', { input }, () => 'Found')
    expect(textOf(await ask(app, 'find', { id: 1 }))).toBe('Found')
    expect(textOf(await ask(app, 'find', { id: 0 }))).toBe('Invalid arguments for find: id is not known')
  })

  test('that throws ends the call with its message, and reaches no handler', async () => {
    const input = z.object({ id: z.number() }).transform((): never => {
      throw new Error('The directory is down.')
    })
    const app = newApp().tool('find', { input: input as never }, () => 'Found')
    expect(resultOf(await ask(app, 'find', { id: 1 }))).toMatchObject({
      isError: true,
      content: [{ text: 'The directory is down.' }],
    })
  })

  test('that is left out means that there are no arguments', async () => {
    const app = newApp().tool('now', {}, (args) => `${Object.keys(args).length} arguments`)
    expect((await listed(app))[0]?.inputSchema).toEqual({ type: 'object', additionalProperties: false })
    expect(textOf(await ask(app, 'now'))).toBe('0 arguments')
    const { params, ...message } = call('now')
    const { arguments: _, ...without } = params
    expect(textOf(await send(app, { ...message, params: without }))).toBe('0 arguments')
    expect(resultOf(await ask(app, 'now', { extra: 1 }))).toMatchObject({ isError: true })
  })

  test('counts as it was when it was registered', async () => {
    const properties: Record<string, unknown> = { id: { type: 'integer' } }
    const app = newApp().tool('find', { input: { type: 'object', properties } }, () => 'Found')
    properties['id'] = { type: 'string' }
    expect(textOf(await ask(app, 'find', { id: 7 }))).toBe('Found')
    expect((await listed(app))[0]?.inputSchema['properties']).toEqual({ id: { type: 'integer' } })
  })
})

describe('an output schema', () => {
  const schemas: readonly { library: string; schema: Schema }[] = [
    { library: 'zod', schema: z.object({ sum: z.number() }) },
    { library: 'valibot', schema: toStandardJsonSchema(v.object({ sum: v.number() })) },
    { library: 'arktype', schema: type({ sum: 'number' }) },
    { library: 'JSON Schema', schema: { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] } },
  ]

  test.each(schemas)('of $library is listed, and what the handler returns is held to it', async ({ schema }) => {
    const app = newApp().tool('add', { input: { type: 'object' }, output: schema }, (args) => args['give'] as never)
    expect((await listed(app))[0]?.outputSchema).toMatchObject({
      type: 'object',
      properties: { sum: { type: 'number' } },
    })
    expect(resultOf(await ask(app, 'add', { give: { sum: 5 } }))).toMatchObject({
      structuredContent: { sum: 5 },
      content: [{ type: 'text', text: '{"sum":5}' }],
    })
    for (const give of [{}, { sum: '5' }, 'five', null, 5, []]) {
      const error = errorOf(await ask(app, 'add', { give }))
      expect(error.code).toBe(-32603)
      expect(error.message).toMatch(/^The tool's result does not match its output schema: /)
    }
  })

  test('says where a result differs from it, and in production no more', async () => {
    const seen: unknown[] = []
    const log = (_message: string, details?: unknown): void => void seen.push(details)
    const logger = { warn: log, error: log }
    const output = toStandardJsonSchema(v.object({ state: v.picklist(['up', 'down']) }))
    for (const showErrors of [false, true]) {
      const app = rally({ name: 'checked', version: '1', logger, showErrors })
      app.tool('state', { output }, () => ({ state: 'refused by postgres://u:hunter2@db' }) as never)
      const { message } = errorOf(await ask(app, 'state'))
      expect(message).toMatch(/^The tool's result does not match its output schema: state/)
      expect(message.includes('hunter2')).toBe(showErrors)
    }
    expect(seen).toMatchObject([{ error: { cause: { message: expect.stringContaining('hunter2') } } }, {}])
  })

  test('gives what comes out of it', async () => {
    const output = z.object({ name: z.string().toUpperCase(), more: z.string().default('x') })
    const app = newApp().tool('find', { output }, () => ({ name: 'ada', secret: 'hunter2' }))
    expect(resultOf(await ask(app, 'find'))['structuredContent']).toEqual({ name: 'ADA', more: 'x' })
  })

  test('lets a whole result be put together by hand, and holds its structured content to it', async () => {
    const output = z.object({ sum: z.number() })
    const app = newApp()
      .tool('good', { output }, () => ({ content: [{ type: 'text', text: 'Five.' }], structuredContent: { sum: 5 } }))
      .tool('bad', { output }, () => ({ content: [], structuredContent: { sum: 'five' } }))
      .tool('failed', { output }, () => ({ content: [{ type: 'text', text: 'No.' }], isError: true }))
    expect(resultOf(await ask(app, 'good'))).toMatchObject({
      content: [{ text: 'Five.' }],
      structuredContent: { sum: 5 },
    })
    expect(errorOf(await ask(app, 'bad')).code).toBe(-32603)
    const failed = resultOf(await ask(app, 'failed'))
    expect(failed).toMatchObject({ isError: true, content: [{ text: 'No.' }] })
    expect(failed).not.toHaveProperty('structuredContent')
  })

  test('need not be one of an object', async () => {
    const app = newApp().tool('list', { output: z.array(z.number()) }, () => [1, 2])
    expect(resultOf(await ask(app, 'list'))).toMatchObject({ structuredContent: [1, 2], content: [{ text: '[1,2]' }] })
  })
})

const handler = (): string => 'x'

describe('registering', () => {
  const register =
    (name: unknown, options: unknown = {}, run: unknown = handler) =>
    () =>
      newApp().tool(name as string, options as never, run as never)

  test.each(['a', 'A-b_c.9', 'x'.repeat(128)])('takes the name %s', (name) => {
    expect(register(name)).not.toThrow()
  })

  test.each(['', ' ', 'a b', 'a/b', 'a\n', 'caf\u00e9', '\u{1f600}', 'x'.repeat(129), 'a:b', undefined, null, 7, {}])(
    'refuses the name %j',
    (name) => {
      expect(register(name)).toThrow(/^The tool name .* is not valid\. Use 1 to 128 characters of A-Z a-z 0-9 _ - \.$/)
    },
  )

  test('refuses a name that is there already, and keeps the first', async () => {
    const app = newApp().tool('greet', {}, () => 'first')
    expect(() => app.tool('greet', {}, () => 'second')).toThrow(/The tool "greet" is registered already/)
    expect(textOf(await ask(app, 'greet'))).toBe('first')
    expect(await listed(app)).toHaveLength(1)
  })

  test.each([
    { what: 'no handler', options: {}, run: undefined },
    { what: 'a handler that is no function', options: {}, run: 'x' },
    { what: 'no options', options: null, run: handler },
    { what: 'a handler in place of options', options: handler, run: undefined },
  ])('refuses $what, and names the tool', ({ options, run }) => {
    expect(() => newApp().tool('deploy', options as never, run as never)).toThrow(/Tool "deploy" needs/)
  })

  test.each([0, -1, Number.NaN])('refuses a timeoutMs of %d', (timeoutMs) => {
    expect(register('deploy', { timeoutMs })).toThrow(`\`timeoutMs\` must be a number above 0, got ${timeoutMs}`)
  })

  test.each([
    {
      what: 'an input that is no object',
      options: { input: z.string() },
      says: 'The input of tool "deploy" must be an object schema',
    },
    { what: 'an input that is a list', options: { input: { type: 'array' } }, says: 'must be an object schema' },
    { what: 'an input without a type', options: { input: { properties: {} } }, says: 'must be an object schema' },
    {
      what: 'an input that JSON Schema cannot say',
      options: { input: z.object({ at: z.date() }) },
      says: 'The input of tool "deploy": zod cannot write the input of this schema as JSON Schema',
    },
    {
      what: 'an output that JSON Schema cannot say',
      options: { output: z.map(z.string(), z.string()) },
      says: 'The output of tool "deploy": zod cannot write the output',
    },
    {
      what: 'valibot without its JSON Schema',
      options: { input: v.object({}) },
      says: "toStandardJsonSchema(schema), from '@valibot/to-json-schema'",
    },
    {
      what: 'a JSON Schema that is malformed',
      options: { input: { type: 'object', properties: { a: { type: 'nothing' } } } },
      says: 'The input of tool "deploy": the schema cannot be used',
    },
    {
      what: 'a JSON Schema that refers to nothing',
      options: { input: { type: 'object', properties: { a: { $ref: '#/$defs/none' } } } },
      says: 'The input of tool "deploy"',
    },
    {
      what: 'a JSON Schema that would have to be fetched',
      options: { output: { $ref: 'https://example.com/schema.json' } },
      says: 'The output of tool "deploy"',
    },
    {
      what: 'a question that no form can ask',
      options: { asks: { where: z.object({ home: z.object({ city: z.string() }) }) } },
      says: /deploy.*asks\.where.*home/,
    },
  ])('refuses $what, and says where', ({ options, says }) => {
    expect(register('deploy', options)).toThrow(says)
  })

  test('leaves no trace of a tool that it refused', async () => {
    const app = newApp()
    expect(() => app.tool('deploy', { input: z.string() as never }, handler)).toThrow('must be an object schema')
    expect(await listed(app)).toEqual([])
    expect(errorOf(await ask(app, 'deploy')).message).toBe('Unknown tool: deploy')
    app.tool('deploy', {}, handler)
    expect(textOf(await ask(app, 'deploy'))).toBe('x')
  })
})
