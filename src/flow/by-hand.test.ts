import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { accept, cancel, decline } from '../testing.ts'
import { Rounds, type Sent } from '../testing/rounds.ts'
import type { Answers } from './answering.ts'
import {
  elicit,
  inputRequired,
  roots,
  sample,
  visit,
  type InputRequired,
  type InputRequiredOptions,
} from './by-hand.ts'
import { emptyState, readFlowState, writeFlowState } from './flow-state.ts'
import type { Io } from './io.ts'
import { Journal } from './journal.ts'
import type { Outcome } from './carrier.ts'
import type { Flow, PassInput } from './carrier.ts'
import type { Question } from './question.ts'
import { runPass } from '../testing/manual-scheduler.ts'
import { keepAnswers } from './flow-state.ts'

const NAME = z.object({ name: z.string().min(1) })
const AGE = z.object({ age: z.number().int() })
const STATE = z.object({ name: z.string() })
const required = inputRequired({ inputRequests: { name: elicit('Your name?', NAME) } })
/** Returns by hand whatever came before. */
const ALWAYS = [() => required, () => required] as const
const ASKED = { method: 'roots/list' }
const SAID = { role: 'assistant', content: { type: 'text', text: 'Hi.' }, model: 'm' }

describe('a wizard by hand', () => {
  test('takes its rounds itself, and keeps a state between them', async () => {
    const rounds = new Rounds()
    const first = await rounds.next(wizard)
    expect(messagesOf(first)).toEqual({ name: 'Your name?' })
    const second = await rounds.next(wizard, { name: accept({ name: 'Ada' }) })
    expect(messagesOf(second)).toEqual({ age: 'How old is Ada?' })
    expect(await rounds.next(wizard, { age: accept({ age: 36 }) })).toEqual({ kind: 'done', value: 'Ada is 36.' })
  })

  test('reads an answer that does not fit as none, and so asks again', async () => {
    const rounds = new Rounds()
    await rounds.next(wizard)
    for (const answer of [accept({ name: '' }), accept(), { action: 'maybe' }, {}, SAID]) {
      expect(messagesOf(await rounds.next(wizard, { name: answer }))).toEqual({ name: 'Your name?' })
    }
  })

  test('may ask as often as it likes: the rounds are its own', async () => {
    const rounds = new Rounds()
    for (let round = 0; round < 8; round += 1) expect(await rounds.next(wizard)).toMatchObject({ kind: 'asks' })
  })

  test('gets answers without a state in the first round', async () => {
    expect(messagesOf(await new Rounds().next(wizard, { name: accept({ name: 'Ada' }) }))).toEqual({
      age: 'How old is Ada?',
    })
  })
})

