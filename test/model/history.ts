// One history: a plan made from a seed, what happens when it is carried out, and a smaller plan that fails in the same way.
import { MemoryStore } from 'mcp-rally'
import type { Random } from '../../src/testing/random.ts'
import { seeded } from '../../src/testing/random.ts'
import type { Bug } from './bugs.ts'
import { NO_BUG } from './bugs.ts'
import { Client } from './client.ts'
import { Clock } from './clock.ts'
import type { FleetHost, Weather } from './instance.ts'
import { Instance, LEASE_MS } from './instance.ts'
import type { Release } from './program.ts'
import { makeProgram } from './program.ts'
import { CLOCK_SKEW_MS } from '../../src/seal/envelope.ts'
import type { Cause, FlowPlan, Violation } from './world.ts'
import { TTL_MS, World } from './world.ts'

export type FaultKind =
  | 'kill'
  | 'kill after an effect'
  | 'restart'
  | 'stall'
  | 'stall in a step'
  | 'skew'
  | 'upgrade'
  | 'hasty upgrade'
  | 'new wording'
  | 'key rotation'
  | 'fork'
  | 'replay'
  | 'theft'
  | 'cancelled task'

interface Fault {
  readonly atMs: number
  readonly kind: FaultKind
  /** Chooses the instance, the client or the amount. */
  readonly choice: number
}

export interface Plan {
  readonly seed: number
  readonly singleUse: boolean
  readonly instances: number
  readonly flows: readonly FlowPlan[]
  readonly faults: readonly Fault[]
  readonly weather: Weather
}

export interface HistoryReport {
  readonly plan: Plan
  readonly violations: readonly Violation[]
  readonly events: number
  readonly requests: number
  readonly faults: ReadonlyMap<string, number>
  readonly ends: ReadonlyMap<string, number>
  /** What happened, in words, if the caller wanted it. */
  readonly story: readonly string[]
}

/** After this time there are no more faults, and everything must come to its end. */
const FAULTS_MS = 6_000
/** How long that may take. */
const PATIENCE_MS = 300_000
/** The same after an upgrade: a task whose version one instance has waits up to 30 s between two tries. */
const UPGRADE_PATIENCE_MS = 3_000_000
const RESTART_MS = 200
const GIVING_UP_MS = 20_000
const MOST_SKEW_MS = 120_000

const TOOLS = ['one', 'two'] as const
const KINDS: readonly (readonly [FaultKind, number])[] = [
  ['kill', 5],
  ['kill after an effect', 4],
  ['restart', 4],
  ['stall', 2],
  ['stall in a step', 4],
  ['skew', 2],
  ['upgrade', 2],
  ['hasty upgrade', 1],
  ['new wording', 1],
  ['key rotation', 3],
  ['fork', 4],
  ['replay', 4],
  ['theft', 3],
  ['cancelled task', 1],
]

/** A plan is small, so that many of them fit into a minute: most bugs need few flows and few faults. */
export function makePlan(seed: number): Plan {
  const random = seeded(hashOf(seed, 'plan'))
  const some = (most: number): number => Math.floor(random.next() * (most + 1))
  const flows = Array.from({ length: 1 + some(2) }, (_, number): FlowPlan => ({
    number,
    tool: random.pick(TOOLS),
    principal: random.pick(['ann', 'bob']),
    startMs: random.next() * 1_000,
  }))
  const faults = Array.from({ length: some(7) }, (): Fault => ({
    atMs: 50 + random.next() * (random.chance(0.8) ? 2_500 : FAULTS_MS - 100),
    kind: weighted(KINDS, random),
    choice: random.next(),
  })).toSorted((one, other) => one.atMs - other.atMs)
  const isRough = random.chance(0.5)
  const weather: Weather = {
    loss: isRough ? random.next() * 0.15 : 0,
    doubled: isRough ? random.next() * 0.15 : 0,
    delayMs: random.pick([2, 30, 300]),
    storeMs: random.pick([0, 3, 60]),
    storeFailure: random.chance(0.2) ? 0.05 : 0,
    eventLoss: random.chance(0.3) ? 0.5 : 0,
  }
  return { seed, singleUse: random.chance(0.3), instances: 2 + some(1), flows, faults, weather }
}

