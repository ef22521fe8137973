// What goes over the wire with older servers, and what no honest one does.
import type { ServerResponse } from 'node:http'
import type { ServerChange, ClientOptions, ServerQuestion } from 'mcp-rally/client'
import { connect } from 'mcp-rally/client'
import { afterEach, describe, expect, test } from 'vitest'
import type { Script, Serve } from './legacy-raw.ts'
import { closeAll, event, form, initialized, olderConnection, olderServer, stream, text } from './legacy-raw.ts'
import { json } from './raw-server.ts'
import { textOf } from './wires.ts'

afterEach(closeAll)

const QUIET: ClientOptions = { logger: { warn: () => {}, error: () => {} } }
const yes: ClientOptions = { onElicit: () => ({ action: 'accept', content: { yes: true } }) }
const done: Serve = (response, { message }) => json(response, { id: message.id, result: text('Done.') })
const refusing = (status: number, error?: object, id?: string): Script => ({
  'server/discover': (response, { message }) => {
    if (error === undefined) response.writeHead(status).end('<html>')
    else json(response, { id: id ?? message.id, error }, status)
  },
})
const answering = (result: object): Script => ({
  'server/discover': (response, { message }) => json(response, { id: message.id, result }),
})
const streaming = (answer: object): Script => ({
  'server/discover': (response, { message }) => {
    stream(response, event({ id: message.id, ...answer }))
    response.end()
  },
})

describe('a server is taken for an older one', () => {
  test.each([
    ['HTTP 400', refusing(400)],
    ['HTTP 404', refusing(404)],
    ['HTTP 405', refusing(405)],
    ['HTTP 418', refusing(418)],
    ['an error under an id of its own with HTTP 400', refusing(400, { code: -32600, message: 'No' }, 'server-error')],
    ['an error without a code', refusing(400, {})],
    ['an error on a stream of events', streaming({ error: { code: -32600, message: 'No' } })],
    ['an error under an id of its own on a stream', streaming({ id: 'x', error: { code: -32600, message: 'No' } })],
    ['an error that the protocol does not know', refusing(200, { code: -32001, message: 'Session not found' })],
    ['an empty result', answering({})],
    ['a result of another method', answering({ protocolVersion: '2025-11-25', capabilities: {} })],
    ['older revisions as its result', answering({ supportedVersions: ['2025-11-25', '2025-06-18', '2024-11-05'] })],
    ['revisions that are no list', answering({ supportedVersions: '2026-07-28' })],
    ['a page of HTML', { 'server/discover': (response) => void response.end('<html>') }],
    ['nothing at all with HTTP 202', { 'server/discover': (response) => void response.writeHead(202).end() }],
    ['an unsupported revision, without those it supports', refusing(400, { code: -32022, message: 'No' })],
    ['an error of no revision with HTTP 400', refusing(400, { code: -32000, message: 'No session' })],
    ['HTTP 501', refusing(501)],
    ['an unknown method', refusing(200, { code: -32601, message: 'Method not found' })],
    [
      'older revisions that it names',
      refusing(400, { code: -32022, message: 'No', data: { supported: ['2025-11-25'] } }),
    ],
  ] satisfies [string, Script][])('for %s', async (_what, script) => {
    const { client, server } = await olderConnection({ ...script, 'tools/call': done })
    expect(client.revision).toBe('2025-11-25')
    expect(client.server).toMatchObject({ name: 'raw' })
    expect(textOf(await client.callTool('go'))).toBe('Done.')
    // Found out once.
    expect(server.of('server/discover')).toHaveLength(1)
  })

  test.each([
    [
      'revisions that nobody knows',
      refusing(400, { code: -32022, message: 'No', data: { supported: ['3000'] } }),
      'REVISION',
    ],
    [
      'a result of a modern type that it does not have',
      answering({ resultType: 'task', supportedVersions: ['2025-11-25'] }),
      'BAD_RESPONSE',
    ],
    ['a later revision alone', answering({ supportedVersions: ['3000-01-01'] }), 'REVISION'],
    ['HTTP 429', refusing(429), 'HTTP_STATUS'],
    ['a modern error', refusing(400, { code: -32020, message: 'No' }), 'PROTOCOL'],
    ['HTTP 401', refusing(401), 'UNAUTHORIZED'],
    ['HTTP 500', refusing(500), 'HTTP_STATUS'],
  ])('but not for %s', async (_what, script, code) => {
    const { url, server } = await olderServer(script)
    await expect(connect(url, QUIET)).rejects.toMatchObject({ code })
    expect(server.of('initialize')).toEqual([])
  })

  test('and where it is none either, what was wrong at first is told', async () => {
    const { url } = await olderServer({
      ...refusing(404),
      initialize: (response) => void response.writeHead(404).end(),
    })
    await expect(connect(url, QUIET)).rejects.toMatchObject({ code: 'HTTP_STATUS', status: 404 })
  })

  test('and the first answer is told where the second is not valid either', async () => {
    const { url } = await olderServer({
      ...answering({ supportedVersions: [] }),
      initialize: (response) => void response.end('<html>'),
    })
    await expect(connect(url, QUIET)).rejects.toMatchObject({ name: 'ClientError', code: 'REVISION' })
  })
})

