// Claims tasks that are due, up to `concurrency` at a time, runs them, and renews their leases.
//
// Owners take turns, and an owner gets at most three quarters of the places, so that the tasks of others can start.
//
// No task runs in the async context of a caller. A request that creates a task wakes the worker, and so does an event of the store, but
// the worker and its timers run in the context in which this file was loaded, and each task in one of its own.
import { AsyncResource } from 'node:async_hooks'
import type { Pass } from '../flow/pass.ts'
import { Underway } from '../flow/underway.ts'
import type { Backoff } from '../protocol/backoff.ts'
import { backoff } from '../protocol/backoff.ts'
import type { AppServices } from '../server/context.ts'
import { logUnlessOutage } from '../store/outages.ts'
import type { EventTokens } from './events.ts'
import { writeClaimNote } from './history.ts'
import { TaskRun, type RunHost } from './run.ts'
import type { ClaimedTask, TaskStore } from '../store/tasks.ts'
import { Trials } from './trials.ts'
import type { TroubledRun } from './trouble.ts'
import { Watchdog } from './watchdog.ts'

export interface WorkerOptions {
  readonly eventTokens: EventTokens
  readonly eventsUrl: string | undefined
  readonly leaseMs: number
  readonly concurrency: number
  readonly maxJournalBytes: number
  readonly timeoutMs: number
  readonly watchdogMs: number
  readonly keepFailedMs: number
  /** The name of this instance, for operations. */
  readonly worker: string
}

/**
 * The store is also polled: no event tells that the lease of a dead worker has expired. With jitter: of instances that poll in step, one
 * would always come after another, and might never get the task that only it has the right version for.
 */
const POLL: Backoff = { firstMs: 1_000, jitter: [0.5, 1.5] }
/** Tasks count for their owner until they are deleted. */
const SWEEP_MS = 10_000
/** How often a task that must run alone looks whether it is. */
const ALONE_POLL_MS = 50
/** The wait before the next claim when the store fails. */
const STORE_RETRY: Backoff = { firstMs: 1_000, maxMs: 10_000, jitter: [0.5, 1] }

const root = new AsyncResource('RallyWorker')

/** A place for a task that is claimed by the write that makes it due. */
export interface ReservedPlace {
  readonly leaseMs: number
  /** Who claims it. */
  readonly worker: string
  /** Starts the task if the write claimed it. Gives the place back otherwise. Call it once, also if the write fails. */
  readonly settle: (task: ClaimedTask | undefined) => void
}

/** The most tasks of one claim. */
const MAX_CLAIMED = 64

export class Worker {
  readonly #app: AppServices
  readonly #store: TaskStore
  readonly #options: WorkerOptions
  readonly #underway = new Underway<Pass>()
  readonly #runs = new Map<string, TaskRun>()
  readonly #timers: NodeJS.Timeout[] = []
  #polling: NodeJS.Timeout | undefined
  readonly #trials: Trials
  readonly #watchdog: Watchdog
  readonly #runHost: RunHost
  /** The run that is, or waits to be, the only one. */
  #alone: TroubledRun | undefined
  #unwatch: (() => void) | undefined
  /** The owner of the task that was claimed last. */
  #lastOwner = ''
  /** When the leases were last renewed, by the clock of this process. */
  #renewedAt = 0
  #isPulling = false
  /** True if a task may be due: one fell due since the last claim, or that claim did not get all. */
  #mayBeDue = false
  /** True if the next claim looks for tasks of groups whose time has come. */
  #looksAtGroups = false
  /** True if the last claim left out an owner. */
  #leftOut = false
  /** The owners of the tasks that places are reserved for. */
  readonly #reserved: string[] = []
  /** How many claims in a row have failed. */
  #failures = 0
  #isDraining = false
  #endPause: (() => void) | undefined
  #onIdle: (() => void)[] = []