describe('io.responses', () => {
  const asked = {
    form: elicit('Form?', NAME),
    page: visit('Go.', 'https://example.com'),
    model: sample({ messages: [], maxTokens: 9 }),
    folders: roots(),
  }

  test('reads each kind of answer, and tells what the user did', async () => {
    const sent = {
      form: accept({ name: 'Ada', extra: 'x' }),
      page: decline(),
      model: { ...SAID, extra: 'x' },
      folders: { roots: [{ uri: 'file:///a' }] },
    }
    const responses = await afterAsking(asked, sent)
    expect(responses.accepted('form', NAME)).toEqual({ name: 'Ada' })
    expect([responses.action('form'), responses.action('page'), responses.action('model')]).toEqual([
      'accept',
      'decline',
      undefined,
    ])
    expect(responses.accepted('page', z.object({}))).toBeUndefined()
    expect(responses.sampled('model')).toEqual(SAID)
    expect(responses.roots('folders')).toEqual([{ uri: 'file:///a' }])
    expect(responses.raw('form')).toEqual(sent.form)
  })

  test.each([decline(), cancel()])('a form answered with %o has an action and no content', async (sent) => {
    const responses = await afterAsking(asked, { form: { ...sent, content: { name: 'Ada' } } })
    expect(responses.action('form')).toBe(sent.action)
    expect(responses.accepted('form', NAME)).toBeUndefined()
  })

  test('an answer of another kind is none', async () => {
    const responses = await afterAsking(asked, {
      form: SAID,
      model: accept({ name: 'Ada' }),
      folders: { roots: 'all' },
    })
    expect(responses.action('form')).toBeUndefined()
    expect(responses.sampled('model')).toBeUndefined()
    expect(responses.roots('folders')).toBeUndefined()
  })

  test('no answer is none', async () => {
    const responses = await afterAsking(asked, undefined)
    expect([
      responses.raw('form'),
      responses.action('form'),
      responses.sampled('model'),
      responses.roots('folders'),
    ]).toEqual([undefined, undefined, undefined, undefined])
  })

  test('rule 6: once there is a state, only answers to what it asked are there, and only own properties', async () => {
    const responses = await afterAsking({ form: asked.form }, { form: accept({ name: 'Ada' }), page: accept() })
    expect(responses.raw('page')).toBeUndefined()
    expect(responses.raw('constructor')).toBeUndefined()
    expect(responses.raw('form')).toBeDefined()
  })

  test.each([
    {
      result: { resultType: 'input_required', inputRequests: [ASKED], requestState: 's' },
      why: '`inputRequests` must',
    },
    { result: { resultType: 'input_required', inputRequests: null, requestState: 's' }, why: '`inputRequests` must' },
    { result: { inputRequests: { name: ASKED } }, why: "no `resultType: 'input_required'`" },
    { result: { resultType: 'incomplete', inputRequests: { name: ASKED } }, why: 'got "incomplete"' },
    { result: { resultType: 'incomplete' }, why: 'got "incomplete"' },
    { result: { resultType: 'task', taskId: 't' }, why: 'got "task"' },
    { result: { resultType: 'partial', content: [{ type: 'text', text: 'Half' }] }, why: 'got "partial"' },
    { result: { resultType: 1, requestState: 's' }, why: 'got 1' },
  ])('a result that is almost a question is refused: $result', async ({ result, why }) => {
    const outcome = await new Rounds().next(() => result)
    expect(outcome).toMatchObject({ kind: 'failed', error: { code: 'QUESTION_INVALID' } })
    expect((outcome as { error: Error }).error.message).toContain(why)
  })

  test.each([
    { resultType: 'complete', content: [{ type: 'text', text: 'Done' }] },
    { resultType: 'rows', rows: 3, content: 'text' },
    { inputRequests: 5, outputRequests: 6 },
  ])('data of the author are left alone: %o', async (value) => {
    expect(await new Rounds().next(() => value)).toEqual({ kind: 'done', value })
  })

  test('an asynchronous schema cannot be read by hand, and does not end the process either', async () => {
    const unhandled = vi.fn<() => void>()
    process.on('unhandledRejection', unhandled)
    const responses = await afterAsking(asked, { form: accept({ name: 'Ada' }) })
    const { jsonSchema } = NAME['~standard']
    const slow = { '~standard': { version: 1 as const, vendor: 'test', validate: rejects, jsonSchema } }
    expect(() => responses.accepted('form', slow)).toThrow('by hand, the schema must validate synchronously')
    await new Promise((resolve) => void setImmediate(resolve))
    process.off('unhandledRejection', unhandled)
    expect(unhandled).not.toHaveBeenCalled()
  })
})

