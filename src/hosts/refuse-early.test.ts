import { rally } from 'mcp-rally'
import type { Serving } from 'mcp-rally/node'
import { serve } from 'mcp-rally/node'
import { expect, onTestFinished, test } from 'vitest'
import { call } from '../../test/wire/messages.ts'
import { Connection, fieldLines, post } from '../../test/wire/socket.ts'

/** A server with room for one call, which lasts until it is let go. */
class Desk {
  letGo: () => void = () => {}
  #begun: () => void = () => {}
  readonly #app = rally({ name: 'desk', version: '1', logger: { warn() {}, error() {} } })
    .tool('greet', {}, () => 'Hello!')
    .tool('wait', {}, () => {
      this.#begun()
      return new Promise<string>((resolve) => (this.letGo = () => resolve('Waited.')))
    })

  /** Resolves when the next call of `wait` runs. */
  begins(): Promise<void> {
    return new Promise((resolve) => (this.#begun = resolve))
  }

  async serve(): Promise<Serving> {
    const serving = await serve(this.#app, { port: 0, drainMs: 0, maxInFlight: 1 })
    onTestFinished(() => serving.close())
    return serving
  }

  /** A connection that was answered once, and another one with a call that occupies the server. */
  async occupied(): Promise<{ serving: Serving; waiting: Connection; connection: Connection }> {
    const serving = await this.serve()
    const [waiting, connection] = [await Connection.open(serving.port), await Connection.open(serving.port)]
    connection.write(post(call('greet')))
    await connection.next()
    const begun = this.begins()
    waiting.write(post(call('wait')))
    await begun
    return { serving, waiting, connection }
  }
}

/** Node adds a date to every response that it makes. */
const isEarly = ({ headers }: { headers: Readonly<Record<string, string>> }): boolean => headers['date'] === undefined

test('a busy server refuses further requests of a connection early, and serves it again later', async () => {
  const desk = new Desk()
  const { connection, waiting } = await desk.occupied()
  for (let n = 0; n < 3; n += 1) {
    connection.write(post(call('greet')))
    const refused = await connection.next()
    expect(refused).toMatchObject({ status: 503, headers: { 'retry-after': '1', 'content-type': 'application/json' } })
    expect(JSON.parse(refused.body)).toMatchObject({ error: { message: expect.stringContaining('maxInFlight') } })
    expect(isEarly(refused)).toBe(true)
  }
  desk.letGo()
  expect((await waiting.next()).body).toContain('Waited.')
  connection.write(post(call('greet')))
  expect((await connection.next()).body).toContain('Hello!')
})

test('requests that were sent at once are refused in their order, and so is one whose body comes later', async () => {
  const { connection } = await new Desk().occupied()
  connection.write(post(call('greet')).repeat(3))
  for (let n = 0; n < 3; n += 1) expect(isEarly(await connection.next())).toBe(true)
  const text = post(call('greet'))
  const body = text.indexOf('\r\n\r\n') + 4
  connection.write(text.slice(0, body + 10))
  expect((await connection.next()).status).toBe(503)
  connection.write(text.slice(body + 10) + post(call('greet')))
  expect((await connection.next()).status).toBe(503)
})

test('a refusal waits for an earlier response on the same connection', async () => {
  const desk = new Desk()
  const { waiting, connection } = await desk.occupied()
  waiting.write(post(call('greet')))
  // After a few requests of another connection this one has been read.
  for (let n = 0; n < 5; n += 1) {
    connection.write(post(call('greet')))
    await connection.next()
  }
  desk.letGo()
  expect((await waiting.next()).body).toContain('Waited.')
  expect((await waiting.next()).status).toBe(503)
})

test('Node itself refuses the first request of a connection, and one that expects more than a response', async () => {
  const { serving, connection } = await new Desk().occupied()
  const fresh = await Connection.open(serving.port)
  fresh.write(post(call('greet')))
  const first = await fresh.next()
  expect(first.status).toBe(503)
  expect(isEarly(first)).toBe(false)
  fresh.write(post(call('greet')))
  expect(isEarly(await fresh.next())).toBe(true)
  connection.write(`HEAD /mcp HTTP/1.1\r\n${fieldLines({ Host: 'localhost' })}\r\n`)
  expect(isEarly(await connection.next({ toHead: true }))).toBe(false)
  connection.write(post(call('greet'), { headers: { Expect: '100-continue' } }))
  expect(isEarly(await connection.final())).toBe(false)
  connection.write(post(call('greet'), { headers: { Connection: 'close' } }))
  expect(isEarly(await connection.next())).toBe(false)
  await connection.closed
})

test('a connection whose requests were refused is closed when it has been quiet for the keep-alive time', async () => {
  const desk = new Desk()
  const serving = await desk.serve()
  serving.server.keepAliveTimeout = 50
  const [waiting, connection] = [await Connection.open(serving.port), await Connection.open(serving.port)]
  const begun = desk.begins()
  waiting.write(post(call('wait')))
  await begun
  connection.write(post(call('greet')))
  expect((await connection.next()).status).toBe(503)
  connection.write(post(call('greet')))
  expect(isEarly(await connection.next())).toBe(true)
  await connection.closed
})

test('a call that is served after refusals may take longer than the keep-alive time', async () => {
  const desk = new Desk()
  const serving = await desk.serve()
  serving.server.keepAliveTimeout = 50
  const [waiting, connection] = [await Connection.open(serving.port), await Connection.open(serving.port)]
  let begun = desk.begins()
  waiting.write(post(call('wait')))
  await begun
  for (let n = 0; n < 2; n += 1) {
    connection.write(post(call('greet')))
    expect((await connection.next()).status).toBe(503)
  }
  desk.letGo()
  expect((await waiting.next()).status).toBe(200)
  begun = desk.begins()
  connection.write(post(call('wait')))
  await begun
  await new Promise((resolve) => setTimeout(resolve, 1_300))
  desk.letGo()
  expect((await connection.next()).body).toContain('Waited.')
})