test('a server that asks an older client who it is says so itself', async () => {
  const { url } = await olderServer({
    initialize: (response) => void response.writeHead(401, { 'WWW-Authenticate': 'Bearer scope="a"' }).end(),
  })
  await expect(connect(url, QUIET)).rejects.toMatchObject({ code: 'UNAUTHORIZED', challenge: 'Bearer scope="a"' })
})

describe('the revision', () => {
  test.each(['2025-06-18', '2025-03-26'])('is %s where the server wants it so', async (protocolVersion) => {
    const { client, server } = await olderConnection({
      initialize: initialized({ protocolVersion }),
      'tools/call': done,
    })
    expect(client.revision).toBe(protocolVersion)
    await client.callTool('go')
    expect(server.of('tools/call')[0]?.headers).toMatchObject({ 'mcp-protocol-version': protocolVersion })
  })

  test('is none where the server knows only others', async () => {
    const { url } = await olderServer({ initialize: initialized({ protocolVersion: '2024-10-07' }) })
    await expect(connect(url, QUIET)).rejects.toMatchObject({
      code: 'REVISION',
      message: expect.stringMatching('2024-10-07'),
    })
  })

  test('that is asked for is proposed at once, and no other will do', async () => {
    const { client, server } = await olderConnection(
      { initialize: initialized({ protocolVersion: '2025-06-18' }) },
      { revision: '2025-06-18' },
    )
    expect(client.revision).toBe('2025-06-18')
    expect(server.of('server/discover')).toEqual([])
    expect(server.of('initialize')[0]?.message.params).toMatchObject({ protocolVersion: '2025-06-18' })
    const { url } = await olderServer({})
    await expect(connect(url, { ...QUIET, revision: '2025-06-18' })).rejects.toMatchObject({ code: 'REVISION' })
  })

  test('that is asked for may be a modern one: then an older server is refused', async () => {
    const { url, server } = await olderServer({})
    await expect(connect(url, { ...QUIET, revision: '2026-07-28' })).rejects.toMatchObject({ code: 'HTTP_STATUS' })
    expect(server.of('initialize')).toEqual([])
    await expect(connect(url, { ...QUIET, revision: '1999-01-01' })).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })
})

describe('the session', () => {
  test('is named on everything that follows, and ended with the client', async () => {
    const { client, server } = await olderConnection({ 'tools/call': done }, { headers: { authorization: 'Bearer b' } })
    await client.callTool('go')
    await client.close()
    const [, first, ...rest] = server.seen
    expect(first?.message).toMatchObject({ method: 'initialize' })
    expect(first?.headers).not.toHaveProperty('mcp-session-id')
    expect(first?.headers).not.toHaveProperty('mcp-protocol-version')
    expect(rest.map(({ verb, message }) => message.method ?? verb)).toEqual([
      'notifications/initialized',
      'GET',
      'tools/call',
      'DELETE',
    ])
    for (const { headers } of rest) {
      expect(headers).toMatchObject({
        'mcp-session-id': 's1',
        'mcp-protocol-version': '2025-11-25',
        authorization: 'Bearer b',
      })
    }
    expect(server.of('tools/call')[0]?.message.params).toEqual({ _meta: {}, name: 'go' })
  })

  test('need not be: then there is nothing to name or to end', async () => {
    const { client, server } = await olderConnection({ initialize: initialized({}, false), 'tools/call': done })
    await client.callTool('go')
    await client.close()
    expect(server.seen.every(({ headers }) => !('mcp-session-id' in headers))).toBe(true)
    expect(server.of('DELETE')).toEqual([])
  })

  test('that the server has ended is begun anew, for all calls that hear of it together, and they are made again', async () => {
    const { client, server } = await olderConnection({
      'tools/call': (response, seen, on) =>
        seen.headers['mcp-session-id'] === 's1' ? void response.writeHead(404).end() : done(response, seen, on),
    })
    const results = await Promise.all([client.callTool('a'), client.callTool('b'), client.callTool('c')])
    expect(results.map(textOf)).toEqual(['Done.', 'Done.', 'Done.'])
    expect(server.of('initialize')).toHaveLength(2)
    expect(server.of('tools/call')).toHaveLength(6)
  })

  test('that ends again and again is begun anew once for a call', async () => {
    const { client, server } = await olderConnection({ 'tools/call': (response) => void response.writeHead(404).end() })
    await expect(client.callTool('go')).rejects.toMatchObject({ code: 'LOST' })
    expect(server.of('initialize')).toHaveLength(2)
    expect(server.of('tools/call')).toHaveLength(2)
  })
})

