import type { Rally } from 'mcp-rally'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { call, errorOf, request, resultOf, textOf } from '../wire/messages.ts'
import { ask, makeApp, responseOf } from './messages.ts'
import type { Wire } from './wires.ts'
import { hosts, httpHosts } from './wires.ts'

const header = (name: string): Record<string, string> => ({ 'x-mcp-header': name })

function routedApp(): Rally {
  const { app } = makeApp()
  app.tool(
    'find',
    {
      input: {
        type: 'object',
        properties: {
          region: { type: 'string', ...header('Region') },
          count: { type: 'integer', ...header('Count') },
          dry: { type: 'boolean', ...header('Dry-Run') },
          place: { type: 'object', properties: { city: { type: 'string', ...header('City') } } },
          query: { type: 'string' },
        },
      },
    },
    (args) => JSON.stringify(args),
  )
  // Null is for its schema to allow; the header is left out all the same.
  app.tool('anything', { input: z.looseObject({ region: z.string().meta(header('Region')).optional() }) }, (args) =>
    JSON.stringify(args),
  )
  return app
}

const base64 = (text: string): string => `=?base64?${Buffer.from(text, 'utf8').toString('base64')}?=`

describe.each(httpHosts)('arguments repeated in headers, over $name', ({ open }) => {
  let wire: Wire

  beforeAll(async () => {
    wire = await open(routedApp())
  })
  afterAll(() => wire.close())

  test.each([
    ['a text', { region: 'us-west1' }, { 'Mcp-Param-Region': 'us-west1' }],
    ['a header of any case', { region: 'us-west1' }, { 'mCP-pARAM-rEGION': 'us-west1' }],
    ['a text with a space inside', { region: 'us west' }, { 'Mcp-Param-Region': 'us west' }],
    ['an empty text', { region: '' }, { 'Mcp-Param-Region': '' }],
    [
      'a text that had to be encoded',
      { region: 'Hello, \u4e16\u754c' },
      { 'Mcp-Param-Region': '=?base64?SGVsbG8sIOS4lueVjA==?=' },
    ],
    ['spaces around it', { region: ' padded ' }, { 'Mcp-Param-Region': '=?base64?IHBhZGRlZCA=?=' }],
    ['a line break', { region: 'line1\nline2' }, { 'Mcp-Param-Region': '=?base64?bGluZTEKbGluZTI=?=' }],
    [
      'the brackets themselves',
      { region: '=?base64?literal?=' },
      { 'Mcp-Param-Region': '=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=' },
    ],
    ['a text encoded without need', { region: 'plain' }, { 'Mcp-Param-Region': base64('plain') }],
    ['an opening bracket alone', { region: '=?base64?abc' }, { 'Mcp-Param-Region': '=?base64?abc' }],
    ['an integer', { count: 42 }, { 'Mcp-Param-Count': '42' }],
    ['a negative integer', { count: -7 }, { 'Mcp-Param-Count': '-7' }],
    ['an integer written otherwise', { count: 42 }, { 'Mcp-Param-Count': '42.0' }],
    ['an encoded integer', { count: 42 }, { 'Mcp-Param-Count': base64('42') }],
    ['true', { dry: true }, { 'Mcp-Param-Dry-Run': 'true' }],
    ['false', { dry: false }, { 'Mcp-Param-Dry-Run': 'false' }],
    ['a nested property', { place: { city: 'Oslo' } }, { 'Mcp-Param-City': 'Oslo' }],
    ['a parent that is empty', { place: {} }, {}],
    ['no argument', {}, {}],
    ['an argument without a header of its own', { query: 'x' }, {}],
    ['a header that nobody asked for', { query: 'x' }, { 'Mcp-Param-Query': 'y' }],
    ['several', { region: 'a', count: 1 }, { 'Mcp-Param-Region': 'a', 'Mcp-Param-Count': '1' }],
  ])('agree with the body: %s', async (_what, args, headers) => {
    const { response, status } = await wire.open(call('find', args), headers).answer()
    expect(JSON.parse(textOf(response))).toEqual(args)
    expect(status).toBe(200)
  })

  test('are not expected where the body says null', async () => {
    const { response } = await wire.open(call('anything', { region: null })).answer()
    // It came as far as its schema, which is the one to refuse it.
    expect(resultOf(response)).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('region') }] })
  })

  test.each([
    ['missing', { region: 'a' }, {}, 'the mcp-param-region header is missing'],
    ['missing for an integer of 0', { count: 0 }, {}, 'the mcp-param-count header is missing'],
    ['missing for false', { dry: false }, {}, 'the mcp-param-dry-run header is missing'],
    ['missing for a nested property', { place: { city: 'Oslo' } }, {}, 'the mcp-param-city header is missing'],
    [
      'different',
      { region: 'a' },
      { 'Mcp-Param-Region': 'b' },
      "mcp-param-region header value 'b' does not match body value 'a'",
    ],
    ['different in case', { region: 'a' }, { 'Mcp-Param-Region': 'A' }, "value 'A' does not match body value 'a'"],
    [
      'different once decoded',
      { region: 'a' },
      { 'Mcp-Param-Region': base64('b') },
      "value 'b' does not match body value 'a'",
    ],
    ['a second value', { region: 'a' }, { 'Mcp-Param-Region': 'a, b' }, "value 'a, b' does not match body value 'a'"],
    ['another number', { count: 42 }, { 'Mcp-Param-Count': '43' }, "value '43' does not match body value '42'"],
    ['a number in another form', { count: 1000 }, { 'Mcp-Param-Count': '1e3' }, "value '1e3' does not match"],
    ['no number', { count: 0 }, { 'Mcp-Param-Count': '' }, "value '' does not match body value '0'"],
    ['not a boolean of this case', { dry: true }, { 'Mcp-Param-Dry-Run': 'True' }, "value 'True' does not match"],
    [
      'there without a value in the body',
      {},
      { 'Mcp-Param-Region': 'a' },
      'the mcp-param-region header is set, but the body has no such argument',
    ],
    [
      'there for a null in the body',
      { region: null },
      { 'Mcp-Param-Region': 'null' },
      'header is set, but the body has no such argument',
    ],
    [
      'there where the parent is no object',
      { place: 'x' },
      { 'Mcp-Param-City': 'Oslo' },
      'header is set, but the body has no such argument',
    ],
    [
      'raw beyond ASCII',
      { region: 'caf\u00e9' },
      { 'Mcp-Param-Region': 'caf\u00e9' },
      'the mcp-param-region header is not valid',
    ],
    ['no Base64', { region: 'a' }, { 'Mcp-Param-Region': '=?base64?%%?=' }, 'the mcp-param-region header is not valid'],
    [
      'Base64 that is not canonical',
      { region: 'a' },
      { 'Mcp-Param-Region': '=?base64?YR==?=' },
      'the mcp-param-region header is not valid',
    ],
    ['bracketed in capitals', { region: 'a' }, { 'Mcp-Param-Region': '=?BASE64?YQ==?=' }, 'does not match'],
  ])('are refused with -32020 and 400 where one is %s', async (_what, args, headers, why) => {
    const message = call('find', args)
    const { response, status } = await wire.open(message, headers).answer()
    expect(errorOf(response)).toMatchObject({ code: -32020, message: expect.stringContaining(why) })
    expect(response?.id).toBe(message.id)
    expect(status).toBe(400)
  })

  test.each([
    ['an object', { region: { toString: 'x' } }],
    ['a list', { region: ['a'] }],
    ['arguments that are a list', ['a']],
    ['arguments that are a text', 'a'],
  ])('never break on a body of another shape: %s', async (_what, args) => {
    const message = request('tools/call', { name: 'find', arguments: args })
    const { response, status } = await wire.open(message, { 'Mcp-Param-Region': 'a' }).answer()
    expect(errorOf(response).code).toBe(-32020)
    expect(status).toBe(400)
  })
})

describe.each(hosts.filter(({ isHttp }) => !isHttp))('over $name', ({ open }) => {
  test('there are no headers to hold an argument against', async () => {
    const wire = await open(routedApp())
    expect(JSON.parse(textOf(await ask(wire, call('find', { region: 'a', count: 1 }))))).toEqual({
      region: 'a',
      count: 1,
    })
    await wire.close()
  })
})

describe('the keyword', () => {
  test('is shown to clients as it was written', async () => {
    const { tools } = resultOf(await responseOf(routedApp(), request('tools/list'))) as {
      tools: { name: string; inputSchema: { properties: Record<string, object> } }[]
    }
    expect(tools[0]?.inputSchema.properties['region']).toEqual({ type: 'string', 'x-mcp-header': 'Region' })
  })

  test('in a wrong place is an error when the tool is registered', () => {
    expect(() =>
      makeApp().app.tool(
        'find',
        { input: { type: 'object', properties: { region: { type: ['string'], ...header('Region') } } } },
        () => '',
      ),
    ).toThrow(
      'The input of tool "find": x-mcp-header at region needs the type string, integer or boolean, which may be nullable, got an array.',
    )
  })
})
