// Bugs that are planted to see whether the model finds them. Each replaces one part of the servers or of the network.
import type { StateCodec } from '../../src/seal/codec.ts'
import type { TaskRecord } from '../../src/store/tasks.ts'
import type { Parts } from './instance.ts'
import type { FlowPlan, Invariant, Response, ServedRequest } from './world.ts'

export interface Bug {
  readonly parts: Parts
  /** Gives the response to another request than its own. */
  readonly misroute?: ((to: ServedRequest, response: Response) => Response) | undefined
}

export interface PlantedBug {
  readonly name: string
  /** Which invariants it breaks. */
  readonly breaks: readonly Invariant[]
  /** A new one for every history: a bug may remember things. */
  readonly plant: () => Bug
}

const RIGHT: Parts = {
  tasks: (tasks) => tasks,
  once: (once) => once,
  principal: (principal) => principal,
  wallClock: undefined,
  version: (version) => version,
  codec: undefined,
  response: (response) => response,
}

export const NO_BUG: Bug = { parts: RIGHT }

export const BUGS: readonly PlantedBug[] = [
  {
    name: 'a store does not check the lease of a worker that writes',
    breaks: ['I1', 'I2', 'I5'],
    plant: withoutFences,
  },
  { name: 'a store loses an entry of a journal', breaks: ['I1', 'I2'], plant: losingEntries },
  { name: 'a store never gives out a task whose worker died', breaks: ['I6'], plant: losingTasks },
  { name: 'a store reads from a replica that is behind', breaks: ['I5'], plant: readingOldRecords },
  { name: 'a store for single use forgets what was used', breaks: ['I1', 'I7'], plant: forgettingUses },
  { name: 'a state is sealed without its last step', breaks: ['I1'], plant: sealingLess },
  { name: 'a network gives the response of one caller to another', breaks: ['I1', 'I2', 'I3'], plant: misrouting },
  { name: 'a server gives every caller the same principal', breaks: ['I3'], plant: onePrincipal },
  { name: 'a clock stands still, so that no state expires', breaks: ['I3'], plant: stoppedClock },
  {
    name: 'a server shows each of two questions under the key of the other',
    breaks: ['I2', 'I4'],
    plant: swappingQuestions,
  },
  { name: 'a new release keeps the version of the old one', breaks: ['I8'], plant: sameVersion },
]

function withoutFences(): Bug {
  const fences = new Map<string, number>()
  return withParts({
    tasks: (tasks) => ({
      ...tasks,
      claim: async (request) => {
        const task = await tasks.claim(request)
        if (task !== undefined) fences.set(task.id, task.fence)
        return task
      },
      append: async ({ id, fence }, entries) => {
        await tasks.append({ id, fence: fences.get(id) ?? fence }, entries)
        return true
      },
      change: (id, { fence, ...others }, change) => {
        const latest = fence === undefined ? {} : { fence: fences.get(id) ?? fence }
        return tasks.change(id, { ...others, ...latest }, change)
      },
    }),
  })
}

function losingEntries(): Bug {
  let appended = 0
  return withParts({
    tasks: (tasks) => ({
      ...tasks,
      append: (lease, entries) => ((appended += 1) % 3 === 0 ? Promise.resolve(true) : tasks.append(lease, entries)),
    }),
  })
}

function losingTasks(): Bug {
  return withParts({
    tasks: (tasks) => ({
      ...tasks,
      claim: async (request) => {
        const task = await tasks.claim(request)
        return task?.lost === true ? undefined : task
      },
    }),
  })
}

function readingOldRecords(): Bug {
  const replica = new Map<string, TaskRecord>()
  let reads = 0
  return withParts({
    tasks: (tasks) => ({
      ...tasks,
      read: async (id) => {
        const record = await tasks.read(id)
        const old = replica.get(id) ?? record
        if (record !== undefined && old !== undefined && (reads += 1) % 4 === 0) return old
        if (record !== undefined && !replica.has(id)) replica.set(id, record)
        return record
      },
    }),
  })
}

function forgettingUses(): Bug {
  return withParts({
    once: (once) => ({
      claim: (...args) => once.claim(...args),
      renew: (...args) => once.renew(...args),
      settle: async (key, fence, record, keepMs) => {
        const isSettled = await once.settle(key, fence, record, 1)
        return isSettled || keepMs > 0
      },
      release: (...args) => once.release(...args),
    }),
  })
}

/** Readable and not secret, but under the same rules about keys as the real seal. */
function forgetfulCodec(keys: readonly string[]): StateCodec {
  return {
    seal: (plaintext) => {
      const [header = '', journal = '[]'] = plaintext.split('\n')
      const entries = JSON.parse(journal) as unknown[]
      const last = entries.at(-4)
      const kept = last === 's' && entries.length % 8 === 0 ? entries.slice(0, -4) : entries
      return Buffer.from(JSON.stringify([keys[0], `${header}\n${JSON.stringify(kept)}`])).toString('base64url')
    },
    open: (token) => {
      const [key, plaintext] = JSON.parse(Buffer.from(token, 'base64url').toString()) as [string, string]
      if (!keys.includes(key)) throw new Error('No such key.')
      return plaintext
    },
  }
}

function sealingLess(): Bug {
  return withParts({ codec: forgetfulCodec })
}

function misrouting(): Bug {
  let last: { plan: FlowPlan; response: Response } | undefined
  const misroute = ({ plan }: ServedRequest, response: Response): Response => {
    const before = last
    last = { plan, response }
    return before === undefined || before.plan === plan ? response : before.response
  }
  return { parts: RIGHT, misroute }
}

function onePrincipal(): Bug {
  return withParts({ principal: () => 'somebody' })
}

function stoppedClock(): Bug {
  let now: number | undefined
  return withParts({ wallClock: (clock) => () => (now ??= clock()) })
}

function swappingQuestions(): Bug {
  return withParts({
    response: (response) => {
      const questions = response.result?.['inputRequests'] as Record<string, unknown> | undefined
      const [one, other] = Object.keys(questions ?? {})
      if (questions === undefined || one === undefined || other === undefined) return response
      const inputRequests = { ...questions, [one]: questions[other], [other]: questions[one] }
      return { result: { ...response.result, inputRequests } }
    },
  })
}

function sameVersion(): Bug {
  return withParts({ version: () => '1' })
}

function withParts(parts: Partial<Parts>): Bug {
  return { parts: { ...RIGHT, ...parts } }
}
