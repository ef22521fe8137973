import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JSONRPCResponse } from '../../src/protocol/messages.ts'
import {
  META_CAPABILITIES,
  META_CLIENT_INFO,
  META_LOG_LEVEL,
  META_SERVER_INFO,
  META_VERSION,
} from '../../src/protocol/revisions/2026-07-28.ts'
import type { Wire } from './hosts.ts'
import { hosts } from './hosts.ts'
import { accept, askedIn, call, errorOf, request, resultOf, textOf } from './messages.ts'
import { problemsOf } from './spec.ts'

describe.each(hosts)('$name', ({ isHttp, open }) => {
  let wire: Wire

  beforeAll(async () => {
    wire = await open()
  })
  afterAll(() => wire.close())

  const ask = async (...message: Parameters<typeof call>): Promise<JSONRPCResponse | undefined> =>
    (await wire.send(call(...message))).response

  /** Sends and says whether HTTP gave this status; the other hosts have none. */
  const statusOf = async (message: ReturnType<typeof request>): Promise<[JSONRPCResponse | undefined, number?]> => {
    const { response, status } = await wire.send(message)
    return status === undefined ? [response] : [response, status]
  }
  const withStatus = (status: number): [number?] => (isHttp ? [status] : [])

  test('answers a call', async () => {
    const { response, notifications, status, contentType } = await wire.send(call('greet', { name: 'Ada' }))
    expect(resultOf(response)).toEqual({
      resultType: 'complete',
      content: [{ type: 'text', text: 'Hello, Ada!' }],
      _meta: { [META_SERVER_INFO]: { name: 'contract', version: '1.2.3', title: 'The contract' } },
    })
    expect(notifications).toEqual([])
    expect([status, contentType]).toEqual(isHttp ? [200, 'application/json'] : [undefined, undefined])
  })

  test('gives structured content, with a text for clients that know none', async () => {
    expect(resultOf(await ask('add', { a: 2, b: 3 }))).toMatchObject({
      structuredContent: { sum: 5 },
      content: [{ type: 'text', text: '{"sum":5}' }],
    })
  })

  test('answers many calls at once, each with its own result', async () => {
    const names = Array.from({ length: 50 }, (_, i) => `number ${i}`)
    const responses = await Promise.all(names.map((name) => ask('greet', { name })))
    expect(responses.map(textOf)).toEqual(names.map((name) => `Hello, ${name}!`))
  })

  test('tells the model what was wrong with the arguments, and what went wrong in the tool', async () => {
    expect(resultOf(await ask('add', { a: 2, b: 'three' }))).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/^Invalid arguments for add: b: /) }],
    })
    expect(resultOf(await ask('fail'))).toMatchObject({ isError: true, content: [{ text: 'The disk is full.' }] })
  })

  test('lists the tools and discovers the server', async () => {
    const { response: listed } = await wire.send(request('tools/list'))
    const { tools } = resultOf(listed) as { tools: { name: string }[] }
    expect(tools.map(({ name }) => name).slice(0, 3)).toEqual(['greet', 'add', 'fail'])
    const { response: discovered } = await wire.send(request('server/discover'))
    expect(resultOf(discovered)).toMatchObject({
      supportedVersions: expect.arrayContaining(['2026-07-28']),
      capabilities: { tools: {} },
    })
  })

  test('takes a call through three rounds, the state in the hands of the client', async () => {
    const args = { title: 'Emma' }
    const first = askedIn(await ask('book', args))
    expect(first.messages).toEqual({ copies: 'How many copies of Emma?' })
    const copies = { copies: accept({ copies: 2 }) }
    const second = askedIn(await ask('book', args, { requestState: first.state, inputResponses: copies }))
    expect(second.messages).toEqual({ gift: '2 for 24. As a gift?' })
    expect(second.state).not.toBe(first.state)
    const gift = { gift: accept({ gift: true }) }
    const last = await ask('book', args, { requestState: second.state, inputResponses: gift })
    expect(textOf(last)).toBe('2 x Emma, wrapped')
  })

  test.each([
    { action: 'decline', says: 'The user declined the question "copies". Nothing further was done.' },
    { action: 'cancel', says: 'The user cancelled the question "copies". Nothing further was done.' },
  ])('ends the call with a result that the model can read on $action', async ({ action, says }) => {
    const { state } = askedIn(await ask('book', { title: 'Emma' }))
    const answer = { requestState: state, inputResponses: { copies: { action } } }
    const last = await ask('book', { title: 'Emma' }, answer)
    expect(textOf(last)).toBe(says)
    expect(resultOf(last)).toMatchObject({ isError: true })
  })

  test('asks what is asked together in one round, and then only for what was left out', async () => {
    const first = askedIn(await ask('trip'))
    expect(first.messages).toEqual({ city: 'Where to?', month: 'When?', sure: 'Are you sure?' })
    const some = { sure: accept({ confirm: true }), city: accept({ city: 'Ghent' }) }
    const second = askedIn(await ask('trip', {}, { requestState: first.state, inputResponses: some }))
    expect(second.messages).toEqual({ month: 'When?' })
    const rest = { month: accept({ choice: 'June' }) }
    const last = await ask('trip', {}, { requestState: second.state, inputResponses: rest })
    expect(textOf(last)).toBe('To Ghent in June')
  })

  test('asks every kind of question, and takes every kind of answer', async () => {
    const { state } = askedIn(await ask('everything'))
    const inputResponses = {
      form: accept({ name: 'Ada' }),
      page: accept(),
      model: { role: 'assistant', content: { type: 'text', text: 'Hello' }, model: 'a-model' },
      roots: { roots: [{ uri: 'file:///home/ada' }] },
    }
    expect(textOf(await ask('everything', {}, { requestState: state, inputResponses }))).toBe('Ada, a-model, 1 root')
  })

  test('asks again when an answer does not fit, says why, and gives up after three times', async () => {
    const wrong = { copies: accept({ copies: 0 }) }
    let round = askedIn(await ask('book', { title: 'Emma' }))
    const retry = (): Promise<JSONRPCResponse | undefined> =>
      ask('book', { title: 'Emma' }, { requestState: round.state, inputResponses: wrong })
    for (const _ of [2, 3]) {
      round = askedIn(await retry())
      expect(round.messages['copies']).toMatch(/^How many copies of Emma\?\n\nThe last answer did not fit: copies: /)
    }
    const last = await retry()
    expect(textOf(last)).toContain('The question "copies" was asked 3 times, and no answer was valid.')
    expect(resultOf(last)).toMatchObject({ isError: true })
  })

  test('sends progress and log messages before the result, to those who want them', async () => {
    const wanted = { progressToken: 'p', [META_LOG_LEVEL]: 'warning' }
    const { notifications, response, status, contentType } = await wire.send(call('count', { to: 2 }, {}, wanted))
    expect(notifications).toEqual([progress(1), log('at 1'), progress(2), log('at 2')])
    expect(textOf(response)).toBe('Counted to 2')
    expect([status, contentType]).toEqual(isHttp ? [200, 'text/event-stream'] : [undefined, undefined])
  })

  test('sends no notification that was not asked for', async () => {
    const { notifications, response, contentType } = await wire.send(call('count', { to: 2 }))
    expect(notifications).toEqual([])
    expect(textOf(response)).toBe('Counted to 2')
    expect(contentType).toBe(isHttp ? 'application/json' : undefined)
  })

  test.each([
    { while: 'nothing was sent back yet', id: 'quiet', meta: {} },
    { while: 'notifications are coming', id: 'loud', meta: { progressToken: 1 } },
  ])('a cancelled call fires its signal while $while, and gets no response', async ({ id, meta }) => {
    const cancel = new AbortController()
    const waiting = wire.send(call('wait', { id }, {}, meta), cancel.signal)
    expect(textOf(await ask('begun', { id }))).toBe('It has begun.')
    cancel.abort()
    expect((await waiting).response).toBeUndefined()
    expect(textOf(await ask('cancelled', { id }))).toBe('It was cancelled.')
  })

  test.each([
    { tool: 'book', args: { title: 'Emma' }, declared: {}, required: { elicitation: { form: {} } } },
    {
      tool: 'book',
      args: { title: 'Emma' },
      declared: { elicitation: { url: {} } },
      required: { elicitation: { form: {} } },
    },
    { tool: 'everything', args: {}, declared: { elicitation: {} }, required: { elicitation: { url: {} } } },
    { tool: 'everything', args: {}, declared: { elicitation: { form: {}, url: {} } }, required: { sampling: {} } },
    {
      tool: 'everything',
      args: {},
      declared: { elicitation: { form: {}, url: {} }, sampling: {} },
      required: { roots: {} },
    },
  ])(
    'says -32021 and $required when $tool meets a client with $declared',
    async ({ tool, args, declared, required }) => {
      const [response, ...status] = await statusOf(call(tool, args, {}, { [META_CAPABILITIES]: declared }))
      expect(errorOf(response)).toMatchObject({ code: -32021, data: { requiredCapabilities: required } })
      expect(status).toEqual(withStatus(400))
    },
  )

  test('says -32602 to a tool that is not there, and -32601 to a method that is not', async () => {
    const [noTool, ...toolStatus] = await statusOf(call('nothing'))
    expect(errorOf(noTool)).toEqual({ code: -32602, message: 'Unknown tool: nothing' })
    expect(toolStatus).toEqual(withStatus(200))
    const [noMethod, ...methodStatus] = await statusOf(request('tools/destroy'))
    expect(errorOf(noMethod)).toEqual({ code: -32601, message: 'Method not found: tools/destroy' })
    expect(methodStatus).toEqual(withStatus(404))
  })

  test('says -32022 with the revisions that it speaks to one that it does not', async () => {
    const [response, ...status] = await statusOf(request('tools/list', {}, { [META_VERSION]: '1999-12-31' }))
    expect(errorOf(response)).toMatchObject({
      code: -32022,
      data: { supported: expect.arrayContaining(['2026-07-28']), requested: '1999-12-31' },
    })
    expect(status).toEqual(withStatus(400))
  })

  test.each([
    { wrong: 'is missing', meta: undefined },
    { wrong: 'is null', meta: null },
    { wrong: 'is a list', meta: [] },
    { wrong: 'is empty', meta: {} },
    { wrong: 'has a number as its version', meta: { [META_VERSION]: 20260728, [META_CAPABILITIES]: {} } },
    { wrong: 'has no capabilities', meta: { [META_VERSION]: '2026-07-28' } },
    { wrong: 'has capabilities that are a list', meta: { [META_VERSION]: '2026-07-28', [META_CAPABILITIES]: [] } },
    { wrong: 'has a client without a version', meta: { ...bareMeta(), [META_CLIENT_INFO]: { name: 'x' } } },
    { wrong: 'has an unknown log level', meta: { ...bareMeta(), [META_LOG_LEVEL]: 'loud' } },
    { wrong: 'has an object as its progress token', meta: { ...bareMeta(), progressToken: {} } },
  ])('says -32602 when _meta $wrong', async ({ meta: wrong }) => {
    const message = call('greet', { name: 'Ada' })
    const { _meta, ...params } = message.params
    const [response, ...status] = await statusOf({
      ...message,
      params: wrong === undefined ? params : { ...params, _meta: wrong },
    })
    expect(errorOf(response)).toMatchObject({ code: -32602, message: expect.stringMatching(/^Invalid params: /) })
    expect(status).toEqual(withStatus(400))
  })

  test('answers no notification', async () => {
    const { response, status } = await wire.send({ jsonrpc: '2.0', method: 'notifications/unheard-of' } as never)
    expect(response).toBeUndefined()
    expect(status).toBe(isHttp ? 202 : undefined)
    expect(textOf(await ask('greet', { name: 'Ada' }))).toBe('Hello, Ada!')
  })
})

