import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { rally } from 'mcp-rally'
import type { ServeOptions, Serving } from 'mcp-rally/node'
import { serve } from 'mcp-rally/node'
import { expect, onTestFinished, test } from 'vitest'
import { call } from '../../test/wire/messages.ts'
import { Connection, post } from '../../test/wire/socket.ts'

async function greeter(options: ServeOptions = {}): Promise<Serving> {
  const app = rally({ name: 'greeter', version: '1', logger: { warn() {}, error() {} } })
  const serving = await serve(
    app.tool('greet', {}, () => 'Hello!').tool('wait', {}, () => new Promise<string>(() => {})),
    { port: 0, drainMs: 0, ...options },
  )
  onTestFinished(() => serving.close())
  return serving
}

/** The next request, as the other listeners of the server see it. */
async function nextRequest({ server }: Serving): Promise<IncomingMessage> {
  const [request] = (await once(server, 'request')) as [IncomingMessage]
  return request
}

/** Takes longer than a body that is sent at once. */
async function slowly(): Promise<{ principal: string }> {
  await new Promise((resolve) => setTimeout(resolve, 20))
  return { principal: 'alice' }
}

const headEnd = (text: string): number => text.indexOf('\r\n\r\n') + 4

test('a body is read without the stream, and the connection serves further requests', async () => {
  const serving = await greeter()
  const connection = await Connection.open(serving.port)
  for (let n = 0; n < 3; n += 1) {
    const arriving = nextRequest(serving)
    connection.write(post(call('greet')))
    const request = await arriving
    expect((await connection.next()).body).toContain('Hello!')
    expect(request).toMatchObject({ complete: true, readableDidRead: false, readableFlowing: null })
  }
})

test('a body that comes in parts is read to its end', async () => {
  const connection = await Connection.open((await greeter()).port)
  const text = post(call('greet'))
  for (const part of [
    text.slice(0, headEnd(text)),
    text.slice(headEnd(text), -20),
    text.slice(-20, -1),
    text.slice(-1),
  ]) {
    connection.write(part)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  expect((await connection.next()).body).toContain('Hello!')
})

test('requests that were sent at once are answered in their order', async () => {
  const connection = await Connection.open((await greeter()).port)
  connection.write([1, 2, 3].map((id) => post({ ...call('greet'), id })).join(''))
  for (const id of [1, 2, 3]) expect(JSON.parse((await connection.next()).body)).toMatchObject({ id })
})

test('a body that comes before its caller is known is read as a stream', async () => {
  const connection = await Connection.open((await greeter({ authenticate: slowly })).port)
  connection.write(post(call('greet')).repeat(2))
  for (let n = 0; n < 2; n += 1) expect((await connection.next()).body).toContain('Hello!')
})

test('another listener of the server may read the body too', async () => {
  const serving = await greeter()
  const bodies: string[] = []
  serving.server.on('request', (request: IncomingMessage) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => bodies.push(body))
  })
  const connection = await Connection.open(serving.port)
  const text = post(call('greet'))
  for (let n = 0; n < 2; n += 1) {
    connection.write(text)
    expect((await connection.next()).body).toContain('Hello!')
  }
  expect(bodies).toEqual([text.slice(headEnd(text)), text.slice(headEnd(text))])
})

test('what follows on the connection is served after a request that was refused before its body came', async () => {
  const connection = await Connection.open((await greeter()).port)
  const text = post(call('greet'))
  const wrongType = text.replace('application/json', 'text/plain')
  connection.write(wrongType.slice(0, headEnd(wrongType)))
  expect((await connection.next()).status).toBe(415)
  connection.write(wrongType.slice(headEnd(wrongType)) + text)
  expect((await connection.next()).body).toContain('Hello!')
})

test('a listener that waits for the end of the request is told, and of nothing else when the client leaves', async () => {
  const serving = await greeter()
  const seen: string[] = []
  serving.server.on('request', (request: IncomingMessage) => {
    for (const name of ['end', 'close', 'aborted', 'error']) request.on(name, () => seen.push(name))
  })
  const connection = await Connection.open(serving.port)
  connection.write(post(call('greet')))
  expect((await connection.next()).body).toContain('Hello!')
  await expect.poll(() => seen).toEqual(['end', 'close'])
  connection.write(post(call('wait')))
  await expect.poll(() => seen).toEqual(['end', 'close', 'end', 'close'])
  connection.socket.destroy()
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(seen).toEqual(['end', 'close', 'end', 'close'])
})
