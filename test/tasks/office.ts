// Instances of an app on one store, whose clock and faults the test holds in its hands.
import type { Rally, RallyOptions } from 'mcp-rally'
import { MemoryOnceStore, rally } from 'mcp-rally'
import { onTestFinished, vi } from 'vitest'
import { Caller } from './caller.ts'
import { MemoryTasks } from '../../src/store/memory/tasks.ts'
import type { FoundTasks, InspectedTask, TaskQuery } from '../../src/store/tasks.ts'
import type { Store } from '../../src/store/store.ts'
import type {
  TaskPrecondition,
  ClaimedTask,
  TaskLease,
  TaskEvent,
  NewTask,
  RenewedLease,
  TaskChange,
  TaskRecord,
  TaskStore,
  TaskUsage,
  TaskVersion,
} from '../../src/store/tasks.ts'

export const LEASE_MS = 15_000

export interface Instance {
  readonly app: Rally
  readonly view: View
  readonly logged: string[]
}

/** An office with one instance, and a caller of it. */
export function opened(
  tools: (app: Rally) => unknown,
  options: Partial<RallyOptions> = {},
): { office: Office; caller: Caller; instance: Instance } {
  const office = new Office()
  const instance = office.instance(tools, options)
  return { office, caller: new Caller(office, instance.app), instance }
}

/** One store, and every instance that works on it. */
export class Office {
  readonly tasks: MemoryTasks
  readonly once = new MemoryOnceStore()
  readonly #views: View[] = []
  #now = Date.UTC(2026, 6, 28)
  #waiting: (() => void)[] = []

