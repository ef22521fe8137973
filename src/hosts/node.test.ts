import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { Rally } from 'mcp-rally'
import { rally } from 'mcp-rally'
import type { ServeOptions, Serving } from 'mcp-rally/node'
import { serve } from 'mcp-rally/node'
import { describe, expect, onTestFinished, test } from 'vitest'
import { eventsOf } from '../../test/wire/hosts.ts'
import { call, headersOf, META, textOf } from '../../test/wire/messages.ts'
import type { HttpResponse } from '../../test/wire/socket.ts'
import { Connection, fieldLines, post } from '../../test/wire/socket.ts'
import { problemsOf } from '../../test/wire/spec.ts'

const LIMIT = 4 * 1024 * 1024

/** A tool that answers at once, one that reports first, and one that lasts until it is let go or cancelled. */
class Desk {
  readonly app: Rally
  readonly #begun = new Map<string, () => void>()
  readonly #letGo = new Map<string, () => void>()
  readonly #cancelled = new Map<string, () => void>()

  constructor() {
    const input = { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] }
    this.app = rally({ name: 'desk', version: '1', logger: { warn() {}, error() {} } })
    this.app.tool('greet', { input }, ({ id }) => `Hello, ${String(id)}`)
    this.app.tool('report', { input }, ({ id }, io) => {
      io.progress(1, 2, 'half')
      return `Reported ${String(id)}`
    })
    this.app.tool('wait', { input }, async ({ id }, io) => {
      const name = String(id)
      io.progress(0)
      io.signal.addEventListener('abort', () => this.#cancelled.get(name)?.(), { once: true })
      await new Promise<void>((resolve) => {
        this.#letGo.set(name, resolve)
        this.#begun.get(name)?.()
      })
      return `Waited for ${name}`
    })
  }

  /** Resolves once the call of `wait` with this id runs. Ask before it is made. */
  begins(id: string): Promise<void> {
    return new Promise((resolve) => this.#begun.set(id, resolve))
  }

  isCancelled(id: string): Promise<void> {
    return new Promise((resolve) => this.#cancelled.set(id, resolve))
  }

  letGo(id: string): void {
    this.#letGo.get(id)?.()
  }

  async serve(options: ServeOptions = {}): Promise<Serving> {
    const serving = await serve(this.app, { port: 0, drainMs: 0, ...options })
    onTestFinished(() => serving.close())
    return serving
  }

  async connect(options?: ServeOptions): Promise<Connection> {
    return Connection.open((await this.serve(options)).port)
  }
}

const greet = (id: string): object => call('greet', { id })

function textIn({ body }: HttpResponse): string {
  return textOf(JSON.parse(body) as object)
}

/** A call that runs when the server has seen that its client sends nothing more. */
async function halfClosed(desk: Desk, text: string): Promise<Connection> {
  const { port, server } = await desk.serve()
  const accepted = once(server, 'connection')
  const connection = await Connection.open(port)
  const [accept] = (await accepted) as [Socket]
  const ended = once(accept, 'end')
  connection.write(text)
  connection.socket.end()
  await ended
  return connection
}

describe('the status', () => {
  const message = JSON.stringify(greet('Ada'))
  const fields = { Host: 'localhost', ...headersOf(greet('Ada')), 'Content-Length': String(message.length) }

  test.each([
    { of: 'a result', line: 'POST /mcp', headers: {}, body: message, status: 200 },
    { of: 'GET', line: 'GET /mcp', headers: { 'Content-Length': undefined }, body: '', status: 405 },
    { of: 'DELETE', line: 'DELETE /mcp', headers: { 'Content-Length': undefined }, body: '', status: 405 },
    { of: 'PUT', line: 'PUT /mcp', headers: {}, body: message, status: 405 },
    { of: 'OPTIONS', line: 'OPTIONS /mcp', headers: { 'Content-Length': undefined }, body: '', status: 405 },
    { of: 'a foreign Host', line: 'POST /mcp', headers: { Host: 'evil.example' }, body: message, status: 403 },
    {
      of: 'a foreign Origin',
      line: 'POST /mcp',
      headers: { Origin: 'http://evil.example' },
      body: message,
      status: 403,
    },
    { of: 'a page without an origin', line: 'POST /mcp', headers: { Origin: 'null' }, body: message, status: 403 },
    {
      of: 'a page on loopback',
      line: 'POST /mcp',
      headers: { Origin: 'http://localhost:1' },
      body: message,
      status: 200,
    },
    {
      of: 'a foreign GET',
      line: 'GET /mcp',
      headers: { Host: 'evil.example', 'Content-Length': '0' },
      body: '',
      status: 403,
    },
    { of: 'no Content-Type', line: 'POST /mcp', headers: { 'Content-Type': undefined }, body: message, status: 415 },
    { of: 'text', line: 'POST /mcp', headers: { 'Content-Type': 'text/plain' }, body: message, status: 415 },
    { of: 'a form', line: 'POST /mcp', headers: { 'Content-Type': 'multipart/form-data' }, body: message, status: 415 },
    {
      of: 'what begins like JSON',
      line: 'POST /mcp',
      headers: { 'Content-Type': 'application/jsonp' },
      body: message,
      status: 415,
    },
    {
      of: 'JSON with a charset',
      line: 'POST /mcp',
      headers: { 'Content-Type': 'Application/JSON; charset=utf-8' },
      body: message,
      status: 200,
    },
    { of: 'another path', line: 'POST /', headers: {}, body: message, status: 404 },
    { of: 'no body', line: 'POST /mcp', headers: { 'Content-Length': '0' }, body: '', status: 400 },
  ])('of $of is $status', async ({ line, headers, body, status }) => {
    const connection = await new Desk().connect()
    connection.write(`${line} HTTP/1.1\r\n${fieldLines({ ...fields, ...headers })}\r\n${body}`)
    const answer = await connection.next()
    expect(answer.status).toBe(status)
    expect(answer.headers['content-type']).toBe('application/json')
    expect(answer.headers['allow']).toBe(status === 405 ? 'POST' : undefined)
    expect(problemsOf(JSON.parse(answer.body), 'tools/call')).toEqual([])
    // None of these is a reason to end the connection.
    connection.write(post(greet('Bob')))
    expect(textIn(await connection.next())).toBe('Hello, Bob')
  })

  test('of a notification is 202, with nothing in it', async () => {
    const connection = await new Desk().connect()
    connection.write(post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }))
    expect(await connection.next()).toMatchObject({ status: 202, body: '' })
  })

  test('of HEAD is 405, without a body, and the connection goes on', async () => {
    const connection = await new Desk().connect()
    connection.write('HEAD /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n')
    expect((await connection.next({ toHead: true })).status).toBe(405)
    connection.write(post(greet('Ada')))
    expect(textIn(await connection.next())).toBe('Hello, Ada')
  })

  test('of what is no HTTP is 400, and the server lives on', async () => {
    const desk = new Desk()
    const { port } = await desk.serve()
    for (const garbage of ['\r\n\r\n\0\0', 'GARBAGE\r\n\r\n', 'POST /mcp HTTP/9.9\r\n\r\n', '\x16\x03\x01\x02\0\x01']) {
      const connection = await Connection.open(port)
      connection.write(garbage)
      expect(await connection.rest()).toMatch(/^HTTP\/1\.1 400 /)
    }
    const connection = await Connection.open(port)
    connection.write(post(greet('Ada')))
    expect((await connection.next()).status).toBe(200)
  })
})

