import { once } from 'node:events'
import type { Socket } from 'node:net'
import { connect } from 'node:net'
import { rally } from 'mcp-rally'
import { describe, expect, onTestFinished, test } from 'vitest'
import { call, headersOf, request, resultOf } from '../../test/wire/messages.ts'
import type { Gate } from '../testing/manual-scheduler.ts'
import { gate } from '../testing/manual-scheduler.ts'
import type { Serving, ServeOptions } from './serve.ts'
import { serve } from './serve.ts'

/** Longer than any test may take: what ends before has not waited for it. */
const NEVER_MS = 600_000

const BIG = 'x'.repeat(20_000_000)

/** An app with a step that the test holds up. */
class Desk {
  readonly running = gate()
  readonly release = gate()
  readonly app = rally({
    name: 'desk',
    version: '1.0.0',
    keys: ['a secret of the serve tests, long enough'],
    logger: { warn() {}, error() {} },
  })
    .tool('greet', {}, () => 'Hello!')
    .tool('big', {}, () => BIG)
    .tool('work', {}, async (_args, io) => {
      await io.step('one', () => {
        this.running.open()
        return this.release.promise
      })
      await io.step('two', () => {})
      return 'Done.'
    })
    .tool('stay', {}, async () => {
      this.running.open()
      await this.release.promise
      return 'Stayed.'
    })

  async serve(options: ServeOptions = {}): Promise<Serving> {
    const serving = await serve(this.app, { port: 0, drainMs: NEVER_MS, ...options })
    onTestFinished(async () => {
      serving.server.closeAllConnections()
      await serving.close()
    })
    return serving
  }
}

/** A connection on which the test writes for itself. */
class Connection {
  readonly socket: Socket
  text = ''
  readonly #waiting = new Set<() => void>()

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1')
    this.socket.setEncoding('utf8')
    this.socket.on('data', (text: string) => {
      this.text += text
      for (const look of this.#waiting) look()
    })
    this.socket.on('error', () => {})
    onTestFinished(() => void this.socket.destroy())
  }

  static async open({ port, server }: Serving): Promise<Connection> {
    const accepted = once(server, 'connection')
    const connection = new Connection(port)
    await accepted
    return connection
  }

