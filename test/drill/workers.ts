// The instances of a drill, each a process on a port of its own, and others in the place of those that are killed.
import { setTimeout } from 'node:timers/promises'
import { Process } from '../drain/process.ts'
import type { MemoryLedger } from './ledger.ts'

export type StoreTarget = { readonly url: string; readonly schema: string } | { readonly file: string }

export interface WorkerOptions {
  readonly store: StoreTarget
  readonly keys: readonly string[]
  readonly leaseMs: number
  /** How long a step takes, beside its effect. */
  readonly stepMs: number
  /** Steps of a job, half of them before its question. */
  readonly steps: number
  /** The builds that the workers run in turn, each the URL of a `dist/`. Default: that of this checkout. */
  readonly dists?: readonly string[]
  /** False for builds that have no events. Default true. */
  readonly hasEvents?: boolean
  /** How many jobs of a group run at a time. Default: jobs are in no group. */
  readonly groupLimit?: number
}

interface Said {
  readonly port?: number
  readonly takeover?: string
  readonly ran?: number
  /** Why it refused a state. */
  readonly refused?: string
  readonly ask?: number
  readonly key?: string
  readonly job?: number
  readonly step?: number
}

interface Worker {
  readonly process: Process<Said>
  readonly dist: string | undefined
  /** Nothing until it listens. */
  port: number | undefined
  /** Steps that it has run. */
  ran: number
  readonly starting: Promise<void>
}

export class Workers {
  kills = 0
  /** Workers that stood still for longer than their leases, and then went on. */
  stops = 0
  /** Tasks that were taken up after the lease of a worker ran out. */
  takeovers = 0
  /** How often a state was refused, by the reason. */
  readonly refusals: Record<string, number> = {}
  readonly #options: WorkerOptions
  readonly #ledger: MemoryLedger | undefined
  readonly #workers: Worker[] = []
  #isOver = false
  readonly #waiting: (() => void)[] = []

  constructor(options: WorkerOptions, ledger?: MemoryLedger) {
    this.#options = options
    this.#ledger = ledger
  }

  async start(count: number): Promise<void> {
    const { dists = [undefined] } = this.#options
    this.#workers.push(...Array.from({ length: count }, (_, i) => this.#spawn(dists[i % dists.length])))
    await Promise.all(this.#workers.map(({ starting }) => starting))
  }

  /** Where somebody listens, once anybody does. */
  async port(): Promise<number> {
    for (;;) {
      const ports = this.#workers.flatMap(({ port }) => port ?? [])
      const port = ports[Math.floor(Math.random() * ports.length)]
      if (port !== undefined) return port
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
  }

  /**
   * Kills the one that has done most, unless that is less than so many steps: on a slow machine, nobody would live to do anything.
   * Resolves once another listens in its place.
   */
  async killNext(ripe: number): Promise<void> {
    const worker = this.#ripest(ripe)
    if (worker === undefined) return
    worker.port = undefined
    this.kills += 1
    await worker.process.kill()
    if (this.#isOver) return
    const next = this.#spawn(worker.dist)
    this.#workers[this.#workers.indexOf(worker)] = next
    await next.starting
  }

  /** Lets the next one stand still for so long. Nobody sends it anything meanwhile. */
  async stopNext(ripe: number, ms: number): Promise<void> {
    const worker = this.#ripest(ripe)
    if (worker === undefined) return
    const { port } = worker
    worker.port = undefined
    this.stops += 1
    worker.process.signal('SIGSTOP')
    await setTimeout(ms)
    worker.process.signal('SIGCONT')
    worker.ran = 0
    worker.port = port
    this.#tellWaiting()
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#workers.map(({ process }) => process.kill()))
  }

  /** The one that has done most, unless that is less than so many steps. */
  #ripest(ripe: number): Worker | undefined {
    const [worker] = this.#workers.filter(({ port }) => port !== undefined).toSorted((a, b) => b.ran - a.ran)
    return worker !== undefined && worker.ran >= ripe ? worker : undefined
  }

  #spawn(dist: string | undefined): Worker {
    const process = new Process<Said>(new URL('worker.mjs', import.meta.url), { ...this.#options, dist }, (said) => {
      if (said.takeover !== undefined) this.takeovers += 1
      if (said.ran !== undefined || said.ask !== undefined) worker.ran += 1
      if (said.refused !== undefined) this.refusals[said.refused] = (this.refusals[said.refused] ?? 0) + 1
      if (said.ask !== undefined) this.#note(process, said)
    })
    const listens = ({ port }: Said): void => {
      worker.port = port
      this.#tellWaiting()
    }
    const failed = (error: unknown): void => {
      if (!this.#isOver) throw error
    }
    const starting = process.until(({ port }) => port !== undefined).then(listens, failed)
    const worker: Worker = { process, dist, port: undefined, ran: 0, starting }
    return worker
  }

  #tellWaiting(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  #note(process: Process<Said>, { ask, key = '', job = 0, step = 0 }: Said): void {
    this.#ledger?.note({ key, job, step })
    process.tell({ noted: ask })
  }
}