function head(fields: object): string {
  return `POST /mcp HTTP/1.1\r\n${fieldLines({ Host: 'localhost', ...headersOf(greet('x')), ...fields })}\r\n`
}

describe('a body', () => {
  test('that is said to be larger than 4 MiB is refused before it comes', async () => {
    const connection = await new Desk().connect()
    connection.write(`${head({ 'Content-Length': String(LIMIT + 1) })}{"jsonrpc"`)
    const { status, headers, body } = await connection.next()
    expect(status).toBe(413)
    expect(headers['connection']).toBe('close')
    expect(JSON.parse(body)).toMatchObject({
      error: { code: -32600, message: `The body is larger than ${LIMIT} bytes.` },
    })
    await connection.closed
  })

  test('that never ends is refused once it is larger, and no more of it is read', async () => {
    const connection = await new Desk().connect()
    connection.write(head({ 'Transfer-Encoding': 'chunked' }))
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
    let written = 0
    const writing = (async () => {
      while (connection.socket.writable) {
        written += chunk.length
        if (!connection.socket.write(chunk))
          await Promise.race([once(connection.socket, 'drain').catch(() => {}), connection.closed])
      }
    })()
    // What the server has not read makes its system reset the connection, and the response may be lost with that.
    const response = await connection.next().catch(() => undefined)
    expect(response?.status ?? 413).toBe(413)
    await connection.closed
    connection.socket.destroy()
    await writing
    // The buffers of both sides hold some of what was never read.
    expect(written).toBeLessThan(20 * LIMIT)
  })

  test('of exactly the limit is read', async () => {
    const desk = new Desk()
    const connection = await desk.connect({ maxBodyBytes: 2_000 })
    const message = JSON.stringify(greet('Ada'))
    connection.write(head({ 'Content-Length': '2000', 'Mcp-Name': 'greet' }) + message.padEnd(2_000))
    expect(textIn(await connection.next())).toBe('Hello, Ada')
    connection.write(head({ 'Content-Length': '2001' }) + message.padEnd(2_001))
    expect((await connection.next()).status).toBe(413)
  })

  test('of which one chunk is one byte too many is refused, and the connection ends', async () => {
    const connection = await new Desk().connect({ maxBodyBytes: 10 })
    connection.write(`${head({ 'Transfer-Encoding': 'chunked' })}a\r\n0123456789\r\n`)
    connection.write('1\r\nx\r\n')
    expect((await connection.next()).status).toBe(413)
    await connection.closed
  })

  test('that comes byte by byte is read', async () => {
    const connection = await new Desk().connect()
    const text = post(call('greet', { id: '\u00e9\u{1f600}' }))
    for (const byte of Buffer.from(text)) {
      connection.write(Uint8Array.of(byte))
      await new Promise(setImmediate)
    }
    expect(textIn(await connection.next())).toBe('Hello, \u00e9\u{1f600}')
  })

  test('that is announced with Expect is asked for, and read', async () => {
    const connection = await new Desk().connect()
    const body = JSON.stringify(greet('Ada'))
    connection.write(head({ 'Content-Length': String(body.length), Expect: '100-continue' }))
    expect((await connection.next()).status).toBe(100)
    connection.write(body)
    expect(textIn(await connection.next())).toBe('Hello, Ada')
  })

  test('whose upload is given up reaches no handler, and nobody waits for the rest', async () => {
    const desk = new Desk()
    const serving = await desk.serve()
    const connection = await Connection.open(serving.port)
    const body = JSON.stringify(greet('Ada'))
    connection.write(`${head({ 'Content-Length': String(body.length) })}${body.slice(0, -1)}`)
    const other = await Connection.open(serving.port)
    other.write(post(greet('Bob')))
    await other.next()
    connection.socket.destroy()
    other.write(post(greet('Carl')))
    expect(textIn(await other.next())).toBe('Hello, Carl')
    await serving.close()
  })

  test('that is slow holds up nobody else', async () => {
    const { port } = await new Desk().serve()
    const slow = await Connection.open(port)
    const text = post(greet('Ada'))
    slow.write(text.slice(0, -5))
    const quick = await Connection.open(port)
    quick.write(post(greet('Bob')))
    expect(textIn(await quick.next())).toBe('Hello, Bob')
    slow.write(text.slice(-5))
    expect(textIn(await slow.next())).toBe('Hello, Ada')
  })
})

