// Any handler, carried by a store while its workers die, stall and take over from each other, comes to what it comes to in one run.
import type { Io, Rally } from 'mcp-rally'
import type { AskedQuestion } from 'mcp-rally/testing'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { microtasks } from '../../src/testing/manual-scheduler.ts'
import type { Random } from '../../src/testing/random.ts'
import { seeded } from '../../src/testing/random.ts'
import { inOnePass } from '../../src/testing/single-pass.ts'
import { handlerSubject } from '../../src/testing/subject.ts'
import { askedIn, resultOf } from '../wire/messages.ts'
import type { Task } from './caller.ts'
import { Caller } from './caller.ts'
import type { Instance, View } from './office.ts'
import { LEASE_MS, Office } from './office.ts'
import type { Doing, Node, Sending } from './programs.ts'
import { answerer, eventFor, interpret, programs, sentEvents } from './programs.ts'

/** A task may be lost this often without anything new recorded. */
const MOST_FATES = 4
const MOST_TURNS = 20_000

/** Workers on one store, none of which is safe for long. */
class Chaos {
  readonly office = new Office()
  readonly #random: Random
  readonly #world: World
  readonly #tools: (app: Rally, doing: Doing) => void
  readonly #workers: Instance[] = []
  #fates = 0
  #over = false

  constructor(random: Random, world: World, tools: (app: Rally, doing: Doing) => void) {
    this.#random = random
    this.#world = world
    this.#tools = tools
    this.office.skipWaits()
  }

  hire(): void {
    if (this.#over) return
    let claimed: ReadonlySet<string> = new Set()
    const worker = this.office.instance((app) =>
      this.#tools(app, (key, idempotencyKey) => {
        if (claimed.has(idempotencyKey)) this.#world.mistakes.push(`"${key}" was recorded, and is done again.`)
        this.#world.doing(key, idempotencyKey)
      }),
    )
    this.#workers.push(worker)
    const { view } = worker
    view.deaf = this.#random.chance(0.2)
    view.before = (operation) => this.#meet(view, operation)
    view.after = (operation, result, ...args) => {
      // One that has lost its claim may go on for a moment with what it knew when it took the task up.
      if (operation === 'claim' && result !== undefined) claimed = new Set(this.#world.recorded)
      if (operation === 'append' && result === true) this.#world.record(String(args[1]))
      return this.#meet(view, operation)
    }
  }

  end(): void {
    this.#over = true
    for (const { app, view } of this.#workers) {
      view.kill()
      app.interrupt()
    }
  }

  /** Nothing, most of the time; else it dies here, or stands still until another one has long taken over, or drains. */
  #meet(view: View, operation: string): unknown {
    if (operation !== 'append' && operation !== 'change') return undefined
    if (this.#fates >= MOST_FATES || !this.#random.chance(0.12)) return undefined
    this.#fates += 1
    const fate = this.#random.pick(['dies', 'stalls', 'drains'])
    if (fate === 'dies') view.kill()
    if (fate === 'drains') this.#workers.find((worker) => worker.view === view)?.app.drain()
    this.#replace()
    if (fate === 'drains') return undefined
    return fate === 'dies' ? new Promise(() => {}) : this.#standStill()
  }

  #replace(): void {
    setImmediate(() => {
      this.office.elapse(LEASE_MS + 1)
      this.hire()
    })
  }

  async #standStill(): Promise<void> {
    for (let turns = 0; turns < 10; turns += 1) await microtasks()
  }
}

/** What the outside world saw of the steps. */
class World {
  readonly effects = new Set<string>()
  readonly mistakes: string[] = []
  /** The idempotency keys of what is in the journal, as far as it is outside of scopes. */
  readonly recorded = new Set<string>()
  readonly #byKey = new Map<string, string>()

  doing: Doing = (key, idempotencyKey) => {
    this.effects.add(`${key} ${idempotencyKey}`)
    this.#byKey.set(key, idempotencyKey)
  }

  record(entries: string): void {
    const flat = JSON.parse(`[${entries}]`) as unknown[]
    for (let i = 0; i < flat.length; i += 4) {
      const idempotencyKey = this.#byKey.get(String(flat[i + 1]))
      if (idempotencyKey !== undefined && String(flat[i]).startsWith('s')) this.recorded.add(idempotencyKey)
    }
  }

  /** An event that is sent again when its task has ended. */
  refused(error: unknown): void {
    if ((error as { code?: unknown }).code !== 'EVENT_REFUSED') this.mistakes.push(String(error))
  }

  get idempotencyKeys(): Set<string | undefined> {
    return new Set([...this.effects].map((effect) => effect.split(' ')[1]))
  }

  get keys(): Set<string | undefined> {
    return new Set([...this.effects].map((effect) => effect.split(' ')[0]))
  }
}

/** A client that answers a few questions at a time, some wrongly at first, and holds wire keys to their promise. */
class Patient {
  readonly #office: Office
  readonly #caller: Caller
  readonly #random: Random
  readonly #answer: ReturnType<typeof answerer>
  readonly #texts = new Map<string, string>()
  readonly #gone = new Set<string>()