describe('the state of a round by hand', () => {
  test.each([{ step: 1, list: [null, 'x'] }, [], 'text', 0, false, null])(
    '%j comes back as it was given',
    async (state) => {
      const rounds = new Rounds()
      await rounds.next(() => inputRequired({ state }))
      expect(await rounds.next((io) => io.responses.state())).toEqual({ kind: 'done', value: state })
    },
  )

  test('is what it was when it was returned', async () => {
    const state = { list: [1] }
    const outcome = await new Rounds().next(() => {
      const kept = inputRequired({ state })
      state.list.push(2)
      return kept
    })
    expect(outcome).toMatchObject({ flowState: { byHand: { state: { list: [1] } } } })
  })

  test('is of the last round only', async () => {
    const rounds = new Rounds()
    await rounds.next(() => inputRequired({ state: 1 }))
    await rounds.next(() => inputRequired({ inputRequests: { name: elicit('Your name?', NAME) } }))
    expect(await rounds.next((io) => io.responses.state())).toEqual({ kind: 'done', value: undefined })
  })

  test('that does not fit its schema is none', async () => {
    const rounds = new Rounds()
    await rounds.next(() => inputRequired({ state: { name: 7 } }))
    expect(await rounds.next((io) => io.responses.state(STATE))).toEqual({ kind: 'done', value: undefined })
  })

  test('rule 8: that JSON would lose is an error that says where', () => {
    expect(() => inputRequired({ state: { at: new Date(0) } })).toThrow('the state of inputRequired: $.at is a Date')
  })

  test('rule 12: counts with the journal, and fails the call when it is too large', async () => {
    const limits = { journalBytes: 200, passMs: 1_000 }
    const outcome = await new Rounds().next(() => inputRequired({ state: 'x'.repeat(300) }), undefined, { limits })
    expect(outcome).toMatchObject({
      error: { code: 'JOURNAL_TOO_LARGE', message: expect.stringContaining('the state of inputRequired (302 bytes)') },
    })
  })

  test('alone makes a round that asks nothing, which the client simply tries again', async () => {
    const rounds = new Rounds()
    const outcome = await rounds.next(() => inputRequired({ state: { polled: 1 } }))
    expect(outcome).toMatchObject({ kind: 'deferred' })
    expect(await rounds.next((io) => io.responses.state())).toEqual({ kind: 'done', value: { polled: 1 } })
  })

  test('rule 11: goes over to another version of the handler', () => {
    const flowState = { ...emptyState(), byHand: { state: { step: 1 } } }
    expect(keepAnswers(Journal.empty(), flowState)).toEqual(flowState)
  })

  test.each([
    [[], [], 1],
    [[], [], [1, 2]],
    [[], [], {}],
  ])('a flow state of %j, %j, %j is not one of ours', (...json) => {
    expect(() => readFlowState(json)).toThrow('saved flow state cannot be read')
  })
})

describe('inputRequired', () => {
  test('needs something to ask or to keep', () => {
    expect(() => inputRequired({})).toThrow('it has neither inputRequests nor a state')
  })

  test.each<{ what: string; options: () => InputRequiredOptions; error: object }>([
    {
      what: 'a key that is none (rule 4)',
      options: () => ({ inputRequests: { 'a b': roots() } }),
      error: { code: 'KEY_INVALID' },
    },
    {
      what: 'something that is no question',
      options: () => ({ inputRequests: { a: { question: 'Your name?' } as unknown as Question } }),
      error: {
        code: 'QUESTION_INVALID',
        message: expect.stringContaining('it must be created with elicit, visit, sample or roots'),
      },
    },
    {
      what: 'nothing under a key',
      options: () => ({ inputRequests: { a: undefined as unknown as Question } }),
      error: { code: 'QUESTION_INVALID' },
    },
    {
      what: 'a question without a message',
      options: () => ({ inputRequests: { a: elicit('', NAME) } }),
      error: { code: 'QUESTION_INVALID', message: expect.stringContaining('its message must be a non-empty string') },
    },
    {
      what: 'a schema that no form has',
      options: () => ({ inputRequests: { a: elicit('Tags?', z.object({ tags: z.array(z.string()) })) } }),
      error: { message: expect.stringContaining('elicit("Tags?"): property "tags"') },
    },
    {
      what: 'an address that is none',
      options: () => ({ inputRequests: { a: visit('Go.', 'example.com') } }),
      error: { code: 'QUESTION_INVALID', message: expect.stringContaining('http or https') },
    },
    {
      what: 'an unbalanced conversation',
      options: () => ({
        inputRequests: {
          a: sample({
            messages: [{ role: 'user', content: { type: 'tool_result', toolUseId: '1', content: [] } }],
            maxTokens: 9,
          }),
        },
      }),
      error: { code: 'QUESTION_INVALID', message: expect.stringContaining('tool result for 1') },
    },
  ])('with $what fails the call', async ({ options, error }) => {
    expect(await new Rounds().next(() => inputRequired(options()))).toMatchObject({ kind: 'failed', error })
  })

  test('with a question that the client cannot answer says which capability is missing', async () => {
    const outcome = await new Rounds({ capabilities: ['elicitation.form'] }).next(() =>
      inputRequired({ inputRequests: { name: elicit('Your name?', NAME), page: visit('Go.', 'https://example.com') } }),
    )
    expect(outcome).toMatchObject({
      error: { rpcCode: -32021, data: { requiredCapabilities: { elicitation: { url: {} } } } },
    })
  })

  test('puts the exact questions on the wire, in their order', async () => {
    const outcome = await new Rounds().next(() =>
      inputRequired({
        inputRequests: {
          page: visit('Go.', 'https://example.com/a'),
          folders: roots(),
          model: sample({ messages: [], maxTokens: 9 }),
          name: elicit('Your name?', NAME),
        },
      }),
    )
    expect(outcome.kind === 'asks' && [...outcome.questions]).toEqual([
      ['page', '{"method":"elicitation/create","params":{"mode":"url","message":"Go.","url":"https://example.com/a"}}'],
      ['folders', '{"method":"roots/list"}'],
      ['model', '{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":9}}'],
      [
        'name',
        '{"method":"elicitation/create","params":{"mode":"form","message":"Your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","minLength":1}},"required":["name"]}}}',
      ],
    ])
  })
})