describe('a stream of events', () => {
  const reported = call('report', { id: 'Ada' }, {}, { progressToken: 1 })

  test('is not held back by proxies or caches, and ends with the result', async () => {
    const connection = await new Desk().connect()
    connection.write(post(reported))
    const { status, headers, body } = await connection.next()
    expect(status).toBe(200)
    expect(headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
    })
    const events = eventsOf(body)
    expect(events.flatMap((event) => problemsOf(event, 'tools/call'))).toEqual([])
    expect(events).toMatchObject([{ method: 'notifications/progress' }, { result: { resultType: 'complete' } }])
    connection.write(post(greet('Bob')))
    expect(textIn(await connection.next())).toBe('Hello, Bob')
  })

  test.each(['application/json', 'text/html', ''])('is not sent to who accepts %j only', async (accept) => {
    const connection = await new Desk().connect()
    connection.write(post(reported, { headers: { Accept: accept } }))
    const { headers, body } = await connection.next()
    expect(headers['content-type']).toBe('application/json')
    expect(textOf(JSON.parse(body) as object)).toBe('Reported Ada')
  })

  test.each([undefined, '*/*', 'text/event-stream', 'application/json;q=0.5, text/event-stream;q=0.9'])(
    'is sent to who accepts %j',
    async (accept) => {
      const connection = await new Desk().connect()
      connection.write(post(reported, { headers: { Accept: accept } }))
      expect((await connection.next()).headers['content-type']).toBe('text/event-stream')
    },
  )

  test('brings each event when it happens', async () => {
    const desk = new Desk()
    const connection = await desk.connect()
    connection.write(post(call('wait', { id: 'w' }, {}, { progressToken: 1 })))
    const [first] = (await once(connection.socket, 'data')) as [Buffer]
    expect(first.toString()).toContain('notifications/progress')
    desk.letGo('w')
    expect((await connection.next()).body).toContain('Waited for w')
  })

  test('tells an error too, once it has begun', async () => {
    const desk = new Desk()
    desk.app.tool('break', {}, async (_args, io) => {
      io.progress(1)
      await io.sample('s', { messages: [], maxTokens: 1 })
      return 'never'
    })
    const connection = await desk.connect()
    const meta = { progressToken: 1, 'io.modelcontextprotocol/clientCapabilities': {} }
    connection.write(post(call('break', {}, {}, { ...META, ...meta })))
    const { status, body } = await connection.next()
    expect(status).toBe(200)
    expect(eventsOf(body)).toMatchObject([{ method: 'notifications/progress' }, { error: { code: -32021 } }])
  })
})

