// Random handlers without races, as data, and what runs them: what they come to does not depend on the order of their settlements.
import type { Io } from 'mcp-rally'
import fc from 'fast-check'
import type { Answerer } from 'mcp-rally/testing'
import type { InputResponse } from '../../src/protocol/messages.ts'

export type Node =
  | { type: 'ask'; way: 'ask' | 'confirm' | 'roots' }
  | { type: 'step'; way: 'value' | 'void'; takes: number }
  | { type: 'flaky'; failures: number }
  | { type: 'sleep'; ms: number }
  | { type: 'yield' }
  | { type: 'progress' }
  | { type: 'detach' }
  | { type: 'scope'; body: Node[] }
  | { type: 'branch'; body: Node[]; other: Node[] }
  | { type: 'all'; arms: Node[][] }
  | { type: 'caught'; body: Node[] }

/** Told of every step that is done, before it is. */
export type Doing = (key: string, idempotencyKey: string) => void

const FORM = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] } as const

const RETRIES = 2

/** What it comes to is mixed from every value it saw, and every question is made of what came before it. */
export async function interpret(io: Io, nodes: readonly Node[], doing: Doing, path = '', before = 0): Promise<number> {
  let sum = before
  for (const [index, node] of nodes.entries()) sum = mix(sum, await perform(io, node, doing, `${path}${index}`, sum))
  return sum
}

async function perform(io: Io, node: Node, doing: Doing, key: string, sum: number): Promise<unknown> {
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
    case 'yield':
      return io.yield()
    case 'progress':
      return io.progress(sum)
    case 'detach':
      return void (await io.detach())
    case 'scope':
      return io.scope(key, (inner) => interpret(inner, node.body, doing, '', sum))
    case 'branch':
      return sum % 2 === 0
        ? interpret(io, node.body, doing, `${key}.a`, sum)
        : interpret(io, node.other, doing, `${key}.b`, sum)
    case 'all':
      return Promise.all(node.arms.map((arm, index) => interpret(io, arm, doing, `${key}.${index}.`, sum + index)))
    case 'caught': {
      const inside = await interpret(io, node.body, doing, `${key}.try.`, sum)
      const failed = io.step(`${key}.fail`, ({ idempotencyKey }): number => {
        doing(`${key}.fail`, idempotencyKey)
        throw new RangeError(`after ${inside}`)
      })
      return failed.catch((error: unknown) => (error as Error).message)
    }
  }
}

/** The same answer to the same question, however often it is asked. */
export function answerer(seed: number): Answerer {
  return ({ key, ...question }): InputResponse => {
    const luck = mix(seed, key)
    if (question.method === 'roots/list') return { roots: [{ uri: `file:///${luck}` }] }
    const isForm = 'requestedSchema' in question.params && 'n' in question.params.requestedSchema.properties
    return { action: 'accept', content: isForm ? { n: luck % 10 } : { confirm: luck % 3 === 0 } }
  }
}

export function programs(): fc.Arbitrary<Node[]> {
  return blocks(2)
}

function blocks(depth: number): fc.Arbitrary<Node[]> {
  const nodes = depth === 0 ? leaves() : [...leaves(), ...branches(blocks(depth - 1))]
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
