// Bodies that something else has read before the handler was called, as body parsers of frameworks do.
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { rally } from 'mcp-rally'
import { nodeHandler } from 'mcp-rally/node'
import { describe, expect, onTestFinished, test } from 'vitest'
import { call, headersOf, textOf } from '../../test/wire/messages.ts'
import type { NodeHandler } from './node.ts'

const LIMIT = 10_000

/** What a framework does with a request after it has read the body. */
type Mount = (
  handle: NodeHandler,
  request: IncomingMessage & { body?: unknown },
  response: ServerResponse,
  body: string,
) => void

const logged: string[] = []
const app = rally({ name: 'parsed', version: '1', logger: { warn() {}, error: (line) => void logged.push(line) } })
app.tool(
  'greet',
  { input: { type: 'object', properties: { name: { type: 'string' } } } },
  ({ name }) => `Hello, ${String(name)}`,
)

async function sent(mount: Mount, message: object): Promise<{ status: number; body: { error?: { message: string } } }> {
  const handle = nodeHandler(app, { maxBodyBytes: LIMIT })
  const server = createServer((request, response) => {
    void text(request).then((body) => mount(handle, request, response, body))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const response = await fetch(`http://127.0.0.1:${port}`, {
    method: 'POST',
    headers: headersOf(message),
    // Without a length, which would be refused before the body is looked at.
    body: new Blob([JSON.stringify(message)]).stream(),
    duplex: 'half',
  })
  return { status: response.status, body: (await response.json()) as object }
}

const asThird: Mount = (handle, request, response, body) => handle(request, response, JSON.parse(body))

describe('nodeHandler', () => {
  test.each<{ from: string; mount: Mount }>([
    {
      from: 'request.body, where express.json() leaves it',
      mount: (handle, request, response, body) => {
        request.body = JSON.parse(body)
        handle(request, response, () => {})
      },
    },
    {
      from: 'request.body as bytes',
      mount: (handle, request, response, body) => {
        request.body = Buffer.from(body)
        handle(request, response)
      },
    },
    {
      from: 'request.body as text',
      mount: (handle, request, response, body) => {
        request.body = body
        handle(request, response)
      },
    },
    {
      from: 'its third argument, also when request.body is something else',
      mount: (handle, request, response, body) => {
        request.body = {}
        handle(request, response, JSON.parse(body))
      },
    },
  ])('takes a body that was read from $from', async ({ mount }) => {
    const { status, body } = await sent(mount, call('greet', { name: 'Ada' }))
    expect([status, textOf(body)]).toEqual([200, 'Hello, Ada'])
  })

  test('holds a parsed body to maxBodyBytes', async () => {
    const { status, body } = await sent(asThird, call('greet', { name: 'a'.repeat(LIMIT) }))
    expect([status, body.error?.message]).toEqual([413, `The body is larger than ${LIMIT} bytes.`])
  })

  const itself: unknown[] = []
  itself.push(itself)
  test.each([
    { what: 'was read and lost', parsed: undefined, problem: 'is missing' },
    { what: 'was parsed to what is not JSON', parsed: itself, problem: 'is not JSON' },
  ])('says so when the body $what', async ({ parsed, problem }) => {
    logged.length = 0
    const { status, body } = await sent((handle, request, response) => handle(request, response, parsed), call('greet'))
    const why = `The body of this request was read before the MCP handler got it, and its parsed value ${problem}. Call the handler before anything reads the body, or pass the parsed body as its third argument: handle(request, response, body).`
    expect([status, body.error]).toEqual([500, { code: -32603, message: why }])
    expect(logged).toEqual([why])
  })

  test('reads the body itself when a parser left a value but did not read', async () => {
    const handle = nodeHandler(app)
    const server = createServer((request, response) => handle(Object.assign(request, { body: {} }), response))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const message = call('greet', { name: 'Ada' })
    const init = { method: 'POST', headers: headersOf(message), body: JSON.stringify(message) }
    const response = await fetch(`http://127.0.0.1:${port}`, init)
    expect(textOf((await response.json()) as object)).toBe('Hello, Ada')
  })
})

describe('app.fetch', () => {
  test.each([
    { what: 'was read', read: async (request: Request) => void (await request.text()) },
    { what: 'is being read', read: async (request: Request) => void request.body?.getReader() },
  ])('says so when the body $what by something else', async ({ read }) => {
    const message = call('greet')
    const init = { method: 'POST', headers: headersOf(message), body: JSON.stringify(message) }
    const request = new Request('http://localhost/mcp', init)
    await read(request)
    const response = await app.fetch(request)
    expect(response.status).toBe(500)
    expect(await response.text()).toContain('Pass `request.clone()` to what reads it first')
  })
})
