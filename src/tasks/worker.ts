// Takes up tasks that are due, as many at a time as it may, and keeps its claims on them alive.
//
// Owners take turns, and none of them holds more than three quarters of the places where there are others.
import type { Pass } from '../flow/pass.ts'
import { Underway } from '../flow/underway.ts'
import type { Backoff } from '../protocol/backoff.ts'
import { backoff } from '../protocol/backoff.ts'
import type { AppServices } from '../server/context.ts'
import { TaskRun } from './run.ts'
import type { TaskStore } from '../store/tasks.ts'

export interface WorkerOptions {
  readonly leaseMs: number
  readonly concurrency: number
  readonly maxJournalBytes: number
}

/** For what falls due without news of it, such as the tasks of a worker that died. */
const LOOK_MS = 1_000
const SWEEP_MS = 60_000
/** How long to wait when the store fails. */
const STORE_RETRY: Backoff = { firstMs: 1_000, maxMs: 10_000, jitter: [0.5, 1] }

export class Worker {
  readonly #app: AppServices
  readonly #store: TaskStore
  readonly #options: WorkerOptions
  readonly #underway = new Underway<Pass>()
  readonly #runs = new Map<string, TaskRun>()
  readonly #timers: NodeJS.Timeout[] = []
  #unwatch: (() => void) | undefined
  /** Whose turn it was last. */
  #turn = ''
  #pulling = false
  /** Something may have fallen due while we asked. */
  #again = false
  #faults = 0
  #draining = false
  #endPause: (() => void) | undefined
  #idle: (() => void)[] = []

  constructor(app: AppServices, store: TaskStore, options: WorkerOptions) {
    this.#app = app
    this.#store = store
    this.#options = options
  }

  start(): void {
    if (this.#unwatch !== undefined || this.#draining || this.#options.concurrency === 0) return
    this.#unwatch = this.#store.watch((news) => {
      if (news.type === 'due') this.pull()
      else this.#runs.get(news.id)?.look(news.version)
    })
    this.#every(LOOK_MS, () => this.pull())
    this.#every(this.#options.leaseMs / 3, () => void this.#renew())
    this.#every(SWEEP_MS, () => void this.#sweep())
    this.pull()
  }

  /** Takes up what is due, as long as there is room. */
  pull(): void {
    this.#again = true
    if (!this.#pulling) void this.#pullAll()
  }

  drain(): void {
    this.#draining = true
    // What is still worked on stays claimed: the timers end with the last of it.
    this.#endPause?.()
    this.#rest()
  }

  interrupt(): void {
    for (const pass of this.#underway.all()) pass.interrupt()
  }

  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#idle.push(resolve)
      this.#rest()
    })
  }

  async #pullAll(): Promise<void> {
    this.#pulling = true
    while (this.#again && this.#hasRoom) {
      this.#again = false
      try {
        while (this.#hasRoom && (await this.#take()));
        this.#faults = 0
      } catch (error) {
        await this.#pause(error)
      }
    }
    this.#pulling = false
    this.#rest()
  }

  get #hasRoom(): boolean {
    return !this.#draining && this.#runs.size < this.#options.concurrency
  }

  async #take(): Promise<boolean> {
    const { leaseMs } = this.#options
    const task = await this.#store.claim({ after: this.#turn, except: this.#greedy(), leaseMs })
    if (task === undefined) return false
    this.#turn = task.owner
    const run = new TaskRun(task, {
      app: this.#app,
      store: this.#store,
      underway: this.#underway,
      maxJournalBytes: this.#options.maxJournalBytes,
      draining: () => this.#draining,
    })
    // Our own claim has lapsed: what was begun under it is not to go on beside this.
    this.#runs.get(task.id)?.stop()
    this.#runs.set(task.id, run)
    void run.run().then(() => {
      if (this.#runs.get(task.id) === run) this.#runs.delete(task.id)
      this.pull()
    })
    return true
  }

  /** The owner that has its share of the places. Nobody in particular is no owner. */
  #greedy(): string | undefined {
    const share = Math.ceil((this.#options.concurrency * 3) / 4)
    if (this.#options.concurrency < 2 || this.#runs.size < share) return undefined
    const held = new Map<string, number>()
    for (const { task } of this.#runs.values()) {
      const count = (held.get(task.owner) ?? 0) + 1
      if (count >= share && task.owner !== '') return task.owner
      held.set(task.owner, count)
    }
    return undefined
  }

  async #renew(): Promise<void> {
    const runs = [...this.#runs.values()]
    if (runs.length === 0) return
    try {
      const standing = await this.#store.renew(
        runs.map(({ task: { id, fence } }) => ({ id, fence })),
        this.#options.leaseMs,
      )
      const versions = new Map(standing.map(({ id, version }) => [id, version]))
      for (const run of runs) {
        const version = versions.get(run.task.id)
        if (version === undefined) run.stop()
        else run.look(version)
      }
    } catch (error) {
      this.#app.logger.error('The leases of tasks could not be renewed.', { error })
    }
  }

  async #sweep(): Promise<void> {
    try {
      while ((await this.#store.sweep()) > 0);
    } catch (error) {
      this.#app.logger.error('Tasks that have outlived their ttl could not be swept.', { error })
    }
  }

  /** A store that fails is asked again later and later. */
  async #pause(error: unknown): Promise<void> {
    this.#app.logger.error('No task could be taken up.', { error })
    this.#faults += 1
    const ms = backoff(this.#faults, STORE_RETRY)
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms).unref()
      this.#endPause = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.#endPause = undefined
    this.#again = true
  }

  #every(ms: number, run: () => void): void {
    // Does not keep the process alive: the host that serves the app does that.
    this.#timers.push(setInterval(run, ms).unref())
  }

  /** When it drains and is through with all it held. */
  #rest(): void {
    if (!this.#draining || this.#runs.size > 0 || this.#pulling) return
    this.#unwatch?.()
    this.#unwatch = undefined
    for (const timer of this.#timers.splice(0)) clearInterval(timer)
    for (const resolve of this.#idle.splice(0)) resolve()
  }
}
