// Who wants to hear of which tasks on this instance.
import type { Logger } from '../protocol/logger.ts'
import type { TaskRecord, TaskStore } from '../store/tasks.ts'
import { isEnd } from '../store/tasks.ts'

interface Follower {
  readonly tell: (task: TaskRecord) => void
  /** One of its tasks has outlived its ttl. */
  readonly gone: (() => void) | undefined
  /** The version it was last told of, by task. */
  readonly told: Map<string, number>
}

/** For news that got lost. */
const LOOK_MS = 5_000

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

  follow(ids: readonly string[], tell: Follower['tell'], gone?: Follower['gone']): () => void {
    if (ids.length === 0) return () => {}
    const follower: Follower = { tell, gone, told: new Map() }
    this.#watch()
    for (const id of ids) {
      const followers = this.#byTask.get(id) ?? new Set()
      this.#byTask.set(id, followers.add(follower))
      void this.#look(id)
    }
    return () => {
      for (const id of ids) {
        const followers = this.#byTask.get(id)
        followers?.delete(follower)
        if (followers?.size === 0) this.#drop(id)
      }
    }
  }

  async #look(id: string): Promise<void> {
    try {
      const task = await this.#store.read(id)
      for (const { told, tell, gone } of this.#byTask.get(id) ?? []) {
        if (task === undefined) {
          gone?.()
          continue
        }
        if ((told.get(id) ?? -1) >= task.version) continue
        told.set(id, task.version)
        tell(task)
      }
      // All is told: an end never changes, and what has outlived its ttl does not come back.
      if (task === undefined || isEnd(task.status)) this.#drop(id)
    } catch (error) {
      this.#logger.error('A task that somebody follows could not be read.', { error })
    }
  }

  #watch(): void {
    this.#unwatch ??= this.#store.watch((news) => {
      if (news.type === 'changed' && this.#byTask.has(news.id)) void this.#look(news.id)
    })
    this.#timer ??= setInterval(() => {
      for (const id of this.#byTask.keys()) void this.#look(id)
    }, LOOK_MS).unref()
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
