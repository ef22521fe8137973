// One server process of the fleet: the real app, and the connection to the store that all instances share.
import type { OnceStore, Rally } from 'mcp-rally'
import { rally } from 'mcp-rally'
import type { MemoryStore } from 'mcp-rally'
import type { StateCodec } from '../../src/seal/codec.ts'
import type { TaskStore } from '../../src/store/tasks.ts'
import type { Random } from '../../src/testing/random.ts'
import { rememberDerivedKeys } from './derived-keys.ts'
import { handlerOf, INPUT } from './program.ts'
import type { Release } from './program.ts'
import type { Cause, FlowPlan, Response, ServedRequest, Server, World } from './world.ts'
import { TTL_MS } from './world.ts'
import { callerNamed } from '../wire/messages.ts'

export const LEASE_MS = 1_200
const DRAIN_MS = 500

/** How the store and the network of a history behave now. */
export interface Weather {
  /** The chance that a message to or from a server is lost. */
  loss: number
  /** The chance that a request arrives twice. */
  doubled: number
  /** The longest delay of a message. */
  delayMs: number
  /** The longest delay of a call to the store. */
  storeMs: number
  /** The chance that a call to the store fails: before it was done, or after. */
  storeFailure: number
  /** The chance that an event of the store reaches no one. */
  eventLoss: number
}

/** Parts of an instance that a planted bug replaces. */
export interface Parts {
  readonly tasks: (tasks: TaskStore) => TaskStore
  readonly once: (once: OnceStore) => OnceStore
  readonly principal: (principal: string) => string
  /** Takes the right time. */
  readonly wallClock: ((now: () => number) => () => number) | undefined
  readonly version: (version: string) => string
  /** Seals states in place of the keys. */
  readonly codec: ((keys: readonly string[]) => StateCodec) | undefined
  readonly response: (response: Response) => Response
}

export interface FleetHost {
  readonly world: World
  readonly store: MemoryStore
  readonly weather: Weather
  readonly parts: Parts
  readonly plans: readonly FlowPlan[]
  /** Random choices for one thing, whatever else happens in the history. */
  roll(...name: (string | number)[]): Random
  /** True if the instance is to die now, after the effect of a step and before its record. */
  diesAfterEffect(instance: Instance): boolean
  /** How long the instance is to stall now, while it runs a step of a task. */
  stallInStep(instance: Instance): number
}

rememberDerivedKeys()

const silent = { warn: (): void => {}, error: (): void => {} }

export class Instance implements Server {
  readonly name: string
  readonly release: Release
  readonly keys: readonly string[]
  skewMs: number
  readonly hasFlowKeys: boolean
  alive = true
  draining = false
  stalledUntil = 0
  readonly wallClock: (() => number) | undefined
  readonly #host: FleetHost
  readonly #app: Rally
  #running = 0
  #storeCalls = 0
  #lastArrival = 0

  constructor(host: FleetHost, name: string, options: { release: Release; keys: readonly string[]; skewMs: number }) {
    this.name = name
    this.release = options.release
    this.keys = options.keys
    this.skewMs = options.skewMs
    this.#host = host
    this.hasFlowKeys = host.parts.codec === undefined
    this.wallClock = host.parts.wallClock?.(() => host.world.clock.now)
    const tasks = host.parts.tasks(this.#connectTasks(host.store.tasks))
    const once = host.parts.once(this.#connectOnce(host.store.once))
    const { clock } = host.world
    clock.scene = { place: this, cause: undefined }
    this.#app = this.#build(tasks, once)
    this.#app.work()
    clock.scene = { place: undefined, cause: undefined }
  }

  get accepts(): boolean {
    return this.alive && !this.draining
  }

  #build(tasks: TaskStore, once: OnceStore): Rally {
    const { world, store, parts } = this.#host
    const app = rally({
      name: 'model',
      version: '1.0.0',
      ...(parts.codec === undefined ? { keys: this.keys } : { codec: parts.codec(this.keys) }),
      ttl: TTL_MS / 1_000,
      legacy: false,
      strict: false,
      logger: silent,
      store: { tasks, once, mailbox: store.mailbox, close: () => store.close() },
      tasks: { leaseMs: LEASE_MS, pollMs: 200, watchdogMs: false, concurrency: 4 },
      ...(world.singleUse && { once }),
    })
    for (const [name, programOf] of world.programs) {
      const program = programOf(Number(this.release.version))
      const { task } = program
      const handler = handlerOf(program, this.release, {
        once,
        started: (flow) => world.passStarted(this, flow),
        stepStarted: (flow, key, idempotencyKey) => this.#stepStarted(flow, key, idempotencyKey),
        executed: (flow, key) => this.#executed(flow, key),
        saw: (flow, key, value) => void (this.alive && world.saw(flow, key, value)),
        answered: (text, answer) => world.answered(text, answer),
        detaching: () => world.detaching(),
      })
      const version = parts.version(this.release.version)
      app.tool(name, { input: INPUT, version, ...(task !== undefined && { task }) }, handler)
    }
    return app
  }

  #stepStarted(flow: string, key: string, idempotencyKey: string): void {
    const { world } = this.#host
    if (!this.alive) return
    world.stepStarted(flow, key, idempotencyKey)
    const { cause } = world.clock.scene
    const ms = cause !== undefined && 'request' in cause ? 0 : this.#host.stallInStep(this)
    if (ms > 0) this.stall(ms)
  }

  /** Blocks its event loop. */
  stall(ms: number): void {
    const { world } = this.#host
    this.stalledUntil = world.clock.now + ms
    world.tell(() => `! ${this.name} stalls for ${ms} ms`)
  }

