// SIGTERM and SIGINT, to real processes that serve over HTTP.
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { call, headersOf, request, resultOf, textOf } from '../wire/messages.ts'
import { eventsOf } from '../wire/hosts.ts'
import { Process } from './process.ts'
import { deferredState } from './states.ts'

interface Said {
  url?: string
  running?: string
  idempotencyKey?: string
  aborted?: string
  closed?: string
  listener?: string
  pong?: number
}

/** Longer than any test may take: what ends before has not waited for it. */
const NEVER_MS = 600_000

const BY_SIGNAL = { code: null, signal: 'SIGTERM' }

async function start(options: object = {}): Promise<{ child: Process<Said>; url: string }> {
  const child = new Process<Said>(new URL('server.mjs', import.meta.url), { drainMs: NEVER_MS, ...options })
  onTestFinished(() => child.kill())
  const { url = '' } = await child.until((said) => said.url !== undefined)
  return { child, url }
}

function post(url: string, message: { method: string }): Promise<Response> {
  return fetch(url, { method: 'POST', headers: headersOf(message), body: JSON.stringify(message) })
}

async function answered(response: Response): Promise<object> {
  return (await response.json()) as object
}

async function readyz(url: string): Promise<number> {
  const { status } = await fetch(new URL('/readyz', url))
  return status
}

let pings = 0

/** Resolves once the process has answered, and so has seen the signals that were sent to it before. */
async function isThere(child: Process<Said>): Promise<void> {
  const ping = (pings += 1)
  child.tell({ ping })
  await child.until(({ pong }) => pong === ping)
}

/** Resolves once nobody listens there any more. */
async function refused(url: string): Promise<void> {
  for (;;) {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    const outcome = await Promise.race([once(socket, 'connect').then(() => 'taken'), once(socket, 'error')]).catch(
      (error: unknown) => [error],
    )
    socket.destroy()
    if (Array.isArray(outcome) && (outcome[0] as NodeJS.ErrnoException).code === 'ECONNREFUSED') return
  }
}

