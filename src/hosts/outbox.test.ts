import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import { rally } from 'mcp-rally'
import { nodeHandler } from 'mcp-rally/node'
import { describe, expect, onTestFinished, test } from 'vitest'
import { call, textOf } from '../../test/wire/messages.ts'
import type { HttpResponse } from '../../test/wire/socket.ts'
import { Connection, post } from '../../test/wire/socket.ts'

/** With this many connections taking turns the responses of one turn are written together. */
const MANY = 24

/** An app on a server that others use too; `before` sees each response before the app does. */
async function served(
  word: string,
  before: (response: ServerResponse, id: string) => void = () => {},
): Promise<number> {
  const responses = new Map<string, ServerResponse>()
  const app = rally({ name: 'outbox', version: '1', logger: { warn() {}, error() {} } })
  app.tool('echo', { input: { type: 'object' } }, ({ id }) => {
    const response = responses.get(String(id))
    if (response) before(response, String(id))
    return `${word} ${String(id)}`
  })
  const handle = nodeHandler(app)
  const server = createServer((request, response) => {
    const id = request.headers['x-id']
    if (typeof id === 'string') responses.set(id, response)
    handle(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return (server.address() as { port: number }).port
}

function openMany(port: number, count = MANY): Promise<Connection[]> {
  return Promise.all(Array.from({ length: count }, () => Connection.open(port)))
}

const echo = (id: string): string => post(call('echo', { id }), { headers: { 'X-Id': id } })
const textIn = ({ body }: HttpResponse): string => textOf(JSON.parse(body) as object)

// ASCII responses are written in another way than others.
describe.each([{ word: 'echo' }, { word: '\u00e9cho' }])('with the text $word', ({ word }) => {
  test('many connections at once each get their own answers, in order, and no other', async () => {
    const connections = await openMany(await served(word))
    const rounds = Array.from({ length: 10 }, (_, i) => i)
    const got = await Promise.all(
      connections.map(async (connection, index) => {
        const texts: string[] = []
        for (const round of rounds) {
          connection.write(echo(`${index}/${round}`))
          texts.push(textIn(await connection.next()))
        }
        return texts
      }),
    )
    expect(got).toEqual(connections.map((_, index) => rounds.map((round) => `${word} ${index}/${round}`)))
  })

  test('many connections that send several requests at once get the answers in their order', async () => {
    const connections = await openMany(await served(word))
    const rounds = Array.from({ length: 10 }, (_, i) => i)
    connections.forEach((connection, index) =>
      connection.write(rounds.map((round) => echo(`${index}/${round}`)).join('')),
    )
    for (const [index, connection] of connections.entries()) {
      for (const round of rounds) expect(textIn(await connection.next())).toBe(`${word} ${index}/${round}`)
    }
  })

  test('an answer does not wait for connections that were busy and are silent now', async () => {
    const connections = await openMany(await served(word))
    for (const connection of connections) connection.write(echo('all'))
    await Promise.all(connections.map((connection) => connection.next()))
    const [first] = connections
    first?.write(echo('alone'))
    expect(textIn((await first?.next()) ?? { status: 0, headers: {}, body: '{}' })).toBe(`${word} alone`)
  })

  test('connections that are lost on the way take no other answer with them', async () => {
    const port = await served(word)
    const connections = await openMany(port)
    for (const [index, connection] of connections.entries()) connection.write(echo(String(index)))
    const [lost, kept] = [connections.filter((_, i) => i % 3 === 0), connections.filter((_, i) => i % 3 !== 0)]
    for (const connection of lost) connection.socket.resetAndDestroy()
    const texts = await Promise.all(kept.map(async (connection) => textIn(await connection.next())))
    expect(texts).toEqual(connections.flatMap((_, i) => (i % 3 === 0 ? [] : [`${word} ${i}`])))
  })

  test('a connection that is lost between an answer and its writing takes no other answer with it', async () => {
    // The handler runs in the turn in which its answer is queued.
    const port = await served(word, (response, id) => void (id.endsWith('lost') && response.destroy()))
    const connections = await openMany(port)
    const ids = connections.map((_, i) => (i % 3 === 0 ? `${i} lost` : String(i)))
    connections.forEach((connection, i) => connection.write(echo(ids[i] ?? '')))
    const kept = connections.filter((_, i) => i % 3 !== 0)
    const texts = await Promise.all(kept.map(async (connection) => textIn(await connection.next())))
    expect(texts).toEqual(ids.filter((id) => !id.endsWith('lost')).map((id) => `${word} ${id}`))
    await Promise.all(connections.filter((_, i) => i % 3 === 0).map((connection) => connection.closed))
  })

  test.each([
    { connections: 'one connection', count: 1 },
    { connections: 'many connections', count: MANY },
  ])('a response that somebody else has sent already is left alone, with $connections', async ({ count }) => {
    const port = await served(word, (response, id) => {
      if (id.endsWith('late')) response.writeHead(503, { 'Content-Length': '4' }).end('late')
    })
    const connections = await openMany(port, count)
    const ids = connections.map((_, i) => (i % 3 === 0 ? `${i} late` : String(i)))
    connections.forEach((connection, i) => connection.write(echo(ids[i] ?? '')))
    const answers = await Promise.all(connections.map((connection) => connection.next()))
    answers.forEach((answer, i) => {
      if (i % 3 === 0) expect(answer).toMatchObject({ status: 503, body: 'late' })
      else expect(textIn(answer)).toBe(`${word} ${i}`)
    })
    // Everybody is served on.
    connections.forEach((connection, i) => connection.write(echo(`${i} again`)))
    const again = await Promise.all(connections.map(async (connection) => textIn(await connection.next())))
    expect(again).toEqual(connections.map((_, i) => `${word} ${i} again`))
  })
})

test('a response whose end was replaced, for example to compress it, is ended by its replacement', async () => {
  const port = await served('echo', (response, id) => {
    const end = response.end.bind(response)
    if (id === 'replaced') response.end = (text: unknown) => end(String(text).toUpperCase())
  })
  const [connection] = await openMany(port, 1)
  connection?.write(echo('replaced'))
  expect((await connection?.next())?.body).toContain('ECHO REPLACED')
  connection?.write(echo('not'))
  expect((await connection?.next())?.body).toContain('echo not')
})