export function runHistory(
  plan: Plan,
  { plant = () => NO_BUG, isTold = false }: RunOptions = {},
): Promise<HistoryReport> {
  return new History(plan, plant(), isTold).run()
}

export interface RunOptions {
  /** Plants a bug. */
  readonly plant?: () => Bug
  /** Writes down what happens. */
  readonly isTold?: boolean
}

class History implements FleetHost {
  readonly world: World
  readonly store: MemoryStore
  readonly parts: Bug['parts']
  readonly plans: readonly FlowPlan[]
  readonly misroute: Bug['misroute']
  weather: Weather
  readonly instances: Instance[] = []
  readonly #plan: Plan
  readonly #clock: Clock<Cause>
  readonly #clients: Client[] = []
  #started = 0
  #release: Release = { version: '1', wording: 'a' }
  /** The slots that keep an old release. */
  readonly #kept = new Map<number, Release>()
  #rotation = 0
  /** The instance that dies after the next effect of a step. */
  #dying: number | undefined
  /** The instance that stalls when it next runs a step of a task. */
  #stalling: { readonly slot: number; readonly ms: number } | undefined
  #requests = 0

  constructor(plan: Plan, bug: Bug, isTold: boolean) {
    this.#plan = plan
    this.plans = plan.flows
    this.weather = { ...plan.weather }
    this.parts = bug.parts
    this.misroute = bug.misroute
    this.#clock = new Clock(seeded(hashOf(plan.seed, 'random')))
    const random = seeded(hashOf(plan.seed, 'programs'))
    const programs = new Map(TOOLS.map((tool) => [tool as string, makeProgram(random)]))
    this.world = new World(this.#clock, { programs, singleUse: plan.singleUse, isTold })
    this.store = new MemoryStore({ now: () => this.#clock.now })
  }

  roll(...name: (string | number)[]): Random {
    if (name[0] === 'net') this.#requests += 1
    return seeded(hashOf(this.#plan.seed, ...name))
  }

  diesAfterEffect(instance: Instance): boolean {
    if (this.#dying !== this.instances.indexOf(instance)) return false
    this.#dying = undefined
    this.#replace(this.instances.indexOf(instance), RESTART_MS)
    return true
  }

  get lostVersions(): boolean {
    return this.world.faults.has('hasty upgrade')
  }

  stallInStep(instance: Instance): number {
    if (this.#stalling?.slot !== this.instances.indexOf(instance)) return 0
    const { ms } = this.#stalling
    this.#stalling = undefined
    return ms
  }

  async run(): Promise<HistoryReport> {
    const { world, plans } = this
    this.#at(0, () => {
      for (let slot = 0; slot < this.#plan.instances; slot += 1) this.#start(slot)
    })
    for (const plan of plans) this.#at(plan.startMs, () => this.#call(plan))
    for (const fault of this.#plan.faults) this.#at(fault.atMs, () => this.#happen(fault))
    this.#at(FAULTS_MS, () => this.#heal())
    const isUpgraded = this.#plan.faults.some(({ kind }) => kind === 'upgrade')
    const limit = FAULTS_MS + (isUpgraded ? UPGRADE_PATIENCE_MS : PATIENCE_MS)
    const lastMs = Math.max(...plans.map(({ startMs }) => startMs), ...this.#plan.faults.map(({ atMs }) => atMs)) + 2
    const isOver = (): boolean =>
      world.violations.length > 0 ||
      (this.#clock.elapsed > lastMs && this.#clients.every(({ end }) => end !== undefined))
    if (!(await this.#clock.run(limit, isOver))) this.#checkEnded()
    if (world.violations.length === 0) await this.#afterwards()
    this.#checkEnds()
    return this.#report()
  }

  /** Every client is done: nothing that ended may change, and no state opens after its time (I3, I5). */
  async #afterwards(): Promise<void> {
    const again = (): Promise<boolean> =>
      this.#clock.run(this.#clock.elapsed + 1_500, () => this.world.violations.length > 0)
    this.#at(500, () => {
      for (const client of this.#clients) client.lookAgain()
    })
    await again()
    this.#clock.skip(TTL_MS + CLOCK_SKEW_MS + MOST_SKEW_MS)
    this.#at(500, () => {
      for (const client of this.#clients) {
        const [state] = client.states
        if (state !== undefined) client.replay(state)
        client.lookAgain()
      }
    })
    await again()
  }

  #at(ms: number, run: () => void): void {
    this.#clock.after(ms, run, { place: undefined, cause: undefined })
  }

  #call(plan: FlowPlan): void {
    const client = new Client(this, plan, `c${plan.number}`)
    this.#clients.push(client)
    client.start()
  }

  #start(slot: number, skewMs = 0): void {
    const name = `i${(this.#started += 1)}`
    const keys = keysAt(this.#rotation)
    const release = this.#releaseOf(slot)
    this.world.tell(() => `${name} starts: version ${release.version}, ${keys.length} keys`)
    this.instances[slot] = new Instance(this, name, { release, keys, skewMs })
  }

  #releaseOf(slot: number): Release {
    return this.#kept.get(slot) ?? this.#release
  }

  #replace(slot: number, ms: number): void {
    const before = this.instances[slot]
    this.#at(ms, () => {
      if (this.instances[slot] === before) this.#start(slot, before?.skewMs)
    })
  }

  #happen({ kind, choice }: Fault): void {
    const { world } = this
    const slot = Math.floor(choice * this.instances.length)
    const instance = this.instances[slot]
    const client = this.#clients[Math.floor(choice * this.#clients.length)]
    const state = client?.states[Math.floor(((choice * 7919) % 1) * client.states.length)]
    switch (kind) {
      case 'kill':
        world.fault(kind)
        instance?.kill('by a signal')
        return this.#replace(slot, RESTART_MS)
      case 'kill after an effect':
        world.fault(kind)
        this.#dying = slot
        return
      case 'restart':
        world.fault(kind)
        instance?.drain()
        return this.#replace(slot, 0)
      case 'stall':
        if (instance === undefined) return
        world.fault(kind)
        return instance.stall(Math.round(LEASE_MS * (0.5 + 3 * choice)))
      case 'stall in a step':
        world.fault(kind)
        this.#stalling = { slot, ms: Math.round(LEASE_MS * (1 + 2 * choice)) }
        return
      case 'skew':
        if (instance === undefined) return
        instance.skewMs = Math.round((choice - 0.5) * 2 * MOST_SKEW_MS)
        return world.fault(kind, () => `${instance.name} by ${instance.skewMs} ms`)
      case 'upgrade':
      case 'hasty upgrade':
        if (this.#release.version !== '1') return
        world.fault(kind)
        if (kind === 'upgrade') this.#keepOld()
        this.#release = { ...this.#release, version: '2' }
        return this.#roll()
      case 'new wording':
        world.fault(kind)
        this.#release = { ...this.#release, wording: 'b' }
        return this.#roll()
      case 'key rotation':
        world.fault(kind)
        // Most operators do one step of a rotation after the other. Some are in a hurry.
        this.#rotation += choice < 0.7 ? 1 : 2
        return this.#roll()
      case 'fork':
        if (client === undefined || state === undefined) return
        world.fault(kind, () => `of call ${client.plan.number}`)
        return this.#fork(client.plan, state)
      case 'replay':
        if (client === undefined || state === undefined) return
        world.fault(kind, () => `of call ${client.plan.number}`)
        return client.replay(state)
      case 'theft':
        if (client === undefined || state === undefined) return
        world.fault(kind, () => `of a state of call ${client.plan.number}`)
        for (const forgery of forgeries(client.plan, state.token, choice)) {
          client.replay(state, { isForged: true, ...forgery })
        }
        return
      case 'cancelled task':
        if (client?.taskId === undefined || client.end !== undefined) return
        world.fault(kind)
        return client.cancelTask()
    }
  }

  #fork(plan: FlowPlan, state: NonNullable<Client['states'][number]>): void {
    const fork = new Client(this, plan, `f${this.#clients.length}`)
    this.#clients.push(fork)
    fork.forkFrom(state)
  }

