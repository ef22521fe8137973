// Random handlers without races, as data, and what runs them: what they come to does not depend on the order of their settlements.
import type { Io } from 'mcp-rally'
import fc from 'fast-check'
import type { Answerer } from 'mcp-rally/testing'
import { SCOPE_SEPARATOR } from '../../src/flow/scopes.ts'
import type { InputResponse } from '../../src/protocol/messages.ts'

export type Node =
  | { type: 'ask'; way: 'ask' | 'confirm' | 'roots' }
  | { type: 'step'; way: 'value' | 'void'; takes: number }
  | { type: 'flaky'; failures: number }
  | { type: 'sleep'; ms: number }
  | { type: 'deadline'; isAnswered: boolean }
  | { type: 'event' }
  | { type: 'yield' }
  | { type: 'progress' }
  | { type: 'detach' }
  | { type: 'scope'; body: Node[] }
  | { type: 'branch'; body: Node[]; other: Node[] }
  | { type: 'all'; arms: Node[][] }
  | { type: 'caught'; body: Node[] }

/** Told of every step that is done, before it is. */
export type Doing = (key: string, idempotencyKey: string) => void

/** Takes the token of the event with this key, and sends the event later. */
export type Sending = (key: string, token: string) => void

/** What is sent for each event. */
export function eventFor(key: string): { n: number } {
  return { n: mix(1, key) % 10 }
}

/** What is sent for each event, by its key with those of the scopes that it is in. */
export const sentEvents: Readonly<Record<string, unknown>> = new Proxy(
  {},
  { get: (_, key) => eventFor(String(key).split(SCOPE_SEPARATOR).at(-1) ?? '') },
)

/** At the end of the keys of questions that nobody answers. */
export const UNANSWERED = '.unanswered'

/** Longer than any run of these programs. */
const LATER_MS = 20_000
const SOON_MS = 5

const FORM = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] } as const

const RETRIES = 2

/** What it comes to is mixed from every value it saw, and every question is made of what came before it. */
export async function interpret(
  io: Io,
  nodes: readonly Node[],
  doing: Doing,
  sending: Sending = () => {},
): Promise<number> {
  return new Interpreter(doing, sending).run(io, nodes, '', 0)
}

class Interpreter {
  readonly #doing: Doing
  readonly #sending: Sending

  constructor(doing: Doing, sending: Sending) {
    this.#doing = doing
    this.#sending = sending
  }

  async run(io: Io, nodes: readonly Node[], path: string, before: number): Promise<number> {
    let sum = before
    for (const [index, node] of nodes.entries()) sum = mix(sum, await this.#perform(io, node, `${path}${index}`, sum))
    return sum
  }

  async #perform(io: Io, node: Node, key: string, sum: number): Promise<unknown> {
    const doing = this.#doing
    switch (node.type) {
      case 'ask':
        if (node.way === 'confirm') return io.confirm(key, `After ${sum}?`)
        return node.way === 'roots' ? io.roots(key) : io.ask(key, `After ${sum}?`, FORM)
      case 'step':
        return io.step(key, async ({ idempotencyKey }) => {
          doing(key, idempotencyKey)
          for (let turns = 0; turns < node.takes; turns += 1) await turn()
          return node.way === 'void' ? undefined : { key, sum }
        })
      case 'flaky':
        return io.step(
          key,
          ({ attempt, idempotencyKey }) => {
            doing(key, idempotencyKey)
            if (attempt <= node.failures) throw new TypeError(`attempt ${attempt}`)
            return { attempt, sum }
          },
          { retries: RETRIES, backoff: { firstMs: 2 } },
        )
      case 'sleep':
        return io.sleep(key, node.ms)
      case 'deadline':
        return node.isAnswered
          ? io.ask(key, `In time, after ${sum}?`, FORM, { withinMs: LATER_MS, otherwise: 'never' })
          : io.ask(`${key}${UNANSWERED}`, `Late, after ${sum}?`, FORM, { withinMs: SOON_MS, otherwise: { late: sum } })
      case 'event': {
        const event = io.event(key, FORM, { withinMs: LATER_MS, otherwise: 'never' })
        await io.step(`${key}.mail`, ({ idempotencyKey }) => {
          doing(`${key}.mail`, idempotencyKey)
          this.#sending(key, event.token)
        })
        return event
      }
      case 'yield':
        return io.yield()
      case 'progress':
        return io.progress(sum)
      case 'detach':
        return void (await io.detach())
      case 'scope':
        return io.scope(key, (inner) => this.run(inner, node.body, '', sum))
      case 'branch':
        return sum % 2 === 0 ? this.run(io, node.body, `${key}.a`, sum) : this.run(io, node.other, `${key}.b`, sum)
      case 'all':
        return Promise.all(node.arms.map((arm, index) => this.run(io, arm, `${key}.${index}.`, sum + index)))
      case 'caught': {
        const inside = await this.run(io, node.body, `${key}.try.`, sum)
        const failed = io.step(`${key}.fail`, ({ idempotencyKey }): number => {
          doing(`${key}.fail`, idempotencyKey)
          throw new RangeError(`after ${inside}`)
        })
        return failed.catch((error: unknown) => (error as Error).message)
      }
    }
  }
}

