import type { HttpOptions, Rally } from 'mcp-rally'
import { rally } from 'mcp-rally'
import { fetchHandler } from './fetch.ts'
import { describe, expect, test } from 'vitest'
import { eventsOf } from '../../test/wire/hosts.ts'
import { call, headersOf, request as requestOf, textOf } from '../../test/wire/messages.ts'
import { problemsOf } from '../../test/wire/spec.ts'
import type { Gate } from '../testing/manual-scheduler.ts'
import { gate } from '../testing/manual-scheduler.ts'

const message = call('greet')
const body = JSON.stringify(message)

function greeter(): Rally {
  return rally({ name: 'greeter', version: '1', logger: { warn() {}, error() {} } }).tool('greet', {}, () => 'Hello')
}

function posted(init: RequestInit = {}, url = 'http://localhost:8787/mcp'): Request {
  return new Request(url, { method: 'POST', headers: headersOf(message), body, duplex: 'half', ...init })
}

describe('the status', () => {
  test.each([
    { of: 'a result', request: () => posted(), status: 200 },
    {
      of: 'any path, for whoever mounts it has chosen one',
      request: () => posted({}, 'http://localhost/x'),
      status: 200,
    },
    { of: 'a foreign address', request: () => posted({}, 'http://evil.example/mcp'), status: 403 },
    {
      of: 'a foreign Host, whatever the address',
      request: () => posted({ headers: { ...headersOf(message), Host: 'evil.example' } }),
      status: 403,
    },
    {
      of: 'a foreign Origin',
      request: () => posted({ headers: { ...headersOf(message), Origin: 'https://evil.example' } }),
      status: 403,
    },
    { of: 'GET', request: () => new Request('http://localhost/mcp'), status: 405 },
    { of: 'DELETE', request: () => new Request('http://localhost/mcp', { method: 'DELETE' }), status: 405 },
    { of: 'text', request: () => posted({ headers: { 'Content-Type': 'text/plain' } }), status: 415 },
    { of: 'no body', request: () => posted({ body: null }), status: 400 },
    { of: 'a body that is no JSON', request: () => posted({ body: '{' }), status: 400 },
    { of: 'a body that begins with a byte order mark', request: () => posted({ body: `\ufeff${body}` }), status: 400 },
  ])('of $of is $status', async ({ request, status }) => {
    const response = await greeter().fetch(request())
    expect(response.status).toBe(status)
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('allow')).toBe(status === 405 ? 'POST' : null)
    expect(problemsOf(await response.json(), 'tools/call')).toEqual([])
  })

  test('follows the options of the app', async () => {
    const app = rally({ name: 'greeter', version: '1', http: { allowedHosts: ['mcp.example.com'], maxBodyBytes: 10 } })
    expect((await app.fetch(posted())).status).toBe(403)
    expect((await app.fetch(posted({}, 'https://mcp.example.com/mcp'))).status).toBe(413)
  })
})

const limited = (options: HttpOptions = { maxBodyBytes: body.length }): ((request: Request) => Promise<Response>) =>
  fetchHandler(greeter(), options)

/** A body that gives its chunks one by one, and tells how it was left. */
function streamed(chunks: Iterable<string>): {
  stream: ReadableStream
  left: { cancelled: boolean; pulled: number }
} {
  const left = { cancelled: false, pulled: 0 }
  const iterator = chunks[Symbol.iterator]()
  const stream = new ReadableStream({
    pull(controller) {
      left.pulled += 1
      const { value, done } = iterator.next()
      if (done) controller.close()
      else controller.enqueue(new TextEncoder().encode(value))
    },
    cancel() {
      left.cancelled = true
    },
  })
  return { stream, left }
}

function* endless(): Iterable<string> {
  for (;;) yield 'x'.repeat(1_000)
}

