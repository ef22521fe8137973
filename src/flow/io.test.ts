import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { accept, cancel, decline } from '../testing.ts'
import { gate, microtasks } from '../testing/manual-scheduler.ts'
import { Rounds } from '../testing/rounds.ts'
import { Cancel } from '../protocol/cancel.ts'
import { Declined } from './errors.ts'
import type { Asks, ChoiceOption, Io } from './io.ts'
import type { Outcome } from './carrier.ts'
import type { Flow } from './carrier.ts'
import type { Capability } from './question.ts'

const NUMBER = z.object({ n: z.number() })
const one = accept({ n: 1 })

describe('io.ask', () => {
  test('takes the schema that was declared under its key, and puts the exact question on the wire', async () => {
    const rounds = new Rounds({ asks: { size: z.object({ size: z.enum(['S', 'M']).describe('Of the shirt') }) } })
    const outcome = await rounds.next((io) => io.ask('size', 'Which size?'))
    expect(textOf(outcome, 'size')).toBe(
      '{"method":"elicitation/create","params":{"mode":"form","message":"Which size?","requestedSchema":{"type":"object",' +
        '"properties":{"size":{"type":"string","description":"Of the shirt","enum":["S","M"]}},"required":["size"]}}}',
    )
    const last = await rounds.next((io) => io.ask('size', 'Which size?'), { size: accept({ size: 'M' }) })
    expect(last).toEqual({ kind: 'done', value: { size: 'M' } })
  })

  test('takes a declared schema for a key with an index too, and inside a scope', async () => {
    const rounds = new Rounds({ asks: { item: NUMBER } })
    await rounds.next(askItems)
    const outcome = await rounds.next(askItems, { 'item[3]': one, 's>item': accept({ n: 2 }) })
    expect(outcome).toEqual({ kind: 'done', value: [{ n: 1 }, { n: 2 }] })
  })

  test('takes a plain JSON Schema, and gives only what it names', async () => {
    const schema = { type: 'object', properties: { n: { type: 'integer', multipleOf: 5 } }, required: ['n'] }
    const rounds = new Rounds()
    await rounds.next((io) => io.ask('a', 'A?', schema))
    const misfit = await rounds.next((io) => io.ask('a', 'A?', schema), { a: accept({ n: 7 }) })
    expect(misfit).toMatchObject({ kind: 'asks' })
    const outcome = await rounds.next((io) => io.ask('a', 'A?', schema), { a: accept({ n: 10, extra: 'x' }) })
    expect(outcome).toEqual({ kind: 'done', value: { n: 10 } })
  })

  test.each([
    { what: 'no schema', ask: (io: Io<Asks>) => io.ask('a', 'A?'), why: 'it has no schema. Declare one under `asks`' },
    { what: 'no message', ask: (io: Io) => io.ask('a', '', NUMBER), why: 'its message must be a non-empty string' },
    {
      what: 'a schema that no form has',
      ask: (io: Io) => io.ask('a', 'A?', z.object({ where: z.object({ city: z.string() }) })),
      why: '"where" is an object, but a form is flat',
    },
  ])('with $what fails the call with an error that says so, although the handler catches', async ({ ask, why }) => {
    const outcome = await new Rounds().next((io) => ask(io).catch(() => 'caught'))
    expect(outcome).toMatchObject({ kind: 'failed', error: { message: expect.stringContaining(why) } })
  })

  test.each([decline(), cancel()])(
    'answered with %o throws Declined, which ends the call unless it is caught',
    async (sent) => {
      const outcome = await new Rounds().next((io) => io.ask('a', 'A?', NUMBER), { a: sent })
      expect(outcome).toEqual({ kind: 'failed', error: new Declined('a', sent.action as 'decline' | 'cancel') })
    },
  )
})

