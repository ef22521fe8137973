import type { OnceStore, Rally } from 'mcp-rally'
import { elicit, inputRequired, MemoryOnceStore } from 'mcp-rally'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { deferredState } from '../drain/states.ts'
import { accept, askedIn, call, errorOf, resultOf, textOf as textOfTool } from '../wire/messages.ts'
import type { Kind } from './kinds.ts'
import { kinds } from './kinds.ts'
import { makeApp, responseOf } from './messages.ts'

const TEXT = z.object({ text: z.string() })
const said = (text: string): ReturnType<typeof accept> => accept({ text })

interface Deploy {
  readonly asks: readonly [string, string]
  readonly version?: string
  /** Records a step before it asks. */
  readonly step?: boolean
  readonly once?: OnceStore
}

/** One version of a handler on an instance of its own: it asks two things together. */
function deploy(
  { register }: Kind,
  { asks, version, step = false, once }: Deploy,
): { app: Rally; steps: () => number } {
  const { app } = makeApp(once === undefined ? {} : { once })
  let steps = 0
  register(
    app,
    'order',
    async (io) => {
      if (step) await io.step('begin', () => void (steps += 1))
      const answers = await Promise.all(asks.map((key) => io.ask(key, `${key}?`, TEXT)))
      return answers.map(({ text }) => text).join(' and ')
    },
    version === undefined ? {} : { version },
  )
  return { app, steps: () => steps }
}

const versions: { name: string; one: { version?: string }; two: { version?: string } }[] = [
  { name: 'without version strings', one: {}, two: {} },
  { name: 'with the same version string', one: { version: '1' }, two: { version: '1' } },
  { name: 'with other version strings', one: { version: '1' }, two: { version: '2' } },
  { name: 'with a version string from now on', one: {}, two: { version: '2' } },
]

const cases = kinds.flatMap((kind) => versions.map((version) => ({ kind, version })))

describe.each(cases)('rule 11: a rolling upgrade of $kind.kind $version.name', ({ kind, version: { one, two } }) => {
  const { request, textOf } = kind
  const before = deploy(kind, { asks: ['A', 'B'], ...one })
  const after = deploy(kind, { asks: ['A', 'C'], ...two })

  test('asks only what is new: A is answered, B is of no use, C is missing', async () => {
    const first = askedIn(await responseOf(before.app, request('order')))
    expect(first.messages).toEqual({ A: 'A?', B: 'B?' })
    const both = { inputResponses: { A: said('a'), B: said('b') }, requestState: first.state }
    const second = askedIn(await responseOf(after.app, request('order', both)))
    expect(second.messages).toEqual({ C: 'C?' })
    const last = { inputResponses: { C: said('c') }, requestState: second.state }
    expect(textOf(await responseOf(after.app, request('order', last)))).toBe('a and c')
  })

  test('keeps an answer that the version before has recorded', async () => {
    const first = askedIn(await responseOf(before.app, request('order')))
    const onlyA = { inputResponses: { A: said('a') }, requestState: first.state }
    const second = askedIn(await responseOf(before.app, request('order', onlyA)))
    expect(second.messages).toEqual({ B: 'B?' })
    const other = { inputResponses: { B: said('b') }, requestState: second.state }
    const third = askedIn(await responseOf(after.app, request('order', other)))
    expect(third.messages).toEqual({ C: 'C?' })
    const last = { inputResponses: { C: said('c') }, requestState: third.state }
    expect(textOf(await responseOf(after.app, request('order', last)))).toBe('a and c')
  })

  test('goes back as well as forth', async () => {
    const first = askedIn(await responseOf(after.app, request('order')))
    const both = { inputResponses: { A: said('a'), C: said('c') }, requestState: first.state }
    const second = askedIn(await responseOf(before.app, request('order', both)))
    expect(second.messages).toEqual({ B: 'B?' })
    const back = { inputResponses: { B: said('b') }, requestState: second.state }
    // What C was answered is still held for the version that asks it.
    expect(textOf(await responseOf(after.app, request('order', back)))).toBe('a and c')
  })
})

