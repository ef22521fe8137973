import { rally } from 'mcp-rally'
import { serve } from 'mcp-rally/node'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call, errorOf, headersOf, request, textOf } from '../../test/wire/messages.ts'
import { problemsOf } from '../../test/wire/spec.ts'
import { META_VERSION } from '../protocol/revisions/2026-07-28.ts'
import { decodeHeader } from '../protocol/headers.ts'

const app = rally({ name: 'agreement', version: '1', legacy: false, logger: { warn() {}, error() {} } })
app.tool('greet', {}, () => 'Hello')
app.tool(
  'deploy',
  { input: { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } } },
  () => 'Done',
)

interface Sent {
  status: number
  message: object | undefined
}

const hosts = [
  {
    name: 'app.fetch',
    open: async () => ({
      ask: (init: RequestInit) => app.fetch(new Request('http://localhost/mcp', init)),
      close: async () => {},
    }),
  },
  {
    name: 'Node HTTP',
    open: async () => {
      const { url, close } = await serve(app, { port: 0 })
      return { ask: (init: RequestInit) => fetch(url, init), close }
    },
  },
]

describe.each(hosts)('$name', ({ open }) => {
  let host: Awaited<ReturnType<typeof open>>
  beforeAll(async () => {
    host = await open()
  })
  afterAll(() => host.close())

  const send = async (message: object, headers: Record<string, string | undefined> = {}): Promise<Sent> => {
    const given = Object.entries({ ...headersOf(message), ...headers }).filter(([, value]) => value !== undefined)
    const init = { method: 'POST', headers: given as [string, string][], body: JSON.stringify(message) }
    const response = await host.ask(init)
    const text = await response.text()
    const answer = text === '' ? undefined : (JSON.parse(text) as object)
    if (answer !== undefined) expect(problemsOf(answer, Reflect.get(message, 'method'))).toEqual([])
    return { status: response.status, message: answer }
  }

  test('a request whose headers say what its body says is served', async () => {
    const { status, message } = await send(call('greet'))
    expect(status).toBe(200)
    expect(textOf(message)).toBe('Hello')
  })

  test.each([
    { header: 'MCP-Protocol-Version', value: undefined, why: 'the MCP-Protocol-Version header is missing' },
    {
      header: 'MCP-Protocol-Version',
      value: '2025-11-25',
      why: "MCP-Protocol-Version header value '2025-11-25' does not match body value '2026-07-28'",
    },
    { header: 'Mcp-Method', value: undefined, why: 'the Mcp-Method header is missing' },
    {
      header: 'Mcp-Method',
      value: 'tools/list',
      why: "Mcp-Method header value 'tools/list' does not match body value 'tools/call'",
    },
    {
      header: 'Mcp-Method',
      value: 'Tools/Call',
      why: "Mcp-Method header value 'Tools/Call' does not match body value 'tools/call'",
    },
    { header: 'Mcp-Name', value: undefined, why: 'the Mcp-Name header is missing' },
    { header: 'Mcp-Name', value: 'deploy', why: "Mcp-Name header value 'deploy' does not match body value 'greet'" },
    { header: 'Mcp-Name', value: 'Greet', why: "Mcp-Name header value 'Greet' does not match body value 'greet'" },
    { header: 'Mcp-Name', value: '', why: "Mcp-Name header value '' does not match body value 'greet'" },
    { header: 'Mcp-Name', value: '=?base64?Z3JlZXQ?=', why: 'the Mcp-Name header is not valid' },
    { header: 'Mcp-Name', value: '=?base64?***?=', why: 'the Mcp-Name header is not valid' },
    { header: 'Mcp-Name', value: 'gr\u00e9et', why: 'the Mcp-Name header is not valid' },
  ])('$header of $value is -32020 with status 400', async ({ header, value, why }) => {
    const { status, message } = await send(call('greet'), { [header]: value })
    expect(status).toBe(400)
    expect(errorOf(message)).toEqual({ code: -32020, message: `Header mismatch: ${why}` })
  })

  test('the error says whose it is', async () => {
    const sent = call('greet')
    expect((await send(sent, { 'Mcp-Name': 'x' })).message).toHaveProperty('id', sent.id)
  })

  test('a name may come as Base64', async () => {
    const { message } = await send(call('greet'), { 'Mcp-Name': '=?base64?Z3JlZXQ=?=' })
    expect(textOf(message)).toBe('Hello')
  })

  test('a name that no header can hold comes as Base64, and agrees', async () => {
    const { status, message } = await send(call('gr\u00fc\u00dfe \u{1f44b}'))
    expect(status).toBe(200)
    expect(errorOf(message)).toEqual({ code: -32602, message: 'Unknown tool: gr\u00fc\u00dfe \u{1f44b}' })
  })

  test('only what has a name needs Mcp-Name', async () => {
    for (const method of ['tools/list', 'server/discover']) {
      expect((await send(request(method), { 'Mcp-Name': undefined })).status).toBe(200)
    }
  })

  test('Mcp-Name has no meaning with a method that names nothing, or that is not known', async () => {
    const other = { 'Mcp-Name': 'x' }
    expect((await send(request('tools/list'), other)).status).toBe(200)
    expect((await send(request('com.example/nothing', { name: 'y' }), other)).status).toBe(404)
  })

  test('the headers of a notification are not looked at', async () => {
    const notification = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }
    const bare = { 'MCP-Protocol-Version': undefined, 'Mcp-Method': undefined }
    expect(await send(notification, bare)).toEqual({ status: 202, message: undefined })
  })

  test('who begins as older revisions do, and is turned away, is told the revisions, whatever the headers', async () => {
    const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2024-11-05' } }
    const { status, message } = await send(initialize, { 'MCP-Protocol-Version': undefined, 'Mcp-Method': undefined })
    expect(status).toBe(400)
    expect(errorOf(message)).toMatchObject({ code: -32022, data: { requested: '2024-11-05' } })
  })

  test('what is wrong with the body is told by its own code: headers that agree hide nothing', async () => {
    const old = await send(request('tools/list', {}, { [META_VERSION]: '2025-11-25' }))
    expect([old.status, errorOf(old.message).code]).toEqual([400, -32022])
    const unnamed = await send(request('tools/call', { name: 7 }), { 'Mcp-Name': '7' })
    expect([unnamed.status, errorOf(unnamed.message).code]).toEqual([200, -32602])
    const nowhere = await send(request('tools/destroy'))
    expect([nowhere.status, errorOf(nowhere.message).code]).toEqual([404, -32601])
  })

  test('an argument that has a header of its own agrees with it, or the call is -32020', async () => {
    const sent = call('deploy', { region: 'eu' })
    expect(textOf((await send(sent, { 'Mcp-Param-Region': 'eu' })).message)).toBe('Done')
    for (const wrong of [undefined, 'us', 'EU']) {
      const { status, message } = await send(sent, { 'Mcp-Param-Region': wrong })
      expect([status, errorOf(message).code]).toEqual([400, -32020])
    }
    expect((await send(call('deploy'), { 'Mcp-Param-Region': 'eu' })).status).toBe(400)
    expect((await send(call('deploy'))).status).toBe(200)
  })
})