  constructor(office: Office, caller: Caller, random: Random, seed: number) {
    this.#office = office
    this.#caller = caller
    this.#random = random
    this.#answer = answerer(seed)
  }

  async ended(first: object | undefined): Promise<string> {
    const id = await this.#taskOf(first)
    if (typeof id !== 'string') return id.said
    for (let turns = 0; turns < MOST_TURNS; turns += 1) {
      const task = await this.#caller.get(id)
      if (task.status === 'completed') return task.result?.content[0]?.text ?? ''
      if (task.status !== 'working' && task.status !== 'input_required') throw new Error(JSON.stringify(task))
      await this.#answerSome(id, task)
      await microtasks()
      // Those who hear nothing look now and then.
      if (turns % 20 === 0) this.#office.elapse(0)
    }
    throw new Error(`It is stuck: ${JSON.stringify(await this.#caller.get(id))}`)
  }

  /** Goes round by round until the call is a task, or over. */
  async #taskOf(response: object | undefined): Promise<string | { said: string }> {
    const result = resultOf(response)
    if (result['resultType'] === 'task') return String(result['taskId'])
    if (result['resultType'] === 'complete') return { said: (result['content'] as { text: string }[])[0]?.text ?? '' }
    const { state: requestState } = askedIn(response)
    const inputResponses: Record<string, unknown> = {}
    for (const [key, question] of Object.entries(result['inputRequests'] ?? {})) {
      const answer = await this.#answer({ key, ...(question as object) } as AskedQuestion)
      if (answer !== undefined) inputResponses[key] = answer
    }
    return this.#taskOf(await this.#caller.call('program', {}, { requestState, inputResponses }))
  }

  async #answerSome(id: string, { inputRequests = {} }: Task): Promise<void> {
    this.#hold(inputRequests)
    const answers: Record<string, unknown> = {}
    for (const [wire, question] of Object.entries(inputRequests)) {
      if (!this.#random.chance(0.3)) continue
      const [key = ''] = wire.split('~')
      const isFirst = key === wire
      const right = await this.#answer({ key, ...question })
      if (right === undefined) continue
      answers[wire] = isFirst && this.#random.chance(0.2) ? { nothing: 'of use' } : right
    }
    if (this.#random.chance(0.1)) answers['nobody-asked'] = { action: 'accept' }
    if (Object.keys(answers).length > 0) await this.#caller.update(id, answers)
  }

  #hold(shown: NonNullable<Task['inputRequests']>): void {
    for (const wire of this.#texts.keys()) if (!(wire in shown)) this.#gone.add(wire)
    for (const [wire, question] of Object.entries(shown)) {
      const text = JSON.stringify(question)
      if (this.#gone.has(wire)) throw new Error(`The wire key "${wire}" was used again.`)
      if ((this.#texts.get(wire) ?? text) !== text) throw new Error(`"${wire}" became another question.`)
      this.#texts.set(wire, text)
    }
  }
}

function runs(): fc.Arbitrary<{ program: Node[]; fromTheStart: boolean }> {
  return fc.boolean().chain((fromTheStart) => programs(fromTheStart).map((program) => ({ program, fromTheStart })))
}

test('whatever its workers come to, a task comes to what one straight run comes to, with the same effects', async () => {
  await fc.assert(
    fc.asyncProperty(runs(), fc.nat(), async ({ program, fromTheStart }, seed) => {
      const expected = new Set<string>()
      const handler = (_args: object, io: Io): Promise<number> =>
        interpret(io, program, (key) => void expected.add(key))
      const subject = { ...handlerSubject(handler, {}), task: fromTheStart ? 'always' : 'never' } as const
      const once = await inOnePass(subject, answerer(seed), { events: sentEvents })
      const [random, world] = [seeded(seed), new World()]
      const signaller = { app: undefined as Rally | undefined }
      const send: Sending = (key, token) => {
        // Some come before the worker has recorded that it sent the token, some twice.
        const sent = (): void =>
          void signaller.app?.signal(token, eventFor(key)).catch((error: unknown) => world.refused(error))
        if (random.chance(0.5)) sent()
        if (random.chance(0.7)) setImmediate(sent)
        setTimeout(sent, Math.floor(random.next() * 10))
      }
      const tools = (app: Rally, doing: Doing): void => {
        app.tool('program', { ...(fromTheStart && { task: 'always' as const }) }, async (_args, io) =>
          String(await interpret(io, program, doing, send)),
        )
      }
      const chaos = new Chaos(random, world, tools)
      try {
        chaos.hire()
        const front = chaos.office.instance((app) => tools(app, world.doing), { tasks: { concurrency: 0 } })
        signaller.app = front.app
        const caller = new Caller(chaos.office, front.app)
        const said = await new Patient(chaos.office, caller, random, seed).ended(await caller.call('program'))
        expect(said).toBe(String(once.result))
        expect(world.mistakes).toEqual([])
        expect(world.keys).toEqual(expected)
        // Every step has one idempotency key, and no two have the same.
        expect(world.idempotencyKeys.size).toBe(world.effects.size)
        expect(world.effects.size).toBe(once.effects.length)
      } finally {
        chaos.end()
      }
    }),
    { numRuns: 100 },
  )
}, 120_000)