describe.each(kinds)('rule 11: $kind that has recorded steps', (each) => {
  const { request, textOf } = each

  test('goes on under the version that recorded them, or with no versions at all', async () => {
    for (const version of [{}, { version: '1' }]) {
      const before = deploy(each, { asks: ['A', 'B'], step: true, ...version })
      const after = deploy(each, { asks: ['A', 'C'], step: true, ...version })
      const first = askedIn(await responseOf(before.app, request('order')))
      const both = { inputResponses: { A: said('a'), B: said('b') }, requestState: first.state }
      const second = askedIn(await responseOf(after.app, request('order', both)))
      expect(second.messages).toEqual({ C: 'C?' })
      const last = { inputResponses: { C: said('c') }, requestState: second.state }
      expect(textOf(await responseOf(after.app, request('order', last)))).toBe('a and c')
      expect([before.steps(), after.steps()]).toEqual([1, 0])
    }
  })

  test.each([
    ['1', '2', 'recorded steps under version 1, and version 2 cannot resume it'],
    [undefined, '2', 'recorded steps under version (none), and version 2 cannot resume it'],
    ['1', undefined, 'recorded steps under version 1, and version (none) cannot resume it'],
  ])('is deferred five times from version %s to %s, then refused by an error of its own', async (from, to, what) => {
    const before = deploy(each, { asks: ['A', 'B'], step: true, ...(from !== undefined && { version: from }) })
    const after = deploy(each, { asks: ['A', 'B'], step: true, ...(to !== undefined && { version: to }) })
    let { state } = askedIn(await responseOf(before.app, request('order')))
    const states: string[] = []
    let round: object = { inputResponses: { A: said('a'), B: said('b'), C: said('c') }, requestState: state }
    for (let deferral = 1; deferral <= 5; deferral += 1) {
      const response = await responseOf(after.app, request('order', round))
      expect(resultOf(response)['_meta']).toMatchObject({ 'com.mcp-rally/deferred': 'version' })
      state = deferredState(response)
      states.push(state)
      round = { requestState: state }
    }
    const error = errorOf(await responseOf(after.app, request('order', round)))
    expect(error).toEqual({
      code: -32602,
      message: expect.stringMatching(/^".*order": .*\. Send it to an instance with the first version, or start/),
      data: { code: 'VERSION_CHANGED' },
    })
    expect(error.message).toContain(what)
    expect(after.steps()).toBe(0)
    // Each of these states holds both answers, and the last one is still good where its version is.
    for (const requestState of states) {
      expect(textOf(await responseOf(before.app, request('order', { requestState })))).toBe('a and b')
    }
    expect(before.steps()).toBe(1)
  })

  test('keeps a part of the answers too, asks only the rest, and is then deferred five times again', async () => {
    const before = deploy(each, { asks: ['A', 'B'], step: true, version: '1' })
    const after = deploy(each, { asks: ['A', 'B'], step: true, version: '2' })
    let { state } = askedIn(await responseOf(before.app, request('order')))
    let round: object = { inputResponses: { A: said('a') }, requestState: state }
    for (const rest of [{ B: said('b') }, {}]) {
      for (let deferral = 1; deferral <= 5; deferral += 1) {
        state = deferredState(await responseOf(after.app, request('order', round)))
        round = { requestState: state }
      }
      const response = await responseOf(before.app, request('order', round))
      if (Object.keys(rest).length === 0) {
        expect(textOf(response)).toBe('a and b')
        continue
      }
      const asked = askedIn(response)
      expect(asked.messages).toEqual({ B: 'B?' })
      round = { inputResponses: rest, requestState: asked.state }
    }
  })

  test('is deferred with a state that is single-use: the answers of this round cannot be exchanged', async () => {
    const once = new MemoryOnceStore()
    const before = deploy(each, { asks: ['A', 'B'], step: true, version: '1', once })
    const after = deploy(each, { asks: ['A', 'B'], step: true, version: '2', once })
    const { state } = askedIn(await responseOf(before.app, request('order')))
    const both = { inputResponses: { A: said('a'), B: said('b') }, requestState: state }
    const requestState = deferredState(await responseOf(after.app, request('order', both)))
    expect(deferredState(await responseOf(after.app, request('order', both)))).toBe(requestState)
    const others = { inputResponses: { A: said('x'), B: said('y') }, requestState: state }
    expect(errorOf(await responseOf(before.app, request('order', others)))).toMatchObject({ code: -32602 })
    expect(textOf(await responseOf(before.app, request('order', { requestState })))).toBe('a and b')
  })
})

function byHand(version: string): Rally {
  return makeApp().app.tool('order', { version }, async (_args, io) => {
    const plan = await io.step('plan', () => `plan of ${version}`)
    const name = io.responses.accepted('name', TEXT)
    if (name !== undefined) return `${plan}: ${name.text}, ${JSON.stringify(io.responses.state())}`
    return inputRequired({ inputRequests: { name: elicit('Name?', TEXT) }, state: { step: 1 } })
  })
}

test('rule 11: rounds by hand that have recorded steps are deferred with their answers and their state', async () => {
  const { state } = askedIn(await responseOf(byHand('1'), call('order')))
  const answered = { inputResponses: { name: said('Ada') }, requestState: state }
  const requestState = deferredState(await responseOf(byHand('2'), call('order', {}, answered)))
  const last = await responseOf(byHand('1'), call('order', {}, { requestState }))
  expect(textOfTool(last)).toBe('plan of 1: Ada, {"step":1}')
})
