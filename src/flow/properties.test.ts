// The four statements that close the engine rules, on thousands of random handlers.
//
// A handler is a small program, generated as data; `interpret` runs it against any io. The oracle is `Reference`, an io that
// shares no code with the engine: it knows neither passes nor journals, and its calls settle in an order given from outside.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { JsonSchemaObject } from '../schema/standard.ts'
import type { ElicitResult, InputResponse } from '../protocol/messages.ts'
import { harsh, straight, type Answerer, type Report } from '../testing.ts'
import type { TraceEvent } from './carrier.ts'

type Node =
  | { type: 'ask'; way: 'ask' | 'elicit' | 'confirm' | 'roots' }
  | { type: 'deadline'; isThrown: boolean }
  | { type: 'step'; way: 'value' | 'void' | 'fail'; takes: number }
  | { type: 'flaky'; failures: number }
  | { type: 'sleep'; ms: number }
  | { type: 'plain'; hops: number }
  | { type: 'now' }
  | { type: 'yield' }
  | { type: 'scope'; body: Node[] }
  | { type: 'branch'; body: Node[]; other: Node[] }
  | { type: 'together'; how: 'all' | 'allSettled' | 'race' | 'any'; arms: Node[][] }
  | { type: 'caught'; body: Node[]; rescue: Node[] }
  | { type: 'loose'; body: Node[] }

/** The part of io that programs use. */
interface Hands {
  ask(key: string, message: string, schema: JsonSchemaObject, options?: Deadline): Promise<unknown>
  elicit(key: string, message: string, schema: JsonSchemaObject): Promise<unknown>
  confirm(key: string, message: string): Promise<boolean>
  roots(key: string): Promise<unknown>
  step(key: string, run: (context: { attempt: number }) => unknown, options?: { retries: number }): Promise<unknown>
  sleep(key: string, ms: number): Promise<void>
  scope(key: string, run: (io: Hands) => Promise<unknown>): Promise<unknown>
  yield(): Promise<void>
  now(): number
}

interface Deadline {
  readonly withinMs: number
  readonly otherwise?: unknown
}

/** Longer than all sleeps of a program together, so that only a question that nobody answers expires. */
const WITHIN_MS = 1_000_000_000
const RETRIES = 2

describe('on any handler', () => {
  test.each([{ deferrals: false }, { deferrals: true }])(
    '(i) each pass begins as the one before, no step runs twice, and (ii) the run equals a straight one in the recorded order (deferrals: $deferrals)',
    async ({ deferrals }) => {
      await fc.assert(
        fc.asyncProperty(anyPrograms(), fc.nat(), async (program, seed) => {
          const answer = answerer(seed, true)
          // The kit itself checks (i) after every pass.
          const report = await harsh((_, io) => interpret(io as Hands, program), {
            seed,
            runs: 1,
            deferrals,
            answer,
            compare: false,
          })
          expect(new Set(report.effects).size).toBe(report.effects.length)
          const order = settledFirst(report)
          const reference = await runInOrder(
            program,
            order.map(({ key }) => key),
            answer,
          )
          expect(reference.settled).toEqual(order.map(({ key, value, error }) => [key, told({ value, error })]))
          expect(reference.end).toEqual(told({ value: report.result, error: report.error }))
          // What was not begun before a hand-over may be left over for good when a race is decided without it.
          if (deferrals) expect(reference.effects).toEqual(expect.arrayContaining([...report.effects]))
          else expect(report.effects).toEqual(reference.effects)
        }),
        { numRuns: 350 },
      )
    },
  )
})

describe('on handlers without races, failures and declines', () => {
  test('(iii) the run equals the all-at-once run in result and set of effects', async () => {
    await fc.assert(
      fc.asyncProperty(programs(PARALLEL), fc.nat(), fc.boolean(), async (program, seed, deferrals) => {
        const answer = answerer(seed, false)
        const handler = (_: unknown, io: unknown): Promise<unknown> => interpret(io as Hands, program)
        const once = await straight(handler, { answer })
        const report = await harsh(handler, { seed, runs: 1, deferrals, answer, compare: false })
        expect(once.error).toBeUndefined()
        expect(report).toMatchObject({ result: once.result, error: undefined })
        expect(new Set(report.effects)).toEqual(new Set(once.effects))
      }),
      { numRuns: 200 },
    )
  })
})