describe('a round by hand and the engine', () => {
  const again = inputRequired({ state: 1 })

  test('steps and scopes are recorded as ever', async () => {
    const rounds = new Rounds()
    expect(await rounds.next(recording)).toMatchObject({ kind: 'deferred' })
    expect(await rounds.next(recording)).toEqual({ kind: 'done', value: [1, 2] })
    expect(rounds.effects).toEqual(['a', 's>b'])
  })

  test('rule 3: what was left open is dropped and logged once', async () => {
    const rounds = new Rounds()
    await rounds.next((io) => {
      void io.step('s', () => new Promise(() => {}))
      return again
    })
    expect(rounds.warnings).toEqual([
      expect.stringMatching(
        /^Tool "handler": the handler returned before "s" settled\. The results are dropped\. Did you forget `await`\? /,
      ),
    ])
  })

  test('it is no end: the signal is not aborted, and the handler that returned has cleaned up itself', async () => {
    const cleanUp = vi.fn<() => void>()
    let signal: AbortSignal | undefined
    await new Rounds().next((io) => {
      ;({ signal } = io)
      io.onSuspend(cleanUp)
      return again
    })
    expect(signal?.aborted).toBe(false)
    expect(cleanUp).not.toHaveBeenCalled()
  })

  test('a hand-over keeps the state and the answers that came with the round', async () => {
    const rounds = new Rounds()
    await rounds.next(stepping)
    const outcome = await rounds.next(stepping, { name: accept({ name: 'Ada' }) }, { wantsHandover })
    expect(outcome).toMatchObject({ kind: 'deferred' })
    expect(await rounds.next(stepping, undefined, { wantsHandover })).toMatchObject({ kind: 'deferred' })
    expect(await rounds.next(stepping)).toEqual({ kind: 'done', value: ['asked', { name: 'Ada' }] })
    expect(rounds.effects).toEqual(['s[0]', 's[1]', 's[2]'])
  })

  test('a later round tells its progress at once, because it repeats nothing', async () => {
    const rounds = new Rounds()
    const progress = vi.fn<(done: number) => void>()
    await rounds.next(() => again, undefined, { progress })
    await rounds.next((io) => io.progress(2), undefined, { progress })
    expect(progress.mock.calls).toEqual([[2, undefined, undefined]])
  })

  test('a later round tells its progress, and has no warning, if the one before it recorded a step', async () => {
    const rounds = new Rounds()
    const told: unknown[] = []
    const input = { progress: (done: number) => void told.push(done), log: (level: string) => void told.push(level) }
    expect(await rounds.next(reporting, undefined, input)).toMatchObject({ kind: 'deferred' })
    expect(await rounds.next(reporting, undefined, input)).toEqual({ kind: 'done', value: 'done' })
    expect(told).toEqual([1, 'info', 2, 'info'])
    expect(rounds.warnings).toEqual([])
  })

  test('a question that cannot be written fails the call, and does not leave it hanging', async () => {
    const broken: Question = {
      needs: [],
      text: () => {
        throw new Error('broken')
      },
      fit: () => ({ misfit: '' }),
    }
    const outcome = await runPass(inputOf(), () => inputRequired({ inputRequests: { a: broken } }))
    expect(outcome).toEqual({ kind: 'failed', error: new Error('broken') })
  })

  test('the flow state of a round by hand survives being written and read, with a state and without', async () => {
    const questions = { inputRequests: { name: elicit('Your name?', NAME) } }
    for (const each of [inputRequired(questions), inputRequired({ ...questions, state: null })]) {
      const outcome = await runPass(inputOf(), () => each)
      const flowState = outcome.kind === 'asks' ? outcome.flowState : emptyState()
      expect(flowState.byHand).toBeDefined()
      expect(readFlowState(JSON.parse(JSON.stringify(writeFlowState(flowState))))).toStrictEqual(flowState)
    }
  })
})