describe('a process that is told to go', () => {
  test('ends by the signal at once when nothing is under way', async () => {
    const { child } = await start()
    child.signal('SIGTERM')
    expect(await child.ended).toEqual(BY_SIGNAL)
  })

  test('accepts nobody, hands over the call under way, closes its connection, and ends by the signal', async () => {
    const { child, url } = await start()
    const answer = post(url, call('work'))
    await child.until(({ running }) => running === 'one')
    child.signal('SIGTERM')
    await refused(url)
    child.tell({ step: 'one' })
    const response = await answer
    expect(response.headers.get('connection')).toBe('close')
    const requestState = deferredState(await answered(response))
    expect(await child.ended).toEqual(BY_SIGNAL)

    const { child: other, url: elsewhere } = await start()
    const goneOn = post(elsewhere, call('work', {}, { requestState }))
    for (const step of ['two', 'three']) {
      await other.until(({ running }) => running === step)
      other.tell({ step })
    }
    expect(textOf(await answered(await goneOn))).toBe('Done.')
    expect(other.heard.some(({ running }) => running === 'one')).toBe(false)
  })

  test('interrupts at the drain limit: the step is told to stop, and runs again under the same key', async () => {
    const { child, url } = await start({ drainMs: 200 })
    const answer = post(url, call('work'))
    await child.until(({ running }) => running === 'one')
    child.tell({ step: 'one' })
    const { idempotencyKey } = await child.until(({ running }) => running === 'two')
    child.signal('SIGTERM')
    const response = await answer
    expect(response.headers.get('connection')).toBe('close')
    const requestState = deferredState(await answered(response))
    await child.until(({ aborted }) => aborted === 'two')
    expect(await child.ended).toEqual(BY_SIGNAL)

    const { child: other, url: elsewhere } = await start()
    const goneOn = post(elsewhere, call('work', {}, { requestState }))
    const again = await other.until(({ running }) => running === 'two')
    expect(again.idempotencyKey).toBe(idempotencyKey)
    other.tell({ step: 'two' })
    await other.until(({ running }) => running === 'three')
    other.tell({ step: 'three' })
    expect(textOf(await answered(await goneOn))).toBe('Done.')
    expect(other.heard.some(({ running }) => running === 'one')).toBe(false)
  })

  test('loses nothing when the signal comes twice', async () => {
    const { child, url } = await start()
    const answer = post(url, call('work'))
    await child.until(({ running }) => running === 'one')
    child.signal('SIGTERM')
    await refused(url)
    child.signal('SIGTERM')
    await isThere(child)
    child.tell({ step: 'one' })
    deferredState(await answered(await answer))
    expect(await child.ended).toEqual(BY_SIGNAL)
  })

  test('ends its subscription streams with their result', async () => {
    const { child, url } = await start()
    const listen = request('subscriptions/listen', { notifications: { toolsListChanged: true } })
    const response = await post(url, listen)
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    child.signal('SIGTERM')
    const [acknowledged, result] = eventsOf(await response.text())
    expect(acknowledged).toMatchObject({ method: 'notifications/subscriptions/acknowledged' })
    expect(result).toMatchObject({ id: listen.id })
    expect(resultOf(result)).toMatchObject({ resultType: 'complete' })
    expect(await child.ended).toEqual(BY_SIGNAL)
  })

  test('closes connections that are kept alive and idle', async () => {
    const { child, url } = await start()
    const message = call('greet')
    const body = JSON.stringify(message)
    const headers = {
      ...headersOf(message),
      Host: new URL(url).host,
      'Content-Length': String(Buffer.byteLength(body)),
    }
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.write(`POST /mcp HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
    const [reply] = (await once(socket.setEncoding('utf8'), 'data')) as [string]
    expect(reply).toMatch(/^HTTP\/1.1 200 OK\r\n/)
    expect(reply).not.toMatch(/connection: close/i)
    const closed = once(socket, 'close')
    socket.resume()
    child.signal('SIGTERM')
    await closed
    expect(await child.ended).toEqual(BY_SIGNAL)
  })

  test('drains all of its servers before it ends', async () => {
    const { child } = await start({ servers: 2 })
    await child.until(() => child.heard.length >= 2)
    const [first = '', second = ''] = child.heard.map(({ url }) => url)
    const answer = post(second, call('work'))
    await child.until(({ running }) => running === 'one')
    child.signal('SIGTERM')
    await child.until(({ closed }) => closed === first)
    child.tell({ step: 'one' })
    deferredState(await answered(await answer))
    expect(await child.ended).toEqual(BY_SIGNAL)
  })

  test('waits for a drain that had begun before the signal came', async () => {
    const { child, url } = await start()
    const answer = post(url, call('work'))
    await child.until(({ running }) => running === 'one')
    child.tell({ command: 'close' })
    await refused(url)
    child.signal('SIGTERM')
    await isThere(child)
    child.tell({ step: 'one' })
    deferredState(await answered(await answer))
    expect(await child.ended).toEqual(BY_SIGNAL)
  })
})

describe('a process with a drain delay', () => {
  test('is not ready from the signal on, still accepts and finishes calls, and drains after the delay', async () => {
    const { child, url } = await start({ drainDelayMs: 1_500 })
    expect(await readyz(url)).toBe(200)
    const began = performance.now()
    child.signal('SIGTERM')
    // The first answers may come from before the signal.
    while ((await readyz(url)) === 200);
    const answer = post(url, call('work'))
    for (const step of ['one', 'two', 'three']) {
      await child.until(({ running }) => running === step)
      child.tell({ step })
    }
    const response = await answer
    expect(response.headers.get('connection')).not.toBe('close')
    expect(textOf(await answered(response))).toBe('Done.')
    expect((await fetch(new URL('/livez', url))).status).toBe(200)
    expect(await child.ended).toEqual(BY_SIGNAL)
    expect(performance.now() - began).toBeGreaterThan(1_400)
  })

  test.each(['SIGINT', 'close()'])('drains at once on %s in the middle of the delay', async (how) => {
    const { child, url } = await start({ drainDelayMs: NEVER_MS })
    child.signal('SIGTERM')
    while ((await readyz(url)) === 200);
    if (how === 'SIGINT') child.signal('SIGINT')
    else child.tell({ command: 'close' })
    expect(await child.ended).toEqual({ code: null, signal: expect.stringMatching(/^SIG(TERM|INT)$/) })
  })
})

describe('somebody at a terminal', () => {
  test('drains a process with SIGINT, without the delay, and it ends by the signal', async () => {
    const { child, url } = await start({ drainDelayMs: NEVER_MS })
    const answer = post(url, call('work'))
    await child.until(({ running }) => running === 'one')
    child.signal('SIGINT')
    await refused(url)
    // The same key press, passed on by npm.
    child.signal('SIGINT')
    await isThere(child)
    child.tell({ step: 'one' })
    deferredState(await answered(await answer))
    expect(await child.ended).toEqual({ code: null, signal: 'SIGINT' })
  })

  test('ends a process at once that is still draining, with a second SIGINT', async () => {
    const { child, url } = await start()
    const lost = post(url, call('work')).catch((error: unknown) => error)
    await child.until(({ running }) => running === 'one')
    child.signal('SIGINT')
    await refused(url)
    await new Promise((resolve) => setTimeout(resolve, 600))
    child.signal('SIGINT')
    expect(await child.ended).toEqual({ code: null, signal: 'SIGINT' })
    expect(await lost).toMatchObject({ message: 'fetch failed' })
  })

  test('leaves a second SIGINT to other code that listens for it', async () => {
    const { child, url } = await start({ listeners: [{ how: 'on', does: 'decides', signal: 'SIGINT' }] })
    const answer = post(url, call('work'))
    await child.until(({ running }) => running === 'one')
    child.signal('SIGINT')
    await refused(url)
    await new Promise((resolve) => setTimeout(resolve, 600))
    child.signal('SIGINT')
    await isThere(child)
    child.tell({ step: 'one' })
    deferredState(await answered(await answer))
    await child.until(({ closed }) => closed === url)
    await isThere(child)
    child.tell({ command: 'exit' })
    expect(await child.ended).toEqual({ code: 3, signal: null })
  })
})

describe('who else listens to the signal', () => {
  test.each(['on', 'once'])('decides when to go, listening by process.%s', async (how) => {
    const { child, url } = await start({ listeners: [{ how, does: 'decides' }] })
    child.signal('SIGTERM')
    await child.until(({ listener }) => listener === 'decides')
    await child.until(({ closed }) => closed === url)
    await isThere(child)
    child.tell({ command: 'exit' })
    expect(await child.ended).toEqual({ code: 3, signal: null })
  })

  test('decides when to go, listening once, also when the signal comes twice', async () => {
    const { child, url } = await start({ listeners: [{ how: 'once', does: 'decides' }] })
    const answer = post(url, call('work'))
    await child.until(({ running }) => running === 'one')
    child.signal('SIGTERM')
    await refused(url)
    child.signal('SIGTERM')
    await isThere(child)
    child.tell({ step: 'one' })
    deferredState(await answered(await answer))
    await child.until(({ closed }) => closed === url)
    await isThere(child)
    child.tell({ command: 'exit' })
    expect(await child.ended).toEqual({ code: 3, signal: null })
  })

  test('is alone with it where handleSignals is false: the process dies as it is', async () => {
    const { child, url } = await start({ handleSignals: false })
    const lost = post(url, call('work')).catch((error: unknown) => error)
    await child.until(({ running }) => running === 'one')
    child.signal('SIGTERM')
    expect(await child.ended).toEqual(BY_SIGNAL)
    expect(await lost).toMatchObject({ message: 'fetch failed' })
  })

  test('gets the signal back to its default once the server was closed', async () => {
    const { child, url } = await start()
    child.tell({ command: 'close' })
    await child.until(({ closed }) => closed === url)
    await isThere(child)
    child.signal('SIGTERM')
    expect(await child.ended).toEqual(BY_SIGNAL)
  })
})
