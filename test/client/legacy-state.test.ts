// SEP-1685 on the client's side: what an older server leaves with its questions is echoed to the letter, and seen by nobody.
import type { ServerResponse } from 'node:http'
import type { ClientOptions } from 'mcp-rally/client'
import { afterEach, describe, expect, test } from 'vitest'
import { STATE } from '../legacy/carried.ts'
import type { Message, Script, Serve } from './legacy-raw.ts'
import { closeAll, event, form, olderConnection, stream, text } from './legacy-raw.ts'
import { textOf } from './wires.ts'

afterEach(closeAll)

/** Nothing that a client could make sense of, and everything that it could spoil. */
const TOKEN = ' {"not": "JSON\u2028"} \\u0041 \u{1f600}= '

const withState = (question: object, state: unknown = TOKEN): object => {
  const { params = {} } = question as { params?: object }
  return { ...question, params: { ...params, _meta: { [STATE]: state } } }
}

const sample = {
  id: 'q',
  method: 'sampling/createMessage',
  params: { messages: [{ role: 'user', content: { type: 'text', text: 'Hi' } }], maxTokens: 9 },
}

/** Asks, ends the stream of the call, and gives the result to who comes back once it is answered. */
function asking(question: object, end: (response: ServerResponse) => void = (response) => void response.end()): Script {
  return {
    'tools/call': (response) => {
      stream(response, event(question, 'e1', 10))
      end(response)
    },
    GET: rest,
  }
}

const rest: Serve = (response, { headers }, server) => {
  if (headers['last-event-id'] === undefined) return void response.writeHead(405).end()
  const id = server.of('tools/call')[0]?.message.id
  stream(response, event({ id, result: text('Done.') }, 'e2'))
  response.end()
}

const stateOf = ({ result, error }: Message): unknown => {
  const data = (error as { data?: { _meta?: Record<string, unknown> } } | undefined)?.data
  const meta = result === undefined ? data?._meta : (result['_meta'] as Record<string, unknown> | undefined)
  return meta?.[STATE]
}

const yes: ClientOptions = { onElicit: () => ({ action: 'accept', content: { yes: true } }) }

test('a client of an older server says that it carries states', async () => {
  const { server } = await olderConnection({})
  const [{ message } = { message: {} as Message }] = server.of('initialize')
  expect(message.params).toMatchObject({ capabilities: { state: { scopes: ['request'] } } })
})

test.each([
  ['an answer', yes, { action: 'accept', content: { yes: true } }],
  ['a decline', { onElicit: () => ({ action: 'decline' }) } satisfies ClientOptions, { action: 'decline' }],
  ['a cancel', { onElicit: () => ({ action: 'cancel' }) } satisfies ClientOptions, { action: 'cancel' }],
])(
  'the state comes back with %s as it was, and the rest of the call is come back for',
  async (_what, options, said) => {
    const { client, server } = await olderConnection(asking(withState(form('q'))), options)
    expect(textOf(await client.callTool('go'))).toBe('Done.')
    expect(server.answers).toEqual([{ jsonrpc: '2.0', id: 'q', result: { ...said, _meta: { [STATE]: TOKEN } } }])
    const resumed = server.of('GET').filter(({ headers }) => headers['last-event-id'] !== undefined)
    expect(resumed.map(({ headers }) => headers['last-event-id'])).toEqual(['e1'])
  },
)

test('an answer keeps what else is in its _meta', async () => {
  const { client, server } = await olderConnection(asking(withState(sample)), {
    onSample: () => ({ role: 'assistant', content: { type: 'text', text: 'Hm.' }, model: 'm', _meta: { mine: 1 } }),
  })
  await client.callTool('go')
  expect(server.answers[0]?.result?.['_meta']).toEqual({ mine: 1, [STATE]: TOKEN })
})

describe('the state comes back with an error', () => {
  test.each([
    ['of an answerer that fails', withState(form('q')), { onElicit: () => Promise.reject(new Error('Broken.')) }],
    ['of a question that cannot be asked', withState({ ...form('q'), params: { message: 7 } }), yes],
    ['of what was not declared', withState({ id: 'q', method: 'roots/list' }), yes],
    ['of what nobody knows', withState({ id: 'q', method: 'nothing/known' }), yes],
  ])('%s', async (_what, question, options) => {
    const { client, server } = await olderConnection(asking(question), options)
    await client.callTool('go').catch(() => {})
    expect(server.answers).toHaveLength(1)
    expect(server.answers[0]?.error).toBeDefined()
    expect(stateOf(server.answers[0] ?? {})).toBe(TOKEN)
  })
})

test('a ping with a state is answered with it', async () => {
  const { client, server } = await olderConnection(asking(withState({ id: 'q', method: 'ping' })))
  await client.callTool('go')
  expect(server.answers).toEqual([{ jsonrpc: '2.0', id: 'q', result: { _meta: { [STATE]: TOKEN } } }])
})

test('without a state nothing is added', async () => {
  const script = asking(form('q'), () => {})
  const { client, server } = await olderConnection(
    {
      ...script,
      answer: (response) => {
        response.writeHead(202).end()
        server.streams.get('call')?.end(event({ id: server.of('tools/call')[0]?.message.id, result: text('Done.') }))
      },
      'tools/call': (response) => {
        stream(response, event(form('q'), 'e1'))
        server.streams.set('call', response)
      },
    },
    yes,
  )
  expect(textOf(await client.callTool('go'))).toBe('Done.')
  expect(server.answers).toEqual([{ jsonrpc: '2.0', id: 'q', result: { action: 'accept', content: { yes: true } } }])
})