describe('mixing rounds by hand and questions of io in one call', () => {
  const afterwards =
    'The handler asked through io and then returned inputRequired in one call. Use one of the two styles in all rounds of a call.'

  test.each<{ when: string; ask: (io: Io) => Promise<unknown>; sent: object }>([
    { when: 'when an answer came', ask: (io) => io.ask('a', 'A?', NAME), sent: accept({ name: 'Ada' }) },
    { when: 'when the user declined', ask: (io) => io.ask('a', 'A?', NAME), sent: decline() },
    {
      when: 'inside a scope',
      ask: (io) => io.scope('s', (inner) => inner.ask('a', 'A?', NAME)),
      sent: accept({ name: 'Ada' }),
    },
    {
      when: 'when nobody waits for it',
      ask: (io) => {
        void io.ask('a', 'A?', NAME)
        return Promise.resolve()
      },
      sent: {},
    },
  ])('inputRequired after io.ask in the same pass, $when, is an error that says so', async ({ ask, sent }) => {
    const outcome = await new Rounds().next((io) => ask(io).then(...ALWAYS), { a: sent, 's>a': sent })
    expect(outcome).toMatchObject({ kind: 'failed', error: { code: 'MIXED_STYLES', message: afterwards } })
  })

  test.each<{ when: string; sent: Sent | undefined }>([
    { when: 'that is still open', sent: undefined },
    { when: 'whose answer comes with this round', sent: { a: accept({ name: 'Ada' }) } },
  ])('inputRequired after an io.ask of an earlier round, $when, is the same', async ({ sent }) => {
    const rounds = new Rounds()
    await rounds.next((io) => io.ask('a', 'A?', NAME))
    expect(await rounds.next(() => required, sent)).toMatchObject({ error: { message: afterwards } })
  })

  test('inputRequired after an answer that is in the journal is the same', async () => {
    const rounds = new Rounds()
    await rounds.next(askTwo)
    await rounds.next(askTwo, { a: accept({ name: 'Ada' }) })
    expect(await rounds.next(() => required, { b: decline() })).toMatchObject({ error: { message: afterwards } })
  })

  test.each<{ call: string; ask: (io: Io) => Promise<unknown> }>([
    { call: 'ask', ask: (io) => io.ask('a', 'A?', NAME) },
    { call: 'elicit', ask: (io) => io.elicit('a', 'A?', NAME) },
    { call: 'confirm', ask: (io) => io.confirm('a', 'A?') },
    { call: 'choose', ask: (io) => io.choose('a', 'A?', ['x']) },
    { call: 'visit', ask: (io) => io.visit('a', 'A?', 'https://example.com', { done: () => true }) },
    { call: 'sample', ask: (io) => io.sample('a', { messages: [], maxTokens: 9 }) },
    { call: 'roots', ask: (io) => io.roots('a') },
  ])(
    'io.$call in a round after one by hand is an error that says so, although the handler catches',
    async ({ ask }) => {
      for (const first of [required, inputRequired({ state: 1 })]) {
        const rounds = new Rounds()
        await rounds.next(() => first)
        const outcome = await rounds.next((io) => ask(io).catch(() => 'caught'), { name: accept({ name: 'Ada' }) })
        expect(outcome).toMatchObject({
          kind: 'failed',
          error: {
            code: 'MIXED_STYLES',
            message:
              'The handler returned inputRequired and then asked "a" through io in one call. Use one of the two styles in all rounds of a call.',
          },
        })
      }
    },
  )

  test('and so it is after a hand-over in between', async () => {
    const rounds = new Rounds()
    await rounds.next(() => required)
    expect(await rounds.next(stepsThenConfirm, undefined, { wantsHandover })).toMatchObject({ kind: 'deferred' })
    expect(await rounds.next(stepsThenConfirm)).toMatchObject({ error: { code: 'MIXED_STYLES' } })
  })
})

