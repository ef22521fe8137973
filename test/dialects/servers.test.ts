// What our client makes of other servers of the drafts, right and wrong ones.
import { afterEach, describe, expect, test } from 'vitest'
import type { Message, OlderConnection } from '../client/legacy-raw.ts'
import { closeAll, event, initialized, olderConnection, stream, text } from '../client/legacy-raw.ts'
import { json } from '../client/raw-server.ts'

const ASKED = {
  yes: {
    method: 'elicitation/create',
    params: {
      message: 'Sure?',
      requestedSchema: { type: 'object', properties: { yes: { type: 'boolean' } }, required: ['yes'] },
    },
  },
}
const YES = { action: 'accept', content: { yes: true } } as const
const options = { onElicit: () => YES, timeoutMs: 10_000 } as const

afterEach(closeAll)

interface Against extends OlderConnection {
  /** The messages that called a tool. */
  readonly called: () => Message[]
}

/** A server of a draft whose n-th response to a call has these members. */
async function against(revision: string, responses: readonly object[]): Promise<Against> {
  let calls = 0
  const { client, server } = await olderConnection(
    {
      initialize: initialized({ protocolVersion: revision }),
      'tools/call': (response, { message }) => {
        json(response, { id: message.id, ...responses[Math.min(calls, responses.length - 1)] })
        calls += 1
      },
      'tools/list': (response, { message }) => json(response, { id: message.id, ...responses[0] }),
    },
    { revision, ...options },
  )
  const called = (): Message[] => server.of('tools/call').map(({ message }) => message)
  return { client, server, called }
}