test('whoever answers, or reads the log, sees nothing of the state', async () => {
  const seen: unknown[] = []
  const log = (...said: unknown[]): void => void seen.push(said)
  const options: ClientOptions = {
    onSample: (question, context) => {
      seen.push(question, { ...context, signal: undefined })
      return { role: 'assistant', content: { type: 'text', text: 'Hm.' }, model: 'm' }
    },
    logger: { warn: log, error: log },
  }
  const script = asking(withState({ ...sample, params: { ...sample.params, metadata: { theirs: 1 } } }, 'classified'))
  const { client } = await olderConnection(script, options)
  await client.callTool('go')
  const refused = await olderConnection(
    { ...script, answer: (response) => void response.writeHead(400).end() },
    options,
  )
  await expect(refused.client.callTool('go')).rejects.toMatchObject({ code: 'LOST' })
  expect(seen.length).toBeGreaterThan(2)
  expect(JSON.stringify(seen)).toContain('theirs')
  expect(JSON.stringify(seen)).not.toContain('classified')
  expect(JSON.stringify(seen)).not.toContain(STATE)
})

test.each([
  ['that is too large', 'x'.repeat(70_000), 'STATE_TOO_LARGE'],
  ['that is no text', { a: 1 }, 'QUESTION_INVALID'],
])('a state %s ends the call, and is not sent back', async (_what, state, code) => {
  const { client, server } = await olderConnection(asking(withState(form('q'), state)), yes)
  await expect(client.callTool('go')).rejects.toMatchObject({ code })
  expect(server.answers).toHaveLength(1)
  expect(server.answers[0]?.error).toMatchObject({ code: -32602 })
  expect(stateOf(server.answers[0] ?? {})).toBeUndefined()
})

test("the largest state is the client owner's to say", async () => {
  const script = asking(withState(form('q'), 'x'.repeat(70_000)))
  const { client } = await olderConnection(script, { ...yes, maxStateBytes: 100_000 })
  expect(textOf(await client.callTool('go'))).toBe('Done.')
  const small = await olderConnection(asking(withState(form('q'), 'x'.repeat(11))), { ...yes, maxStateBytes: 10 })
  await expect(small.client.callTool('go')).rejects.toMatchObject({
    code: 'STATE_TOO_LARGE',
    message: "The server's state must have at most 10 bytes, got 11. To accept it, raise maxStateBytes in connect().",
  })
})

test.each([
  ['100', 100, true],
  ['101', 101, false],
])(
  'a call that asks %s questions, one at a time, is bounded by them and not by its rounds',
  async (_what, most, isTaken) => {
    let asked = 0
    const next: Serve = (response, seen, server) => {
      if (seen.verb === 'GET' && seen.headers['last-event-id'] === undefined) return void response.writeHead(405).end()
      asked += 1
      const id = server.of('tools/call')[0]?.message.id
      const message = asked <= most ? withState(form(`q${asked}`)) : { id, result: text('Done.') }
      stream(response, event(message, `e${asked}`, 1))
      response.end()
    }
    const { client } = await olderConnection({ 'tools/call': next, GET: next }, yes)
    const call = client.callTool('go')
    if (isTaken) expect(textOf(await call)).toBe('Done.')
    else await expect(call).rejects.toMatchObject({ code: 'TOO_MANY_ROUNDS' })
  },
)

test('while somebody thinks the server is left alone, and an answer that did not get through is sent again', async () => {
  let answers = 0
  const { client, server } = await olderConnection(
    {
      ...asking(withState(form('q'))),
      answer: (response) => {
        answers += 1
        if (answers === 1) response.destroy()
        else response.writeHead(answers === 2 ? 503 : 202).end()
      },
    },
    {
      onElicit: async () => {
        // As long as it takes for the stream to have ended, and more than the pause that was asked for.
        await new Promise((resolve) => setTimeout(resolve, 150))
        expect(server.of('GET').filter(({ headers }) => headers['last-event-id'] !== undefined)).toEqual([])
        return { action: 'accept', content: { yes: true } }
      },
    },
  )
  expect(textOf(await client.callTool('go'))).toBe('Done.')
  expect(server.answers).toHaveLength(3)
  expect(new Set(server.answers.map(stateOf))).toEqual(new Set([TOKEN]))
})

test('a call that is aborted while somebody thinks is cancelled, and nobody comes back for it', async () => {
  const controller = new AbortController()
  const { client, server } = await olderConnection(asking(withState(form('q'))), {
    onElicit: () => {
      controller.abort()
      return { action: 'accept', content: { yes: true } }
    },
  })
  await expect(client.callTool('go', {}, { signal: controller.signal })).rejects.toMatchObject({ code: 'ABORTED' })
  const [{ message } = { message: {} as Message }] = await server.waitFor('notifications/cancelled')
  expect(message.params).toEqual({ requestId: server.of('tools/call')[0]?.message.id })
  expect(server.of('GET').filter(({ headers }) => headers['last-event-id'] !== undefined)).toEqual([])
})