describe('a stream that is lost', () => {
  test('is gone on with from the last event, after the pause that the server wants', async () => {
    let lostAt = 0
    let resumedAt = 0
    const { client, server } = await olderConnection({
      'tools/call': (response) => {
        const log = { method: 'notifications/message', params: {} }
        stream(response, event(undefined, 'e0', 60), event(log, 'e1'))
        response.end()
        lostAt = performance.now()
      },
      GET: (response, { headers }, { seen }) => {
        if (headers['last-event-id'] === undefined) return void response.writeHead(405).end()
        resumedAt = performance.now()
        const id = seen.find(({ message }) => message.method === 'tools/call')?.message.id
        stream(response, event({ id, result: text('At last.') }, 'e2'))
      },
    })
    expect(textOf(await client.callTool('go'))).toBe('At last.')
    expect(server.of('GET').map(({ headers }) => headers['last-event-id'])).toEqual([undefined, 'e1'])
    expect(resumedAt - lostAt).toBeGreaterThan(55)
    expect(server.of('tools/call')).toHaveLength(1)
  })

  test('is tried for so often and no more', async () => {
    const { client, server } = await olderConnection({
      'tools/call': (response) => {
        stream(response, event(undefined, 'e0', 1))
        response.end()
      },
      GET: (response, { headers }) => {
        if (headers['last-event-id'] === undefined) return void response.writeHead(405).end()
        stream(response)
        response.end()
      },
    })
    await expect(client.callTool('go')).rejects.toMatchObject({ code: 'LOST' })
    expect(server.of('GET')).toHaveLength(1 + 5)
    expect(server.of('tools/call')).toHaveLength(1)
  })

  test('and has no ids is lost, and the call is not made again', async () => {
    const { client, server } = await olderConnection({
      'tools/call': (response) => {
        stream(response, event({ method: 'notifications/message', params: {} }))
        response.end()
      },
    })
    await expect(client.callTool('go')).rejects.toMatchObject({ code: 'LOST' })
    expect(server.of('tools/call')).toHaveLength(1)
  })

  test('is tried for again where the server is not available, and no answer of HTTP is taken for one of the call', async () => {
    const statuses = [503, 409]
    const { client, server } = await olderConnection({
      'tools/call': (response) => {
        stream(response, event(undefined, 'e0', 1))
        response.end()
      },
      GET: (response, { headers }) => {
        response.writeHead(headers['last-event-id'] === undefined ? 405 : (statuses.shift() ?? 500)).end()
      },
    })
    await expect(client.callTool('go')).rejects.toMatchObject({
      code: 'LOST',
      message: expect.stringMatching('HTTP 409'),
    })
    expect(server.of('GET')).toHaveLength(3)
  })

  test('whose session has ended too is lost, and the call is not made again', async () => {
    const { client, server } = await olderConnection({
      'tools/call': (response) => {
        stream(response, event(undefined, 'e0', 1))
        response.end()
      },
      GET: (response, { headers }) => {
        response.writeHead(headers['last-event-id'] === undefined ? 405 : 404).end()
      },
    })
    await expect(client.callTool('go')).rejects.toMatchObject({ code: 'LOST' })
    expect(server.of('tools/call')).toHaveLength(1)
  })
})