describe('io.elicit', () => {
  test.each([
    { sent: one, given: { action: 'accept', content: { n: 1 } } },
    { sent: decline(), given: { action: 'decline' } },
    { sent: cancel(), given: { action: 'cancel' } },
  ])('gives $given.action to branch on, live and replayed', async ({ sent, given }) => {
    const rounds = new Rounds()
    const seen: unknown[] = []
    const handler = async (io: Io): Promise<void> => {
      seen.push(await io.elicit('a', 'A?', NUMBER))
      await io.ask('b', 'B?', NUMBER)
    }
    await rounds.next(handler)
    await rounds.next(handler, { a: sent })
    await rounds.next(handler)
    expect(seen).toStrictEqual([given, given])
  })
})

describe('io.confirm', () => {
  test.each([
    { sent: accept({ confirm: true }), outcome: { kind: 'done', value: true } },
    { sent: accept({ confirm: false }), outcome: { kind: 'done', value: false } },
    { sent: decline(), outcome: { kind: 'done', value: false } },
    { sent: cancel(), outcome: { kind: 'failed', error: new Declined('sure', 'cancel') } },
  ])('answered with $sent is $outcome', async ({ sent, outcome }) => {
    expect(await new Rounds().next((io) => io.confirm('sure', 'Sure?'), { sure: sent })).toEqual(outcome)
  })

  test('asks for one switch', async () => {
    const outcome = await new Rounds().next((io) => io.confirm('sure', 'Sure?'))
    expect(JSON.parse(textOf(outcome, 'sure'))).toMatchObject({
      params: {
        message: 'Sure?',
        requestedSchema: { properties: { confirm: { type: 'boolean' } }, required: ['confirm'] },
      },
    })
  })
})

describe('io.choose', () => {
  const titled: ChoiceOption[] = ['S', { value: 'M', title: 'Medium' }]

  test.each([
    { options: ['S', 'M'], choice: { type: 'string', enum: ['S', 'M'] } },
    {
      options: titled,
      choice: {
        type: 'string',
        oneOf: [
          { const: 'S', title: 'S' },
          { const: 'M', title: 'Medium' },
        ],
      },
    },
  ])('offers $options, and gives the value of one of them', async ({ options, choice }) => {
    const rounds = new Rounds()
    const outcome = await rounds.next((io) => io.choose('size', 'Size?', options))
    expect(JSON.parse(textOf(outcome, 'size'))).toMatchObject({
      params: { requestedSchema: { properties: { choice }, required: ['choice'] } },
    })
    const odd = await rounds.next((io) => io.choose('size', 'Size?', options), { size: accept({ choice: 'XL' }) })
    expect(odd).toMatchObject({ kind: 'asks' })
    const last = await rounds.next((io) => io.choose('size', 'Size?', options), { size: accept({ choice: 'M' }) })
    expect(last).toEqual({ kind: 'done', value: 'M' })
  })

  test('with nothing to choose from is an error', async () => {
    const outcome = await new Rounds().next((io) => io.choose('size', 'Size?', []))
    expect(outcome).toMatchObject({
      error: { code: 'QUESTION_INVALID', message: expect.stringContaining('no options') },
    })
  })

  test.each([decline(), cancel()])('answered with %o throws Declined', async (sent) => {
    const outcome = await new Rounds().next((io) => io.choose('size', 'Size?', ['S']), { size: sent })
    expect(outcome).toEqual({ kind: 'failed', error: new Declined('size', sent.action as 'decline' | 'cancel') })
  })
})

describe('io.roots', () => {
  test('gives the roots of the client', async () => {
    const rounds = new Rounds()
    expect(textOf(await rounds.next((io) => io.roots('r')), 'r')).toBe('{"method":"roots/list"}')
    const roots = [{ uri: 'file:///home/ada', name: 'home' }]
    expect(await rounds.next((io) => io.roots('r'), { r: { roots } })).toEqual({ kind: 'done', value: roots })
  })

  test.each([{}, { roots: {} }, { roots: ['file:///a'] }, { roots: [{ name: 'a' }] }, { roots: [null] }, decline()])(
    'asks again after %o',
    async (answer) => {
      expect(await new Rounds().next((io) => io.roots('r'), { r: answer })).toMatchObject({ kind: 'asks' })
    },
  )
})