describe('a body', () => {
  test('of exactly the limit is read, and one of a byte more is refused', async () => {
    expect((await limited()(posted())).status).toBe(200)
    expect((await limited()(posted({ body: `${body} ` }))).status).toBe(413)
  })

  test('that is said to be larger is refused before it is read', async () => {
    const { stream, left } = streamed([body])
    const headers = { ...headersOf(message), 'Content-Length': '5000000' }
    const response = await greeter().fetch(posted({ body: stream, headers }))
    expect(response.status).toBe(413)
    expect(left.pulled).toBeLessThan(2)
  })

  test('in thousands of tiny chunks is refused, and given up', async () => {
    const { stream, left } = streamed(Array.from({ length: 6_000 }, () => ' '))
    const response = await greeter().fetch(posted({ body: stream }))
    expect(response.status).toBe(413)
    expect(await response.text()).toContain('Send it in larger ones')
    expect(left).toMatchObject({ cancelled: true })
  })

  test('that never ends is refused once it is larger, and given up', async () => {
    const { stream, left } = streamed(endless())
    expect((await limited({ maxBodyBytes: 10_000 })(posted({ body: stream }))).status).toBe(413)
    expect(left).toMatchObject({ cancelled: true })
    expect(left.pulled).toBeLessThan(20)
  })

  test('that breaks off is a 400, and reaches no handler', async () => {
    const stream = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(body.slice(0, 20)))
        controller.error(new Error('The peer went away.'))
      },
    })
    const response = await greeter().fetch(posted({ body: stream }))
    expect(response.status).toBe(400)
    expect(problemsOf(await response.json(), 'tools/call')).toEqual([])
  })

  test('may come in any pieces', async () => {
    const bytes = new TextEncoder().encode(JSON.stringify(call('greet', {}, {}, { 'x/y': '\u00e9\u{1f600}' })))
    const stream = new ReadableStream({
      start(controller) {
        for (const byte of bytes) controller.enqueue(Uint8Array.of(byte))
        controller.close()
      },
    })
    const response = await greeter().fetch(posted({ body: stream }))
    expect(textOf((await response.json()) as object)).toBe('Hello')
  })
})

function reporter(count: number): Rally {
  const app = greeter()
  app.tool('report', {}, async (_args, io) => {
    for (let i = 1; i <= count; i += 1) io.progress(i)
    return 'Reported'
  })
  return app
}

describe('a stream of events', () => {
  const reported = call('report', {}, {}, { progressToken: 'p' })
  const report = (): Request => posted({ headers: headersOf(reported), body: JSON.stringify(reported) })

  test('is not held back by proxies or caches, and ends with the result', async () => {
    const response = await reporter(2).fetch(report())
    expect(Object.fromEntries(response.headers)).toEqual({
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
    })
    const events = eventsOf(await response.text())
    expect(events.flatMap((event) => problemsOf(event, 'tools/call'))).toEqual([])
    expect(events).toMatchObject([{ params: { progress: 1 } }, { params: { progress: 2 } }, { result: {} }])
  })

  test('drops notifications that a slow reader has no room for, and never the result', async () => {
    const response = await reporter(20_000).fetch(report())
    const text = await response.text()
    expect(text.length).toBeLessThan(1_100_000)
    const events = eventsOf(text)
    expect(events.length).toBeGreaterThan(900)
    expect(events.length).toBeLessThan(20_000)
    expect(events.at(-1)).toMatchObject({ result: { content: [{ text: 'Reported' }] } })
  })

  test('is not sent to who accepts JSON only', async () => {
    const headers = { ...headersOf(reported), Accept: 'application/json' }
    const response = await reporter(2).fetch(posted({ headers, body: JSON.stringify(reported) }))
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(textOf((await response.json()) as object)).toBe('Reported')
  })
})

/** An app with a tool that lasts until it is cancelled. */
function waiter(): { app: Rally; begun: Gate<void>; cancelled: Gate<void> } {
  const app = greeter()
  const [begun, cancelled] = [gate(), gate()]
  app.tool('wait', {}, async (_args, io) => {
    io.signal.addEventListener('abort', () => cancelled.open(), { once: true })
    io.progress(1)
    begun.open()
    await new Promise(() => {})
  })
  return { app, begun, cancelled }
}

function waiting(signal: AbortSignal | null, meta = {}): Request {
  const wait = call('wait', {}, {}, meta)
  return posted({ headers: headersOf(wait), body: JSON.stringify(wait), signal })
}