describe('on sequential handlers', () => {
  test('(iv) the run equals the all-at-once run in result and sequence of effects', async () => {
    await fc.assert(
      fc.asyncProperty(programs(SEQUENTIAL), fc.nat(), fc.boolean(), async (program, seed, deferrals) => {
        const answer = answerer(seed, true)
        const handler = (_: unknown, io: unknown): Promise<unknown> => interpret(io as Hands, program)
        const once = await straight(handler, { answer })
        const report = await harsh(handler, { seed, runs: 1, deferrals, answer, compare: false })
        expect(endOf(report)).toEqual(endOf(once))
        expect(report.effects).toEqual(once.effects)
      }),
      { numRuns: 350 },
    )
  })
})

const FORM: JsonSchemaObject = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }

/** Runs a program. What it comes to is mixed from every value it saw, and every question is made of what came before it. */
async function interpret(io: Hands, nodes: readonly Node[], path = '', before = 0): Promise<number> {
  let sum = before
  for (const [index, node] of nodes.entries()) sum = mix(sum, await perform(io, node, `${path}${index}`, sum))
  return sum
}

async function perform(io: Hands, node: Node, key: string, sum: number): Promise<unknown> {
  switch (node.type) {
    case 'ask':
      if (node.way === 'confirm') return io.confirm(key, `After ${sum}?`)
      return node.way === 'roots' ? io.roots(key) : io[node.way](key, `After ${sum}?`, FORM)
    case 'deadline':
      return io.ask(`${key}${UNSURE}`, `Until ${sum}?`, FORM, {
        withinMs: WITHIN_MS,
        ...(!node.isThrown && { otherwise: { late: sum } }),
      })
    case 'step':
      return io.step(key, work(node, key, sum))
    case 'flaky':
      return io.step(key, flaky(node.failures, sum), { retries: RETRIES })
    case 'sleep':
      return io.sleep(key, node.ms)
    case 'plain':
      return hop(node.hops)
    case 'now':
      return io.now()
    case 'yield':
      return io.yield()
    case 'scope':
      return io.scope(key, (inner) => interpret(inner, node.body, '', sum))
    case 'branch':
      return sum % 2 === 0 ? interpret(io, node.body, `${key}.a`, sum) : interpret(io, node.other, `${key}.b`, sum)
    case 'together':
      return together(
        node.how,
        node.arms.map((arm, index) => interpret(io, arm, `${key}.${index}.`, sum + index)),
      )
    case 'caught':
      try {
        return await interpret(io, node.body, `${key}.try.`, sum)
      } catch (error) {
        return interpret(io, node.rescue, `${key}.catch.`, mix(sum, told({ error })))
      }
    case 'loose':
      interpret(io, node.body, `${key}.loose.`, sum).catch(() => {})
      return undefined
  }
}

function flaky(failures: number, sum: number): (context: { attempt: number }) => unknown {
  return async ({ attempt }) => {
    await hop(attempt)
    if (attempt <= failures) throw new TypeError(`attempt ${attempt} after ${sum}`)
    return { attempt, sum }
  }
}

async function together(how: 'all' | 'allSettled' | 'race' | 'any', arms: Promise<number>[]): Promise<unknown> {
  if (how === 'all') return Promise.all(arms)
  if (how === 'race') return Promise.race(arms)
  if (how === 'any') return Promise.any(arms)
  const settled = await Promise.allSettled(arms)
  return settled.map((arm) => (arm.status === 'fulfilled' ? arm.value : told({ error: arm.reason })))
}

function work({ way, takes }: Node & { type: 'step' }, key: string, sum: number): () => unknown {
  const finish = (): unknown => {
    if (way === 'fail') throw Object.assign(new RangeError(`${key} after ${sum}`), sum % 2 === 0 ? { code: sum } : {})
    return way === 'void' ? undefined : { key, sum, lost: undefined }
  }
  if (takes === 0) return finish
  return async () => {
    // Some work takes a turn of the event loop, most only a few microtasks.
    await (takes > 4 ? turn() : hop(takes))
    return finish()
  }
}