  constructor(app: AppServices, store: TaskStore, options: WorkerOptions) {
    this.#app = app
    this.#store = store
    this.#options = options
    this.#trials = new Trials(options.leaseMs)
    this.#watchdog = new Watchdog(options.watchdogMs, app.logger)
    const { maxJournalBytes, eventTokens, eventsUrl, timeoutMs, keepFailedMs, worker } = options
    this.#runHost = {
      app,
      store,
      underway: this.#underway,
      maxJournalBytes,
      eventTokens,
      eventsUrl,
      timeoutMs,
      keepFailedMs,
      worker,
      trials: this.#trials,
      draining: (run) => this.#isDraining || (this.#alone !== undefined && this.#alone !== run),
      alone: (run) => this.#waitUntilAlone(run),
      endTrial: (run) => this.#endTrial(run),
    }
  }

  start(): void {
    if (this.#unwatch !== undefined || this.#isDraining || this.#options.concurrency === 0) return
    root.runInAsyncScope(() => this.#start())
  }

  /** True from `start` until it has drained. */
  get isWorking(): boolean {
    return this.#unwatch !== undefined
  }

  /** Claims due tasks until all places are taken. Does nothing in a process that only sends answers or events, or looks after tasks. */
  pull(): void {
    if (!this.isWorking) return
    this.#mayBeDue = true
    if (!this.#isPulling) void root.runInAsyncScope(() => this.#pullAll())
  }

  /** Returns `undefined` if there is no free place for a task of this owner, or if other tasks may be waiting for one. */
  reserve(owner: string): ReservedPlace | undefined {
    const isWaitedFor = this.#mayBeDue || this.#isPulling || this.#leftOut
    if (this.#unwatch === undefined || isWaitedFor || !this.#hasRoom) return undefined
    if (this.#mostOf().except === owner) return undefined
    this.#reserved.push(owner)
    const settle = (task: ClaimedTask | undefined): void => {
      this.#reserved.splice(this.#reserved.indexOf(owner), 1)
      if (task !== undefined) root.runInAsyncScope(() => this.#begin(task))
      else if (this.#mayBeDue) this.pull()
      this.#finishIfIdle()
    }
    return { leaseMs: this.#options.leaseMs, worker: this.#claimNote(), settle }
  }

  drain(): void {
    this.#isDraining = true
    // The timers still renew the leases of running tasks. They end with the last of those.
    this.#endPause?.()
    this.#finishIfIdle()
  }

  interrupt(): void {
    for (const pass of this.#underway.all()) pass.interrupt()
  }

  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle.push(resolve)
      this.#finishIfIdle()
    })
  }

  #start(): void {
    try {
      this.#unwatch = this.#store.watch((event) => {
        if (event.type === 'due') this.pull()
        else this.#runs.get(event.id)?.look(event.version)
      })
    } catch {
      // The store has failed, which is in the log. The next request starts the worker.
      return
    }
    this.#poll()
    this.#every(this.#options.leaseMs / 3, () => void this.#renew())
    this.#every(SWEEP_MS, () => void this.#sweep())
    this.pull()
  }

  async #pullAll(): Promise<void> {
    this.#isPulling = true
    // Runs that end in the same turn free several places.
    if (this.#store.claimMany !== undefined) await new Promise(setImmediate)
    while (this.#mayBeDue && this.#hasRoom) {
      this.#mayBeDue = false
      try {
        if (await this.#claim()) this.#mayBeDue = true
        this.#failures = 0
      } catch (error) {
        await this.#pause(error)
      }
    }
    this.#isPulling = false
    this.#finishIfIdle()
  }

  get #hasRoom(): boolean {
    return !this.#isDraining && this.#alone === undefined && this.#freePlaces > 0
  }

  get #freePlaces(): number {
    return this.#options.concurrency - this.#runs.size - this.#reserved.length
  }

  /** Claims and starts the next tasks. Returns `false` if no more are due. */
  async #claim(): Promise<boolean> {
    const { leaseMs } = this.#options
    // A handler that blocked the event loop also kept the timer from renewing. Other instances must not claim what still runs here.
    if (Date.now() - this.#renewedAt > leaseMs / 2) await this.#renew()
    const running = [...this.#runs.values()].map(({ lease }) => lease)
    const { except, most } = this.#mostOf()
    const limit = Math.min(this.#freePlaces, most, MAX_CLAIMED)
    const groups = this.#looksAtGroups
    this.#looksAtGroups = false
    const request = { after: this.#lastOwner, except, running, leaseMs, worker: this.#claimNote(), groups }
    this.#leftOut = except !== undefined
    const isOne = limit === 1 || this.#store.claimMany === undefined
    const tasks = isOne ? [await this.#store.claim(request)] : await this.#store.claimMany?.(request, limit)
    let started = 0
    for (const task of tasks ?? []) {
      if (task === undefined) continue
      started += 1
      this.#lastOwner = task.owner
      this.#begin(task)
    }
    return started === (isOne ? 1 : limit)
  }

  #claimNote(): string {
    return writeClaimNote({ worker: this.#options.worker, at: this.#app.now() })
  }

  #begin(task: ClaimedTask): void {
    const run = new TaskRun(task, this.#runHost)
    // If the task was running here, another worker has claimed it since. That run must not continue beside this one.
    this.#runs.get(task.id)?.stop()
    this.#runs.set(task.id, run)
    this.#watchdog.watch()
    void run.run().then(() => {
      if (this.#runs.get(task.id) === run) this.#runs.delete(task.id)
      if (this.#runs.size === 0) this.#watchdog.rest()
      // A store that claims several at a time has told us whether more are due.
      if (this.#store.claimMany === undefined || this.#mayBeDue || this.#leftOut) this.pull()
      else this.#finishIfIdle()
    })
  }

  #endTrial(run: TaskRun): void {
    this.#trials.end(run)
    this.#endAlone(run)
  }

  #endAlone(run: TroubledRun): boolean {
    if (this.#alone !== run) return false
    this.#alone = undefined
    this.pull()
    return true
  }

  /** The other runs hand their tasks over at their next step. If they do not in time, they and this instance go on as before. */
  async #waitUntilAlone(run: TroubledRun): Promise<boolean> {
    const { leaseMs } = this.#options
    const { logger } = this.#app
    if (this.#alone !== undefined || !this.#trials.mayTryAlone) return false
    this.#alone = run
    const until = performance.now() + 2 * leaseMs
    // Wait at least once: the claim that brought this task may have brought others.
    do await new Promise<void>((resolve) => void setTimeout(resolve, ALONE_POLL_MS).unref())
    while (this.#hasOthers && !this.#isDraining && performance.now() < until)
    const isAlone = !this.#hasOthers && !this.#isDraining
    if (!this.#isDraining) this.#trials.triedAlone(isAlone)
    if (!isAlone) {
      this.#endAlone(run)
      const details = { task: run.digest, others: this.#runs.size - 1 }
      if (!this.#isDraining)
        logger.warn('A task that lost its workers could not run alone; it is tried later.', details)
      return false
    }
    setTimeout(() => {
      if (!this.#endAlone(run)) return
      const message = `A task that lost its workers has run alone for ${leaseMs} ms; others run beside it from now on.`
      logger.warn(message, { task: run.digest })
    }, leaseMs).unref()
    return true
  }

  /** True if more than one task runs here, or may soon. */
  get #hasOthers(): boolean {
    return this.#runs.size > 1 || this.#isPulling || this.#reserved.length > 0
  }

  /**
   * An owner gets at most three quarters of the places: `except` is the owner that has them, if there is one, and `most` is how many
   * tasks can be claimed so that no other owner gets more. Callers without a principal are not one owner.
   */
  #mostOf(): { readonly except: string | undefined; readonly most: number } {
    const { concurrency } = this.#options
    const share = Math.ceil((concurrency * 3) / 4)
    if (concurrency < 2) return { except: undefined, most: 1 }
    const counts = new Map<string, number>()
    let except: string | undefined
    let highest = 0
    for (const owner of [...[...this.#runs.values()].map(({ task }) => task.owner), ...this.#reserved]) {
      if (owner === '') continue
      const count = (counts.get(owner) ?? 0) + 1
      counts.set(owner, count)
      if (count >= share) except ??= owner
    }
    for (const [owner, count] of counts) if (owner !== except) highest = Math.max(highest, count)
    return { except, most: Math.max(1, share - highest) }
  }

  async #renew(): Promise<void> {
    const runs = [...this.#runs.values()]
    this.#renewedAt = Date.now()
    if (runs.length === 0) return
    try {
      const renewed = await this.#store.renew(
        runs.map(({ lease }) => lease),
        this.#options.leaseMs,
      )
      const versions = new Map(renewed.map(({ id, version }) => [id, version]))
      for (const run of runs) {
        const version = versions.get(run.task.id)
        if (version === undefined) run.stop()
        else run.look(version)
      }
    } catch (error) {
      logUnlessOutage(this.#app.logger, 'Cannot renew the leases of tasks.', { error })
    }
  }

  async #sweep(): Promise<void> {
    // Also where no tool has a limit any more: tasks of an earlier version may still wait for a place.
    this.#looksAtGroups = true
    try {
      while ((await this.#store.sweep()) > 0);
    } catch (error) {
      logUnlessOutage(this.#app.logger, 'Cannot delete tasks that have outlived their ttl.', { error })
    }
  }

  /** Waits before the next claim when the store has failed. */
  async #pause(error: unknown): Promise<void> {
    logUnlessOutage(this.#app.logger, 'Cannot claim a task. The next try is in a few seconds.', { error })
    this.#failures += 1
    const ms = backoff(this.#failures, STORE_RETRY)
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms).unref()
      this.#endPause = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.#endPause = undefined
    this.#mayBeDue = true
  }

  #poll(): void {
    this.#polling = setTimeout(
      () => {
        this.#looksAtGroups = [...this.#app.registry.tools.values()].some(({ taskGroup }) => taskGroup !== undefined)
        this.pull()
        this.#poll()
      },
      backoff(1, POLL),
    ).unref()
  }

  #every(ms: number, run: () => void): void {
    // Unreferenced: the host that serves the app keeps the process alive.
    this.#timers.push(setInterval(run, ms).unref())
  }

  /** When draining, and no task runs any more: stops watching the store and resolves `idle`. */
  #finishIfIdle(): void {
    if (!this.#isDraining || this.#runs.size > 0 || this.#isPulling || this.#reserved.length > 0) return
    this.#unwatch?.()
    this.#unwatch = undefined
    for (const timer of this.#timers.splice(0)) clearInterval(timer)
    clearTimeout(this.#polling)
    void this.#watchdog.close()
    for (const resolve of this.#onIdle.splice(0)) resolve()
  }
}
