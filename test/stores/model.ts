// Whatever is asked of a store, in whichever order: it answers as the one in memory does.
import fc from 'fast-check'
import { expect } from 'vitest'
import { MemoryTasks } from '../../src/store/memory/tasks.ts'
import type { TaskPrecondition, TaskChange, TaskStatus, TaskStore } from '../../src/store/tasks.ts'
import { newTask } from './contract.ts'
import { Fences } from './fences.ts'

/** Asks one thing of a store. The model, and what is compared with it, are asked the same. */
interface Question {
  readonly name: string
  readonly ask: (tasks: Required<TaskStore>) => Promise<unknown>
  readonly elapseMs: number
}

export interface Modelled {
  /** The handles on one store, which are asked in turn. */
  readonly handles: readonly TaskStore[]
  close(): Promise<void>
}

const IDS = ['a', 'b', 'c', 'd']
const OWNERS = ['', 'ada', 'bob']

// Few and small, so that what is guessed is often right.
const id = fc.constantFrom(...IDS)
const owner = fc.constantFrom(...OWNERS)
const small = fc.integer({ min: 1, max: 4 })
// Questions come at multiples of 10 ms and these are none, each another one's distance away: no two tasks fall due at the same
// time, when either might come first.
const spanMs = fc.constantFrom(0, 203, 601)
const dueMs = fc.option(spanMs)
const entries = fc.constantFrom('1', '"x",2', '')
const held = fc.record({ id, fence: small })
/** At most one of them is held by anybody: two would fall due together. */
const renewed = fc
  .tuple(fc.array(held, { maxLength: 1 }), id)
  .map(([one, other]) => one.concat({ id: other, fence: 99 }))
const belief: fc.Arbitrary<TaskPrecondition> = fc.oneof(
  fc.constant({}),
  fc.record({ fence: small, version: small }, { requiredKeys: [] }),
)
// Ends are rare, and most tasks come to the end of their ttl, so that a series does not run out of tasks that live.
const status: fc.Arbitrary<TaskStatus> = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom('working', 'input_required') },
  { weight: 1, arbitrary: fc.constantFrom('completed', 'failed', 'cancelled') },
)
const change: fc.Arbitrary<TaskChange> = fc.record(
  {
    status,
    message: fc.option(fc.constantFrom('', 'Hello.'), { nil: undefined }),
    state: fc.constantFrom('1', '2'),
    outcome: fc.constantFrom('1', '2'),
    journal: fc.constantFrom('[]', '[7]'),
    dueMs,
    release: fc.boolean(),
  },
  { requiredKeys: [] },
)

const asked = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .record({ id, owner, ttlMs: fc.option(fc.constantFrom(600, 3_000, 6_000), { freq: 6 }) })
      .map(toCreate),
  },
  { weight: 2, arbitrary: fc.record({ id, owner, ttlMs: fc.constant(6_000) }).map(toCreateAndClaim) },
  {
    weight: 2,
    arbitrary: fc.tuple(owner, fc.option(owner, { nil: undefined }), fc.constantFrom(1, 2, 10)).map(toClaimMany),
  },
  { weight: 4, arbitrary: fc.tuple(id, belief, change).map(toChangeAndClaim) },
  { weight: 1, arbitrary: id.map((each) => named(`read ${each}`, (tasks) => tasks.read(each))) },
  { weight: 1, arbitrary: owner.map((each) => named(`list "${each}"`, (tasks) => tasks.list(each, 2))) },
  {
    weight: 6,
    arbitrary: fc.record({ after: owner, except: fc.option(owner, { nil: undefined }), leaseMs: spanMs }).map(toClaim),
  },
  { weight: 2, arbitrary: fc.tuple(renewed, spanMs).map(toRenew) },
  { weight: 4, arbitrary: fc.tuple(held, entries).map(toAppend) },
  { weight: 8, arbitrary: fc.tuple(id, belief, change).map(toChange) },
  // How many it finds is its own affair: another may have cleared them away as it met them.
  { weight: 1, arbitrary: fc.constant(named('sweep', async (tasks) => void (await tasks.sweep()))) },
)