describe('a caller who goes away', () => {
  test('by the signal of the request cancels the call', async () => {
    const { app, begun, cancelled } = waiter()
    const abort = new AbortController()
    void app.fetch(waiting(abort.signal))
    await begun.promise
    abort.abort()
    await cancelled.promise
  })

  test('by the signal of the request ends a stream that has begun', async () => {
    const { app, cancelled } = waiter()
    const abort = new AbortController()
    const response = await app.fetch(waiting(abort.signal, { progressToken: 1 }))
    abort.abort()
    await cancelled.promise
    expect(eventsOf(await response.text())).toMatchObject([{ method: 'notifications/progress' }])
  })

  test('by giving up the response cancels the call', async () => {
    const { app, cancelled } = waiter()
    const response = await app.fetch(waiting(null, { progressToken: 1 }))
    await response.body?.cancel()
    await cancelled.promise
  })

  test('while it is still looked at who calls begins nothing', async () => {
    const { app } = waiter()
    let ran = false
    app.tool('run', {}, () => {
      ran = true
      return 'ran'
    })
    const abort = new AbortController()
    const handle = fetchHandler(app, {
      authenticate: async () => {
        abort.abort()
        return { principal: 'ada' }
      },
    })
    const run = call('run')
    await handle(posted({ headers: headersOf(run), body: JSON.stringify(run), signal: abort.signal }))
    expect(ran).toBe(false)
  })
})

/** A body that does not end. */
function unended(begin: string, cancelled: () => void): ReadableStream {
  return new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode(begin)),
    cancel: cancelled,
  })
}

describe('limits', () => {
  test('a body that does not end in time is a 408, and is read no further', async () => {
    const cancelled = gate()
    const handle = fetchHandler(greeter(), { bodyMs: 300 })
    const response = await handle(posted({ body: unended('{', cancelled.open) }))
    expect(response.status).toBe(408)
    expect(await response.json()).toMatchObject({ error: { message: expect.stringContaining('`bodyMs`') } })
    await cancelled.promise
  })

  test('past the bytes of all bodies the largest is a 503, and a small one is served', async () => {
    const handle = fetchHandler(greeter(), { maxBufferedBytes: 100_000, bodyMs: 5_000 })
    const cancelled = gate()
    const first = handle(posted({ body: unended(' '.repeat(60_000), cancelled.open) }))
    const second = handle(posted({ body: unended(' '.repeat(50_000), () => {}) }))
    const { status, headers } = await first
    expect([status, headers.get('retry-after')]).toEqual([503, '1'])
    await cancelled.promise
    expect((await handle(posted())).status).toBe(200)
    expect(await Promise.race([second, Promise.resolve('still read')])).toBe('still read')
  })

  test('past maxInFlight a request is a 503 until another was answered', async () => {
    const { app, begun } = waiter()
    const handle = fetchHandler(app, { maxInFlight: 1 })
    const abort = new AbortController()
    const first = handle(waiting(abort.signal))
    await begun.promise
    const { status, headers } = await handle(posted())
    expect([status, headers.get('retry-after')]).toEqual([503, '1'])
    abort.abort()
    await first
    expect((await handle(posted())).status).toBe(200)
  })

  test('a stream of which nothing is read is given up', async () => {
    const { app, cancelled } = waiter()
    const handle = fetchHandler(app, { writeStallMs: 100, keepAliveMs: 20 })
    const response = await handle(waiting(null, { progressToken: 1 }))
    await cancelled.promise
    await expect(response.text()).rejects.toThrow('took nothing of the stream')
  })

  test('a stream that is read stays open', async () => {
    const { app } = waiter()
    const handle = fetchHandler(app, { writeStallMs: 60, keepAliveMs: 20 })
    const reader: ReadableStreamDefaultReader<Uint8Array> | undefined = (
      await handle(waiting(null, { progressToken: 1 }))
    ).body?.getReader()
    for (let n = 0; n < 20; n += 1) expect((await reader?.read())?.done).toBe(false)
    await reader?.cancel()
  })
})

test('a subscription counts with its body until it ends, and one that there is no room for is refused', async () => {
  const app = rally({ name: 'listened', version: '1', http: { maxBufferedBytes: 10_000 } })
  const listen = async (): Promise<{ text: string; leave: () => void }> => {
    const sent = requestOf('subscriptions/listen', { notifications: {}, padding: 'x'.repeat(3_000) })
    const leaving = new AbortController()
    const headers = { ...headersOf(sent), Accept: 'application/json, text/event-stream' }
    const response = await app.fetch(posted({ headers, body: JSON.stringify(sent), signal: leaving.signal }))
    const { value } = (await response.body?.getReader().read()) ?? {}
    return { text: new TextDecoder().decode(value), leave: () => leaving.abort() }
  }
  const first = await listen()
  expect(first.text).toContain('subscriptions/acknowledged')
  expect((await listen()).text).toContain(
    'Too many bytes of requests that wait: all 5000 are in use, which is half of `maxBufferedBytes`. Try again later.',
  )
  first.leave()
  await expect.poll(async () => (await listen()).text).toContain('subscriptions/acknowledged')
})
