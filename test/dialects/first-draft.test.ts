// The first draft, message by message, on each wire.
import { afterEach, describe, expect, test } from 'vitest'
import { draftApp } from './app.mjs'
import { ALL, ANY_STATE, CAPITAL, LOGIN, NEW_YORK, OCTOCAT, PARIS, request, text, WEATHER } from './examples.ts'
import type { Talk } from './wires.ts'
import { wires } from './wires.ts'

const asking = (id: number, requests: object): object => ({
  jsonrpc: '2.0',
  id,
  input_requests: requests,
  request_state: ANY_STATE,
})
const done = (id: number, result: object): object => ({ jsonrpc: '2.0', id, result })

const accepted = (name: string): object => ({ result: { action: 'accept', content: { name } } })

let talk: Talk
afterEach(() => talk.close())

describe.each(wires)('The first draft over $name', (wire) => {
  const open = async (capabilities: object = ALL): Promise<void> => {
    talk = await wire.open(draftApp(), { revision: '2026-02-03-draft', capabilities })
  }
  test('a call that needs a login is asked for it and then completes', async () => {
    await open()
    expect(talk.initialized).toMatchObject({ id: 0, result: { protocolVersion: '2026-02-03-draft' } })
    const asked = await talk.say(request(2, NEW_YORK))
    expect(asked).toEqual(asking(2, { github_login: LOGIN }))
    const beside = { input_responses: { github_login: { result: OCTOCAT } }, request_state: asked['request_state'] }
    expect(await talk.say(request(3, NEW_YORK, beside))).toEqual(done(3, text(WEATHER)))
  })

  test('a form and a sample travel in one round, and so do their answers', async () => {
    await open()
    const asked = await talk.say(request(1, { name: 'both' }))
    expect(asked).toEqual(asking(1, { github_login: LOGIN, capital_of_france: CAPITAL }))
    const beside = {
      input_responses: { github_login: { result: OCTOCAT }, capital_of_france: { result: PARIS } },
      request_state: asked['request_state'],
    }
    const said = await talk.say(request(2, { name: 'both' }, beside))
    expect(said).toEqual(done(2, text('octocat: The capital of France is Paris.')))
  })

  test('a response that puts work off has a state, and neither a result nor questions', async () => {
    await open()
    const off = await talk.say(request(1, { name: 'DeferredTool' }))
    expect(off).toEqual({ jsonrpc: '2.0', id: 1, request_state: ANY_STATE })
    const on = await talk.say(request(2, { name: 'DeferredTool' }, { request_state: off['request_state'] }))
    expect(on).toEqual(done(2, text('Completed step 1')))
  })

  test('prompts and resources take rounds as tools do', async () => {
    await open()
    const answered = { context: { result: { action: 'accept', content: { context: 'school' } } } }
    const brief = { name: 'brief', arguments: { topic: 'moon' } }
    const prompted = await talk.say(request(1, brief, {}, 'prompts/get'))
    const beside = { input_responses: answered, request_state: prompted['request_state'] }
    expect(await talk.say(request(2, brief, beside, 'prompts/get'))).toEqual(
      done(2, { messages: [{ role: 'user', content: { type: 'text', text: 'moon: school' } }] }),
    )
    const note = { uri: 'note://by/7' }
    const read = await talk.say(request(3, note, {}, 'resources/read'))
    const again = { input_responses: answered, request_state: read['request_state'] }
    const { result } = await talk.say(request(4, note, again, 'resources/read'))
    expect(result).toEqual({ contents: [expect.objectContaining({ uri: 'note://by/7', text: '7 for school' })] })
  })

  test("the released spelling inside the params means nothing, and the handler's own view of the client is the same", async () => {
    await open({ elicitation: {} })
    const asked = await talk.say(request(1, NEW_YORK))
    const params = { ...NEW_YORK, inputResponses: { github_login: OCTOCAT }, requestState: asked['request_state'] }
    expect(await talk.say(request(2, params))).toEqual(asking(2, { github_login: LOGIN }))
    const told = await talk.say(request(3, { name: 'revision' }))
    expect(told).toEqual(done(3, text('2026-02-03-draft elicitation.form')))
  })

  test('a rolling upgrade keeps the answer that is still good, and asks only for what is new', async () => {
    const [older, newer] = ['google_login', 'microsoft_login'].map((other) => {
      const app = draftApp()
      const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } as const
      app.tool('logins', {}, async (_args, io) => {
        const keys = ['github_login', other]
        const all = await Promise.all(keys.map((key) => io.ask(key, `Your ${key}?`, schema)))
        return all.map((one) => (one as { name: string }).name).join(' and ')
      })
      return app
    })
    const params = { name: 'logins' }
    talk = await wire.open(older ?? draftApp(), { revision: '2026-02-03-draft' })
    const first = await talk.say(request(1, params))
    expect(Object.keys(first['input_requests'] as object)).toEqual(['github_login', 'google_login'])
    await talk.close()
    talk = await wire.open(newer ?? draftApp(), { revision: '2026-02-03-draft' })
    const both = { github_login: accepted('octocat'), google_login: accepted('ada') }
    const second = await talk.say(request(2, params, { input_responses: both, request_state: first['request_state'] }))
    expect(Object.keys(second['input_requests'] as object)).toEqual(['microsoft_login'])
    const last = { microsoft_login: accepted('grace') }
    const third = await talk.say(request(3, params, { input_responses: last, request_state: second['request_state'] }))
    expect(third).toEqual(done(3, text('octocat and grace')))
  })
})
