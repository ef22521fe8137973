import type { Rally } from 'mcp-rally'
import { elicit, inputRequired, roots, sample, visit } from 'mcp-rally'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { META_CAPABILITIES, META_LOG_LEVEL } from '../../src/protocol/revisions/2026-07-28.ts'
import { accept, askedIn, errorOf, resultOf } from '../wire/messages.ts'
import type { Kind, Run } from './kinds.ts'
import { kinds } from './kinds.ts'
import { ask, makeApp } from './messages.ts'
import type { Wire } from './wires.ts'
import { hosts } from './wires.ts'

const NAME = z.object({ name: z.string().min(2) })
const STATE = z.object({ turn: z.number() })
const HELLO = { messages: [{ role: 'user' as const, content: { type: 'text' as const, text: 'Hi' } }], maxTokens: 10 }

function handlers(effects: string[]): Record<string, Run> {
  return {
    async wizard(io) {
      const { turn = 0 } = io.responses.state(STATE) ?? {}
      const looked = await io.step('look', () => effects.push('look'))
      const action = io.responses.action('name')
      if (action === 'decline' || action === 'cancel') return `So you ${action}.`
      const given = io.responses.accepted('name', NAME)
      if (given === undefined) {
        return inputRequired({ inputRequests: { name: elicit('Your name?', NAME) }, state: { turn: turn + 1 } })
      }
      return `Hello, ${given.name}, after ${turn} and ${looked}`
    },
    async counts(io) {
      const { turn = 0 } = io.responses.state(STATE) ?? {}
      io.log('info', `turn ${turn}`)
      return turn < 3 ? inputRequired({ state: { turn: turn + 1 } }) : `Counted to ${turn}`
    },
    async everything(io) {
      const said = io.responses.sampled('model')
      const places = io.responses.roots('roots')
      if (said !== undefined && places !== undefined && io.responses.action('page') === 'accept') {
        return `${said.model}, ${places.length} root`
      }
      return inputRequired({
        inputRequests: { page: visit('Sign in.', 'https://example.com/in'), model: sample(HELLO), roots: roots() },
      })
    },
    async peeks(io) {
      if (io.responses.state() === undefined && io.responses.raw('first') === undefined) {
        return inputRequired({ inputRequests: { name: elicit('Your name?', NAME) }, state: 1 })
      }
      return ['first', 'name', 'other', 'constructor'].filter((key) => io.responses.raw(key) !== undefined).join()
    },
    async handsFirst(io) {
      if (io.responses.state() === undefined) return inputRequired({ state: 1 })
      return (await io.confirm('sure', 'Sure?')) ? 'Yes' : 'No'
    },
    async asksFirst(io) {
      await io.confirm('sure', 'Sure?')
      return inputRequired({ state: 1 })
    },
    async asksBeside(io) {
      void io.confirm('sure', 'Sure?')
      return inputRequired({ inputRequests: { name: elicit('Your name?', NAME) } })
    },
    async nothing() {
      return inputRequired({})
    },
    async notJson() {
      return inputRequired({ state: { when: new Date() } })
    },
    async wrongKey() {
      return inputRequired({ inputRequests: { 'a b': elicit('Your name?', NAME) } })
    },
    async tooLarge() {
      return inputRequired({ state: 'x'.repeat(70_000) })
    },
  }
}

function wizardApp({ register }: Kind): { app: Rally; effects: string[] } {
  const { app } = makeApp()
  const effects: string[] = []
  for (const [name, run] of Object.entries(handlers(effects))) register(app, name, run)
  return { app, effects }
}

const cases = hosts.flatMap((host) => kinds.map((kind) => ({ host, kind })))