describe('2026-06-XX', () => {
  const interim = { inputRequests: ASKED, requestState: 'foo' }

  test.each([
    ['the earlier spelling', { result_type: 'incomplete' }, { result_type: 'complete' }],
    ['the approved spelling', { resultType: 'input_required' }, { resultType: 'complete' }],
    ['both', { result_type: 'incomplete', resultType: 'input_required' }, { result_type: 'complete' }],
    ['the approved one, and nothing on the last result', { resultType: 'input_required' }, {}],
  ])('is read in %s', async (_what, asking, complete) => {
    const responses = [{ result: { ...asking, ...interim } }, { result: { ...complete, ...text('Done.') } }]
    const { client, called } = await against('2026-06-XX', responses)
    const result = await client.callTool('any', { a: 1 })
    expect(result).toEqual({ resultType: 'complete', ...text('Done.') })
    const [first, second] = called()
    expect(first).toEqual({ jsonrpc: '2.0', id: first?.id, method: 'tools/call', params: params({}) })
    expect(second).toEqual({
      jsonrpc: '2.0',
      id: second?.id,
      method: 'tools/call',
      params: params({ inputResponses: { yes: YES }, requestState: 'foo' }),
    })
    expect(second?.id).not.toBe(first?.id)
  })

  test('a state is returned exactly, and none if none was sent', async () => {
    const odd = 'a "state" \\ \u2028 of any kind'
    const asking = { result_type: 'incomplete', inputRequests: ASKED }
    const off = { result_type: 'incomplete', requestState: odd }
    const responses = [{ result: off }, { result: asking }, { result: text('Done.') }]
    const { client, called } = await against('2026-06-XX', responses)
    await client.callTool('any', { a: 1 })
    expect(called().map((message) => message.params)).toEqual([
      params({}),
      params({ requestState: odd }),
      params({ inputResponses: { yes: YES } }),
    ])
  })

  test.each([
    ['an unknown type', { result: { result_type: 'partial', ...interim } }, 'BAD_RESPONSE'],
    ['an unknown type in the other spelling', { result: { resultType: 'partial', ...interim } }, 'BAD_RESPONSE'],
    ['neither questions nor a state', { result: { result_type: 'incomplete' } }, 'BAD_RESPONSE'],
    ['a type that is none', { result: { result_type: 7, ...text('Done.') } }, 'BAD_RESPONSE'],
    ['a result that is none', { result: [] }, 'BAD_RESPONSE'],
    ["the first draft's members", { input_requests: ASKED, request_state: 'foo' }, 'BAD_RESPONSE'],
    ['a state that is none', { result: { result_type: 'incomplete', requestState: {} } }, 'BAD_RESPONSE'],
    ['a list for questions', { result: { result_type: 'incomplete', inputRequests: [] } }, 'BAD_RESPONSE'],
  ])('%s is no response', async (_what, response, code) => {
    const { client } = await against('2026-06-XX', [response])
    await expect(client.callTool('any')).rejects.toMatchObject({ code })
  })

  test('a list takes one round only', async () => {
    const { client } = await against('2026-06-XX', [{ result: { result_type: 'incomplete', ...interim } }])
    await expect(client.listTools()).rejects.toMatchObject({ code: 'BAD_RESPONSE' })
  })

  test('an interim result may end a stream of events', async () => {
    let calls = 0
    const { client } = await olderConnection(
      {
        initialize: initialized({ protocolVersion: '2026-06-XX' }),
        'tools/call': (response, { message: { id } }) => {
          calls += 1
          const result = calls === 1 ? { result_type: 'incomplete', ...interim } : text('Done.')
          stream(response, event({ method: 'notifications/progress', params: {} }), event({ id, result }))
          response.end()
        },
      },
      { revision: '2026-06-XX', ...options },
    )
    expect(await client.callTool('any')).toMatchObject(text('Done.'))
  })

  test('is not spoken with a server that comes up with it unasked', async () => {
    const offer = { initialize: initialized({ protocolVersion: '2026-06-XX' }) }
    await expect(olderConnection(offer, {})).rejects.toMatchObject({ code: 'REVISION' })
    await expect(olderConnection(offer, { revision: '2025-11-25' })).rejects.toMatchObject({ code: 'REVISION' })
    await expect(olderConnection(offer, { revision: '2026-02-03-draft' })).rejects.toMatchObject({ code: 'REVISION' })
  })

  test('a lost round that carried a state is sent again, and one that carried none is not', async () => {
    const fates = ['lost', 'through', 'lost', 'through']
    const { client, server } = await olderConnection(
      {
        initialize: initialized({ protocolVersion: '2026-06-XX' }),
        'tools/call': (response, { message: { id, params: sent } }) => {
          if (fates.shift() === 'lost') return void response.destroy()
          const isRetry = sent?.['requestState'] === 'foo'
          json(response, { id, result: isRetry ? text('Done.') : { result_type: 'incomplete', ...interim } })
        },
      },
      { revision: '2026-06-XX', ...options },
    )
    await expect(client.callTool('any', { a: 1 })).rejects.toMatchObject({ code: 'LOST' })
    expect(await client.callTool('any', { a: 1 })).toMatchObject(text('Done.'))
    const retry = params({ inputResponses: { yes: YES }, requestState: 'foo' })
    const sent = server.of('tools/call').map(({ message }) => message)
    expect(sent.map((message) => message.params)).toEqual([params({}), params({}), retry, retry])
    expect(new Set(sent.map(({ id }) => id)).size).toBe(4)
  })

  test('a session that the server has lost is initialized again, and the round continues in it', async () => {
    let calls = 0
    const { client, server } = await olderConnection(
      {
        initialize: initialized({ protocolVersion: '2026-06-XX' }),
        'tools/call': (response, { message: { id } }) => {
          calls += 1
          if (calls === 2) return void response.writeHead(404).end()
          json(response, { id, result: calls === 1 ? { result_type: 'incomplete', ...interim } : text('Done.') })
        },
      },
      { revision: '2026-06-XX', ...options },
    )
    expect(await client.callTool('any', { a: 1 })).toMatchObject(text('Done.'))
    const sent = server.of('tools/call').map(({ headers, message }) => [headers['mcp-session-id'], message.params])
    const retry = params({ inputResponses: { yes: YES }, requestState: 'foo' })
    expect(sent).toEqual([
      ['s1', params({})],
      ['s1', retry],
      ['s2', retry],
    ])
  })
})