  /** One more instance keeps the old release until the last flow that it began has ended. */
  #keepOld(): void {
    const slot = this.instances.length
    this.#kept.set(slot, this.#release)
    this.#start(slot)
  }

  /** Replaces one instance after the other. */
  #roll(): void {
    for (const slot of this.instances.keys()) {
      this.#at(slot * 400, () => {
        this.instances[slot]?.drain()
        this.#start(slot)
      })
    }
  }

  /** From now on nothing goes wrong, and every instance has the latest release, the latest keys and the right time. */
  #heal(): void {
    this.world.tell(() => 'The faults end.')
    this.#dying = undefined
    this.#stalling = undefined
    if (this.lostVersions) this.#giveUpTasks()
    Object.assign(this.weather, { loss: 0, doubled: 0, storeFailure: 0, eventLoss: 0 })
    const keys = keysAt(this.#rotation)
    for (const [slot, instance] of this.instances.entries()) {
      const isLatest = instance.release === this.#releaseOf(slot) && instance.keys.join() === keys.join()
      if (isLatest && instance.accepts && instance.skewMs === 0) continue
      instance.drain()
      this.#start(slot)
    }
  }

  /** Nothing else ends a task whose version is gone, for about an hour. */
  #giveUpTasks(): void {
    this.#at(GIVING_UP_MS, () => {
      for (const client of this.#clients) client.cancelTask()
      if (this.#clients.some(({ end }) => end === undefined)) this.#giveUpTasks()
    })
  }

  /** I6: when the faults have ended, everything comes to its end. */
  #checkEnded(): void {
    for (const { end, plan, taskId } of this.#clients) {
      if (end !== undefined) continue
      this.world.violate('I6', `call ${plan.number} ${taskId === undefined ? '' : '(a task) '}never ended`)
    }
  }

  /** I6: a flow fails only for something that happened. */
  #checkEnds(): void {
    const had = (...kinds: FaultKind[]): boolean => kinds.some((kind) => this.world.faults.has(kind))
    for (const { end, plan } of this.#clients) {
      const why = end?.why ?? ''
      const isExplained =
        end === undefined ||
        end.kind === 'done' ||
        (end.kind === 'refused' && why === 'VERSION_CHANGED' && this.lostVersions) ||
        // I3 has checked that it must not open, or was used with other answers.
        (end.kind === 'refused' && why === 'Invalid or expired requestState') ||
        (end.kind === 'refused' && why === 'QUESTION_CHANGED' && had('new wording')) ||
        (end.kind === 'failed' && had('new wording', 'upgrade', 'hasty upgrade') && /changed|asked/.test(why)) ||
        (end.kind === 'task' && this.#isTaskEndExplained(why))
      if (!isExplained) this.world.violate('I6', `call ${plan.number} ended for no reason: ${end.kind} ${why}`)
    }
  }

  #isTaskEndExplained(text: string): boolean {
    const had = (kind: string): boolean => this.world.faults.has(kind)
    if (/"status":"completed"/.test(text))
      return !/"isError":true/.test(text) || had('new wording') || had('upgrade') || had('hasty upgrade')
    if (/"status":"cancelled"/.test(text)) return had('cancelled task') || this.lostVersions
    if (/workers were lost/.test(text)) return this.#losses() >= 5
    if (/QUESTION_CHANGED/.test(text)) return had('new wording')
    return had('store failure') && /store failed/.test(text)
  }

  #losses(): number {
    const { faults } = this.world
    return (['kill', 'kill after an effect', 'stall', 'stall in a step', 'restart'] as const)
      .map((kind) => faults.get(kind) ?? 0)
      .reduce((sum, count) => sum + count, 0)
  }

  #report(): HistoryReport {
    const ends = new Map<string, number>()
    for (const { end } of this.#clients) ends.set(end?.kind ?? 'open', (ends.get(end?.kind ?? 'open') ?? 0) + 1)
    const { violations, faults, story = [] } = this.world
    return { plan: this.#plan, violations, events: this.#clock.happened, requests: this.#requests, faults, ends, story }
  }
}

