// The callers on this instance that follow tasks: each is called when one of its tasks changes.
import type { Logger } from '../protocol/logger.ts'
import type { TaskRecord, TaskStore } from '../store/tasks.ts'
import { isEnd } from '../store/tasks.ts'

interface Follower {
  readonly onTask: (task: TaskRecord) => void
  /** Called when one of its tasks has outlived its ttl. */
  readonly onGone: (() => void) | undefined
  /** The version of each task that it was called with last. */
  readonly versions: Map<string, number>
}

/** The store may miss events, so followed tasks are also polled. */
const POLL_MS = 5_000

export class Followers {
  readonly #store: TaskStore
  readonly #logger: Logger
  readonly #byTask = new Map<string, Set<Follower>>()
  #unwatch: (() => void) | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(store: TaskStore, logger: Logger) {
    this.#store = store
    this.#logger = logger
  }

  /** Calls `onTask` with each task as it is now, and after every change. Returns a function that stops it. */
  follow(ids: readonly string[], onTask: Follower['onTask'], onGone?: Follower['onGone']): () => void {
    if (ids.length === 0) return () => {}
    const follower: Follower = { onTask, onGone, versions: new Map() }
    this.#watch()
    for (const id of ids) {
      const followers = this.#byTask.get(id) ?? new Set()
      this.#byTask.set(id, followers.add(follower))
      void this.#report(id)
    }
    return () => {
      for (const id of ids) {
        const followers = this.#byTask.get(id)
        followers?.delete(follower)
        if (followers?.size === 0) this.#drop(id)
      }
    }
  }

  async #report(id: string): Promise<void> {
    try {
      const task = await this.#store.read(id)
      for (const { versions, onTask, onGone } of this.#byTask.get(id) ?? []) {
        if (task === undefined) {
          onGone?.()
          continue
        }
        if ((versions.get(id) ?? -1) >= task.version) continue
        versions.set(id, task.version)
        onTask(task)
      }
      // Nothing more can happen: a task that has ended never changes, and an expired one never comes back.
      if (task === undefined || isEnd(task.status)) this.#drop(id)
    } catch (error) {
      this.#logger.error('Cannot read a task that a client follows. It is read again later.', { error })
    }
  }

  #watch(): void {
    this.#unwatch ??= this.#store.watch((event) => {
      if (event.type === 'changed' && this.#byTask.has(event.id)) void this.#report(event.id)
    })
    this.#timer ??= setInterval(() => {
      for (const id of this.#byTask.keys()) void this.#report(id)
    }, POLL_MS).unref()
  }

  #drop(id: string): void {
    this.#byTask.delete(id)
    if (this.#byTask.size > 0) return
    this.#unwatch?.()
    this.#unwatch = undefined
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
