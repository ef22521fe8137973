// Three instances behind the proxy, each a process, and all that they have told of what they did.
import type { OnceStore } from 'mcp-rally'
import type { Ended } from '../drain/process.ts'
import { Process } from '../drain/process.ts'
import { Proxy } from './proxy.ts'

/** What a step did: the key is the same however often it does it. */
export interface Effect {
  effect: string
  flow: number
  step: number
}

interface StoreCall {
  ask: number
  method: keyof OnceStore
  args: [string, string, never, never]
}

type Said = Partial<Effect> & Partial<StoreCall> & { port?: number }

export interface FleetOptions {
  keys: readonly string[]
  stepMs: number
  /** A store that all instances share, for the steps. */
  store?: OnceStore
}

interface Instance {
  readonly port: number
  readonly process: Process<Said>
}

export class Fleet {
  readonly effects: Effect[] = []
  /** How each process that is gone has ended. */
  readonly ends: Ended[] = []
  url = ''
  readonly #options: FleetOptions
  readonly #slots: Instance[] = []
  #proxy = new Proxy([])

  private constructor(options: FleetOptions) {
    this.#options = options
  }

  static async start(options: FleetOptions): Promise<Fleet> {
    const fleet = new Fleet(options)
    const instances = Array.from({ length: 3 }, () => fleet.#spawn(options.keys))
    fleet.#slots.push(...(await Promise.all(instances)))
    fleet.#proxy = new Proxy(fleet.#slots.map(({ port }) => port))
    fleet.url = await fleet.#proxy.listen()
    return fleet
  }

  /** Tells all of them to go; what they have said has then been heard. */
  async end(): Promise<void> {
    for (const { process } of this.#slots) process.signal('SIGTERM')
    this.ends.push(...(await Promise.all(this.#slots.map(({ process }) => process.ended))))
  }

  /** For the end of a test. */
  async stop(): Promise<void> {
    await this.#proxy.close()
    await Promise.all(this.#slots.map(({ process }) => process.kill()))
  }

  /** The effects whose key had been seen before. */
  get repeated(): Effect[] {
    const seen = new Set<string>()
    return this.effects.filter(({ effect }) => {
      const isRepeated = seen.has(effect)
      seen.add(effect)
      return isRepeated
    })
  }

  /** Resolves once this instance did such a step. */
  async seesEffect(slot: number, wanted: (effect: Effect) => boolean): Promise<void> {
    await this.#at(slot).process.until((said) => isEffect(said) && wanted(said))
  }

  /** Ends an instance and puts another one in its place. Gives the port of the one that ended. */
  async restart(slot: number, signal: NodeJS.Signals, keys = this.#options.keys): Promise<number> {
    const { process, port } = this.#at(slot)
    process.signal(signal)
    this.ends.push(await process.ended)
    const instance = await this.#spawn(keys)
    this.#slots[slot] = instance
    this.#proxy.ports[slot] = instance.port
    return port
  }

  async #spawn(keys: readonly string[]): Promise<Instance> {
    const { stepMs, store } = this.#options
    const options = { keys, stepMs, sharesStore: store !== undefined }
    const child = new Process<Said>(new URL('server.mjs', import.meta.url), options, (said) => {
      if (isEffect(said)) this.effects.push(said)
      else if (store !== undefined && isStoreCall(said)) void answer(child, store, said)
    })
    const { port = 0 } = await child.until((said) => said.port !== undefined)
    return { port, process: child }
  }

  #at(slot: number): Instance {
    const instance = this.#slots[slot]
    if (instance === undefined) throw new Error(`There is no instance ${slot}.`)
    return instance
  }
}

async function answer(child: Process<Said>, store: OnceStore, { ask, method, args }: StoreCall): Promise<void> {
  const value = await store[method]?.(...args)
  child.tell({ answer: ask, value })
}

function isEffect(said: Said): said is Effect {
  return said.effect !== undefined
}

function isStoreCall(said: Said): said is StoreCall {
  return said.ask !== undefined
}
