import { rally } from 'mcp-rally'
import type { Authenticate } from 'mcp-rally'
import type { ServeOptions, Serving } from 'mcp-rally/node'
import { serve } from 'mcp-rally/node'
import { describe, expect, onTestFinished, test } from 'vitest'
import { call } from '../../test/wire/messages.ts'
import type { HttpResponse } from '../../test/wire/socket.ts'
import { Connection, post } from '../../test/wire/socket.ts'

const app = () => rally({ name: 'probed', version: '1', logger: { warn() {}, error() {} } })

const nobody: Authenticate = () => undefined

async function serveProbed(options: ServeOptions = {}): Promise<Serving> {
  const serving = await serve(app(), { port: 0, drainMs: 0, ...options })
  onTestFinished(() => serving.close())
  return serving
}

async function get(port: number, path: string, headers = 'Host: 10.0.0.7:3000', method = 'GET'): Promise<HttpResponse> {
  const connection = await Connection.open(port)
  connection.write(`${method} ${path} HTTP/1.1\r\n${headers}\r\n\r\n`)
  return connection.next({ toHead: method === 'HEAD' })
}

describe('a probe', () => {
  test.each([
    { path: '/livez', status: 200, body: 'alive\n' },
    { path: '/readyz', status: 200, body: 'ready\n' },
    { path: '/readyz?verbose=1', status: 200, body: 'ready\n' },
  ])('of $path is $status for any Host and Origin, without a token', async ({ path, status, body }) => {
    const { port } = await serveProbed({ authenticate: nobody })
    const response = await get(port, path, 'Host: 10.0.0.7:3000\r\nOrigin: https://evil.example')
    expect(response).toMatchObject({ status, body })
    expect(response.headers).toMatchObject({ 'content-type': 'text/plain', 'cache-control': 'no-store' })
  })

  test('may be a HEAD, and nothing else', async () => {
    const { port } = await serveProbed()
    expect(await get(port, '/readyz', undefined, 'HEAD')).toMatchObject({ status: 200, body: '' })
    expect(await get(port, '/livez', 'Host: a\r\nContent-Length: 0', 'POST')).toMatchObject({ status: 405 })
  })

  test('is answered while all other requests are refused', async () => {
    const busy = app().tool('wait', {}, () => new Promise<string>(() => {}))
    const { port, close } = await serve(busy, { port: 0, drainMs: 0, maxInFlight: 1 })
    onTestFinished(close)
    const [first, second] = [await Connection.open(port), await Connection.open(port)]
    first.write(post(call('wait')))
    second.write(post(call('wait')))
    expect((await second.next()).status).toBe(503)
    expect((await get(port, '/livez')).status).toBe(200)
    expect((await get(port, '/readyz')).status).toBe(200)
  })

  test('finds its paths where the options say, or nowhere', async () => {
    const moved = await serveProbed({ livezPath: '/health/live', readyzPath: '/health/ready' })
    expect((await get(moved.port, '/health/live')).body).toBe('alive\n')
    expect((await get(moved.port, '/health/ready')).body).toBe('ready\n')
    expect((await get(moved.port, '/livez')).status).toBe(404)
    const off = await serveProbed({ livezPath: false, readyzPath: false })
    expect((await get(off.port, '/livez')).status).toBe(404)
    expect((await get(off.port, '/readyz')).status).toBe(404)
  })

  test('says that the instance is shutting down', async () => {
    const leaving = app()
    const serving = await serve(leaving, { port: 0, drainMs: 0 })
    onTestFinished(() => serving.close())
    leaving.failReadiness()
    expect(await get(serving.port, '/readyz')).toMatchObject({
      status: 503,
      body: 'not ready: the instance is shutting down\n',
    })
    expect((await get(serving.port, '/livez')).status).toBe(200)
  })
})

test.each([
  {
    options: { livezPath: 'livez' },
    problem: '`livezPath` must be a path that begins with "/", or false, got "livez".',
  },
  { options: { readyzPath: '/mcp' }, problem: '`readyzPath` must not be the same as `path`, got "/mcp" for both.' },
  { options: { readyzPath: '/livez' }, problem: '`readyzPath` must not be the same as `livezPath`' },
  { options: { drainDelayMs: -1 }, problem: '`drainDelayMs` must be a number of 0 or more, got -1.' },
])('serve() refuses $options', ({ options, problem }) => {
  expect(() => serve(app(), { port: 0, ...options })).toThrow(problem)
})
