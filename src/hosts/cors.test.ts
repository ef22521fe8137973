import type { AuthenticatedCaller, HttpRequest } from 'mcp-rally'
import { AuthenticationError, rally } from 'mcp-rally'
import { serve } from 'mcp-rally/node'
import { describe, expect, test } from 'vitest'
import type { HttpOptions } from './http.ts'
import { load, loadLimits } from './load.ts'

const PAGE = 'https://app.example.com'
const BODY = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: {
    name: 'hello',
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
      progressToken: 1,
    },
  },
})
const MESSAGE = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  'mcp-protocol-version': '2026-07-28',
  'mcp-method': 'tools/call',
  'mcp-name': 'hello',
}
const ASKING = {
  'access-control-request-method': 'POST',
  'access-control-request-headers':
    'authorization,content-type,mcp-method,mcp-name,mcp-param-region,mcp-protocol-version',
}

const hosts = [
  {
    host: 'serve',
    open: async (http: HttpOptions) => {
      const { url, close } = await serve(appOf(http), { ...http, port: 0, handleSignals: false })
      return { send: (init: RequestInit) => fetch(url, init), close }
    },
  },
  {
    host: 'app.fetch',
    open: async (http: HttpOptions) => {
      const app = appOf(http)
      const send = (init: RequestInit): Promise<Response> => app.fetch(new Request('http://localhost/mcp', init))
      return { send, close: async () => {} }
    },
  },
]

describe.each(hosts)('$host', ({ open }) => {
  async function sent(http: HttpOptions, init: RequestInit & { headers: Record<string, string> }): Promise<Response> {
    const { send, close } = await open(http)
    try {
      const response = await send(init)
      await response.text()
      return response
    } finally {
      await close()
    }
  }

  test('lets a page of a named origin ask first, before it authenticates', async () => {
    const response = await sent(
      { allowedOrigins: [PAGE], authenticate },
      { method: 'OPTIONS', headers: { origin: PAGE, ...ASKING } },
    )
    expect(response.status).toBe(204)
    expect(corsOf(response)).toEqual({
      'access-control-allow-origin': PAGE,
      'access-control-allow-methods': 'POST, GET, DELETE',
      'access-control-allow-headers': ASKING['access-control-request-headers'],
      'access-control-expose-headers': 'Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate, Retry-After',
      'access-control-max-age': '7200',
      vary: 'Origin',
    })
  })

  test.each([
    { what: 'a result', headers: MESSAGE, status: 200 },
    { what: 'a stream', headers: MESSAGE, status: 200, tool: 'slowly' },
    { what: 'a refusal of the body', headers: { 'content-type': 'text/plain' }, status: 415 },
    { what: 'a refusal of the caller', headers: MESSAGE, status: 401, token: '' },
  ])('lets the page read $what', async ({ headers, status, tool = 'hello', token = 'ann' }) => {
    const response = await sent(
      { allowedOrigins: [PAGE], authenticate },
      {
        method: 'POST',
        body: BODY.replace('hello', tool),
        headers: { ...headers, ...('mcp-name' in headers && { 'mcp-name': tool }), origin: PAGE, authorization: token },
      },
    )
    expect(response.status).toBe(status)
    expect(response.headers.get('content-type')).toMatch(tool === 'slowly' ? /event-stream/ : /json/)
    expect(corsOf(response)).toEqual({
      'access-control-allow-origin': PAGE,
      'access-control-expose-headers': 'Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate, Retry-After',
      vary: 'Origin',
    })
  })

  test('lets the page read that the server is overloaded, also on a connection that was used before', async () => {
    const { send, close } = await open({ allowedOrigins: [PAGE], maxInFlight: 1 })
    const init = { method: 'POST', body: BODY, headers: { ...MESSAGE, origin: PAGE } }
    await (await send(init)).text()
    const leave = occupy()
    for (let n = 0; n < 3; n += 1) {
      const response = await send(init)
      expect([response.status, await response.text()]).toEqual([503, expect.stringContaining('maxInFlight')])
      expect(corsOf(response)).toMatchObject({ 'access-control-allow-origin': PAGE, vary: 'Origin' })
      const asked = await send({ method: 'OPTIONS', headers: { origin: PAGE, ...ASKING } })
      expect([asked.status, await asked.text()]).toEqual([204, ''])
    }
    leave()
    await close()
  })

  test('names any origin if any may call, and allows no header that is not one', async () => {
    const response = await sent(
      { allowedOrigins: '*' },
      { method: 'OPTIONS', headers: { origin: PAGE, ...ASKING, 'access-control-request-headers': 'a b' } },
    )
    expect(response.headers.get('access-control-allow-origin')).toBe('*')
    expect(response.headers.has('access-control-allow-headers')).toBe(false)
  })

  test.each([
    { what: 'another origin', http: { allowedOrigins: ['https://other.example'] }, origin: PAGE, status: 403 },
    { what: 'an origin that only the default admits', http: {}, origin: 'http://localhost:5173', status: 405 },
  ])('gives nothing to $what', async ({ http, origin, status }) => {
    const response = await sent(http, { method: 'OPTIONS', headers: { origin, ...ASKING } })
    expect(response.status).toBe(status)
    expect(corsOf(response)).toEqual({})
  })
})

/** Counts as a request that is being served, until the returned function is called. */
function occupy(): () => void {
  const request = { limits: loadLimits({}, 1), caller: undefined, servedBytes: undefined, holds: 0 }
  load.enter(request, 0)
  return () => load.leave(request)
}

function appOf(http: HttpOptions): ReturnType<typeof rally> {
  const app = rally({ name: 'cors', version: '1.0.0', http })
  app.tool('hello', {}, () => 'Hello')
  return app.tool('slowly', {}, (_args, io) => {
    io.progress(1, 2)
    return 'Hello'
  })
}

function authenticate(request: HttpRequest): AuthenticatedCaller {
  const principal = request.header('authorization')
  if (!principal) throw new AuthenticationError(401, 'No token.')
  return { principal }
}

function corsOf({ headers }: Response): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => name === 'vary' || name.startsWith('access-control')))
}