const questions: fc.Arbitrary<Question[]> = fc.array(
  fc.tuple(asked, fc.constantFrom(10, 10, 10, 100, 500)).map(([{ name, ask }, elapseMs]) => ({ name, ask, elapseMs })),
  { maxLength: 60, size: 'max' },
)

/** Runs many series of questions against the model and a store that goes by the same clock. */
export async function likeTheModel(open: (now: () => number) => Modelled, runs: number): Promise<void> {
  await fc.assert(
    fc.asyncProperty(questions, async (series) => {
      let now = 1_000_000
      const model = new Fences().numbered(new MemoryTasks(() => now))
      const opened = open(() => now)
      const fences = new Fences()
      const handles = opened.handles.map((tasks) => fences.numbered(tasks))
      try {
        for (const [index, { name, ask, elapseMs }] of [...series, ...LAST].entries()) {
          now += elapseMs
          const expected = await ask(model)
          const tasks = handles[index % handles.length] ?? model
          expect({ index, name, answer: await ask(tasks) }).toEqual({ index, name, answer: expected })
        }
      } finally {
        await opened.close()
      }
    }),
    { numRuns: runs },
  )
}

/** In the end all that is there. */
const LAST: Question[] = [
  ...OWNERS.map((each) => named(`list "${each}"`, (tasks) => tasks.list(each, 10))),
  ...Array.from({ length: IDS.length + 1 }, () => toClaim({ after: '', leaseMs: 10_000 })),
].map(({ name, ask }) => ({ name, ask, elapseMs: 1_000 }))

type Asked = Pick<Question, 'name' | 'ask'>

function named(name: string, ask: Question['ask']): Asked {
  return { name, ask }
}

function toCreate(given: { id: string; owner: string; ttlMs: number | null }): Asked {
  return named(`create ${JSON.stringify(given)}`, (tasks) =>
    tasks.create(newTask(given.id, { ...given, journal: '[0]' })),
  )
}

function toCreateAndClaim(given: { id: string; owner: string; ttlMs: number }): Asked {
  return named(`createAndClaim ${JSON.stringify(given)}`, (tasks) =>
    tasks.createAndClaim(newTask(given.id, { ...given, journal: '[0]' }), 601),
  )
}

/** With these limits, it does not matter in which order owners take what is left of equal shares. With this lease, none falls due together. */
function toClaimMany([after, except, limit]: [string, string | undefined, number]): Asked {
  const turn = { after, except, leaseMs: 100_000 }
  return named(`claimMany ${JSON.stringify(turn)} ${limit}`, async (tasks) =>
    (await tasks.claimMany(turn, limit)).toSorted((a, b) => (a.id < b.id ? -1 : 1)),
  )
}

function toChangeAndClaim([each, believed, made]: [string, TaskPrecondition, TaskChange]): Asked {
  const name = `changeAndClaim ${each} ${JSON.stringify(believed)} ${JSON.stringify(made)}`
  return named(name, (tasks) => tasks.changeAndClaim(each, believed, made, 203))
}

function toClaim(turn: { after: string; except?: string | undefined; leaseMs: number }): Asked {
  return named(`claim ${JSON.stringify(turn)}`, (tasks) => tasks.claim(turn))
}

function toRenew([all, leaseMs]: [{ id: string; fence: number }[], number]): Asked {
  return named(`renew ${JSON.stringify(all)} ${leaseMs}`, (tasks) => tasks.renew(all, leaseMs))
}

function toAppend([to, text]: [{ id: string; fence: number }, string]): Asked {
  return named(`append ${JSON.stringify(to)} ${text}`, (tasks) => tasks.append(to, text))
}

function toChange([each, believed, made]: [string, TaskPrecondition, TaskChange]): Asked {
  const name = `change ${each} ${JSON.stringify(believed)} ${JSON.stringify(made)}`
  return named(name, (tasks) => tasks.change(each, believed, made))
}