describe('The first draft', () => {
  const interim = { input_requests: ASKED, request_state: 'foo' }
  const DRAFT = '2026-02-03-draft'

  test('is read and written beside the id and the params', async () => {
    const { client, called } = await against(DRAFT, [interim, { request_state: 'bar' }, { result: text('Done.') }])
    expect(await client.callTool('any', { a: 1 })).toEqual({ resultType: 'complete', ...text('Done.') })
    const [first, second, third] = called()
    const message = { jsonrpc: '2.0', method: 'tools/call', params: params({}) }
    expect(first).toEqual({ ...message, id: first?.id })
    const answered = { input_responses: { yes: { result: YES } }, request_state: 'foo' }
    expect(second).toEqual({ ...message, id: second?.id, ...answered })
    expect(third).toEqual({ ...message, id: third?.id, request_state: 'bar' })
  })

  test.each([
    ['neither a result nor questions', {}],
    ['a list for questions', { input_requests: [], request_state: 'foo' }],
    ['a state that is none', { input_requests: ASKED, request_state: 7 }],
    ['questions that are null, and no state', { input_requests: null }],
    ["the other drafts' result", { result: { resultType: 'input_required', inputRequests: ASKED, requestState: 'a' } }],
    ['a result that is null beside questions', { ...interim, result: null }],
  ])('%s is no response', async (_what, response) => {
    const { client, called } = await against(DRAFT, [response])
    await expect(client.callTool('any')).rejects.toMatchObject({ code: 'BAD_RESPONSE' })
    expect(called()).toHaveLength(1)
  })

  test.each([
    ['a result', { result: text('Done.') }, text('Done.')],
    ['a result that calls itself something else', { result: { resultType: 'odd', ...text('Done.') } }, text('Done.')],
  ])('%s is final, whatever comes beside it', async (_what, response, result) => {
    const { client, called } = await against(DRAFT, [{ ...interim, ...response }])
    expect(await client.callTool('any')).toEqual({ resultType: 'complete', ...result })
    expect(called()).toHaveLength(1)
  })

  test('so is an error', async () => {
    const { client } = await against(DRAFT, [{ ...interim, error: { code: -32602, message: 'No.' } }])
    await expect(client.callTool('any')).rejects.toMatchObject({ rpcCode: -32602, message: 'No.' })
  })

  test('too many questions, too large a state and too deep a question are refused as in the release', async () => {
    const many = Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`q${index}`, ASKED.yes]))
    const { client } = await against(DRAFT, [{ input_requests: many }])
    await expect(client.callTool('any')).rejects.toMatchObject({ code: 'QUESTION_INVALID' })
    const large = await against(DRAFT, [{ request_state: 'x'.repeat(70_000) }])
    await expect(large.client.callTool('any')).rejects.toMatchObject({ code: 'STATE_TOO_LARGE' })
    const deep: unknown = JSON.parse(`${'{"a":'.repeat(200)}1${'}'.repeat(200)}`)
    const deeper = await against(DRAFT, [{ input_requests: deep }])
    await expect(deeper.client.callTool('any')).rejects.toMatchObject({ code: 'BAD_RESPONSE' })
  })

  test('is not read in any other revision', async () => {
    for (const revision of ['2025-11-25', '2026-06-XX']) {
      const { client, called } = await against(revision, [interim])
      await expect(client.callTool('any')).rejects.toMatchObject({ code: 'BAD_RESPONSE' })
      expect(called()).toHaveLength(1)
    }
  })
})

/** Those of every call here, with what a round adds. */
function params(more: object): object {
  return { _meta: {}, name: 'any', arguments: { a: 1 }, ...more }
}
