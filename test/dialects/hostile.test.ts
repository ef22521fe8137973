// What nobody should send in a session of a draft: every request gets an answer, and most of them the usual one.
import fc from 'fast-check'
import type { HttpRequest } from 'mcp-rally'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Ask } from '../legacy/raw.ts'
import { hosts, RawSession } from '../legacy/raw.ts'
import { draftApp } from './app.mjs'
import { spellings } from './spellings.ts'
import type { Message, Talk } from './wires.ts'
import { wires } from './wires.ts'

const PARAMS = { name: 'get_weather', arguments: { location: 'New York' } }
const OCTOCAT = { action: 'accept', content: { name: 'octocat' } }
const FROZEN = { code: -32602, message: 'Invalid or expired requestState' }

const deep = (levels: number): unknown => JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`)

const cases = spellings.flatMap((spelling) => wires.map((wire) => ({ ...spelling, wire: wire.name, open: wire.open })))

describe.each(cases)('In $revision over $wire', ({ revision, open, retry, asked, answer }) => {
  let talk: Talk
  const begin = async (options = {}): Promise<void> => {
    talk = await open(draftApp(options), { revision })
  }
  afterEach(() => talk.close())

  const say = (answers: unknown, state: unknown, params: object = PARAMS): Promise<Message> =>
    talk.say(retry(params, answers, state))
  const state = async (params?: object): Promise<string> => asked(await say(undefined, undefined, params)).state

  test('a state that was changed, made up or minted for something else is refused, always alike', async () => {
    await begin()
    const good = await state()
    const answers = { github_login: answer(OCTOCAT) }
    const middle = Math.floor(good.length / 2)
    const changed = good.slice(0, middle) + (good[middle] === 'A' ? 'B' : 'A') + good.slice(middle + 1)
    const of = await state({ name: 'ConfirmAction', arguments: { action: 'x' } })
    for (const bad of [
      changed,
      good.slice(0, -4),
      `${good}A`,
      '',
      'rs1.',
      'foo',
      7,
      {},
      [],
      true,
      of,
      'x'.repeat(70_000),
    ]) {
      expect((await say(answers, bad))['error']).toEqual(FROZEN)
    }
    const elsewhere = { ...PARAMS, arguments: { location: 'Ghent' } }
    expect((await say(answers, good, elsewhere))['error']).toEqual(FROZEN)
    expect(await say(answers, good)).toHaveProperty('result')
  })

  test('a state is checked also for a tool that never asks', async () => {
    await begin()
    expect((await say(undefined, 'made up', { name: 'greet' }))['error']).toEqual(FROZEN)
  })

  test('a state under other keys, or of another audience, is refused', async () => {
    for (const options of [{ keys: ['another secret that nobody else has got'] }, { audience: 'elsewhere' }]) {
      await begin(options)
      const foreign = await state()
      await talk.close()
      await begin()
      expect((await say({}, foreign))['error']).toEqual(FROZEN)
      await talk.close()
    }
    await begin()
  })

  const many = (count: number): object =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, answer({})]))

  test.each([
    ['a text', 'yes', 'inputResponses must be an object'],
    ['a list', [], 'inputResponses must be an object'],
    ['a number', 7, 'inputResponses must be an object'],
    ['true', true, 'inputResponses must be an object'],
    ['an answer that is a text', { github_login: answer('yes') }, 'inputResponses["github_login"] must be an object'],
    ['an answer that is a list', { github_login: answer([]) }, 'inputResponses["github_login"] must be an object'],
    ['an entry that is a number', { github_login: 7 }, 'inputResponses["github_login"] must be an object'],
    ['answers that are nested too deeply', { github_login: answer(deep(150)) }, 'nested at most 100 levels deep'],
    ['more answers than there may be', many(1_001), 'at most 1000 answers'],
  ])('%s for answers is told what is wrong', async (_what, answers, why) => {
    await begin()
    for (const known of [undefined, await state()]) {
      const { error } = (await say(answers, known)) as { error: { code: number; message: string } }
      expect(error.code).toBe(-32602)
      expect(error.message).toContain(why)
    }
  })

  test.each([
    ['null for answers', null],
    ['no answers', {}],
    ['null for an answer', { github_login: null }],
    ['null inside of an answer', { github_login: answer(null) }],
    ['an answer to what was not asked', { other: answer(OCTOCAT) }],
    ['a key that is none', { ['__proto__']: answer(OCTOCAT), constructor: answer(OCTOCAT) }],
    ['an answer that does not fit', { github_login: answer({ action: 'accept', content: { name: 7 } }) }],
    ['an action that is none', { github_login: answer({ action: 'perhaps' }) }],
  ])('after %s the question comes again', async (_what, answers) => {
    await begin()
    for (const known of [undefined, await state()]) {
      const { questions } = asked(await say(answers, known))
      expect(Object.keys(questions ?? {})).toEqual(['github_login'])
    }
  })

  test('null for a state is refused', async () => {
    await begin()
    expect(await say({ github_login: answer(OCTOCAT) }, null)).toMatchObject({ error: { code: -32602 } })
  })
})

describe.each(wires)('The first draft over $name', ({ open }) => {
  test('takes an answer under "result" alone, and says so', async () => {
    const talk = await open(draftApp(), { revision: '2026-02-03-draft' })
    const key = 'k'.repeat(500)
    for (const entry of [OCTOCAT, {}, { error: { code: 1, message: 'No.' } }]) {
      const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: PARAMS, input_responses: { [key]: entry } }
      expect((await talk.say(message))['error']).toEqual({
        code: -32602,
        message: `input_responses["${key.slice(0, 200)}…"] must have the answer under "result"`,
      })
    }
    await talk.close()
  })

  test('looks at what is beside the params only where rounds may be', async () => {
    const talk = await open(draftApp(), { revision: '2026-02-03-draft' })
    const beside = { input_responses: 7, request_state: 'made up' }
    const listed = await talk.say({ jsonrpc: '2.0', id: 1, method: 'prompts/list', ...beside })
    expect(listed).toHaveProperty('result.prompts')
    await talk.close()
  })
})

describe.each(hosts)('Over $name', (host) => {
  let ask: Ask
  let close: () => Promise<void>
  beforeAll(async () => {
    ;({ ask, close } = await host.open(draftApp()))
  })
  afterAll(() => close())

  const anything = fc.jsonValue({ maxDepth: 3 })
  const or = (...good: unknown[]): fc.Arbitrary<unknown> =>
    fc.oneof({ weight: 2, arbitrary: fc.constantFrom(...good) }, { weight: 1, arbitrary: anything })
  const answers = or({ github_login: { result: OCTOCAT } }, { github_login: OCTOCAT }, null)
  const nearly = fc.record(
    {
      jsonrpc: or('2.0'),
      id: or('a', 'b', 7),
      method: or('tools/call', 'prompts/get', 'resources/read', 'ping'),
      params: fc.oneof(
        anything,
        fc.record(
          {
            name: or('greet', 'get_weather', 'WizardTool', 'brief'),
            arguments: or({ location: 'x' }, {}),
            uri: or('note://plain', 'note://by/7'),
            inputResponses: answers,
            requestState: or('rs1.AAAA'),
          },
          { requiredKeys: [] },
        ),
      ),
      input_responses: answers,
      request_state: or('rs1.AAAA'),
      input_requests: anything,
    },
    { requiredKeys: [] },
  )

  test.each(spellings)('anything in a session of $revision is answered', async ({ revision }) => {
    const session = await RawSession.open(ask, { revision })
    await fc.assert(
      fc.asyncProperty(fc.oneof(nearly, anything), async (message) => {
        const response = await session.post(message)
        expect([200, 202, 400]).toContain(response.status)
        expect(await response.text()).not.toContain('Internal error')
      }),
      { numRuns: 150 },
    )
    expect((await session.json('ping')).result).toEqual({})
  })
})

const authenticate = (request: HttpRequest): { principal: string } => ({
  principal: request.header('authorization') ?? '',
})

async function saidTo(who: RawSession | undefined, message: object): Promise<Message> {
  return (await (await who?.post(message))?.json()) as Message
}

test.each(spellings)('A state of $revision belongs to the caller that it was given to', async (spelling) => {
  const { revision, retry, asked, answer } = spelling
  const { ask, close } = await (hosts[0] as (typeof hosts)[0]).open(draftApp(), { authenticate })
  const session = (name: string): Promise<RawSession> =>
    RawSession.open(ask, { revision, headers: { Authorization: name } })
  const [ada, grace] = await Promise.all(['ada', 'grace'].map(session))
  const { state } = asked(await saidTo(ada, retry(PARAMS, undefined, undefined)))
  const answers = { github_login: answer(OCTOCAT) }
  expect((await saidTo(grace, retry(PARAMS, answers, state)))['error']).toEqual(FROZEN)
  expect(await saidTo(ada, retry(PARAMS, answers, state))).toHaveProperty('result.content')
  // Another session of hers is as good.
  expect(await saidTo(await session('ada'), retry(PARAMS, answers, state))).toHaveProperty('result.content')
  await close()
})