async function hop(times: number): Promise<void> {
  for (let i = 0; i < times; i += 1) await Promise.resolve()
}

function mix(sum: number, value: unknown): number {
  let mixed = sum
  for (const char of JSON.stringify(value ?? 'nothing')) mixed = (Math.imul(mixed, 31) + char.charCodeAt(0)) >>> 0
  return mixed % 1_000_003
}

/** How something ended, in terms that the engine's errors and the reference's have in common. */
function told({ value, error }: { value?: unknown; error?: unknown }): unknown {
  if (error === undefined) return { value }
  if (error instanceof AggregateError) return { errors: error.errors.map((each: unknown) => told({ error: each })) }
  if (!(error instanceof Error)) return { error }
  const { name, message, code, key, action } = error as Error & { code?: unknown; key?: unknown; action?: unknown }
  if (code === 'EXPIRED') return { expired: key }
  return code === 'DECLINED' ? { declined: key, action } : { name, message, code }
}

function endOf({ result, error }: Report): unknown {
  return told({ value: result, error })
}

/** Each settlement of the flow when it first happened: what an earlier pass saw is replayed by the later ones. */
function settledFirst({ passes }: Report): (TraceEvent & { type: 'settle' })[] {
  const first = new Map<string, TraceEvent & { type: 'settle' }>()
  for (const event of passes.flat()) if (event.type === 'settle' && !first.has(event.key)) first.set(event.key, event)
  return [...first.values()]
}

function answerer(seed: number, declines: boolean): Answerer {
  return ({ key, ...question }): InputResponse | undefined => {
    const luck = mix(seed, key)
    if (key.endsWith(UNSURE) && luck % 3 === 0) return undefined
    if (question.method === 'roots/list') return { roots: [{ uri: `file:///${luck}` }] }
    if (declines && luck % 8 === 0) return { action: luck % 16 === 0 ? 'decline' : 'cancel' }
    const isForm = 'requestedSchema' in question.params && 'n' in question.params.requestedSchema.properties
    return { action: 'accept', content: isForm ? { n: luck % 10 } : { confirm: luck % 3 === 0 } }
  }
}

/** At the end of the keys of questions that may never be answered. */
const UNSURE = '.unsure'

interface Kinds {
  readonly races: boolean
  readonly failures: boolean
  readonly parallel: boolean
  readonly clock: boolean
  readonly waits: boolean
}

const EVERYTHING: Kinds = { races: true, failures: true, parallel: true, clock: true, waits: false }
const PARALLEL: Kinds = { races: false, failures: false, parallel: true, clock: false, waits: true }
const SEQUENTIAL: Kinds = { races: false, failures: true, parallel: false, clock: true, waits: true }

/** The reference does not know how far a wait moves the clock, so a program reads it, or waits. */
function anyPrograms(): fc.Arbitrary<Node[]> {
  return fc.oneof(programs(EVERYTHING), programs({ ...EVERYTHING, clock: false, waits: true }))
}

function programs(kinds: Kinds): fc.Arbitrary<Node[]> {
  return blocks(3, kinds)
}

function blocks(depth: number, kinds: Kinds): fc.Arbitrary<Node[]> {
  const nodes = depth === 0 ? leaves(kinds) : [...leaves(kinds), ...branches(blocks(depth - 1, kinds), kinds)]
  return fc.array(fc.oneof(...nodes), { minLength: 1, maxLength: 4, size: 'max' })
}