/** Leaves out what is not needed for the violation. */
export async function shrink(plan: Plan, options: RunOptions): Promise<Plan> {
  const invariants = async (each: Plan): Promise<string[]> =>
    (await runHistory(each, options)).violations.map(({ invariant }) => invariant)
  const [wanted] = await invariants(plan)
  const fails = async (each: Plan): Promise<boolean> => (await invariants(each))[0] === wanted
  let smallest = plan
  for (let isSmaller = true; isSmaller;) {
    isSmaller = false
    for (const smaller of smallerPlans(smallest)) {
      if (!(await fails(smaller))) continue
      smallest = smaller
      isSmaller = true
      break
    }
  }
  return smallest
}

function* smallerPlans(plan: Plan): Iterable<Plan> {
  const { flows, faults, weather } = plan
  for (const flow of flows) if (flows.length > 1) yield { ...plan, flows: flows.filter((each) => each !== flow) }
  for (const fault of faults) yield { ...plan, faults: faults.filter((each) => each !== fault) }
  for (const name of Object.keys(weather) as (keyof Weather)[]) {
    if (weather[name] > 0) yield { ...plan, weather: { ...weather, [name]: 0 } }
  }
  if (plan.instances > 1) yield { ...plan, instances: plan.instances - 1 }
  if (plan.singleUse) yield { ...plan, singleUse: false }
}