describe.each(cases)('the rounds of $kind.kind by hand over $host.name', ({ host, kind }) => {
  const { request, textOf, failureOf } = kind
  const { app, effects } = wizardApp(kind)
  let wire: Wire

  beforeAll(async () => {
    wire = await host.open(app)
  })
  afterAll(() => wire.close())

  test('ask what the handler returned, and bring its state back with the answers', async () => {
    effects.length = 0
    const first = askedIn(await ask(wire, request('wizard')))
    expect(first.messages).toEqual({ name: 'Your name?' })
    const wrong = { inputResponses: { name: accept({ name: 'A' }) }, requestState: first.state }
    const second = askedIn(await ask(wire, request('wizard', wrong)))
    expect(second.messages).toEqual({ name: 'Your name?' })
    const right = { inputResponses: { name: accept({ name: 'Ada' }) }, requestState: second.state }
    expect(textOf(await ask(wire, request('wizard', right)))).toBe('Hello, Ada, after 2 and 1')
    expect(effects).toEqual(['look'])
  })

  test.each(['decline', 'cancel'])('leave it to the handler what to say to a %s', async (action) => {
    const { state } = askedIn(await ask(wire, request('wizard')))
    const round = { inputResponses: { name: { action } }, requestState: state }
    expect(textOf(await ask(wire, request('wizard', round)))).toBe(`So you ${action}.`)
  })

  test('may carry a state alone, and report in each', async () => {
    const meta = { [META_LOG_LEVEL]: 'info' }
    const reported: unknown[] = []
    let state: string | undefined
    for (let turn = 0; turn < 3; turn += 1) {
      const round = state === undefined ? {} : { requestState: state }
      const { response, notifications } = await wire.open(request('counts', round, meta)).answer()
      reported.push(...notifications.map(({ params }) => params?.['data']))
      const result = resultOf(response)
      expect(Object.keys(result).toSorted()).toEqual(['_meta', 'requestState', 'resultType'])
      state = result['requestState'] as string
    }
    expect(textOf(await ask(wire, request('counts', { requestState: state })))).toBe('Counted to 3')
    expect(reported).toEqual(['turn 0', 'turn 1', 'turn 2'])
  })

  test('ask for a visit, a sample and the roots', async () => {
    const { state } = askedIn(await ask(wire, request('everything')))
    const inputResponses = {
      page: accept(),
      model: { role: 'assistant', content: { type: 'text', text: 'Hello' }, model: 'm-1' },
      roots: { roots: [{ uri: 'file:///home' }] },
    }
    const done = await ask(wire, request('everything', { inputResponses, requestState: state }))
    expect(textOf(done)).toBe('m-1, 1 root')
  })

  test('take any answers without a state in the first one, and later only those to what was asked', async () => {
    const unasked = { other: accept(), name: accept({ name: 'Ada' }) }
    const early = { inputResponses: { ...unasked, first: accept() } }
    expect(textOf(await ask(wire, request('peeks', early)))).toBe('first,name,other')
    const { state } = askedIn(await ask(wire, request('peeks')))
    const late = { inputResponses: unasked, requestState: state }
    expect(textOf(await ask(wire, request('peeks', late)))).toBe('name')
  })

  test('ask only what the client can answer', async () => {
    const response = await ask(wire, request('wizard', {}, { [META_CAPABILITIES]: { roots: {} } }))
    expect(errorOf(response)).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { elicitation: { form: {} } } },
    })
  })

  test.each([
    ['handsFirst', 'returned inputRequired and then asked "sure" through io'],
    ['asksFirst', 'asked through io and then returned inputRequired'],
  ])('do not go with questions of io, in either order: %s', async (name, what) => {
    const first = resultOf(await ask(wire, request(name)))
    const inputResponses = { sure: accept({ confirm: true }) }
    const second = await ask(wire, request(name, { inputResponses, requestState: first['requestState'] }))
    expect(errorOf(second)).toEqual({
      code: -32603,
      message: `The handler ${what} in one call. Use one of the two styles in all rounds of a call.`,
      data: { code: 'MIXED_STYLES' },
    })
  })

  test.each([
    ['asksBeside', 'MIXED_STYLES', 'asked through io and then returned inputRequired'],
    ['nothing', 'QUESTION_INVALID', 'it has neither inputRequests nor a state'],
    ['wrongKey', 'KEY_INVALID', 'got "a b"'],
    ['tooLarge', 'JOURNAL_TOO_LARGE', 'Largest entries: the state of inputRequired (70002 bytes)'],
  ])('are refused where they cannot be taken: %s', async (name, code, said) => {
    expect(errorOf(await ask(wire, request(name)))).toMatchObject({
      code: -32603,
      message: expect.stringContaining(said),
      data: { code },
    })
  })

  test('keep only a state that JSON keeps', async () => {
    expect(failureOf(await ask(wire, request('notJson')))).toContain('the state of inputRequired: $.when is a Date')
  })
})
