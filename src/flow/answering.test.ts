import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { accept, cancel, decline } from '../testing.ts'
import { gate } from '../testing/manual-scheduler.ts'
import { Rounds } from '../testing/rounds.ts'
import { send } from '../hosts/memory.ts'
import { META_CAPABILITIES, META_VERSION } from '../protocol/revisions/2026-07-28.ts'
import type { StandardSchema } from '../schema/standard.ts'
import { rally } from '../rally.ts'
import type { Io } from './io.ts'
import type { Outcome } from './carrier.ts'

const NUMBER = z.object({ n: z.number() })
const one = accept({ n: 1 })
const misfit = accept({ n: 'one' })

describe('rule 5: an answer is pinned to the question that the client was shown', () => {
  test.each([
    { changed: 'message', ask: (io: Io) => io.ask('a', 'A, in other words?', NUMBER) },
    { changed: 'schema', ask: (io: Io) => io.ask('a', 'A?', z.object({ n: z.number().max(9) })) },
    { changed: 'kind', ask: (io: Io) => io.roots('a') },
    { changed: 'url', ask: (io: Io) => io.visit('a', 'A?', 'https://example.com/2', { done: () => true }) },
  ])('an answer to a question whose $changed has changed meanwhile is not taken', async ({ ask }) => {
    const rounds = new Rounds()
    await rounds.next(asking('a'))
    const outcome = await rounds.next(ask, { a: one })
    expect(keysOf(outcome)).toEqual(['a'])
    expect(rounds.journal).toBe('[]')
  })

  test('what a settled answer was given to is looked at on every pass, and asked again when it has changed', async () => {
    const rounds = new Rounds()
    await rounds.next(asking('a', 'b', 'c'))
    await rounds.next(asking('a', 'b', 'c'), { a: one, b: one })
    const changed = asking('a!', 'b', 'c')
    const outcome = await rounds.next(changed)
    expect(keysOf(outcome)).toEqual(['a', 'c'])
    expect(messageOf(outcome, 'a')).toBe('a! Now?\n\nThis question has changed since it was last answered.')
    // The later answer was held under its own pin, and taken up in the same pass.
    expect(keysIn(rounds.journal)).toEqual(['b'])
    const last = await rounds.next(changed, { a: accept({ n: 2 }), c: accept({ n: 3 }) })
    expect(last).toEqual({ kind: 'done', value: [{ n: 2 }, { n: 1 }, { n: 3 }] })
  })

  test('a later answer that somebody waits for already is given at once, in the order of the journal', async () => {
    const rounds = new Rounds()
    await rounds.next(asking('a', 'b', 'c', 'd'))
    await rounds.next(asking('a', 'b', 'c', 'd'), { a: one, c: one, b: one })
    // "b" and "c" are asked before "a" turns out to have changed.
    expect(keysOf(await rounds.next(asking('c', 'b', 'a!')))).toEqual(['a'])
    expect(keysIn(rounds.journal)).toEqual(['b', 'c'])
    const outcome = await rounds.next(asking('c', 'b', 'a!'), { a: accept({ n: 2 }) })
    expect(outcome).toEqual({ kind: 'done', value: [{ n: 1 }, { n: 1 }, { n: 2 }] })
  })

  test('an answer held for a question further down is pinned too', async () => {
    const rounds = new Rounds()
    await rounds.next(asking('a', 'b', 'c'))
    await rounds.next(asking('a', 'b', 'c'), { a: one, b: one })
    // "a" is asked again, and "b" is not reached before it is answered.
    const steady = await rounds.next(inTurn('a!', 'b'))
    expect(keysOf(steady)).toEqual(['a'])
    const outcome = await rounds.next(inTurn('a!', 'b!'), { a: one })
    expect(keysOf(outcome)).toEqual(['b'])
    expect(messageOf(outcome, 'b')).toContain('This question has changed since it was last answered.')
    expect(await rounds.next(inTurn('a!', 'b!'), { b: one })).toEqual({ kind: 'done', value: [{ n: 1 }, { n: 1 }] })
  })

  test.each([
    { effect: 'step', work: (io: Io) => io.step('ship', () => 1) },
    { effect: 'scope', work: (io: Io) => io.scope('ship', () => 1) },
  ])('once a $effect was recorded after the answer, a change fails the call and names both keys', async ({ work }) => {
    const rounds = new Rounds()
    const handler = (message: string) => async (io: Io) => {
      await io.ask('a', message, NUMBER)
      await work(io)
      await io.ask('b', 'B?', NUMBER)
    }
    await rounds.next(handler('A?'))
    await rounds.next(handler('A?'), { a: one })
    expect(await rounds.next(handler('A, in other words?'))).toMatchObject({
      kind: 'failed',
      error: {
        code: 'QUESTION_CHANGED',
        message: expect.stringMatching(/^The question "a" has changed since it was answered, and "ship" ran after/),
      },
    })
  })

  test('a step that was recorded before the answer does not stand in the way of asking again', async () => {
    const rounds = new Rounds()
    const plan = (io: Io): Promise<number> => io.step('plan', () => rounds.passes.length)
    await rounds.next((io) => plan(io).then(() => inTurn('a', 'b')(io)))
    await rounds.next((io) => plan(io).then(() => inTurn('a', 'b')(io)), { a: one })
    expect(keysOf(await rounds.next((io) => plan(io).then(() => inTurn('a!', 'b')(io))))).toEqual(['a'])
    expect(rounds.effects).toEqual(['plan'])
  })

  test('a question asked again because its answer did not fit says so, and the text without that is what is pinned', async () => {
    const rounds = new Rounds()
    const first = await rounds.next(asking('a'))
    const again = await rounds.next(asking('a'), { a: misfit })
    expect(messageOf(again, 'a')).toMatch(/^a Now\?\n\nThe last answer did not fit: n: .+/)
    expect(pinsOf(again)).toEqual(pinsOf(first))
    expect(await rounds.next(asking('a'), { a: one })).toEqual({ kind: 'done', value: [{ n: 1 }] })
  })
})

