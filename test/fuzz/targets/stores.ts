// The same operations on the store in memory and the one in SQLite: they must answer alike.
import { isDeepStrictEqual } from 'node:util'
import type { Store, TaskChange, TaskPrecondition, TaskStatus } from 'mcp-rally'
import { MemoryStore, RallyError } from 'mcp-rally'
import { sqlite } from 'mcp-rally/sqlite'
import { Fences } from '../../stores/fences.ts'
import type { Json } from '../harness/json.ts'
import { oddString } from '../harness/json.ts'
import type { Random } from '../harness/random.ts'
import type { Watch } from '../harness/target.ts'
import { clipped, stackOf, target } from '../harness/target.ts'

type Operation = {
  name: string
  id: string
  owner: string
  text: string
  key: number
  ms: number
  status: string
  elapseMs: number
}
type Input = { operations: Operation[] }

const NAMES = [
  'create',
  'create',
  'read',
  'list',
  'claim',
  'claim',
  'renew',
  'append',
  'change',
  'change',
  'park',
  'end',
  'sweep',
  'onceClaim',
  'onceRenew',
  'onceSettle',
  'onceRelease',
  'leave',
  'leave',
  'after',
]
const STATUSES = ['working', 'input_required', 'completed', 'failed', 'cancelled']
/** Times of different lengths that no sum makes equal: of two tasks that fall due together, either may come first. */
const TIMES = [0, 203, 601, 3_007]

export const stores = target<Input>({
  name: 'stores',
  generate(random) {
    // Few names, so that what is named is often there.
    const ids = random.list(1, 3, () => someName(random))
    // An owner is a digest, or nobody: the order of other names may differ.
    const owners = random.list(1, 2, () => random.pick(['', 'ada', 'Bob', '-x', '_y']))
    return { operations: random.list(5, 60, () => someOperation(random, ids, owners)) }
  },
  mutate(random, { operations }, other) {
    const at = random.int(operations.length)
    const ids = operations.map(({ id }) => id)
    const owners = operations.map(({ owner }) => owner)
    const changed = random.pick([
      operations.toSpliced(at, 0, someOperation(random, ids, owners)),
      operations.toSpliced(at, 1, someOperation(random, ids, owners)),
      [...operations.slice(0, at), ...other.operations.slice(random.int(other.operations.length))],
      operations.map((each) => (each.id === ids[at] ? { ...each, id: oddString(random) } : each)),
    ])
    return { operations: changed.slice(0, 80) }
  },
  async open(watch) {
    return {
      async run({ operations }) {
        let now = 1_000_000
        const pair = [new MemoryStore({ now: () => now }), sqlite(':memory:', { now: () => now })]
        const sides = pair.map((store) => new Side(store))
        const words: string[] = []
        for (const operation of operations) {
          now += operation.elapseMs
          const [expected, came] = await Promise.all(sides.map((side) => side.perform(watch, operation)))
          words.push(`${operation.name} ${String(expected?.['word'])}`)
          if (isDeepStrictEqual(expected, came)) continue
          watch.report('differ', operation.name, `memory says ${shown(expected)}, SQLite ${shown(came)}`)
          break
        }
        await Promise.all(pair.map((store) => store.close()))
        return words
      },
      close: async () => {},
    }
  },
})

function shown(value: unknown): string {
  return clipped(JSON.stringify(value))
}

function someName(random: Random): string {
  return random.chance(0.5) ? random.pick(['a', 'b', 'A', 'a ']) : oddString(random)
}

function someOperation(random: Random, ids: readonly string[], owners: readonly string[]): Operation {
  return {
    name: random.pick(NAMES),
    id: random.pick(ids),
    owner: random.pick(owners),
    text: oddString(random),
    key: random.int(4),
    ms: random.pick(TIMES),
    status: random.pick(STATUSES),
    elapseMs: random.pick([10, 10, 10, 100, 500, 4_000]),
  }
}

/** One of the stores, asked by names and numbers that mean the same on both. */
class Side {
  readonly #store: Store
  readonly #tasks: Store['tasks']
  readonly #fences = new Map<string, string>()

  constructor(store: Store) {
    this.#store = store
    this.#tasks = new Fences().numbered(store.tasks)
  }

  async perform(watch: Watch, operation: Operation): Promise<Record<string, unknown>> {
    try {
      const answer = await this.#ask(operation)
      return { word: answer === undefined ? 'nothing' : typeof answer, answer: JSON.stringify(answer) }
    } catch (error) {
      if (!(error instanceof RallyError)) watch.report('internal', `A store failed with ${stackOf(error)}`)
      return { word: 'failed', answer: String(Reflect.get(error as object, 'code')) }
    }
  }

  async #ask({ name, id, owner, text, key, ms, status }: Operation): Promise<unknown> {
    const tasks = this.#tasks
    const { once, mailbox } = this.#store
    const held = { id, fence: key + 1 }
    const json = JSON.stringify(text)
    switch (name) {
      case 'create':
        return tasks.create({
          id,
          owner,
          request: json,
          state: json,
          journal: `[${json}]`,
          message: key === 0 ? undefined : text,
          pollMs: ms,
          ttlMs: key === 1 ? null : ms,
        })
      case 'read':
        return (await tasks.read(id)) ?? null
      case 'list':
        return tasks.list(owner, 1 + key, key === 3 ? { id: text, createdAt: ms * 1.5 } : undefined)
      case 'claim':
        return (await tasks.claim({ after: owner, except: key === 0 ? id : undefined, leaseMs: ms })) ?? null
      case 'renew':
        return tasks.renew([held], ms)
      case 'append':
        return tasks.append(held, key === 0 ? '' : json)
      case 'change':
        return (await tasks.change(id, {}, { message: text, state: json, dueMs: key === 0 ? null : ms })) ?? null
      case 'park':
        return (
          (await tasks.change(id, { fence: held.fence }, { status: 'input_required', release: true, dueMs: ms })) ??
          null
        )
      case 'end':
        return (await tasks.change(id, precondition(key), ending(status, json))) ?? null
      case 'sweep':
        // How many are left to sweep is a store's own affair.
        return void (await tasks.sweep())
      case 'leave':
        return mailbox.leave(id, key, text, ms)
      case 'after':
        return mailbox.after(id, key - 2)
      default:
        return this.#askOnce(once, name, id, text, ms)
    }
  }

  async #askOnce(once: Store['once'], name: string, id: string, text: string, ms: number): Promise<unknown> {
    const fence = this.#fences.get(id) ?? 'no fence'
    if (name === 'onceRenew') return once.renew(id, fence, ms)
    if (name === 'onceSettle') return once.settle(id, fence, text, ms)
    if (name === 'onceRelease') return once.release(id, fence)
    const claim = await once.claim(id, text, ms)
    if (claim.kind !== 'yours') return claim
    this.#fences.set(id, claim.fence)
    return 'yours'
  }
}

function precondition(key: number): TaskPrecondition {
  return key === 0 ? {} : { version: key }
}

function ending(status: string, outcome: Json & string): TaskChange {
  return { status: status as TaskStatus, outcome }
}