describe('a response', () => {
  test.each<[string, Serve, string]>([
    ['to another request', (response) => json(response, { id: 999, result: {} }), 'BAD_RESPONSE'],
    ['to another request, on a stream', (response) => stream(response, event({ id: 999, result: {} })), 'BAD_RESPONSE'],
    ['that is none', (response) => void response.writeHead(202).end(), 'BAD_RESPONSE'],
    ['that is too large', (response) => stream(response, `data: ${'x'.repeat(3_000)}`), 'RESPONSE_TOO_LARGE'],
    ['that is a page', (response) => void response.writeHead(500).end('<html>'), 'HTTP_STATUS'],
  ])('%s is no answer', async (_what, serve, code) => {
    const { client } = await olderConnection({ 'tools/call': serve }, { maxResponseBytes: 2_000 })
    await expect(client.callTool('go')).rejects.toMatchObject({ code })
  })

  test('may come in a batch, as in 2025-03-26', async () => {
    const { client } = await olderConnection({
      initialize: initialized({ protocolVersion: '2025-03-26' }),
      'tools/call': (response, { message: { id } }) => {
        const log = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'hm' } }
        response.writeHead(200, { 'Content-Type': 'application/json' })
        response.end(JSON.stringify([log, { jsonrpc: '2.0', id, result: text('Done.') }]))
      },
    })
    expect(textOf(await client.callTool('go'))).toBe('Done.')
  })
})

/** Asks on the stream of a call, and gives its result once so many answers have come. */
function asking(count: number, ...questions: readonly object[]): Script {
  let answered = 0
  let finish: (() => void) | undefined
  return {
    'tools/call': (response, { message: { id } }) => {
      stream(response, ...questions.map((question) => event(question)))
      finish = () => void response.end(event({ id, result: text('Done.') }))
    },
    answer: (response) => {
      response.writeHead(202).end()
      answered += 1
      if (answered === count) finish?.()
    },
  }
}