  constructor() {
    this.tasks = new MemoryTasks(() => this.#now)
    this.tasks.watch(() => {
      for (const resolve of this.#waiting.splice(0)) resolve()
    })
  }

  /** An instance with these tools, at work from the start. */
  instance(tools: (app: Rally) => unknown, options: Partial<RallyOptions> = {}): Instance {
    const instance = this.built(tools, options)
    instance.app.work()
    return instance
  }

  /** An instance that nobody has set to work yet. */
  built(tools: (app: Rally) => unknown, { tasks, ...options }: Partial<RallyOptions> = {}): Instance {
    const logged: string[] = []
    const log = (message: string, details?: object): void => {
      logged.push(`${message} ${JSON.stringify(details ?? {})}`)
    }
    const view = new View(this.tasks)
    const app = rally({
      name: 'office',
      version: '1.0.0',
      keys: ['a secret of the tests of tasks, long enough'],
      logger: { warn: log, error: log },
      store: this.#store(view),
      tasks: { leaseMs: LEASE_MS, ...tasks },
      ...options,
    })
    this.#views.push(view)
    tools(app)
    onTestFinished(() => app.interrupt())
    return { app, view, logged }
  }

  /** Lets time go by for the store, and has every instance look what has fallen due. */
  elapse(ms: number): void {
    this.#now += ms
    if (vi.isFakeTimers()) vi.setSystemTime(this.#now)
    for (const view of this.#views) view.nudge()
  }

  /** From now on, the clocks of the instances are that of the store. Call it before the first instance. */
  shareClock(): void {
    vi.useFakeTimers({ toFake: ['Date'], now: this.#now })
    onTestFinished(() => void vi.useRealTimers())
  }

  get now(): number {
    return this.#now
  }

  /** From now on, no time passes before the next try of a task that was lost: its wait is skipped. */
  skipWaits(): void {
    const change = this.tasks.change.bind(this.tasks)
    this.tasks.change = async (id, precondition, changes) => {
      const version = await change(id, precondition, changes)
      const { release, dueMs } = changes
      if (version !== undefined && release === true && dueMs) setImmediate(() => this.elapse(dueMs + 1))
      return version
    }
  }

  /** Resolves with the next thing that happens in the store. */
  changed(): Promise<void> {
    return new Promise((resolve) => void this.#waiting.push(resolve))
  }

  #store(tasks: TaskStore): Store {
    const mailbox = { leave: async () => true, after: async () => [], watch: () => () => {} }
    return { tasks, once: this.once, mailbox, close: async () => {} }
  }
}

type Operation = Exclude<keyof TaskStore, 'watch'>

/** The store as one instance has it in its hands. */
export class View implements TaskStore {
  /** Called before every operation: what it awaits holds the operation back, and what it throws fails it. */
  before: (operation: Operation, ...args: unknown[]) => unknown = () => {}
  /** Called with what came of every operation that was done, before the instance hears of it. */
  after: (operation: Operation, result: unknown, ...args: unknown[]) => unknown = () => {}
  /** No news reaches the instance. */
  deaf = false
  #dead = false
  readonly #tasks: TaskStore
  readonly #listeners = new Set<(news: TaskEvent) => void>()
  readonly #lookers = new Set<(operation: Operation, args: unknown[]) => void>()

  constructor(tasks: TaskStore) {
    this.#tasks = tasks
  }

  get listeners(): number {
    return this.#listeners.size
  }

  /** As if its process had died: nothing that it does reaches the store any more, and it hears of nothing. */
  kill(): void {
    this.#dead = true
  }

  /** Resolves once the instance has done this, with such arguments, from now on. */
  seen(operation: Operation, isWanted: (...args: unknown[]) => boolean = () => true): Promise<void> {
    return new Promise((resolve) => {
      const look = (done: Operation, args: unknown[]): void => {
        if (done !== operation || !isWanted(...args)) return
        this.#lookers.delete(look)
        resolve()
      }
      this.#lookers.add(look)
    })
  }

  nudge(): void {
    if (!this.#dead) for (const listener of this.#listeners) listener({ type: 'due' })
  }

  create(task: NewTask): Promise<TaskRecord> {
    return this.#reach('create', [task], () => this.#tasks.create(task))
  }

  read(id: string): Promise<TaskRecord | undefined> {
    return this.#reach('read', [id], () => this.#tasks.read(id))
  }

  versions(ids: readonly string[]): Promise<TaskVersion[]> {
    return this.#reach('versions', [ids], () => this.#tasks.versions(ids))
  }

  list(owner: string, limit: number, after?: { id: string; createdAt: number }): Promise<TaskRecord[]> {
    return this.#reach('list', [owner, limit, after], () => this.#tasks.list(owner, limit, after))
  }

  claim(turn: Parameters<TaskStore['claim']>[0]): Promise<ClaimedTask | undefined> {
    return this.#reach('claim', [turn], () => this.#tasks.claim(turn))
  }

  renew(held: readonly TaskLease[], leaseMs: number): Promise<RenewedLease[]> {
    return this.#reach('renew', [held, leaseMs], () => this.#tasks.renew(held, leaseMs))
  }

  append(held: TaskLease, entriesText: string): Promise<boolean> {
    return this.#reach('append', [held, entriesText], () => this.#tasks.append(held, entriesText))
  }

  change(id: string, belief: TaskPrecondition, change: TaskChange): Promise<number | undefined> {
    return this.#reach('change', [id, belief, change], () => this.#tasks.change(id, belief, change))
  }

  usage(owner: string): Promise<TaskUsage> {
    return this.#reach('usage', [owner], () => this.#tasks.usage(owner))
  }

  find(query: TaskQuery): Promise<FoundTasks> {
    return this.#reach('find', [query], () => this.#tasks.find?.(query) ?? Promise.reject(new Error('It cannot.')))
  }

  inspect(id: string): Promise<InspectedTask | undefined> {
    return this.#reach('inspect', [id], async () => this.#tasks.inspect?.(id))
  }

  remove(ids: readonly string[]): Promise<number> {
    return this.#reach('remove', [ids], async () => this.#tasks.remove?.(ids) ?? 0)
  }

  sweep(): Promise<number> {
    return this.#reach('sweep', [], () => this.#tasks.sweep())
  }

  watch(listener: (news: TaskEvent) => void): () => void {
    const own = (news: TaskEvent): void => {
      if (!this.deaf && !this.#dead) listener(news)
    }
    this.#listeners.add(listener)
    const unwatch = this.#tasks.watch(own)
    return () => {
      this.#listeners.delete(listener)
      unwatch()
    }
  }

  async #reach<T>(operation: Operation, args: unknown[], reach: () => Promise<T>): Promise<T> {
    if (!this.#dead) await this.before(operation, ...args)
    if (this.#dead) return new Promise<never>(() => {})
    const result = await reach()
    await this.after(operation, result, ...args)
    for (const look of this.#lookers) look(operation, args)
    return result
  }
}