/** The same answer to the same question, however often it is asked. */
export function answerer(seed: number): Answerer {
  return ({ key, ...question }): InputResponse | undefined => {
    if (key.endsWith(UNANSWERED)) return undefined
    const luck = mix(seed, key)
    if (question.method === 'roots/list') return { roots: [{ uri: `file:///${luck}` }] }
    const isForm = 'requestedSchema' in question.params && 'n' in question.params.requestedSchema.properties
    return { action: 'accept', content: isForm ? { n: luck % 10 } : { confirm: luck % 3 === 0 } }
  }
}

/** With events, for flows that are tasks from their start. */
export function programs(hasEvents = false): fc.Arbitrary<Node[]> {
  return blocks(2, hasEvents)
}

function blocks(depth: number, hasEvents: boolean): fc.Arbitrary<Node[]> {
  const events = hasEvents ? [{ weight: 2, arbitrary: fc.constant<Node>({ type: 'event' }) }] : []
  const ends = [...leaves(), ...events]
  const nodes = depth === 0 ? ends : [...ends, ...branches(blocks(depth - 1, hasEvents))]
  return fc.array(fc.oneof(...nodes), { minLength: 1, maxLength: 4, size: 'max' })
}

function leaves(): fc.WeightedArbitrary<Node>[] {
  const way = fc.constantFrom('ask' as const, 'ask' as const, 'confirm' as const, 'roots' as const)
  const done = fc.constantFrom('value' as const, 'value' as const, 'void' as const)
  return [
    { weight: 4, arbitrary: fc.record({ type: fc.constant('ask' as const), way }) },
    { weight: 6, arbitrary: fc.record({ type: fc.constant('step' as const), way: done, takes: fc.nat(3) }) },
    { weight: 1, arbitrary: fc.record({ type: fc.constant('flaky' as const), failures: fc.nat(RETRIES) }) },
    { weight: 1, arbitrary: fc.record({ type: fc.constant('sleep' as const), ms: fc.nat(15) }) },
    { weight: 1, arbitrary: fc.record({ type: fc.constant('deadline' as const), isAnswered: fc.boolean() }) },
    { weight: 1, arbitrary: fc.constant<Node>({ type: 'yield' }) },
    { weight: 1, arbitrary: fc.constant<Node>({ type: 'progress' }) },
    { weight: 1, arbitrary: fc.constant<Node>({ type: 'detach' }) },
  ]
}

function branches(block: fc.Arbitrary<Node[]>): fc.WeightedArbitrary<Node>[] {
  const arms = fc.array(block, { minLength: 2, maxLength: 3, size: 'max' })
  return [
    { weight: 2, arbitrary: fc.record({ type: fc.constant('scope' as const), body: block }) },
    { weight: 1, arbitrary: fc.record({ type: fc.constant('branch' as const), body: block, other: block }) },
    { weight: 3, arbitrary: fc.record({ type: fc.constant('all' as const), arms }) },
    { weight: 1, arbitrary: fc.record({ type: fc.constant('caught' as const), body: block }) },
  ]
}

function mix(sum: number, value: unknown): number {
  let mixed = sum
  for (const char of JSON.stringify(value ?? 'nothing')) mixed = (Math.imul(mixed, 31) + char.charCodeAt(0)) >>> 0
  return mixed % 1_000_003
}

function turn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve))
}
