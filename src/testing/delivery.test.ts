import { beforeAll, describe, expect, test } from 'vitest'
import type { OpenQuestion } from '../flow/flow-state.ts'
import type { Io } from '../flow/io.ts'
import type { Question } from '../flow/question.ts'
import { madeUp } from '../testing.ts'
import { Delivery } from './delivery.ts'
import { seeded } from './random.ts'
import { Rounds } from './rounds.ts'

const SEEDS = Array.from({ length: 300 }, (_, index) => index)
const rounds = new Rounds()
let open: ReadonlyMap<string, OpenQuestion>

beforeAll(async () => {
  const outcome = await rounds.next(askEveryKind)
  open = outcome.kind === 'asks' ? outcome.flowState.open : new Map()
})

describe('a delivery', () => {
  test('leaves answers out, some of them or all, and sends the rest in any order', async () => {
    const sent = await sentBy(open)
    const keys = sent.map((answers) => Object.keys(answers ?? {}).filter((key) => open.has(key)))
    expect(new Set(keys.map(({ length }) => length))).toEqual(new Set([0, 1, 2, 3, 4]))
    const orders = new Set(keys.filter(({ length }) => length === 4).map((order) => order.join()))
    expect(orders.size).toBeGreaterThan(12)
  })

  test('sends no answers, or none at all, where it leaves out the only one', async () => {
    const sent = await sentBy(new Map([...open].slice(0, 1)))
    expect(sent).toContain(undefined)
    expect(sent).toContainEqual({})
  })

  test('sends the right answer or one that does not fit, and never anything in between', async () => {
    const fits = new Map<string, Set<string>>()
    for (const answers of await sentBy(open)) {
      for (const [key, answer] of Object.entries(answers ?? {})) {
        const question = rounds.questions.get(key)
        if (question === undefined) continue
        const fit = await question.fit(answer as Record<string, unknown>)
        fits.set(key, (fits.get(key) ?? new Set()).add('misfit' in fit ? 'wrong' : JSON.stringify(answer)))
      }
    }
    // Of each kind the one right answer, and wrong ones.
    expect([...fits.keys()].toSorted()).toEqual(['form', 'model', 'page', 'roots'])
    for (const kinds of fits.values()) expect(kinds.size).toBe(2)
    for (const kinds of fits.values()) expect(kinds).toContain('wrong')
  })

  test('sends the right answer once the question was asked as often as the engine asks it', async () => {
    const last = new Map(Array.from(open, ([key, { pin }]) => [key, { pin, asked: 3 }]))
    for (const answers of await sentBy(last))
      expect(Object.keys(answers ?? {})).toEqual(expect.arrayContaining([...open.keys()]))
  })

  test('adds answers that nobody asked for, and again to what is settled, with something else in them', async () => {
    const delivery = new Delivery(seeded(3), madeUp)
    await delivery.next(new Map(Array.from(open, ([key, { pin }]) => [key, { pin, asked: 3 }])), rounds.questions)
    const extras = new Map<string, Set<string>>()
    for (let round = 0; round < 100; round += 1) {
      for (const [key, answer] of Object.entries((await delivery.next(new Map(), rounds.questions)) ?? {})) {
        const name = key.startsWith('never-asked') ? 'never asked' : key
        extras.set(name, (extras.get(name) ?? new Set()).add(JSON.stringify(answer)))
      }
    }
    expect([...extras.keys()].toSorted()).toEqual(['form', 'model', 'never asked', 'page', 'roots'])
    expect(extras.get('form')?.size).toBeGreaterThan(1)
  })

  test('asks for the right answer once, and again where another question has the same key', async () => {
    const asked: string[] = []
    const delivery = new Delivery(seeded(1), (question) => {
      asked.push(JSON.stringify(question))
      return madeUp(question)
    })
    const first = { key: 'a', method: 'roots/list' } as const
    const second = { key: 'a', method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } } as const
    await delivery.made(first)
    await delivery.made(first)
    expect(await delivery.made({ ...second, params: { ...second.params, messages: [] } })).toHaveProperty('model')
    expect(asked).toHaveLength(2)
  })
})

function askEveryKind(io: Io): Promise<unknown> {
  return Promise.all([
    io.confirm('form', 'Form?'),
    io.visit('page', 'Go.', 'https://example.com', { done: () => true }),
    io.sample('model', { messages: [], maxTokens: 1 }),
    io.roots('roots'),
  ])
}

/** What each seed sends to the same open questions. */
function sentBy(questions: ReadonlyMap<string, OpenQuestion>): Promise<Awaited<ReturnType<Delivery['next']>>[]> {
  const known: ReadonlyMap<string, Question> = rounds.questions
  return Promise.all(SEEDS.map((seed) => new Delivery(seeded(seed), madeUp).next(questions, known)))
}