function leaves({ failures, clock, waits }: Kinds): fc.WeightedArbitrary<Node>[] {
  const asked = fc.constantFrom('ask' as const, 'elicit' as const, 'confirm' as const, 'roots' as const)
  const done = fc.constantFrom('value' as const, 'value' as const, 'void' as const)
  return [
    { weight: 5, arbitrary: fc.record({ type: is('ask'), way: asked }) },
    { weight: 6, arbitrary: fc.record({ type: is('step'), way: done, takes: fc.nat(5) }) },
    { weight: failures ? 1 : 0, arbitrary: fc.record({ type: is('step'), way: is('fail'), takes: fc.nat(5) }) },
    { weight: 1, arbitrary: fc.record({ type: is('plain'), hops: fc.nat(6) }) },
    { weight: clock ? 1 : 0, arbitrary: fc.record({ type: is('now') }) },
    { weight: 1, arbitrary: fc.record({ type: is('yield') }) },
    { weight: waits ? 1 : 0, arbitrary: fc.record({ type: is('sleep'), ms: fc.nat(5_000) }) },
    {
      weight: waits ? 1 : 0,
      arbitrary: fc.record({ type: is('flaky'), failures: fc.nat(failures ? RETRIES + 1 : RETRIES) }),
    },
    {
      weight: waits ? 1 : 0,
      arbitrary: fc.record({ type: is('deadline'), isThrown: failures ? fc.boolean() : fc.constant(false) }),
    },
  ]
}

function branches(block: fc.Arbitrary<Node[]>, { races, parallel }: Kinds): fc.WeightedArbitrary<Node>[] {
  const how = fc.constantFrom('all' as const, 'allSettled' as const, ...(races ? (['race', 'any'] as const) : []))
  const arms = fc.array(block, { minLength: 2, maxLength: 3, size: 'max' })
  return [
    { weight: 2, arbitrary: fc.record({ type: is('scope'), body: block }) },
    { weight: 1, arbitrary: fc.record({ type: is('branch'), body: block, other: block }) },
    { weight: 2, arbitrary: fc.record({ type: is('caught'), body: block, rescue: block }) },
    { weight: parallel ? 3 : 0, arbitrary: fc.record({ type: is('together'), how, arms }) },
    { weight: races ? 1 : 0, arbitrary: fc.record({ type: is('loose'), body: block }) },
  ]
}

function is<T extends string>(type: T): fc.Arbitrary<T> {
  return fc.constant(type)
}

type Come = { value: unknown } | { error: unknown }

interface World {
  /** What each call that waits will come to, once that is known, and how it is told. */
  readonly calls: Map<string, { come?: Come; settle: (come: Come) => void }>
  readonly effects: string[]
  /** Prefixes of scopes that have settled, '' for the whole: what is called inside them later is heard by nobody. */
  readonly over: string[]
  readonly answer: Answerer
  entries: number
}

/** An io whose calls settle when they are told to, with nothing behind it. */
class Reference implements Hands {
  readonly #world: World
  readonly #prefix: string

  constructor(world: World, prefix = '') {
    this.#world = world
    this.#prefix = prefix
  }