describe('the check that every message goes through', () => {
  const _meta = { [META_SERVER_INFO]: { name: 'contract', version: '1.2.3' } }
  const good = { jsonrpc: '2.0', id: 1, result: { resultType: 'complete', content: [], _meta } }

  test.each([
    { wrong: 'no resultType', message: { ...good, result: { content: [], _meta } } },
    { wrong: 'no serverInfo', message: { ...good, result: { ...good.result, _meta: {} } } },
    { wrong: 'no _meta', message: { ...good, result: { resultType: 'complete', content: [] } } },
    { wrong: 'no content', message: { ...good, result: { resultType: 'complete', _meta } } },
    { wrong: 'nothing to go on with', message: { ...good, result: { resultType: 'input_required', _meta } } },
    { wrong: 'an id that is null', message: { ...good, id: null } },
    { wrong: 'no requiredCapabilities', message: { jsonrpc: '2.0', id: 1, error: { code: -32021, message: '' } } },
    { wrong: 'a code of its own', message: { jsonrpc: '2.0', id: 1, error: { code: 1, message: '' } } },
    {
      wrong: 'progress of null',
      message: { jsonrpc: '2.0', method: 'notifications/progress', params: { progress: null } },
    },
    { wrong: 'an unheard-of method', message: { jsonrpc: '2.0', method: 'notifications/unheard-of' } },
  ])('refuses $wrong', ({ message }) => {
    expect(problemsOf(message, 'tools/call')).not.toEqual([])
  })

  test('lets a good one pass', () => {
    expect(problemsOf(good, 'tools/call')).toEqual([])
  })
})

function progress(progressed: number): object {
  return {
    jsonrpc: '2.0',
    method: 'notifications/progress',
    params: { progressToken: 'p', progress: progressed, total: 2, message: `${progressed} of 2` },
  }
}

function log(data: string): object {
  return { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'warning', logger: 'counter', data } }
}

function bareMeta(): object {
  return { [META_VERSION]: '2026-07-28', [META_CAPABILITIES]: {} }
}