describe('rule 5: a question is asked at most three times in a flow', () => {
  test.each([
    { name: 'answers that do not fit', sent: { a: misfit }, why: 'The last answer did not fit: n: ' },
    { name: 'answers of another kind', sent: { a: { roots: [] } }, why: 'The last answer did not fit: action must be' },
    { name: 'rounds without an answer', sent: {}, why: 'No answer came.' },
    { name: 'retries that bring nothing at all', sent: undefined, why: 'No answer came.' },
  ])('after three $name the call fails, names the key and says why', async ({ sent, why }) => {
    const rounds = new Rounds()
    for (let time = 1; time <= 3; time += 1) {
      expect(countsOf(await rounds.next(asking('a'), time === 1 ? undefined : sent))).toEqual({ a: time })
    }
    expect(await rounds.next(asking('a'), sent)).toMatchObject({
      kind: 'failed',
      error: {
        code: 'ASKED_TOO_OFTEN',
        message: expect.stringContaining(`The question "a" was asked 3 times, and no answer was valid. ${why}`),
      },
    })
  })

  test('the third answer may still be the right one', async () => {
    const rounds = new Rounds()
    for (const sent of [undefined, { a: misfit }, { a: misfit }]) await rounds.next(asking('a'), sent)
    expect(await rounds.next(asking('a'), { a: one })).toEqual({ kind: 'done', value: [{ n: 1 }] })
  })

  test('answers that came unasked with the first request count as well', async () => {
    const rounds = new Rounds()
    expect(countsOf(await rounds.next(asking('a'), { a: misfit }))).toEqual({ a: 1 })
  })

  test('a question that goes on changing is asked three times too', async () => {
    const rounds = new Rounds()
    await rounds.next(asking('a'))
    await rounds.next(asking('a!'), { a: one })
    await rounds.next(asking('a!!'), { a: one })
    expect(await rounds.next(asking('a!!!'), { a: one })).toMatchObject({
      error: { code: 'ASKED_TOO_OFTEN', message: expect.stringContaining('has changed since') },
    })
  })

  test('being shown again beside others that were answered does not count', async () => {
    const rounds = new Rounds()
    const keys = ['a', 'b', 'c', 'd', 'e']
    await rounds.next(asking(...keys))
    for (const key of keys.slice(1)) {
      expect(countsOf(await rounds.next(asking(...keys), { [key]: one }))).toMatchObject({ a: 1 })
    }
  })

  test('each question is counted for itself', async () => {
    const rounds = new Rounds()
    await rounds.next(asking('a', 'b'))
    await rounds.next(asking('a', 'b'), { a: misfit, b: one })
    expect(countsOf(await rounds.next(asking('a', 'b'), { a: misfit }))).toEqual({ a: 3 })
    const outcome = await rounds.next((io) => Promise.all([asking('a', 'b')(io), asking('c')(io)]), { a: one })
    expect(countsOf(outcome)).toEqual({ c: 1 })
  })
})