describe('a question', () => {
  test('without a mode, with named options and a default, as in 2025-06-18, is answered', async () => {
    const asked: ServerQuestion[] = []
    const requestedSchema = {
      type: 'object',
      properties: {
        to: { type: 'string', enum: ['a', 'b'], enumNames: ['A', 'B'] },
        fast: { type: 'boolean', default: true },
      },
      required: ['to'],
    }
    const question = { id: 'q1', method: 'elicitation/create', params: { message: 'Where?', requestedSchema } }
    const { client, server } = await olderConnection(
      { ...asking(1, question), initialize: initialized({ protocolVersion: '2025-06-18' }) },
      {
        onElicit: (each) => {
          asked.push(each)
          return { action: 'accept', content: { to: 'b' } }
        },
      },
    )
    expect(textOf(await client.callTool('go'))).toBe('Done.')
    expect(asked).toMatchObject([{ kind: 'form', message: 'Where?', form: requestedSchema }])
    expect(server.answers).toMatchObject([{ id: 'q1', result: { action: 'accept', content: { to: 'b', fast: true } } }])
  })

  test('of a model is answered with one block in 2025-06-18, and without the context that was not declared', async () => {
    const params = { messages: [], maxTokens: 5, includeContext: 'allServers' }
    const prompts: unknown[] = []
    const { client, server } = await olderConnection(
      {
        ...asking(1, { id: 1, method: 'sampling/createMessage', params }),
        initialize: initialized({ protocolVersion: '2025-06-18' }),
      },
      {
        onSample: (question) => {
          prompts.push(question)
          return { role: 'assistant', model: 'm', content: [{ type: 'text', text: 'Hm.' }] }
        },
      },
    )
    await client.callTool('go')
    expect(prompts).toEqual([{ kind: 'sample', key: '1', messages: [], maxTokens: 5 }])
    expect(server.answers).toMatchObject([{ id: 1, result: { content: { type: 'text', text: 'Hm.' } } }])
  })

  test('that leads to a host that only looks like another is marked', async () => {
    const asked: ServerQuestion[] = []
    const params = { mode: 'url', elicitationId: 'e', message: 'Go.', url: 'https://\u0430pple.example/' }
    const { client } = await olderConnection(asking(1, { id: 1, method: 'elicitation/create', params }), {
      onVisit: (question) => {
        asked.push(question)
        return { action: 'decline' }
      },
    })
    await client.callTool('go')
    expect(asked).toMatchObject([{ kind: 'visit', lookalike: true }])
  })

  test.each([
    ['ping is answered', { id: 7, method: 'ping' }, { result: {} }],
    ['one that is not known is refused', { id: 7, method: 'users/list' }, { error: { code: -32601 } }],
    ['one that was not declared is refused', { id: 7, method: 'roots/list' }, { error: { code: -32601 } }],
    [
      'a mode that was not declared is refused',
      { id: 7, method: 'elicitation/create', params: { mode: 'url', message: 'Go.', url: 'https://a.example/' } },
      { error: { code: -32602 } },
    ],
  ])('%s, and the call goes on', async (_what, request, answer) => {
    const { client, server } = await olderConnection(asking(1, request), yes)
    expect(textOf(await client.callTool('go'))).toBe('Done.')
    expect(server.answers).toMatchObject([{ id: 7, ...answer }])
  })

  test('that cannot be asked is refused, and ends the call', async () => {
    const requestedSchema = { type: 'object', properties: { deep: { type: 'object' } } }
    const question = { id: 7, method: 'elicitation/create', params: { message: 'Hm?', requestedSchema } }
    const { client, server } = await olderConnection(asking(2, question), yes)
    await expect(client.callTool('go')).rejects.toMatchObject({ code: 'QUESTION_INVALID' })
    expect(server.answers).toMatchObject([{ id: 7, error: { code: -32602 } }])
    await server.waitFor('notifications/cancelled')
  })

  test('too many, one after another, end the call', async () => {
    let ask: (() => void) | undefined
    const { client, server } = await olderConnection(
      {
        'tools/call': (response) => {
          let id = 0
          stream(response)
          ask = () => void response.write(event(form((id += 1))))
          ask()
        },
        answer: (response) => {
          response.writeHead(202).end()
          ask?.()
        },
      },
      { ...yes, maxRounds: 3 },
    )
    await expect(client.callTool('go')).rejects.toMatchObject({ code: 'TOO_MANY_ROUNDS' })
    expect(server.answers.filter(({ result }) => result !== undefined)).toHaveLength(3)
  })

  test('too many at once end the call', async () => {
    const questions = Array.from({ length: 101 }, (_, id) => form(id))
    const { client } = await olderConnection(asking(1_000, ...questions), { onElicit: () => new Promise(() => {}) })
    await expect(client.callTool('go')).rejects.toMatchObject({
      code: 'QUESTION_INVALID',
      message: expect.stringMatching('101'),
    })
  })

  test('that nobody ever answers holds nothing once its call has ended', async () => {
    let id = 0
    const { client } = await olderConnection(
      {
        'tools/call': (response, { message }) => {
          id += 1
          stream(response, event(form(id)), event({ id: message.id, result: text('Never mind.') }))
          response.end()
        },
      },
      { onElicit: () => new Promise(() => {}) },
    )
    // More than may be open at once.
    for (let batch = 0; batch < 11; batch += 1) {
      const calls = Array.from({ length: 100 }, () => client.callTool('go'))
      for (const result of await Promise.all(calls)) expect(textOf(result)).toBe('Never mind.')
    }
  })

  test('too much of what needs no thought is dropped, and the call goes on', async () => {
    const held: ServerResponse[] = []
    const { client, server } = await olderConnection({
      'tools/call': (response, { message }) => {
        const pings = Array.from({ length: 2_000 }, (_, ping) => event({ id: ping, method: 'ping' }))
        stream(response, ...pings, event({ id: message.id, result: text('Done.') }))
      },
      // Never taken.
      answer: (response) => void held.push(response),
    })
    expect(textOf(await client.callTool('go'))).toBe('Done.')
    await client.close()
    expect(server.answers.length).toBeLessThanOrEqual(100)
  })

  test('whose answer the server does not take ends the call', async () => {
    const { client } = await olderConnection(
      { ...asking(1, form(1)), answer: (response) => void response.writeHead(400).end() },
      yes,
    )
    await expect(client.callTool('go')).rejects.toMatchObject({ code: 'LOST' })
  })

  test('that the server takes back is not answered any more', async () => {
    let call: ServerResponse | undefined
    let callId: unknown
    const { client, server } = await olderConnection(
      {
        'tools/call': (response, { message }) => {
          call = response
          callId = message.id
          stream(response, event(form(1)))
        },
      },
      {
        onElicit: (_question, { signal }) => {
          call?.write(event({ method: 'notifications/cancelled', params: { requestId: 1 } }))
          return new Promise((resolve) => {
            signal.addEventListener('abort', () => {
              resolve({ action: 'accept', content: {} })
              call?.end(event({ id: callId, result: text('Without it.') }))
            })
          })
        },
      },
    )
    expect(textOf(await client.callTool('go'))).toBe('Without it.')
    expect(server.answers).toEqual([])
  })

  test('of a call that has ended need not be thought about', async () => {
    let isAborted = false
    let call: ServerResponse | undefined
    let callId: unknown
    const { client } = await olderConnection(
      {
        'tools/call': (response, { message }) => {
          call = response
          callId = message.id
          stream(response, event(form(1)))
        },
      },
      {
        onElicit: (_question, { signal, call: asked }) => {
          expect(asked).toEqual({ tool: 'go', arguments: { a: 1 } })
          signal.addEventListener('abort', () => (isAborted = true))
          call?.end(event({ id: callId, result: text('Never mind.') }))
          return new Promise(() => {})
        },
      },
    )
    expect(textOf(await client.callTool('go', { a: 1 }))).toBe('Never mind.')
    expect(isAborted).toBe(true)
  })
})

