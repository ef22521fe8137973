import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { send } from '../hosts/memory.ts'
import { META_CAPABILITIES, META_VERSION } from '../protocol/revisions/2026-07-28.ts'
import { rally, type Rally } from '../rally.ts'
import { accept } from '../testing.ts'
import { emptyState, keepAnswers } from './flow-state.ts'
import type { Io } from './io.ts'
import { Journal } from './journal.ts'

const NUMBER = z.object({ n: z.number() })
const keys = ['a secret of at least thirty-two bytes']
const SILENT = { warn: () => {}, error: () => {} }

type Handler = (io: Io) => Promise<string>

describe('rule 11: a tool may declare its version', () => {
  test('the same string is compatible: recorded steps go on', async () => {
    const before = appOf('1', stepAndAsk)
    const interim = await call(before)
    const after = appOf('1', stepAndAsk)
    expect(await call(after, interim, { a: accept({ n: 4 }) })).toMatchObject({
      result: { content: [{ type: 'text', text: 'first planned, then 4' }] },
    })
  })

  test.each([
    { was: '1', is: '2' },
    { was: undefined, is: '1' },
    { was: '1', is: undefined },
  ])(
    'a journal with recorded steps of version $was is deferred by version $is, and refused after five deferrals',
    async ({ was, is }) => {
      const asked = await call(appOf(was, stepAndAsk))
      let interim = await call(appOf(is, stepAndAsk), asked, { a: accept({ n: 4 }) })
      for (let deferrals = 1; deferrals < 5; deferrals += 1) interim = await call(appOf(is, stepAndAsk), interim)
      expect(await call(appOf(is, stepAndAsk), interim)).toMatchObject({
        error: {
          code: -32602,
          message: `"t": this call recorded steps under version ${was ?? '(none)'}, and version ${is ?? '(none)'} cannot resume it. Send it to an instance with the first version, or start the call again.`,
          data: { code: 'VERSION_CHANGED' },
        },
      })
    },
  )

  test('it is refused only after the seal has opened', async () => {
    const interim = await call(appOf('1', stepAndAsk))
    const broken = { result: { requestState: `${requestStateOf(interim)}A` } }
    expect(await call(appOf('2', stepAndAsk), broken, {})).toMatchObject({
      error: { code: -32602, message: 'Invalid or expired requestState' },
    })
  })

  test('answers alone carry over: what is asked in the same words is not asked again', async () => {
    const first = await call(appOf('1', asking('A?', 'B?')))
    const second = await call(appOf('1', asking('A?', 'B?')), first, { a: accept({ n: 1 }) })
    const third = await call(appOf('2', asking('A?', 'Another B?', 'C?')), second, { b: accept({ n: 2 }) })
    // "b" was answered under other words, and "c" is new.
    expect(messagesOf(third)).toEqual({
      b: 'Another B?\n\nThis question has changed since it was last answered.',
      c: 'C?',
    })
    const last = await call(appOf('2', asking('A?', 'Another B?', 'C?')), third, {
      b: accept({ n: 3 }),
      c: accept({ n: 4 }),
    })
    expect(last).toMatchObject({ result: { content: [{ text: '1, 3, 4' }] } })
  })
})

describe('what carries over', () => {
  const journal = '["a","x",1,["pin",2,"accept",{"n":1}],"a","y",2,["other",1,"decline"]]'

  test('is every answer, held under its own pin and count', () => {
    const flowState = keepAnswers(Journal.read(journal), emptyState())
    expect([...flowState.held]).toEqual([
      ['x', { pin: 'pin', asked: 2, answer: { action: 'accept', value: { n: 1 } } }],
      ['y', { pin: 'other', asked: 1, answer: { action: 'decline', value: undefined } }],
    ])
  })

  test('is what was open and held before, too', () => {
    const before = { ...emptyState(), open: new Map([['z', { pin: 'p', asked: 1 }]]) }
    before.held.set('w', { pin: 'q', asked: 1, answer: { raw: {} } })
    const flowState = keepAnswers(Journal.read(journal), before)
    expect([...flowState.open.keys()]).toEqual(['z'])
    expect([...flowState.held.keys()]).toEqual(['w', 'x', 'y'])
  })

  test.each(['s', 'sv', 'se', 'c', 'cv', 'ce'])('is nothing of an entry with the tag %s, which is an effect', (tag) => {
    const effects = Journal.read(`["${tag}","x",1,null]`)
    expect(effects.hasEffects()).toBe(true)
    expect(keepAnswers(effects, emptyState()).held.size).toBe(0)
    expect(Journal.read(journal).hasEffects()).toBe(false)
  })
})

async function stepAndAsk(io: Io): Promise<string> {
  const plan = await io.step('plan', () => 'planned')
  const { n } = await io.ask('a', 'A?', NUMBER)
  return `first ${plan}, then ${n}`
}

function asking(...messages: string[]): Handler {
  return async (io) => {
    const answers = await Promise.all(messages.map((message, index) => io.ask('abc'.charAt(index), message, NUMBER)))
    return answers.map(({ n }) => n).join(', ')
  }
}

/** A process of its own with the same keys. */
function appOf(version: string | undefined, handler: Handler): Rally {
  const app = rally({ name: 'versions', version: '1.0.0', keys, logger: SILENT })
  return app.tool('t', version === undefined ? {} : { version }, (_args, io) => handler(io))
}

let id = 0

async function call(app: Rally, interim?: unknown, inputResponses?: object): Promise<unknown> {
  const _meta = { [META_VERSION]: '2026-07-28', [META_CAPABILITIES]: { elicitation: {} } }
  const round = interim === undefined ? {} : { requestState: requestStateOf(interim), inputResponses }
  const params = { name: 't', arguments: {}, _meta, ...round }
  return send(app, { jsonrpc: '2.0', id: ++id, method: 'tools/call', params })
}

function requestStateOf(response: unknown): string {
  return (response as { result: { requestState: string } }).result.requestState
}

function messagesOf(response: unknown): unknown {
  const { inputRequests } = (response as { result: { inputRequests: Record<string, { params: { message: string } }> } })
    .result
  return Object.fromEntries(Object.entries(inputRequests).map(([key, { params }]) => [key, params.message]))
}