describe('io.step', () => {
  test('gets a key that is stable for this flow and step, and no other', async () => {
    const keys = new Map<string, string>()
    const note = async (io: Io, flow: string): Promise<void> => {
      await io.step('a', ({ idempotencyKey }) => void keys.set(`${flow} a`, idempotencyKey))
      await io.step('b', ({ idempotencyKey }) => void keys.set(`${flow} b`, idempotencyKey))
      await io.scope('s', (inner) =>
        inner.step('a', ({ idempotencyKey }) => void keys.set(`${flow} s>a`, idempotencyKey)),
      )
    }
    await new Rounds().next((io) => note(io, 'one'), undefined, { flow: flowOf('one') })
    const before = new Map(keys)
    await new Rounds().next((io) => note(io, 'one'), undefined, { flow: flowOf('one') })
    expect(keys).toEqual(before)
    await new Rounds().next((io) => note(io, 'other'), undefined, { flow: flowOf('other') })
    expect(new Set(keys.values()).size).toBe(6)
  })
})

describe('io.scope', () => {
  test('keeps its value and drops what happened inside from the journal', async () => {
    const rounds = new Rounds()
    await rounds.next(addInScope)
    expect(rounds.journal).toBe('["s","s>a",1,1]')
    await rounds.next(addInScope, { 's>b': accept({ n: 4 }) })
    expect(rounds.journal).toBe('["c","s",3,5]')
    expect(await rounds.next(addInScope, { last: one })).toEqual({ kind: 'done', value: 5 })
    expect(rounds.effects).toEqual(['s>a'])
  })

  test('a decline inside it comes out as a Declined that names the question, live and replayed', async () => {
    const rounds = new Rounds()
    const caught: unknown[] = []
    const handler = async (io: Io): Promise<void> => {
      await io.scope('s', (inner) => inner.ask('a', 'A?', NUMBER)).catch((error: unknown) => caught.push(error))
      await io.ask('last', 'Last?', NUMBER)
    }
    await rounds.next(handler)
    await rounds.next(handler, { 's>a': decline() })
    await rounds.next(handler)
    expect(caught).toEqual([new Declined('s>a', 'decline'), new Declined('s>a', 'decline')])
  })

  test('questions that it left open when it was over are not asked any more', async () => {
    const rounds = new Rounds()
    expect(keysOf(await rounds.next(raceInScope))).toEqual(['last'])
    expect(await rounds.next(raceInScope, { 's>a': one, last: one })).toMatchObject({ kind: 'done' })
  })

  test('what is still going on inside when it is over is heard by nobody', async () => {
    const rounds = new Rounds()
    const slow = gate()
    const late = vi.fn<() => void>()
    const outcome = rounds.next(async (io) => {
      await io.scope('s', (inner) => {
        void inner.step('slow', () => slow.promise).then(() => inner.step('next', late))
        return 1
      })
      slow.open()
      await microtasks()
      await io.ask('last', 'Last?', NUMBER)
    })
    expect(keysOf(await outcome)).toEqual(['last'])
    expect(late).not.toHaveBeenCalled()
    expect(rounds.journal).toBe('["c","s",1,1]')
  })
})

