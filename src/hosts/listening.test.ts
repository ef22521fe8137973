import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { rally } from 'mcp-rally'
import type { ServeOptions, Serving } from 'mcp-rally/node'
import { nodeHandler, serve } from 'mcp-rally/node'
import { describe, expect, onTestFinished, test } from 'vitest'
import { askedIn, call, headersOf, request, textOf } from '../../test/wire/messages.ts'
import { Connection, post } from '../../test/wire/socket.ts'
import type { App } from '../server/app.ts'

const quiet = { warn() {}, error() {} }

function greeter(): App {
  return rally({ name: 'greeter', version: '1', logger: quiet }).tool('greet', {}, () => 'Hello')
}

async function served(app: App, options: ServeOptions = {}): Promise<Serving> {
  const serving = await serve(app, { port: 0, ...options })
  onTestFinished(() => serving.close())
  return serving
}

async function ask(url: string, message: object): Promise<object> {
  const response = await fetch(url, { method: 'POST', headers: headersOf(message), body: JSON.stringify(message) })
  return (await response.json()) as object
}

describe('listening', () => {
  test('is on loopback, at /mcp, on the port that was free', async () => {
    const { url, port, server } = await served(greeter())
    expect(url).toBe(`http://127.0.0.1:${port}/mcp`)
    expect(server.address()).toMatchObject({ address: '127.0.0.1', port })
    expect(textOf(await ask(url, call('greet')))).toBe('Hello')
  })

  test('is on IPv6 loopback where that is asked for', async () => {
    const { url, port } = await served(greeter(), { host: '::1' })
    expect(url).toBe(`http://[::1]:${port}/mcp`)
    expect(textOf(await ask(url, call('greet')))).toBe('Hello')
  })

  test('beyond loopback needs to be told which hosts are served', async () => {
    expect(() => serve(greeter(), { port: 0, host: '0.0.0.0' })).toThrow(
      "Pass the host names that it serves, allowedHosts: ['mcp.example.com'], or '*' for any.",
    )
    const { port } = await served(greeter(), { host: '0.0.0.0', allowedHosts: ['mcp.example.com'] })
    const connection = await Connection.open(port)
    connection.write(post(call('greet'), { headers: { Host: 'mcp.example.com' } }))
    expect((await connection.next()).status).toBe(200)
    connection.write(post(call('greet'), { headers: { Host: 'localhost' } }))
    expect((await connection.next()).status).toBe(403)
  })

  test('is at the path that was given and at no other', async () => {
    const { url, port } = await served(greeter(), { path: '/tools/mcp' })
    expect(textOf(await ask(url, call('greet')))).toBe('Hello')
    expect(textOf(await ask(`${url}?session=1`, call('greet')))).toBe('Hello')
    const others = ['/mcp', '/', '/tools/mcp/', '/tools/mcpx', '/tools', '//tools/mcp', 'http://localhost/tools/mcp']
    for (const path of others) {
      const connection = await Connection.open(port)
      connection.write(post(call('greet'), { path }))
      const { status, body } = await connection.next()
      expect([path, status]).toEqual([path, 404])
      expect(body).toContain('the endpoint is /tools/mcp.')
    }
  })

  test('may be left to a server that is there already', async () => {
    const server = createServer(nodeHandler(greeter()))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    expect(textOf(await ask(`http://127.0.0.1:${port}/anywhere`, call('greet')))).toBe('Hello')
  })
})

describe('the warning about a key made at start-up', () => {
  test('comes once, with the first state that is given away over HTTP', async () => {
    const { app, warnings } = asking({})
    const { url } = await served(app)
    await ask(url, request('tools/list'))
    expect(warnings).toEqual([])
    for (const _ of [1, 2, 3]) askedIn(await ask(url, call('deploy')))
    expect(warnings).toEqual([expect.stringContaining('Pass `keys` to rally()')])
  })

  test('does not come where a key was given, or where the state stays in the process', async () => {
    const keyed = asking({ keys: ['a secret, long enough for the tests'] })
    askedIn(await ask((await served(keyed.app)).url, call('deploy')))
    expect(keyed.warnings).toEqual([])
    const local = asking({})
    await local.app.dispatch(call('deploy'))
    expect(local.warnings).toEqual([])
  })
})

/** An app whose one tool asks, and what it has warned of. */
function asking(options: object): { app: App; warnings: string[] } {
  const warnings: string[] = []
  const logger = { ...quiet, warn: (text: string) => void warnings.push(text) }
  const app = rally({ name: 'asking', version: '1', logger, ...options })
  app.tool('deploy', {}, async (_args, io) => String(await io.confirm('sure', 'Sure?')))
  return { app, warnings }
}
