// 2026-06-XX, message by message, on each wire.
import { afterEach, describe, expect, test } from 'vitest'
import { draftApp } from './app.mjs'
import { ALL, ANY_STATE, CAPITAL, LOGIN, NEW_YORK, OCTOCAT, PARIS, request, text, WEATHER } from './examples.ts'
import { gate } from './gate.ts'
import type { Message, Talk } from './wires.ts'
import { wires } from './wires.ts'

const asking = (id: number, inputRequests: object): object => ({
  jsonrpc: '2.0',
  id,
  result: { result_type: 'incomplete', resultType: 'input_required', inputRequests, requestState: ANY_STATE },
})
const done = (id: number, result: object): object => ({
  jsonrpc: '2.0',
  id,
  result: { result_type: 'complete', resultType: 'complete', ...result },
})

let talk: Talk
afterEach(() => talk.close())

describe.each(wires)('2026-06-XX over $name', (wire) => {
  const open = async (capabilities: object = ALL): Promise<void> => {
    talk = await wire.open(draftApp(), { revision: '2026-06-XX', capabilities })
  }
  test('a call that needs a login is asked for it and then completes', async () => {
    await open()
    expect(talk.initialized).toMatchObject({ id: 0, result: { protocolVersion: '2026-06-XX' } })
    const asked = await talk.say(request(2, NEW_YORK))
    expect(asked).toEqual(asking(2, { github_login: LOGIN }))
    const retry = { ...NEW_YORK, inputResponses: { github_login: OCTOCAT }, requestState: stateIn(asked) }
    expect(await talk.say(request(3, retry))).toEqual(done(3, text(WEATHER)))
  })

  test('a form and a sample travel in one round, and so do their answers', async () => {
    await open()
    const asked = await talk.say(request(1, { name: 'both' }))
    expect(asked).toEqual(asking(1, { github_login: LOGIN, capital_of_france: CAPITAL }))
    const inputResponses = { github_login: OCTOCAT, capital_of_france: PARIS }
    const retry = { name: 'both', inputResponses, requestState: stateIn(asked) }
    expect(await talk.say(request(2, retry))).toEqual(done(2, text('octocat: The capital of France is Paris.')))
  })

  test('answers that were not asked for are passed over, and the question comes again', async () => {
    await open()
    const content = { not_requested_param_name: 'Information the server did not request' }
    const inputResponses = { not_requested_info: { action: 'accept', content } }
    expect(await talk.say(request(3, { ...NEW_YORK, inputResponses }))).toEqual(asking(3, { github_login: LOGIN }))
  })

  test('a wizard by hand asks in one round after the other', async () => {
    await open()
    const first = await talk.say(request(1, { name: 'WizardTool' }))
    expect(Object.keys(requestsIn(first))).toEqual(['name'])
    const name = { name: { action: 'accept', content: { name: 'Ada' } } }
    const second = await talk.say(
      request(2, { name: 'WizardTool', inputResponses: name, requestState: stateIn(first) }),
    )
    expect(requestsIn(second)).toMatchObject({ age: { params: { message: 'Hi Ada! How old are you?' } } })
    const age = { age: { action: 'accept', content: { age: 36 } } }
    const last = await talk.say(request(3, { name: 'WizardTool', inputResponses: age, requestState: stateIn(second) }))
    expect(last).toEqual(done(3, text('Welcome, Ada! You are 36 years old.')))
  })

  test('work that is put off has a state and no questions', async () => {
    await open()
    const off = await talk.say(request(1, { name: 'DeferredTool' }))
    expect(off).toEqual({
      jsonrpc: '2.0',
      id: 1,
      result: { result_type: 'incomplete', resultType: 'input_required', requestState: ANY_STATE },
    })
    const on = await talk.say(request(2, { name: 'DeferredTool', requestState: stateIn(off) }))
    expect(on).toEqual(done(2, text('Completed step 1')))
  })

  test('prompts and resources take rounds as tools do', async () => {
    await open()
    const context = { context: { action: 'accept', content: { context: 'school' } } }
    const brief = { name: 'brief', arguments: { topic: 'moon' } }
    const prompted = await talk.say(request(1, brief, {}, 'prompts/get'))
    const retry = { ...brief, inputResponses: context, requestState: stateIn(prompted) }
    expect(await talk.say(request(2, retry, {}, 'prompts/get'))).toEqual(
      done(2, { messages: [{ role: 'user', content: { type: 'text', text: 'moon: school' } }] }),
    )
    const note = { uri: 'note://by/7' }
    const read = await talk.say(request(3, note, {}, 'resources/read'))
    const again = { ...note, inputResponses: context, requestState: stateIn(read) }
    expect(await talk.say(request(4, again, {}, 'resources/read'))).toMatchObject(
      done(4, { contents: [{ uri: 'note://by/7', text: '7 for school' }] }),
    )
  })

  test('a page to visit has the id that these sessions know it by', async () => {
    await open()
    const asked = await talk.say(request(1, { name: 'page' }))
    const uuid = expect.stringMatching(/^[\da-f-]{36}$/) as string
    const params = { mode: 'url', message: 'Look here.', url: 'https://pages.example/look', elicitationId: uuid }
    expect(requestsIn(asked)).toEqual({ page: { method: 'elicitation/create', params } })
    const retry = { name: 'page', inputResponses: { page: { action: 'accept' } }, requestState: stateIn(asked) }
    expect(await talk.say(request(2, retry))).toEqual(done(2, text('Was told accept.')))
  })

  test('a failure of the tool is a complete result, and everything else is as in 2025-11-25', async () => {
    await open()
    expect(await talk.say(request(1, { name: 'fail' }))).toEqual(
      done(1, { ...text('The disk is full.'), isError: true }),
    )
    expect(await talk.say(request(2, {}, {}, 'ping'))).toEqual({ jsonrpc: '2.0', id: 2, result: {} })
    const { result: listed } = await talk.say(request(3, {}, {}, 'tools/list'))
    expect(Object.keys(listed as object)).toEqual(['tools'])
    const argument = { name: 'topic', value: 'm' }
    const completion = { ref: { type: 'ref/prompt', name: 'brief' }, argument }
    const completed = await talk.say(request(4, completion, {}, 'completion/complete'))
    expect(completed['result']).toEqual({ completion: { values: ['moon', 'mars'], total: 2, hasMore: false } })
    expect(await talk.say(request(5, { level: 'error' }, {}, 'logging/setLevel'))).toEqual({
      jsonrpc: '2.0',
      id: 5,
      result: {},
    })
    const missing = await talk.say(request(6, { uri: 'note://by/none' }, {}, 'resources/read'))
    expect(missing['error']).toMatchObject({ code: -32002 })
    // Structured content is an object there, or none.
    expect(await talk.say(request(7, { name: 'list' }))).toEqual(done(7, text('[1,2,3]')))
  })

  test('what a client can do is what it said when the session began', async () => {
    await open({ elicitation: { url: {} }, roots: {} })
    const told = await talk.say(request(1, { name: 'revision' }))
    expect(told).toEqual(done(1, text('2026-06-XX elicitation.url roots')))
    expect(await talk.say(request(2, NEW_YORK))).toMatchObject(done(2, { isError: true }))
  })

  test('progress and logs come before the response, and no request of the server ever does', async () => {
    await open()
    const asked = await talk.say(request(1, { name: 'report', _meta: { progressToken: 'p' } }))
    expect(Object.keys(requestsIn(asked))).toEqual(['sure'])
    expect(talk.told.map(({ method }) => method)).toEqual(['notifications/progress', 'notifications/message'])
  })

  test("the first draft's members beside the params mean nothing", async () => {
    await open()
    const asked = await talk.say(request(1, NEW_YORK))
    const beside = { input_responses: { github_login: { result: OCTOCAT } }, request_state: stateIn(asked) }
    expect(await talk.say(request(2, NEW_YORK, beside))).toEqual(asking(2, { github_login: LOGIN }))
  })

  test('a call that is cancelled is not answered', async () => {
    const app = draftApp()
    const begun = gate()
    const ended = gate()
    app.tool('long', {}, async (_args, io) => {
      io.signal.addEventListener('abort', ended.open, { once: true })
      begun.open()
      await ended.opened
    })
    talk = await wire.open(app, { revision: '2026-06-XX' })
    const said: Message[] = []
    void talk.say(request(9, { name: 'long' })).then((message) => said.push(message))
    await begun.opened
    await talk.tell({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 9 } })
    await ended.opened
    expect(await talk.say(request(10, {}, {}, 'ping'))).toEqual({ jsonrpc: '2.0', id: 10, result: {} })
    // Over HTTP there is an end of it, which says nothing.
    expect(said.filter((message) => 'id' in message)).toEqual([])
  })
})

function stateIn(response: Message): string {
  return (response['result'] as { requestState: string }).requestState
}

function requestsIn(response: Message): object {
  return (response['result'] as { inputRequests: object }).inputRequests
}