describe('a connection', () => {
  test('is used again and again', async () => {
    const connection = await new Desk().connect()
    for (let i = 0; i < 20; i += 1) {
      connection.write(post(greet(`number ${i}`)))
      expect(textIn(await connection.next())).toBe(`Hello, number ${i}`)
    }
  })

  test('that sends many requests at once gets the answers in their order', async () => {
    const desk = new Desk()
    const begun = desk.begins('first')
    const connection = await desk.connect()
    const quick = Array.from({ length: 20 }, (_, i) => `number ${i}`)
    connection.write(post(call('wait', { id: 'first' })) + quick.map((id) => post(greet(id))).join(''))
    connection.write(post(call('report', { id: 'Ada' }, {}, { progressToken: 1 })) + post(greet('last')))
    await begun
    desk.letGo('first')
    expect(textIn(await connection.next())).toBe('Waited for first')
    for (const id of quick) expect(textIn(await connection.next())).toBe(`Hello, ${id}`)
    expect((await connection.next()).body).toContain('Reported Ada')
    expect(textIn(await connection.next())).toBe('Hello, last')
  })

  test('of HTTP/1.0 gets its answer, and ends with it', async () => {
    const { port } = await new Desk().serve()
    const connection = await Connection.open(port)
    connection.write(post(greet('Ada'), { version: '1.0' }))
    expect(textIn(await connection.next())).toBe('Hello, Ada')
    await connection.closed
    const streaming = await Connection.open(port)
    streaming.write(post(call('report', { id: 'Ada' }, {}, { progressToken: 1 }), { version: '1.0' }))
    const { headers, body } = await streaming.next()
    expect(headers['transfer-encoding']).toBeUndefined()
    expect(eventsOf(body)).toHaveLength(2)
  })

  test('of HTTP/1.0 without a Host is refused: it might be anybody', async () => {
    const connection = await new Desk().connect()
    connection.write(post(greet('Ada'), { version: '1.0', headers: { Host: undefined } }))
    expect((await connection.next()).status).toBe(403)
  })

  test.each([
    { what: 'nothing was sent back', meta: {} },
    { what: 'events are coming', meta: { progressToken: 1 } },
  ])('that is lost cancels its call while $what', async ({ meta }) => {
    const desk = new Desk()
    const [begun, cancelled] = [desk.begins('w'), desk.isCancelled('w')]
    const connection = await desk.connect()
    connection.write(post(call('wait', { id: 'w' }, {}, meta)))
    await begun
    connection.socket.destroy()
    await cancelled
  })

  test('that is lost cancels the calls that wait for their turn on it, too', async () => {
    const desk = new Desk()
    const ids = Array.from({ length: 20 }, (_, i) => `w${i}`)
    const [begun, cancelled] = [ids.map((id) => desk.begins(id)), ids.map((id) => desk.isCancelled(id))]
    const connection = await desk.connect()
    connection.write(ids.map((id) => post(call('wait', { id }))).join(''))
    await Promise.all(begun)
    connection.socket.destroy()
    await Promise.all(cancelled)
  })

  describe('that is half closed', () => {
    test.each([
      { what: 'JSON', meta: {} },
      { what: 'events', meta: { progressToken: 1 } },
    ])('still gets its answer as $what', async ({ meta }) => {
      const desk = new Desk()
      const begun = desk.begins('w')
      const connection = await halfClosed(desk, post(call('wait', { id: 'w' }, {}, meta)))
      await begun
      // Long enough for the server to write to the connection more than once.
      await new Promise((resolve) => setTimeout(resolve, 200))
      desk.letGo('w')
      expect((await connection.final()).body).toContain('Waited for w')
      await connection.closed
    })

    test('gets the answers to all that it sent, in their order', async () => {
      const desk = new Desk()
      const ids = ['a', 'b', 'c']
      const begun = ids.map((id) => desk.begins(id))
      const connection = await halfClosed(desk, ids.map((id) => post(call('wait', { id }))).join(''))
      await Promise.all(begun)
      for (const id of ids.toReversed()) desk.letGo(id)
      for (const id of ids) expect(textIn(await connection.final())).toBe(`Waited for ${id}`)
      await connection.closed
    })

    test('gets no interim response with HTTP/1.0', async () => {
      const desk = new Desk()
      const begun = desk.begins('w')
      const connection = await halfClosed(desk, post(call('wait', { id: 'w' }), { version: '1.0' }))
      await begun
      await new Promise((resolve) => setTimeout(resolve, 100))
      desk.letGo('w')
      expect(textIn(await connection.next())).toBe('Waited for w')
    })

    test('and idle is closed', async () => {
      const connection = await halfClosed(new Desk(), post(greet('Ada')))
      expect(textIn(await connection.final())).toBe('Hello, Ada')
      await connection.closed
    })
  })
})