describe('rule 6: answers come from the client and are untrusted', () => {
  test.each([
    { inputResponses: 'yes', why: 'inputResponses must be an object' },
    { inputResponses: [], why: 'inputResponses must be an object' },
    { inputResponses: { a: true }, why: 'inputResponses["a"] must be an object' },
    { inputResponses: { a: [] }, why: 'inputResponses["a"] must be an object' },
  ])('$inputResponses is refused with -32602 before the handler runs', async ({ inputResponses, why }) => {
    const ran = vi.fn<() => void>()
    expect(await callWith(inputResponses, ran)).toMatchObject({ error: { code: -32602, message: why } })
    expect(ran).not.toHaveBeenCalled()
  })

  test.each([null, { a: null }])('null in %o counts as absent', async (inputResponses) => {
    const ran = vi.fn<() => void>()
    expect(await callWith(inputResponses, ran)).toMatchObject({ result: { resultType: 'input_required' } })
    expect(ran).toHaveBeenCalledOnce()
  })

  test('without a state they are offered to the questions of the first pass by key', async () => {
    const rounds = new Rounds()
    const outcome = await rounds.next(inTurn('a', 'b'), { a: one, b: accept({ n: 2 }) })
    expect(outcome).toEqual({ kind: 'done', value: [{ n: 1 }, { n: 2 }] })
  })

  test('with one only answers to its open questions count', async () => {
    const rounds = new Rounds()
    await rounds.next(inTurn('a', 'b'))
    expect(keysOf(await rounds.next(inTurn('a', 'b'), { a: one, b: one }))).toEqual(['b'])
  })

  test('an unasked one is ignored, whatever is in it', async () => {
    const rounds = new Rounds()
    await rounds.next(asking('a'))
    const outcome = await rounds.next(asking('a'), { a: one, other: misfit, constructor: {}, 'no key': {} })
    expect(outcome).toEqual({ kind: 'done', value: [{ n: 1 }] })
  })

  test('only own properties are answers', async () => {
    const rounds = new Rounds()
    const outcome = await rounds.next((io) => io.ask('constructor', 'Who?', NUMBER), {})
    expect(keysOf(outcome)).toEqual(['constructor'])
    expect(messageOf(outcome, 'constructor')).toBe('Who?')
  })

  test.each([
    { name: 'no action', answer: {} },
    { name: 'an unknown action', answer: { action: 'maybe', content: { n: 1 } } },
    { name: 'content that does not fit', answer: misfit },
    { name: 'content that is no object', answer: { action: 'accept', content: 'n=1' } },
    { name: 'no content', answer: { action: 'accept' } },
    { name: 'what a model says', answer: { role: 'assistant', content: { type: 'text', text: '1' }, model: 'm' } },
  ])('a well-formed answer that does not fit, with $name, is asked again', async ({ answer }) => {
    const rounds = new Rounds()
    await rounds.next(asking('a'))
    expect(keysOf(await rounds.next(asking('a'), { a: answer }))).toEqual(['a'])
    expect(rounds.journal).toBe('[]')
  })

  test('one to a shown question that the pass did not reach is held in the state', async () => {
    const rounds = new Rounds()
    await rounds.next(asking('a', 'b'))
    // After a deploy "b" comes behind "first".
    const deployed = inTurn('first', 'a', 'b')
    expect(keysOf(await rounds.next(deployed, { a: one, b: accept({ n: 2 }) }))).toEqual(['first'])
    expect(rounds.journal).toBe('[]')
    const outcome = await rounds.next(deployed, { first: accept({ n: 0 }) })
    expect(outcome).toEqual({ kind: 'done', value: [{ n: 0 }, { n: 1 }, { n: 2 }] })
  })

  test('what is recorded is the validated output, and validation runs once', async () => {
    const rounds = new Rounds()
    const validated = vi.fn<() => void>()
    const schema = z.object({ n: z.number(), note: z.string().default('none') }).transform(({ n, note }) => {
      validated()
      return { doubled: n * 2, note }
    })
    const seen: unknown[] = []
    const handler = async (io: Io): Promise<void> => {
      seen.push(await io.ask('a', 'A?', schema))
      await io.ask('b', 'B?', NUMBER)
    }
    await rounds.next(handler)
    await rounds.next(handler, { a: accept({ n: 4, extra: 'left out' }) })
    await rounds.next(handler)
    expect(seen).toEqual([
      { doubled: 8, note: 'none' },
      { doubled: 8, note: 'none' },
    ])
    expect(validated).toHaveBeenCalledOnce()
    expect(rounds.journal).toContain('"accept",{"doubled":8,"note":"none"}]')
  })

  test('an output that JSON would lose fails the call and says where', async () => {
    const rounds = new Rounds()
    const schema = z.object({ n: z.number() }).transform(({ n }) => ({ at: new Date(n) }))
    const outcome = await rounds.next((io) => io.ask('a', 'A?', schema), { a: one })
    expect(outcome).toMatchObject({
      error: { code: 'NOT_JSON', message: expect.stringContaining('the answer to "a": $.at is a Date') },
    })
  })

  test.each([
    { how: 'throws', validate: () => boom() },
    { how: 'rejects', validate: () => Promise.resolve().then(boom) },
  ])('a schema that $how fails the call, not the process', async ({ validate }) => {
    const { jsonSchema } = NUMBER['~standard']
    const schema: StandardSchema = { '~standard': { version: 1, vendor: 'test', validate, jsonSchema } }
    const outcome = await new Rounds().next((io) => io.ask('a', 'A?', schema), { a: one })
    expect(outcome).toMatchObject({ kind: 'failed', error: { message: 'boom' } })
  })

  test('an asynchronous schema is waited for, and answers settle as they are validated', async () => {
    const rounds = new Rounds()
    const slow = gate<boolean>()
    const handler = (io: Io): Promise<unknown> =>
      Promise.all([
        io.ask(
          'slow',
          'Slow?',
          NUMBER.refine(() => slow.promise),
        ),
        io.ask('quick', 'Quick?', NUMBER).then(() => slow.open(true)),
      ])
    await rounds.next(handler)
    expect(await rounds.next(handler, { slow: one, quick: one })).toMatchObject({ kind: 'done' })
    expect(keysIn(rounds.journal)).toEqual(['quick', 'slow'])
  })

  test('what the journal holds wins over what a retry sends for the same key', async () => {
    const rounds = new Rounds()
    await rounds.next(inTurn('a', 'b'))
    await rounds.next(inTurn('a', 'b'), { a: one })
    const outcome = await rounds.next(inTurn('a', 'b'), { a: accept({ n: 99 }), b: one })
    expect(outcome).toEqual({ kind: 'done', value: [{ n: 1 }, { n: 1 }] })
  })

  test('what is held wins over what a later round sends for the same key', async () => {
    const rounds = new Rounds()
    await rounds.next(asking('a', 'b'))
    const deployed = inTurn('first', 'a', 'b')
    await rounds.next(deployed, { a: one, b: one })
    const outcome = await rounds.next(deployed, { first: one, a: accept({ n: 99 }), b: decline() })
    expect(outcome).toEqual({ kind: 'done', value: [{ n: 1 }, { n: 1 }, { n: 1 }] })
  })

  test.each([
    { sent: decline(), message: 'The user declined the question "a".', action: 'decline' },
    { sent: cancel(), message: 'The user cancelled the question "a".', action: 'cancel' },
  ])('a $action is an answer, recorded like any other', async ({ sent, message, action }) => {
    const rounds = new Rounds()
    await rounds.next(catchDecline)
    await rounds.next(catchDecline, { a: sent })
    // Too late to change one's mind.
    const outcome = await rounds.next(catchDecline, { a: one, b: one })
    expect(outcome).toMatchObject({
      kind: 'done',
      value: { name: 'Declined', code: 'DECLINED', key: 'a', action, message },
    })
  })
})