describe('time', () => {
  test('that somebody thinks for is not counted', async () => {
    const { client } = await olderConnection(asking(1, form(1)), {
      onElicit: async () => {
        await new Promise((resolve) => void setTimeout(resolve, 400))
        return { action: 'accept', content: {} }
      },
    })
    expect(textOf(await client.callTool('go', {}, { timeoutMs: 300 }))).toBe('Done.')
  })

  test('that the server takes is, also after somebody has thought; then the call is cancelled', async () => {
    const { client, server } = await olderConnection(asking(2, form(1)), yes)
    await expect(client.callTool('go', {}, { timeoutMs: 100 })).rejects.toMatchObject({ code: 'TIMEOUT' })
    const [cancelled] = await server.waitFor('notifications/cancelled')
    expect(cancelled?.message.params).toEqual({ requestId: server.of('tools/call')[0]?.message.id })
  })
})

describe('the stream that belongs to no call', () => {
  const change = { method: 'notifications/tools/list_changed' }

  test('is none where the server refuses it: nothing is promised then', async () => {
    const { client, server } = await olderConnection({})
    for await (const first of client.subscribe({ tools: true, uris: ['a://b'] })) {
      expect(first).toEqual({ type: 'acknowledged', accepted: { uris: [] } })
      break
    }
    expect(server.of('GET')).toHaveLength(1)
    expect(server.of('resources/subscribe')).toEqual([])
  })

  test('is gone on with from the last event', async () => {
    const { client, server } = await olderConnection({
      GET: (response, { headers }) => {
        if (headers['last-event-id'] === 'g1') return stream(response, event(change, 'g2'))
        stream(response, event(undefined, 'g1', 20))
        response.end()
      },
    })
    const changes: ServerChange[] = []
    for await (const each of client.subscribe({ tools: true })) {
      changes.push(each)
      if (each.type === 'tools') break
    }
    expect(changes).toEqual([{ type: 'acknowledged', accepted: { tools: true } }, { type: 'tools' }])
    expect(server.of('GET')).toHaveLength(2)
  })

  test('that cannot be gone on with is listened to anew, and resources are subscribed to again', async () => {
    let open: ServerResponse | undefined
    const { client, server } = await olderConnection({
      GET: (response) => {
        open = response
        stream(response, 'retry: 20\n\n')
      },
    })
    const changes: ServerChange[] = []
    for await (const each of client.subscribe({ uris: ['a://b'] })) {
      changes.push(each)
      if (each.type === 'acknowledged') open?.end()
      if (each.type === 'reconnected') {
        open?.write(event({ method: 'notifications/resources/updated', params: { uri: 'a://b/c' } }))
        open?.write(event({ method: 'notifications/resources/updated', params: { uri: 'x://y' } }))
      }
      if (each.type === 'updated') break
    }
    expect(changes).toEqual([
      { type: 'acknowledged', accepted: { uris: ['a://b'] } },
      { type: 'reconnected', accepted: { uris: ['a://b'] } },
      { type: 'updated', uri: 'a://b/c' },
    ])
    expect(server.of('resources/subscribe')).toHaveLength(2)
    await server.waitFor('resources/unsubscribe')
  })
})

test('a pending round of a modern server cannot be gone on with at an older one', async () => {
  const { client } = await olderConnection({})
  const pending = {
    version: 1,
    revision: '2026-07-28',
    method: 'tools/call',
    params: { name: 'go' },
    requestState: 's',
  } as const
  await expect(client.resume(pending)).rejects.toMatchObject({ code: 'NOT_RESUMABLE' })
  await expect(client.rounds(pending).next()).rejects.toMatchObject({ code: 'NOT_RESUMABLE' })
})