describe('io.now, io.random and io.uuid', () => {
  test('are the same on every pass, and leave nothing in the journal', async () => {
    const rounds = new Rounds()
    const seen: unknown[][] = []
    const handler = async (io: Io): Promise<void> => {
      const values = [io.now(), io.random('r'), io.uuid('u')]
      await io.step('s', () => 1)
      values.push(io.now())
      seen.push(values)
      await io.ask('a', 'A?', NUMBER)
    }
    await rounds.next(handler)
    await rounds.next(handler)
    expect(seen[1]).toEqual(seen[0])
    expect(keysIn(rounds.journal)).toEqual(['s'])
  })

  test('now is when the flow began, and then when the last entry settled', async () => {
    const started = Date.UTC(2026, 6, 28)
    const now = vi.fn<() => number>().mockReturnValueOnce(started + 7_000)
    const outcome = await new Rounds().next(
      async (io) => [io.now() - started, await io.step('s', () => 1), io.now() - started, io.now() - started],
      undefined,
      { now },
    )
    expect(outcome).toEqual({ kind: 'done', value: [0, 1, 7_000, 7_000] })
  })

  test('now never goes back, though the clock of another instance does', async () => {
    const rounds = new Rounds()
    const started = Date.UTC(2026, 6, 28)
    const handler = async (io: Io): Promise<number[]> => {
      await io.ask('a', 'A?', NUMBER)
      const before = io.now() - started
      await io.step('s', () => {
        clock = started + 2_000
      })
      return [before, io.now() - started]
    }
    let clock = started + 9_000
    await rounds.next(handler)
    const outcome = await rounds.next(handler, { a: one }, { now: () => clock })
    expect(outcome).toEqual({ kind: 'done', value: [9_000, 9_000] })
  })

  test('random is in [0, 1) and uuid is a version 4, both other ones for another key, scope or flow', async () => {
    const values: [number, string][] = []
    const pair = (from: Io, key: string): void => void values.push([from.random(key), from.uuid(key)])
    const draw = async (io: Io): Promise<void> => {
      pair(io, 'a')
      pair(io, 'b')
      await io.scope('s', (inner) => pair(inner, 'a'))
    }
    for (let flow = 0; flow < 50; flow += 1) await new Rounds().next(draw, undefined, { flow: flowOf(`flow ${flow}`) })
    const [numbers, uuids] = [values.map(([number]) => number), values.map(([, uuid]) => uuid)]
    expect(numbers.filter((number) => number < 0 || number >= 1)).toEqual([])
    // Fifty flows of three: all on one side of a half would be a strange draw.
    expect(numbers.filter((number) => number < 0.5).length).toBeGreaterThan(40)
    expect(numbers.filter((number) => number >= 0.5).length).toBeGreaterThan(40)
    expect(new Set(numbers).size).toBe(150)
    expect(new Set(uuids).size).toBe(150)
    const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
    expect(uuids.filter((each) => !uuid.test(each))).toEqual([])
  })
})

describe('io.progress and io.log', () => {
  test('are silent in a later pass until its first new settlement', async () => {
    const rounds = new Rounds()
    const told: unknown[] = []
    const input = {
      progress: (...given: unknown[]) => void told.push(given),
      log: (...given: unknown[]) => void told.push(given),
    }
    await rounds.next(reporting, undefined, input)
    expect(told.splice(0)).toEqual([
      [1, 3, 'begun'],
      ['info', { begun: true }, 'deploy'],
      [2, 3, undefined],
    ])
    await rounds.next(reporting, { a: one }, input)
    expect(told).toEqual([
      [3, 3, undefined],
      ['notice', 'done', undefined],
    ])
  })

  test('of a step that runs are told in any pass, because it is new work', async () => {
    const rounds = new Rounds()
    const told: unknown[] = []
    const input = { progress: (done: number) => void told.push(done), log: (level: string) => void told.push(level) }
    await rounds.next((io) => io.ask('a', 'A?', NUMBER), undefined, input)
    await rounds.next((io) => io.step('new', ({ progress, log }) => [progress(1), log('info', 'x')].length), {}, input)
    expect(told).toEqual([1, 'info'])
  })

  test('rule 3: are silent once the pass has ended', async () => {
    const progress = vi.fn<() => void>()
    const after = gate()
    const outcome = await new Rounds().next(
      (io) => {
        void io.step('s', async (context) => {
          await after.promise
          context.progress(1)
          context.log('info', 'x')
        })
        void after.promise.then(() => [io.progress(2), io.log('info', 'x')])
        return 'done'
      },
      undefined,
      { progress, log: progress },
    )
    expect(outcome).toMatchObject({ kind: 'done' })
    after.open()
    await microtasks()
    expect(progress).not.toHaveBeenCalled()
  })

  test('do nothing where the client asked for none', async () => {
    const outcome = await new Rounds().next((io) => [io.progress(1), io.log('info', 'x')].length)
    expect(outcome).toEqual({ kind: 'done', value: 2 })
  })
})