/** The response of an app to a first request with these. */
function callWith(inputResponses: unknown, ran: () => void): Promise<unknown> {
  const app = rally({ name: 'answers', version: '1.0.0' }).tool('t', {}, async (_args, io) => {
    ran()
    await io.confirm('a', 'A?')
  })
  const _meta = { [META_VERSION]: '2026-07-28', [META_CAPABILITIES]: { elicitation: {} } }
  return send(app, { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 't', inputResponses, _meta } })
}

/** Asks all at once. A key with marks at its end is the same key with other words. */
function asking(...names: string[]): (io: Io) => Promise<unknown[]> {
  return (io) => Promise.all(names.map((name) => askOne(io, name)))
}

/** Asks one after the other. */
function inTurn(...names: string[]): (io: Io) => Promise<unknown[]> {
  return async (io) => {
    const given: unknown[] = []
    for (const name of names) given.push(await askOne(io, name))
    return given
  }
}

function askOne(io: Io, name: string): Promise<unknown> {
  return io.ask(name.replaceAll('!', ''), `${name} Now?`, NUMBER)
}

async function catchDecline(io: Io): Promise<unknown> {
  const caught = await io.ask('a', 'A?', NUMBER).catch((error: unknown) => error)
  await io.ask('b', 'B?', NUMBER)
  return caught
}

function boom(): never {
  throw new Error('boom')
}

function keysOf(outcome: Outcome): string[] {
  return outcome.kind === 'asks' ? [...outcome.questions.keys()] : [outcome.kind]
}

function messageOf(outcome: Outcome, key: string): string {
  const text = outcome.kind === 'asks' ? outcome.questions.get(key) : undefined
  return (JSON.parse(text ?? '{"params":{}}') as { params: { message: string } }).params.message
}

function pinsOf(outcome: Outcome): unknown {
  return outcome.kind === 'asks' && Array.from(outcome.flowState.open, ([key, { pin }]) => [key, pin])
}

function countsOf(outcome: Outcome): unknown {
  return (
    outcome.kind === 'asks' &&
    Object.fromEntries(Array.from(outcome.flowState.open, ([key, { asked }]) => [key, asked]))
  )
}

function keysIn(journal: string): unknown[] {
  return (JSON.parse(journal) as unknown[]).filter((_, index) => index % 4 === 1)
}