const KEYS = [11, 47, 83, 131].map((factor) =>
  Buffer.from(Array.from({ length: 32 }, (_, i) => (i * factor + i * i * 7 + 5) & 255)).toString('base64'),
)

/** [old] -> [old, new] -> [new, old] -> [new], and so on. */
function keysAt(rotation: number): string[] {
  const current = KEYS[Math.floor(rotation / 3) % KEYS.length] ?? ''
  const next = KEYS[(Math.floor(rotation / 3) + 1) % KEYS.length] ?? ''
  return [[current], [current, next], [next, current]][rotation % 3] ?? [current]
}

/** Ways to use a state that is not one's own, or for something else. */
function forgeries(
  { number, principal, tool }: FlowPlan,
  token: string,
  choice: number,
): { principal?: string; tool?: string; args?: object; token?: string }[] {
  return [
    { principal: principal === 'ann' ? 'bob' : 'ann' },
    { tool: tool === 'one' ? 'two' : 'one' },
    { args: { call: number, more: 1 } },
    { token: changed(token, choice) },
  ]
}

function changed(token: string, choice: number): string {
  const at = 10 + Math.floor(choice * (token.length - 10))
  return token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1)
}

function weighted<T>(items: readonly (readonly [T, number])[], random: Random): T {
  let left = random.next() * items.reduce((sum, [, weight]) => sum + weight, 0)
  for (const [item, weight] of items) if ((left -= weight) < 0) return item
  throw new Error('No items.')
}

function hashOf(...parts: (string | number)[]): number {
  let hash = 0x811c9dc5
  for (const part of parts) {
    const text = `${part}\n`
    for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  }
  return hash
}