describe('io.can and io.revision', () => {
  test('are what the first round declared, while sending is decided by the current request', async () => {
    const flow = flowOf('a', ['elicitation.form'])
    const outcome = await new Rounds().next(offering, undefined, { flow, can: () => false })
    expect(outcome).toMatchObject({
      error: { rpcCode: -32021, data: { requiredCapabilities: { elicitation: { form: {} } } } },
    })
    const rounds = new Rounds()
    await rounds.next(offering, undefined, { flow: flowOf('a', []), can: () => true })
    // An answer that is there needs nothing of the client any more.
    const last = await rounds.next(
      offering,
      { sure: accept({ confirm: true }) },
      { flow: { ...flowOf('a', []), round: 1 }, can: () => false },
    )
    expect(last).toEqual({ kind: 'done', value: 'none 2026-07-28' })
  })

  test.each<{ call: string; ask: (io: Io) => Promise<unknown>; required: object; says: string }>([
    {
      call: 'ask',
      ask: (io) => io.ask('a', 'A?', NUMBER),
      required: { elicitation: { form: {} } },
      says: 'needs an answer from the user (question "a"), and the app that sent it cannot ask its user. To try again in that app will not help. Use an app that supports MCP elicitation,',
    },
    {
      call: 'visit',
      ask: (io) => io.visit('a', 'A?', 'https://example.com', { done: () => true }),
      required: { elicitation: { url: {} } },
      says: 'needs the user to visit a web page (question "a"), and the app that sent it cannot ask its user. To try again in that app will not help. Use an app that supports MCP elicitation by URL,',
    },
    {
      call: 'sample',
      ask: (io) => io.sample('a', { messages: [], maxTokens: 1 }),
      required: { sampling: {} },
      says: 'needs a language model (question "a"), and the app that sent it does not let servers use its model. To try again in that app will not help. Use an app that supports MCP sampling,',
    },
    {
      call: 'roots',
      ask: (io) => io.roots('a'),
      required: { roots: {} },
      says: `needs to know the user's folders (question "a"), and the app that sent it does not share them. To try again in that app will not help. Use an app that supports MCP roots,`,
    },
  ])('io.$call tells a user what is missing and what helps, although the handler catches', async (given) => {
    const { ask, required, says } = given
    const outcome = await new Rounds({ capabilities: [] }).next((io) => ask(io).catch(() => 'caught'))
    expect(outcome).toMatchObject({
      kind: 'failed',
      error: {
        rpcCode: -32021,
        message: `This request ${says} or turn that on in its settings.`,
        data: { requiredCapabilities: required },
      },
    })
  })
})