function wizard(io: Io): string | InputRequired {
  const state = io.responses.state(STATE)
  if (state === undefined) {
    const given = io.responses.accepted('name', NAME)
    if (given === undefined) return required
    return inputRequired({ inputRequests: { age: elicit(`How old is ${given.name}?`, AGE) }, state: given })
  }
  const { age } = io.responses.accepted('age', AGE) ?? { age: 'unknown' }
  return `${state.name} is ${age}.`
}

async function recording(io: Io): Promise<unknown> {
  const a = await io.step('a', () => 1)
  const b = await io.scope('s', (inner) => inner.step('b', () => 2))
  return io.responses.state() === undefined ? inputRequired({ state: 1 }) : [a, b]
}

async function reporting(io: Io): Promise<unknown> {
  const isFirst = io.responses.state() === undefined
  io.progress(isFirst ? 1 : 2)
  io.log('info', 'x')
  await io.step(isFirst ? 'one' : 'two', () => 1)
  return isFirst ? inputRequired({ state: 1 }) : 'done'
}

async function stepping(io: Io): Promise<unknown> {
  if (io.responses.state() === undefined) {
    return inputRequired({ inputRequests: { name: elicit('Your name?', NAME) }, state: 'asked' })
  }
  for (let i = 0; i < 3; i += 1) await io.step(`s[${i}]`, () => i)
  return [io.responses.state(), io.responses.accepted('name', NAME)]
}

async function stepsThenConfirm(io: Io): Promise<unknown> {
  for (const key of ['s', 't']) await io.step(key, () => key)
  return io.confirm('a', 'A?')
}

function askTwo(io: Io): Promise<unknown> {
  return Promise.all(['a', 'b'].map((key) => io.ask(key, `${key}?`, NAME)))
}

function wantsHandover(): boolean {
  return true
}

function rejects(): Promise<never> {
  return Promise.reject(new Error('no'))
}

/** The responses of a round, after one that asked these questions. */
async function afterAsking(inputRequests: Record<string, Question>, sent: Sent | undefined): Promise<Io['responses']> {
  const asked = await runPass(inputOf(), () => inputRequired({ inputRequests }))
  if (asked.kind !== 'asks') throw new Error(`The round was ${asked.kind}.`)
  let responses: Io['responses'] | undefined
  await runPass(
    inputOf({ flow: flowOf(1), flowState: asked.flowState, answers: sent as Answers | undefined }),
    (io) => {
      ;({ responses } = io)
    },
  )
  if (responses === undefined) throw new Error('The handler did not run.')
  return responses
}

function inputOf(input: Partial<PassInput> = {}): PassInput {
  return {
    flow: flowOf(0),
    journal: Journal.empty(),
    flowState: emptyState(),
    answers: undefined,
    target: { method: 'tools/call', target: 'test' },
    forms: new Map(),
    can: () => true,
    limits: { journalBytes: 10_000, passMs: 10_000 },
    logger: { warn: () => {}, error: () => {} },
    ...input,
  }
}

function flowOf(round: number): Flow {
  return { id: 'flow', startedAt: 0, round, revision: '2026-07-28', declared: () => true }
}

function messagesOf(outcome: Outcome): unknown {
  if (outcome.kind !== 'asks') return outcome
  const messages = Array.from(outcome.questions, ([key, text]): [string, string] => {
    return [key, (JSON.parse(text) as { params: { message: string } }).params.message]
  })
  return Object.fromEntries(messages)
}