  ask(key: string, _message?: string, _schema?: unknown, within?: Deadline): Promise<unknown> {
    return this.#elicit(key, 'n', (answer, full) => {
      if (answer === undefined && within?.otherwise === undefined) throw new ReferenceExpired(full)
      if (answer === undefined) return within?.otherwise
      const { action, content } = answer
      if (action !== 'accept') throw new ReferenceDeclined(full, action)
      return content
    })
  }

  elicit(key: string): Promise<unknown> {
    return this.#elicit(key, 'n', (answer) => answer)
  }

  confirm(key: string): Promise<boolean> {
    return this.#elicit(key, 'confirm', (answer, full) => {
      const { action, content } = answer ?? { action: 'cancel' }
      if (action === 'cancel') throw new ReferenceDeclined(full, action)
      return action === 'accept' && content?.['confirm']
    }) as Promise<boolean>
  }

  roots(key: string): Promise<unknown> {
    return this.#call(key, async (full) => {
      const answer = await this.#world.answer({ key: full, method: 'roots/list' })
      return answer && 'roots' in answer ? answer.roots : undefined
    })
  }

  step(key: string, run: (context: { attempt: number }) => unknown, options = { retries: 0 }): Promise<unknown> {
    return this.#call(key, async (full) => {
      this.#world.effects.push(full)
      for (let attempt = 1; attempt <= options.retries; attempt += 1) {
        try {
          return await recorded(() => run({ attempt }))
        } catch {
          // The next attempt.
        }
      }
      return recorded(() => run({ attempt: options.retries + 1 }))
    })
  }

  sleep(key: string): Promise<void> {
    return this.#call(key, () => Promise.resolve()) as Promise<void>
  }

  scope(key: string, run: (io: Hands) => Promise<unknown>): Promise<unknown> {
    return this.#call(key, (full) => recorded(() => run(new Reference(this.#world, `${full}>`))), true)
  }

  yield(): Promise<void> {
    return Promise.resolve()
  }

  now(): number {
    return Date.UTC(2026, 6, 28) + this.#world.entries
  }

  #elicit(
    key: string,
    property: string,
    give: (answer: ElicitResult | undefined, key: string) => unknown,
  ): Promise<unknown> {
    return this.#call(key, async (full) => {
      const requestedSchema = { type: 'object' as const, properties: { [property]: { type: 'integer' as const } } }
      const params = { message: '', requestedSchema }
      const answer = await this.#world.answer({ key: full, method: 'elicitation/create', params })
      return give(answer as ElicitResult | undefined, full)
    })
  }

  #call(key: string, begin: (key: string) => Promise<unknown>, isScope = false): Promise<unknown> {
    const full = this.#prefix + key
    const { calls, over } = this.#world
    const isOver = (): boolean => over.some((prefix) => full.startsWith(prefix))
    if (isOver()) return new Promise(() => {})
    return new Promise((resolve, reject) => {
      const settle = (come: Come): void => {
        if (!isOver()) this.#world.entries += 1
        if (isScope) over.push(`${full}>`)
        if ('error' in come) reject(come.error)
        else resolve(come.value)
      }
      const call: { come?: Come; settle: typeof settle } = { settle }
      calls.set(full, call)
      begin(full).then(
        (value) => (call.come = { value }),
        (error: unknown) => (call.come = { error }),
      )
    })
  }
}

class ReferenceExpired extends Error {
  readonly code = 'EXPIRED'
  readonly key: string

  constructor(key: string) {
    super()
    this.key = key
  }
}

class ReferenceDeclined extends Error {
  readonly code = 'DECLINED'
  readonly key: string
  readonly action: string

  constructor(key: string, action: string) {
    super()
    this.key = key
    this.action = action
  }
}

/** What a record keeps of a result or a failure. */
async function recorded(run: () => unknown): Promise<unknown> {
  try {
    const value = await run()
    return value === undefined ? undefined : JSON.parse(JSON.stringify(value))
  } catch (error) {
    if (error instanceof ReferenceDeclined || error instanceof ReferenceExpired) throw error
    const { name, message, code = 'STEP_FAILED' } = error as Error & { code?: unknown }
    throw Object.assign(new Error(message), { name, code })
  }
}

/** The oracle: a straight run whose calls settle one at a time, in the order given, microtasks draining in between. */
async function runInOrder(program: Node[], order: string[], answer: Answerer): Promise<Ran> {
  const world: World = { calls: new Map(), effects: [], over: [], answer, entries: 0 }
  const ran: Ran = { end: 'still open', settled: [], effects: world.effects }
  const finish = (come: Come): void => {
    ran.end = told(come)
    world.over.push('')
  }
  interpret(new Reference(world), program).then(
    (value) => finish({ value }),
    (error: unknown) => finish({ error }),
  )
  for (const key of order) {
    let come: Come | undefined
    // Work takes a turn or two; what has not come to anything by then never will.
    for (let turns = 0; turns < 5 && come === undefined; turns += 1) {
      await turn()
      come = world.calls.get(key)?.come
    }
    if (come === undefined) throw new Error(`In a straight run "${key}" had nothing to settle with.`)
    if (ran.end !== 'still open') throw new Error(`A straight run was over before "${key}" settled.`)
    world.calls.get(key)?.settle(come)
    ran.settled.push([key, told(come)])
  }
  await turn()
  return ran
}

interface Ran {
  end: unknown
  readonly settled: [string, unknown][]
  readonly effects: string[]
}

function turn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve))
}