  post(message: { method: string }): void {
    const body = JSON.stringify(message)
    const headers = { ...headersOf(message), Host: 'localhost', 'Content-Length': String(Buffer.byteLength(body)) }
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    this.socket.write(`POST /mcp HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
  }

  /** Resolves once this much has come. */
  until(pattern: RegExp): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (!pattern.test(this.text)) return
        this.#waiting.delete(look)
        resolve()
      }
      this.#waiting.add(look)
      look()
    })
  }

  async closed(): Promise<void> {
    if (!this.socket.closed) await once(this.socket, 'close')
  }
}

test.each([
  [{ handleSignals: 'false' }, '`handleSignals` must be true or false, got "false".'],
  [{ maxBodyBytes: '4' }, '`maxBodyBytes` must be a number above 0, got "4".'],
  [{ authenticate: {} }, '`authenticate` must be a function, got an object.'],
  [{ authenticate: null }, '`authenticate` must be a function, got null.'],
  [{ authenticate: Promise.resolve({ principal: 'ada' }) }, '`authenticate` must be a function, got an object.'],
])('serve() refuses %j', (options, says) => {
  const refused = { code: 'OPTION_INVALID', message: expect.stringContaining(says) as unknown }
  const { app } = new Desk()
  expect(() => serve(app, { port: 0, ...(options as object) })).toThrow(expect.objectContaining(refused))
})

describe('close', () => {
  test('serves no app that has been closed', async () => {
    const desk = new Desk()
    const { close } = await desk.serve()
    await close()
    expect(() => serve(desk.app, { port: 0 })).toThrow('Create a new one to serve again')
  })

  test('needs no drain limit to pass when nothing is under way', async () => {
    const serving = await new Desk().serve()
    await serving.close()
    expect(serving.server.listening).toBe(false)
  })

  test('gives the same end to whoever calls it again, before and after it', async () => {
    const desk = new Desk()
    const serving = await desk.serve()
    const connection = await Connection.open(serving)
    connection.post(call('work'))
    await desk.running.promise
    const [first, second] = [serving.close(), serving.close()]
    expect(second).toBe(first)
    desk.release.open()
    await first
    expect(serving.close()).toBe(first)
  })

  test('closes connections that are kept alive and idle', async () => {
    const serving = await new Desk().serve()
    const connection = await Connection.open(serving)
    connection.post(call('greet'))
    await connection.until(/Hello!/)
    expect(connection.text).not.toMatch(/connection: close/i)
    await serving.close()
    await connection.closed()
  })

  test('closes connections on which nothing was ever said', async () => {
    const serving = await new Desk().serve()
    const connection = await Connection.open(serving)
    await serving.close()
    await connection.closed()
  })

  test('still answers the first request of a connection that was just opened, and then closes it', async () => {
    const serving = await new Desk().serve()
    const [silent, listening] = [await Connection.open(serving), await Connection.open(serving)]
    listening.post(request('subscriptions/listen', { notifications: {} }))
    await listening.until(/subscriptions\/acknowledged/)
    const closed = serving.close()
    // Only a drain that is well under way closes this one.
    await listening.closed()
    silent.post(call('greet'))
    await silent.until(/Hello!/)
    expect(silent.text).toMatch(/^HTTP\/1.1 200 OK\r\n/)
    expect(silent.text).toMatch(/connection: close/i)
    await silent.closed()
    await closed
  })

  test('still answers a request whose head had come, on a connection that is kept alive', async () => {
    const serving = await new Desk().serve()
    const connection = await Connection.open(serving)
    connection.post(call('greet'))
    await connection.until(/Hello!/)
    connection.text = ''
    const arrived = once(serving.server, 'request')
    const body = JSON.stringify(call('greet'))
    const headers = { ...headersOf(call('greet')), Host: 'localhost', 'Content-Length': String(body.length) }
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    connection.socket.write(`POST /mcp HTTP/1.1\r\n${lines.join('')}\r\n`)
    await arrived
    const closed = serving.close()
    connection.socket.write(body)
    await connection.until(/Hello!/)
    expect(connection.text).toMatch(/connection: close/i)
    await closed
  })

  test('hands over the call under way, and its response closes the connection', async () => {
    const desk = new Desk()
    const serving = await desk.serve()
    const connection = await Connection.open(serving)
    connection.post(call('work'))
    await desk.running.promise
    const closed = serving.close()
    desk.release.open()
    await closed
    await connection.closed()
    const [head = '', body = ''] = connection.text.split('\r\n\r\n')
    expect(head).toMatch(/^HTTP\/1.1 200 OK\r\n/)
    expect(head).toMatch(/connection: close/i)
    expect(Object.keys(resultOf(JSON.parse(body) as object)).toSorted()).toEqual([
      '_meta',
      'requestState',
      'resultType',
    ])
  })

  test('ends subscription streams with their result, and their connections', async () => {
    const serving = await new Desk().serve()
    const connection = await Connection.open(serving)
    const listen = request('subscriptions/listen', { notifications: { toolsListChanged: true } })
    connection.post(listen)
    await connection.until(/subscriptions\/acknowledged/)
    await serving.close()
    await connection.closed()
    expect(connection.text).toMatch(new RegExp(`"id":${listen.id},"result":{"resultType":"complete"`))
    expect(connection.text).toMatch(/0\r\n\r\n$/)
  })

  test('interrupts at the drain limit, and the answers still get out', async () => {
    const desk = new Desk()
    const serving = await desk.serve({ drainMs: 50 })
    const [working, staying] = [await Connection.open(serving), await Connection.open(serving)]
    working.post(call('work'))
    await desk.running.promise
    staying.post(call('stay'))
    await once(serving.server, 'request')
    await serving.close()
    await Promise.all([working.closed(), staying.closed()])
    expect(working.text).toMatch(/"resultType":"input_required","requestState"/)
    expect(staying.text).toMatch(/INTERRUPTED/)
    desk.release.open()
  })

  test('cuts off whoever does not even read their answer, a second after the drain limit', async () => {
    const serving = await new Desk().serve({ drainMs: 10 })
    const connection = await Connection.open(serving)
    connection.socket.pause()
    await responded(serving, () => connection.post(call('big')))
    await serving.close()
    expect(serving.server.listening).toBe(false)
  })

  test('does not cut off a response that a slow reader is still taking', async () => {
    const serving = await new Desk().serve()
    const connection = await Connection.open(serving)
    connection.socket.pause()
    await responded(serving, () => connection.post(call('big')))
    const closed = serving.close()
    connection.socket.resume()
    await closed
    await connection.closed()
    expect(connection.text.length).toBeGreaterThan(BIG.length)
    expect(connection.text.endsWith('}')).toBe(true)
  })
})

describe.each(['SIGTERM', 'SIGINT'] as const)('%s', (signal) => {
  test('is listened to while the server is there, by one listener for all, and by none after', async () => {
    const before = process.listenerCount(signal)
    const [first, second] = [await new Desk().serve(), await new Desk().serve()]
    expect(process.listenerCount(signal)).toBe(before + 1)
    await first.close()
    expect(process.listenerCount(signal)).toBe(before + 1)
    await second.close()
    expect(process.listenerCount(signal)).toBe(before)
  })

  test("is nobody's business with handleSignals: false", async () => {
    const before = process.listenerCount(signal)
    await new Desk().serve({ handleSignals: false })
    expect(process.listenerCount(signal)).toBe(before)
  })
})

describe('serve', () => {
  test('says where it listens, and serves nothing beside its path', async () => {
    const { url, port, server } = await new Desk().serve({ path: '/here' })
    expect(url).toBe(`http://127.0.0.1:${port}/here`)
    expect(server.listening).toBe(true)
    const answers = [url, `${url}?a=1`, `http://127.0.0.1:${port}/mcp`].map((at) => post(at, call('greet')))
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200, 404])
  })

  test('rejects where it cannot listen, and leaves the signal alone', async () => {
    const { port } = await new Desk().serve()
    const before = process.listenerCount('SIGTERM')
    await expect(serve(new Desk().app, { port })).rejects.toMatchObject({ code: 'EADDRINUSE' })
    expect(process.listenerCount('SIGTERM')).toBe(before)
  })
})

function post(url: string, message: { method: string }): Promise<Response> {
  return fetch(url, { method: 'POST', headers: headersOf(message), body: JSON.stringify(message) })
}

/** Resolves once the whole response to this has been given to Node. */
async function responded({ server }: Serving, ask: () => void): Promise<void> {
  const given: Gate<void> = gate()
  server.once('request', (_request, response) => {
    response.once('prefinish', given.open)
  })
  ask()
  await given.promise
}
