import { once } from 'node:events'
import { PassThrough, Writable } from 'node:stream'
import type { Rally } from 'mcp-rally'
import { rally } from 'mcp-rally'
import type { StdioOptions } from 'mcp-rally/node'
import { stdio } from 'mcp-rally/node'
import { describe, expect, test } from 'vitest'
import { call, errorOf, request, textOf } from '../../test/wire/messages.ts'
import { checkMessage } from '../../test/wire/spec.ts'

type Message = Record<string, unknown>

/** An app between two streams, and what it has written, line by line. */
class Piped {
  readonly app: Rally
  readonly input = new PassThrough()
  readonly over: Promise<void>
  readonly begun: string[] = []
  readonly cancelled: string[] = []
  readonly #lines: Message[] = []
  readonly #letGo = new Map<unknown, () => void>()
  #rest = ''
  #wake: (() => void) | undefined

  constructor(options: Omit<StdioOptions, 'input'> = {}) {
    this.app = rally({ name: 'piped', version: '1', logger: { warn() {}, error() {} } })
    this.app.tool('echo', { input: { type: 'object' } }, ({ text }) => String(text))
    this.app.tool('wait', { input: { type: 'object' } }, async ({ id }, io) => {
      io.signal.addEventListener('abort', () => this.cancelled.push(String(id)), { once: true })
      this.begun.push(String(id))
      await new Promise<void>((resolve) => this.#letGo.set(id, resolve))
      return `Waited for ${String(id)}`
    })
    const output = new PassThrough({ encoding: 'utf8' })
    output.on('data', (text: string) => {
      const lines = (this.#rest + text).split('\n')
      this.#rest = lines.pop() ?? ''
      this.#lines.push(...lines.map((line) => JSON.parse(line) as Message))
      this.#wake?.()
    })
    this.over = stdio(this.app, { input: this.input, output, ...options })
  }

  write(...messages: (object | string)[]): void {
    for (const message of messages) {
      this.input.write(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`)
    }
  }

  /** The client is an older one from now on. */
  async initialize(): Promise<void> {
    const clientInfo = { name: 'older', version: '1' }
    const params = { protocolVersion: '2025-03-26', capabilities: {}, clientInfo }
    this.write({ jsonrpc: '2.0', id: 0, method: 'initialize', params })
    await this.next(null)
    this.write({ jsonrpc: '2.0', method: 'notifications/initialized' })
  }

  letGo(id: string): void {
    this.#letGo.get(id)?.()
  }

  /** The next message that the server has written. With `null` it is not checked: it may be any notification. */
  async next(method: string | null = 'tools/call'): Promise<Message> {
    while (this.#lines.length === 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    const message = this.#lines.shift() ?? {}
    if (method !== null) checkMessage(message, method)
    return message
  }
}

const echo = (text: string): ReturnType<typeof call> => call('echo', { text })
const cancellation = (requestId: unknown): object => ({
  jsonrpc: '2.0',
  method: 'notifications/cancelled',
  params: { requestId },
})

describe('lines', () => {
  test('may end as on Windows, be empty, and have spaces around them', async () => {
    const piped = new Piped()
    piped.input.write(`\n\r\n  \n${JSON.stringify(echo('a'))}\r\n \t${JSON.stringify(echo('b'))} \n`)
    expect([textOf(await piped.next()), textOf(await piped.next())]).toEqual(['a', 'b'])
  })

  test('may come in any pieces', async () => {
    const piped = new Piped()
    const bytes = Buffer.from(`${JSON.stringify(echo('\u00e9\u{1f600}'))}\n${JSON.stringify(echo('b'))}\n`)
    for (const byte of bytes) piped.input.write(Uint8Array.of(byte))
    expect([textOf(await piped.next()), textOf(await piped.next())]).toEqual(['\u00e9\u{1f600}', 'b'])
  })

  test('may come as text, from a stream that was given an encoding', async () => {
    const piped = new Piped()
    piped.input.setEncoding('utf8')
    piped.write(echo('\u00e9 10'))
    expect(textOf(await piped.next())).toBe('\u00e9 10')
  })

  test('that are responses are passed over: an answer could be taken for that of a request with the same id', async () => {
    const piped = new Piped()
    piped.write(
      { jsonrpc: '2.0', id: 1, result: {} },
      { jsonrpc: '2.0', id: 1, error: { code: 1, message: 'x' } },
      echo('a'),
    )
    expect(textOf(await piped.next())).toBe('a')
  })

  test('that are no JSON are -32700, and the next is served', async () => {
    const piped = new Piped()
    piped.write('{"jsonrpc"', echo('a'))
    expect(errorOf(await piped.next()).code).toBe(-32700)
    expect(textOf(await piped.next())).toBe('a')
  })

  test('that are too long are -32600 however long, and the next is served', async () => {
    const piped = new Piped({ maxLineBytes: 1_000 })
    piped.write(echo('x'.repeat(1_000)))
    expect(errorOf(await piped.next())).toEqual({ code: -32600, message: 'The line is longer than 1000 bytes' })
    for (let i = 0; i < 2_000; i += 1) piped.input.write('y'.repeat(1_000))
    piped.write('', echo('a'))
    expect(errorOf(await piped.next()).code).toBe(-32600)
    expect(textOf(await piped.next())).toBe('a')
  })

  test('of exactly the longest length are read', async () => {
    const message = JSON.stringify(echo('a'))
    const piped = new Piped({ maxLineBytes: message.length + 10 })
    piped.write(message + ' '.repeat(10))
    expect(textOf(await piped.next())).toBe('a')
    piped.write(message + ' '.repeat(11))
    expect(errorOf(await piped.next()).code).toBe(-32600)
  })

  test('that are written hold one message each, whatever is in it', async () => {
    const piped = new Piped()
    const text = 'one\ntwo\r\n\u2028three\u0085'
    piped.write(echo(text))
    expect(textOf(await piped.next())).toBe(text)
  })
})

describe('calls', () => {
  test('go on beside each other, and are answered as they end', async () => {
    const piped = new Piped()
    const [first, second, third] = [call('wait', { id: '1' }), call('wait', { id: '2' }), echo('a')]
    piped.write(first, second, third)
    expect((await piped.next())['id']).toBe(third.id)
    piped.letGo('2')
    expect((await piped.next())['id']).toBe(second.id)
    piped.letGo('1')
    expect((await piped.next())['id']).toBe(first.id)
  })

  test('with an id that is in use are refused and leave the other alone, until it is free again', async () => {
    const piped = new Piped()
    const waiting = { ...call('wait', { id: '1' }), id: 7 }
    piped.write(waiting, { ...echo('a'), id: 7 }, { ...echo('b'), id: '7' })
    expect(errorOf(await piped.next())).toMatchObject({ code: -32600, message: 'Invalid request: this id is in use' })
    expect(await piped.next()).toMatchObject({ id: '7' })
    piped.letGo('1')
    expect(textOf(await piped.next())).toBe('Waited for 1')
    piped.write({ ...echo('c'), id: 7 })
    expect(textOf(await piped.next())).toBe('c')
  })

  test('are cancelled by their id, of the same type, and get no response', async () => {
    const piped = new Piped()
    piped.write({ ...call('wait', { id: 'number' }), id: 7 }, { ...call('wait', { id: 'text' }), id: '7' })
    piped.write(cancellation(7), echo('after'))
    expect(textOf(await piped.next())).toBe('after')
    expect([piped.begun, piped.cancelled]).toEqual([['number', 'text'], ['number']])
    piped.letGo('number')
    piped.letGo('text')
    expect(await piped.next()).toMatchObject({ id: '7' })
  })

  test.each([
    cancellation(1_000_000),
    cancellation(null),
    cancellation({}),
    { jsonrpc: '2.0', method: 'notifications/cancelled' },
    { jsonrpc: '2.0', method: 'notifications/cancelled', params: {} },
  ])('are not disturbed by a cancellation of nothing: %j', async (nothing) => {
    const piped = new Piped()
    piped.write(call('wait', { id: '1' }), nothing, echo('a'))
    expect(textOf(await piped.next())).toBe('a')
    expect(piped.cancelled).toEqual([])
  })

  test('of a method that is named like a cancellation are answered, and cancel nothing', async () => {
    const piped = new Piped()
    const waiting = call('wait', { id: '1' })
    piped.write(waiting, request('notifications/cancelled', { requestId: waiting.id }))
    expect(errorOf(await piped.next()).code).toBe(-32601)
    expect(piped.cancelled).toEqual([])
  })
})

describe('the end', () => {
  test('of the input cancels what is under way, and nothing is written after it', async () => {
    const piped = new Piped()
    piped.write(call('wait', { id: '1' }), call('wait', { id: '2' }), echo('a'))
    await piped.next()
    piped.input.end()
    await piped.over
    expect(piped.cancelled).toEqual(['1', '2'])
  })

  test.each([
    { how: 'is closed', end: (input: PassThrough) => input.destroy() },
    { how: 'fails', end: (input: PassThrough) => input.destroy(new Error('EIO')) },
  ])('comes too when the input $how', async ({ end }) => {
    const piped = new Piped()
    piped.write(call('wait', { id: '1' }), echo('a'))
    await piped.next()
    end(piped.input)
    await piped.over
    expect(piped.cancelled).toEqual(['1'])
  })

  test('of the output is no reason to die: the end of the input follows', async () => {
    const output = new Writable({
      write: (_chunk, _encoding, done) => done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })),
    })
    const piped = new Piped({ output })
    const failed = once(output, 'error')
    piped.write(echo('a'), echo('b'))
    await failed
    piped.input.end()
    await piped.over
  })
})

/** A prompt whose completion never ends. */
function addSlowPrompt(app: Rally): void {
  const about = { type: 'object', properties: { about: { type: 'string' } } } as const
  app.prompt('slow', { arguments: about, complete: { about: () => new Promise<string[]>(() => {}) } }, () => 'Slow')
}

describe('limits', () => {
  test('past maxInFlight a call is answered with an error at once, and subscriptions do not count', async () => {
    const piped = new Piped({ maxInFlight: 2 })
    const listen = request('subscriptions/listen', { notifications: { promptsListChanged: true } })
    piped.write(listen)
    expect(await piped.next(null)).toMatchObject({ params: { notifications: {} } })
    piped.write(call('wait', { id: 'one' }), call('wait', { id: 'two' }), echo('three'))
    expect(errorOf(await piped.next())).toMatchObject({
      code: -32603,
      message: expect.stringContaining('`maxInFlight`'),
    })
    piped.letGo('one')
    expect(textOf(await piped.next())).toBe('Waited for one')
    piped.write(echo('four'))
    expect(textOf(await piped.next())).toBe('four')
  })

  test('past maxInFlight an older client is answered with an error too, and its responses are not', async () => {
    const piped = new Piped({ maxInFlight: 2 })
    addSlowPrompt(piped.app)
    await piped.initialize()
    const ref = { type: 'ref/prompt', name: 'slow' }
    const params = { ref, argument: { name: 'about', value: '' } }
    const complete = (id: number): object => ({ jsonrpc: '2.0', id, method: 'completion/complete', params })
    piped.write(complete(1), complete(2), { jsonrpc: '2.0', id: 'ask', result: {} }, complete(3))
    expect(await piped.next(null)).toMatchObject({
      id: 3,
      error: { code: -32603, message: expect.stringContaining('`maxInFlight`'), data: { retryAfterMs: 1_000 } },
    })
    // A batch counts with all its messages.
    const batches = new Piped({ maxInFlight: 2 })
    addSlowPrompt(batches.app)
    await batches.initialize()
    batches.write(JSON.stringify([complete(1), complete(2)]), JSON.stringify([complete(3)]))
    expect(await batches.next(null)).toMatchObject({ error: { message: expect.stringContaining('`maxInFlight`') } })
  })

  test.each([
    { who: 'a client', begin: async () => {}, call: (id: string, padding: string) => call('wait', { id, padding }) },
    {
      who: 'an older client',
      begin: (piped: Piped) => piped.initialize(),
      call: (id: string, padding: string) => {
        const params = { name: 'wait', arguments: { id, padding } }
        return { jsonrpc: '2.0', id, method: 'tools/call', params }
      },
    },
  ])('past maxBufferedBytes the calls of $who are answered with an error, until others end', async (side) => {
    const piped = new Piped({ maxBufferedBytes: 10_000 })
    await side.begin(piped)
    const padding = 'x'.repeat(4_000)
    piped.write(side.call('one', padding), side.call('two', padding), side.call('three', padding))
    expect(await piped.next(null)).toMatchObject({
      error: {
        code: -32603,
        message: expect.stringContaining('the lines of all requests have more than 10000 bytes (`maxBufferedBytes`)'),
      },
    })
    piped.letGo('one')
    expect(await piped.next(null)).toMatchObject({ result: { content: [{ text: 'Waited for one' }] } })
    piped.write(side.call('four', padding))
    await expect.poll(() => piped.begun).toEqual(['one', 'two', 'four'])
  })

  test('subscriptions count with the bytes of their lines', async () => {
    const piped = new Piped({ maxBufferedBytes: 10_000 })
    const params = { notifications: {}, padding: 'x'.repeat(6_000) }
    piped.write(request('subscriptions/listen', params))
    expect(await piped.next(null)).toMatchObject({ method: 'notifications/subscriptions/acknowledged' })
    piped.write(request('subscriptions/listen', params))
    expect(await piped.next(null)).toMatchObject({ error: { message: expect.stringContaining('`maxBufferedBytes`') } })
  })

  test('a client that reads no responses is not read from either, until it reads again', async () => {
    const held: (() => void)[] = []
    let written = 0
    const output = new Writable({
      write(chunk: Buffer, _encoding, done) {
        written += chunk.length
        held.push(done)
      },
    })
    const piped = new Piped({ output })
    const large = 'x'.repeat(1_000_000)
    for (let n = 0; n < 40; n += 1) {
      piped.write(echo(large))
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    expect(piped.input.isPaused()).toBe(true)
    expect(output.writableLength).toBeLessThan(24_000_000)
    await expect
      .poll(
        () => {
          for (const done of held.splice(0)) done()
          return written
        },
        { timeout: 10_000, interval: 5 },
      )
      .toBeGreaterThan(40_000_000)
  })

  test('a client that left without reading anything is noticed', async () => {
    const output = new Writable({ write() {} })
    const piped = new Piped({ output })
    for (let n = 0; n < 40; n += 1) piped.write(echo('x'.repeat(1_000_000)))
    await expect.poll(() => piped.input.isPaused()).toBe(true)
    piped.input.end()
    output.destroy(new Error('EPIPE'))
    await piped.over
  })
})