describe('decodeHeader', () => {
  test.each([
    ['', ''],
    ['greet', 'greet'],
    ['a b\tc', 'a b\tc'],
    ['=?base64??=', ''],
    ['=?base64?w6k=?=', '\u00e9'],
    ['=?base64?8J+Yhg==?=', '\u{1f606}'],
    ['=?base64?PT9iYXNlNjQ/YT89?=', '=?base64?a?='],
    // These only look like it.
    ['=?base64?Z3JlZXQ=', '=?base64?Z3JlZXQ='],
    ['=?BASE64?Z3JlZXQ=?=', '=?BASE64?Z3JlZXQ=?='],
    ['=?utf-8?B?Z3JlZXQ=?=', '=?utf-8?B?Z3JlZXQ=?='],
  ])('reads %j as %j', (header, value) => {
    expect(decodeHeader(header)).toBe(value)
  })

  test.each([
    '=?base64?Z3JlZXQ?=',
    '=?base64?Z3JlZXQ==?=',
    '=?base64?Z3Jl ZXQ=?=',
    '=?base64?w6l=?=',
    '=?base64?8J-Yhg==?=',
    '=?base64?=Z3JlZXQ?=',
    '\u00e9',
    'a\u0000b',
    'a\u007fb',
    '\u{1f606}',
  ])('refuses %j', (header) => {
    expect(decodeHeader(header)).toBeUndefined()
  })
})