  #executed(flow: string, key: string): number | Promise<never> {
    if (!this.alive) return never()
    const number = this.#host.world.executed(this, flow, key)
    if (!this.#host.diesAfterEffect(this)) return number
    this.kill('after an effect')
    return never()
  }

  /** A request arrives. `respond` is called when the response leaves. */
  serve(
    request: ServedRequest,
    { message, principal, isForged }: Arriving,
    respond: (response: Response) => void,
  ): void {
    const { world, parts } = this.#host
    world.arrived(request, this, isForged)
    this.#running += 1
    void this.#app.dispatch(message, { caller: callerNamed(parts.principal(principal)) }).then((reply) => {
      this.#running -= 1
      if (!this.alive || reply === undefined) return
      respond(parts.response(JSON.parse(reply.text) as Response))
      if (this.draining) this.#endIfIdle()
    })
  }

  kill(why: string): void {
    if (!this.alive) return
    this.#host.world.tell(() => `! ${this.name} dies ${why}`)
    this.alive = false
    this.#host.world.clock.forget(this)
  }

  /** SIGTERM: hands its flows over, then ends. */
  drain(): void {
    if (!this.accepts) return
    this.draining = true
    const { clock } = this.#host.world
    const scene = { place: this, cause: undefined }
    clock.after(
      0,
      () => {
        this.#app.drain()
        this.#endIfIdle()
        void this.#app.idle().then(() => this.#endIfIdle())
        clock.after(DRAIN_MS, () => this.#app.interrupt(), scene)
        clock.after(3 * DRAIN_MS, () => this.kill('at the end of its drain'), scene)
      },
      scene,
    )
  }

  #endIfIdle(): void {
    if (this.#running === 0) this.#host.world.clock.after(DRAIN_MS, () => this.kill('drained'))
  }

  #connectTasks(tasks: TaskStore): TaskStore {
    const { world, plans } = this.#host
    const call = <T>(run: () => Promise<T>): Promise<T> => this.#call(run)
    return {
      create: (task) =>
        call(async () => {
          const { flowId, args } = JSON.parse(task.request) as { flowId: string; args: { call: number } }
          const plan = plans.find(({ number }) => number === args.call)
          if (plan !== undefined) world.taskCreated(this, task.id, { flowId, journal: task.journal }, plan)
          return tasks.create(task)
        }),
      read: (id) => call(() => tasks.read(id)),
      versions: (ids) => call(() => tasks.versions(ids)),
      list: (owner, limit, after) => call(() => tasks.list(owner, limit, after)),
      claim: (request) => {
        let claimedAt = 0
        const claimed = async () => {
          claimedAt = world.point()
          return tasks.claim(request)
        }
        return this.#call(claimed, () => ({ claimedAt }))
      },
      renew: (leases, leaseMs) => call(() => tasks.renew(leases, leaseMs)),
      append: (lease, entries) => call(() => tasks.append(lease, entries)),
      change: (id, precondition, change) => call(() => tasks.change(id, precondition, change)),
      usage: (owner) => call(() => tasks.usage(owner)),
      sweep: () => call(() => tasks.sweep()),
      watch: (listener) => tasks.watch((event) => this.#notify(() => listener(event))),
    }
  }

  #connectOnce(once: OnceStore): OnceStore {
    const { world } = this.#host
    return {
      claim: (key, note, leaseMs) => this.#call(async () => once.claim(key, note, leaseMs)),
      renew: (key, fence, leaseMs) => this.#call(async () => once.renew(key, fence, leaseMs)),
      settle: (key, fence, record, keepMs) =>
        this.#call(async () => {
          const isSettled = await once.settle(key, fence, record, keepMs)
          if (isSettled && key.startsWith('step:')) world.stepSettled(key.slice('step:'.length))
          return isSettled
        }),
      release: (key, fence) => this.#call(async () => once.release(key, fence)),
    }
  }

  /**
   * A call to the store. What was sent is done even if this process dies meanwhile. It may fail, done or not. Calls arrive in the order
   * in which they were made. The response belongs to the same cause as the call, unless `causeOf` names another.
   */
  #call<T>(run: () => Promise<T>, causeOf?: () => Cause): Promise<T> {
    if (!this.alive) return never()
    const { world, weather } = this.#host
    const { clock } = world
    const random = this.#host.roll('store', this.name, (this.#storeCalls += 1))
    const there = random.next() * weather.storeMs
    const back = random.next() * weather.storeMs
    const failure = random.chance(weather.storeFailure) ? random.pick(['before', 'after'] as const) : undefined
    if (failure !== undefined) world.fault('store failure')
    const { cause } = clock.scene
    this.#lastArrival = Math.max(this.#lastArrival, clock.now + there)
    return new Promise((resolve, reject) => {
      const reply = (give: () => void): void =>
        clock.after(back, give, { place: this, cause: causeOf === undefined ? cause : causeOf() })
      const fail = (): void => reply(() => reject(new Error('The store of the model failed.')))
      const arrive = (): void => {
        if (failure === 'before') return fail()
        void run().then((value) => (failure === undefined ? reply(() => resolve(value)) : fail()), reject)
      }
      clock.after(this.#lastArrival - clock.now, arrive, { place: undefined, cause })
    })
  }

  #notify(listener: () => void): void {
    if (!this.alive) return
    const { world, weather } = this.#host
    const random = this.#host.roll('event', this.name, (this.#storeCalls += 1))
    if (random.chance(weather.eventLoss)) return world.fault('event lost')
    world.clock.after(random.next() * weather.storeMs, listener, { place: this, cause: undefined })
  }
}

export interface Arriving {
  readonly message: object
  readonly principal: string
  readonly isForged: boolean
}

function never(): Promise<never> {
  return new Promise(() => {})
}