describe('io.onSuspend and io.signal', () => {
  test('a suspension cleans up in order, once, and does not abort the signal', async () => {
    const log: string[] = []
    let signal: AbortSignal | undefined
    await new Rounds().next(async (io) => {
      ;({ signal } = io)
      io.onSuspend(() => void log.push('first'))
      io.onSuspend(() => void log.push('second'))
      await io.ask('a', 'A?', NUMBER)
    })
    expect(log).toEqual(['first', 'second'])
    expect(signal?.aborted).toBe(false)
  })

  test.each([
    [
      'throws',
      () => {
        throw new Error('broken')
      },
    ],
    ['rejects', () => Promise.reject(new Error('broken'))],
  ])('a clean-up that %s is logged, and the others still run', async (_how, broken) => {
    const rounds = new Rounds()
    const cleanUp = vi.fn<() => void>()
    const outcome = await rounds.next(async (io) => {
      io.onSuspend(() => broken() as never)
      io.onSuspend(cleanUp)
      await io.ask('a', 'A?', NUMBER)
    })
    expect(outcome).toMatchObject({ kind: 'asks' })
    expect(cleanUp).toHaveBeenCalledOnce()
    expect(rounds.warnings).toEqual([expect.stringMatching(/: a function given to io\.onSuspend threw an error\.$/)])
  })

  test('what is opened after the pass was suspended is cleaned up at once', async () => {
    const opened = gate()
    const cleanUp = vi.fn<() => void>()
    await new Rounds().next((io) => {
      void opened.promise.then(() => io.onSuspend(cleanUp))
      return io.ask('a', 'A?', NUMBER)
    })
    opened.open()
    await microtasks()
    expect(cleanUp).toHaveBeenCalledOnce()
  })

  test('a handler that comes to its end cleans up itself', async () => {
    const cleanUp = vi.fn<() => void>()
    await new Rounds().next((io) => io.onSuspend(cleanUp))
    expect(cleanUp).not.toHaveBeenCalled()
  })

  test.each<{ end: string; run: (io: Io, end: Cancel) => unknown; aborts: boolean }>([
    { end: 'done', run: () => 'done', aborts: false },
    { end: 'failed', run: () => Promise.reject(new Error('no')), aborts: true },
    { end: 'cancelled', run: (_io, end) => end.cancel(), aborts: true },
  ])(
    'the signal of a call that is $end: aborted is $aborts, also if it is read only then',
    async ({ end, run, aborts }) => {
      let io: Io | undefined
      const cancelling = new Cancel()
      const outcome = await new Rounds().next(
        (given) => {
          io = given
          return run(given, cancelling)
        },
        undefined,
        { cancel: cancelling },
      )
      expect(outcome.kind).toBe(end)
      expect(io?.signal.aborted).toBe(aborts)
    },
  )
})

function askItems(io: Io<Asks>): Promise<unknown> {
  return Promise.all([io.ask('item[3]', 'Item 3?'), io.scope('s', (inner) => inner.ask('item', 'Item?'))])
}

async function addInScope(io: Io): Promise<number> {
  const sum = await io.scope('s', async (inner) => {
    const a = await inner.step('a', () => 1)
    const { n } = await inner.ask('b', 'B?', NUMBER)
    return a + n
  })
  await io.ask('last', 'Last?', NUMBER)
  return sum
}

async function raceInScope(io: Io): Promise<void> {
  await io.scope('s', (inner) => Promise.race([inner.ask('a', 'A?', NUMBER), inner.step('b', () => 1)]))
  await io.ask('last', 'Last?', NUMBER)
}

async function reporting(io: Io): Promise<void> {
  io.progress(1, 3, 'begun')
  io.log('info', { begun: true }, 'deploy')
  await io.step('s', () => 1)
  io.progress(2, 3)
  await io.ask('a', 'A?', NUMBER)
  io.progress(3, 3)
  io.log('notice', 'done')
}

async function offering(io: Io): Promise<string> {
  const offered = io.can('elicitation.form') ? 'form' : 'none'
  await io.confirm('sure', 'Sure?')
  return `${offered} ${io.revision}`
}

function flowOf(id: string, declared: Capability[] = []): Flow {
  return {
    id,
    startedAt: Date.UTC(2026, 6, 28),
    round: 0,
    revision: '2026-07-28',
    declared: (capability) => declared.includes(capability),
  }
}

function textOf(outcome: Outcome, key: string): string {
  return (outcome.kind === 'asks' && outcome.questions.get(key)) || outcome.kind
}

function keysOf(outcome: Outcome): string[] {
  return outcome.kind === 'asks' ? [...outcome.questions.keys()] : [outcome.kind]
}

function keysIn(journal: string): unknown[] {
  return (JSON.parse(journal) as unknown[]).filter((_, index) => index % 4 === 1)
}
